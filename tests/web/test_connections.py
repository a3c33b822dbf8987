"""How the server sends its answers."""

from __future__ import annotations

import socket

from jobtable.web.server import bind


def test_the_parts_of_an_answer_do_not_wait_for_each_other() -> None:
    """With Nagle's algorithm every answer on a connection that is kept takes 40 ms longer."""
    with bind("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()[:2]):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
