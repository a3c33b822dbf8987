"""Connections that somebody holds without using them are cut: what they take is there for others.

uvicorn bounds the pause between two requests, and nothing else.
"""

from __future__ import annotations

from collections.abc import Collection

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

LONGEST_HEAD_SECONDS = 60.0
"""How long the head of a request may take."""
LONGEST_PAUSE_SECONDS = 600.0
"""How long somebody may pause in reading an answer: a person may look at the beginning of a long one for a while."""
MOST_CONNECTIONS = 2000
"""If there are more, those that wait the longest are cut. There is room for all live views, and as many others."""
MOST_FILES = 2 * MOST_CONNECTIONS
"""A connection is a file to the system, and while it is served, it may have one open."""

State = tuple[int, RequestResponseCycle | None]
"""How many bytes of answers are not read, and the last request, which begins with the end of its head."""


class HeldConnections:
    """For whom each connection waits, and since when."""

    def __init__(self) -> None:
        self._waiting: dict[H11Protocol, tuple[State, float]] = {}

    def cut(self, connections: Collection[H11Protocol], now: float) -> None:
        """Look at all connections, which is to be done every second or so, and cut those that are held too long."""
        before, self._waiting = self._waiting, {}
        for connection in connections:
            state = _state_if_waiting(connection)
            if state is not None:
                known, since = before.get(connection, (None, now))
                self._waiting[connection] = (state, since if state == known else now)
        too_many = len(connections) - MOST_CONNECTIONS
        for connection, ((unread, _), since) in sorted(self._waiting.items(), key=lambda waiting: waiting[1][1]):
            if too_many > 0 or now - since >= (LONGEST_PAUSE_SECONDS if unread else LONGEST_HEAD_SECONDS):
                connection.transport.abort()
                too_many -= 1


def _state_if_waiting(connection: H11Protocol) -> State | None:
    """What stays the same while the other side, whose turn it is, neither reads on nor sends a head; else None."""
    unread = connection.transport.get_write_buffer_size()
    cycle: RequestResponseCycle | None = connection.cycle
    return (unread, cycle) if unread or cycle is None or cycle.response_complete else None
