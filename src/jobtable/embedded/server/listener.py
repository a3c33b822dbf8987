"""The listening socket and a thread for every connection.

Some clients open a connection for each of thousands of requests at once. Those above the limit wait: connections of
silent clients are closed for them, and the others after their next answer.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable
from types import TracebackType

from jobtable.embedded.server.http1 import HttpConnection, HttpError, HttpRequest, HttpResponse, Timeouts
from jobtable.embedded.server.protocol import http_error_response

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.1  # how often a waiting client looks for an unused connection

MOST_CONNECTIONS = 512
MOST_FILES = 4 * MOST_CONNECTIONS
"""A connection is a file, and its reader has the database, its log and their locks open."""

Respond = Callable[[HttpRequest], HttpResponse]


class Server:
    """Listens from its construction, serves from start(), and stops in close() when running requests are answered."""

    def __init__(
        self,
        respond: Respond,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        max_connections: int = MOST_CONNECTIONS,
        timeouts: Timeouts | None = None,
    ) -> None:
        """Raise OSError if it cannot listen on the address. Port 0 takes a free one."""
        self._respond = respond
        self._timeouts = timeouts or Timeouts()
        self._max_connections = max_connections
        self._listening = _listening_socket(host, port)
        self._lock = threading.Condition(threading.Lock())
        self._connections: dict[HttpConnection, threading.Thread] = {}
        self._is_full = False
        self._stopping = False
        self._accepting = threading.Thread(target=self._accept, name="jobtable-accept", daemon=True)

    @property
    def address(self) -> tuple[str, int]:
        """The host and the port of the listening socket."""
        host, port = self._listening.getsockname()[:2]
        return str(host), int(port)

    @property
    def url(self) -> str:
        """The endpoint for clients."""
        host, port = self.address
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{port}"

    def start(self) -> None:
        """Accept connections from now on."""
        self._accepting.start()

    def close(self, grace_seconds: float = 10.0) -> None:
        """Accept no more connections, let received requests be answered, then close the rest."""
        deadline = time.monotonic() + grace_seconds
        with self._lock:
            already_stopping, self._stopping = self._stopping, True
            self._lock.notify_all()
        if already_stopping:
            return
        with contextlib.suppress(OSError):  # A socket that never listened cannot be shut down.
            self._listening.shutdown(socket.SHUT_RDWR)
        if self._accepting.is_alive():
            self._accepting.join()
        self._listening.close()
        with self._lock:
            left = dict(self._connections)
        for connection in left:
            connection.shut(socket.SHUT_RD)
        for connection, thread in left.items():
            thread.join(max(deadline - time.monotonic(), 0))
            if thread.is_alive():
                connection.shut(socket.SHUT_RDWR)

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _accept(self) -> None:
        self._listening.settimeout(1.0)  # Not every system wakes accept() when the socket is shut down.
        while not self._is_stopping():
            try:
                client, _ = self._listening.accept()
            except TimeoutError:
                continue
            except OSError as error:
                if self._is_stopping():
                    return
                _log.warning("Could not accept a connection: %s", error)
                time.sleep(0.05)  # Most likely no file descriptor is left until others end.
                continue
            self._take(client)

    def _take(self, client: socket.socket) -> None:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = HttpConnection(client, self._timeouts)
        thread = threading.Thread(target=self._serve, args=(connection,), name="jobtable-connection", daemon=True)
        with self._lock:
            has_place = self._wait_for_place()
            if has_place:
                self._connections[connection] = thread
        if not has_place:
            _refuse(client, f"All {self._max_connections} connections are in use")
            return
        try:
            thread.start()
        except RuntimeError as error:  # The system has no more threads.
            self._forget(connection)
            _refuse(client, str(error))

    def _wait_for_place(self) -> bool:
        """Wait until one more connection may be served, and return whether it may. The lock is held."""
        deadline = time.monotonic() + self._timeouts.place
        self._is_full = len(self._connections) >= self._max_connections
        while len(self._connections) >= self._max_connections:
            if self._stopping or time.monotonic() > deadline:
                return False
            self._cut_most_silent()
            self._lock.wait(_LOOK_SECONDS)
        return True

    def _cut_most_silent(self) -> None:
        """Close the connection that has been silent for the longest time, unless that is too short."""
        silent = {each: since for each in self._connections if (since := each.silent_since) is not None}
        longest = min(silent, key=silent.__getitem__, default=None)
        if longest is not None and time.monotonic() - silent[longest] >= self._timeouts.spare:
            longest.silent_since = None  # It is not closed twice before its thread ends.
            longest.shut(socket.SHUT_RD)

    def _serve(self, connection: HttpConnection) -> None:
        try:
            while self._serve_one(connection):
                pass
        except OSError as error:
            _log.debug("A connection ended: %s", error)
        finally:
            self._forget(connection)
            connection.close()

    def _serve_one(self, connection: HttpConnection) -> bool:
        """Answer one request; False if no other will follow."""
        try:
            request = connection.next_request()
        except HttpError as error:
            connection.send(http_error_response(error), keep_alive=False)
            connection.drain()
            return False
        if request is None:
            return False
        response = self._respond(request)
        keep_alive = request.keep_alive and not (self._is_full or self._is_stopping())
        connection.send(response, keep_alive, has_body=request.method != "HEAD")
        return keep_alive

    def _is_stopping(self) -> bool:
        return self._stopping

    def _forget(self, connection: HttpConnection) -> None:
        with self._lock:
            self._connections.pop(connection, None)
            self._lock.notify_all()


def _listening_socket(host: str, port: int) -> socket.socket:
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    return socket.create_server((str(address[0]), port), family=family, backlog=512)


def _refuse(client: socket.socket, reason: str) -> None:
    """Answer 503, after which clients try again, without a thread: the few bytes fit into the socket's buffer."""
    with client, contextlib.suppress(OSError):
        connection = HttpConnection(client, Timeouts(response=0.1))
        connection.send(http_error_response(HttpError(503, "ServiceUnavailable", reason)), keep_alive=False)
