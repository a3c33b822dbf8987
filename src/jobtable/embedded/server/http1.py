"""HTTP/1.1 on one connection: requests in, responses out, with limits on size and time.

Only what DynamoDB's clients use is supported: bodies with a length or in chunks, keep-alive, `Expect: 100-continue`.
The standard library's server spends most of its time in an e-mail parser; this reader is some ten times faster.
"""

from __future__ import annotations

import contextlib
import email.utils
import re
import socket
import time
from dataclasses import dataclass
from http import HTTPStatus

MAX_HEAD_BYTES = 16 * 1024
MAX_BODY_BYTES = 16 * 1024 * 1024

_RECEIVE_BYTES = 256 * 1024
_MOST_DIGITS = 20
_CHUNK_SIZE = re.compile(rb"[0-9a-fA-F]+")


class HttpError(Exception):
    """The bytes of a connection are not HTTP; it is answered once and closed."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long one client may hold a connection without doing anything useful, in seconds."""

    idle: float = 120.0  # between two requests
    request: float = 30.0  # from the first byte of a request to its last
    response: float = 30.0  # until the client has taken a response
    spare: float = 1.0
    """Without a byte while all connections are in use: then it is closed for another client."""
    place: float = 10.0  # until another connection ends while all are in use


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request; header names are in lower case, and `body` is as it was sent."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    keep_alive: bool


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """One response; the connection adds server, date, length and keep-alive."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class HttpConnection:
    """The two directions of one client's socket. One thread uses it; others may only look at it and shut it down."""

    def __init__(self, client: socket.socket, timeouts: Timeouts) -> None:
        self._socket = client
        self._timeouts = timeouts
        self._buffer = bytearray()
        self._deadline: float | None = None
        self.silent_since: float | None = None
        """When it began to wait for a request, or the rest of one; None while one is answered."""

    def next_request(self) -> HttpRequest | None:
        """Wait for a whole request; None if the client has left or was idle too long. HttpError ends the connection."""
        head = self._read_head()
        if head is None:
            return None
        method, target, version, headers = _parse_head(head)
        body = self._read_body(headers)
        self.silent_since = None
        connection = headers.get("connection", "").lower()
        keep_alive = "close" not in connection if version == "HTTP/1.1" else "keep-alive" in connection
        return HttpRequest(method, target, headers, body, keep_alive)

    def send(self, response: HttpResponse, keep_alive: bool, *, has_body: bool = True) -> None:
        """Send a whole response, or raise OSError. An answer to HEAD has the headers of its missing body."""
        lines = [f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}"]
        lines += [f"{name}: {value}" for name, value in response.headers]
        lines += ("Server: Server", f"Date: {_http_date()}")  # The name is DynamoDB's.
        lines.append(f"Content-Length: {len(response.body)}")
        lines.append("Connection: keep-alive" if keep_alive else "Connection: close")
        head = "\r\n".join(lines) + "\r\n\r\n"
        self._socket.settimeout(self._timeouts.response)
        self._socket.sendall(head.encode("latin-1") + (response.body if has_body else b""))

    def shut(self, how: int) -> None:
        """Shut down one direction or both; from any thread. Whoever waits there continues."""
        with contextlib.suppress(OSError):  # The client may have gone in between.
            self._socket.shutdown(how)

    def close(self) -> None:
        self._socket.close()

    def drain(self, seconds: float = 2.0) -> None:
        """Discard what the client still sends, so that it sees the last answer and not a reset connection."""
        deadline = time.monotonic() + seconds
        try:
            self._socket.shutdown(socket.SHUT_WR)
            while (left := deadline - time.monotonic()) > 0:
                self._socket.settimeout(left)
                if not self._socket.recv(_RECEIVE_BYTES):
                    return
        except OSError:
            return  # The client has closed its side: nothing is left to read away.

    def _read_head(self) -> str | None:
        buffer = self._buffer
        self._deadline = time.monotonic() + self._timeouts.request if buffer else None
        while (end := buffer.find(b"\r\n\r\n", 0, MAX_HEAD_BYTES)) < 0:
            if len(buffer) >= MAX_HEAD_BYTES:
                raise HttpError(400, "InvalidRequest", f"The headers exceed {MAX_HEAD_BYTES} bytes")
            if not self._receive():
                return None
        head = buffer[:end].decode("latin-1")
        del buffer[: end + 4]
        return head

    def _read_body(self, headers: dict[str, str]) -> bytes:
        encoding = headers.get("transfer-encoding")
        length_text = headers.get("content-length")
        if encoding is not None and (encoding.lower() != "chunked" or length_text is not None):
            raise HttpError(501, "NotImplemented", f"Transfer-Encoding {encoding!r} is not supported")
        if encoding is None and length_text is None:
            return b""
        if headers.get("expect", "").lower() == "100-continue" and not self._buffer:
            self._socket.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        if length_text is None:
            return self._read_chunks()
        if not (length_text.isascii() and length_text.isdigit()):
            raise HttpError(400, "InvalidRequest", f"Content-Length {length_text[:20]!r} is not a number")
        return self._take(_checked_length(length_text, 10))

    def _read_chunks(self) -> bytes:
        body = bytearray()
        while True:
            size_text = self._take_line().partition(b";")[0].strip()
            if not _CHUNK_SIZE.fullmatch(size_text):
                raise HttpError(400, "InvalidRequest", f"{size_text[:20]!r} is not the size of a chunk")
            size = _checked_length(size_text, 16, len(body))
            if size == 0:
                while self._take_line():
                    pass  # Trailers say nothing that is needed here.
                return bytes(body)
            body += self._take(size)
            if self._take_line():
                raise HttpError(400, "InvalidRequest", "A chunk is longer than it says")

    def _take(self, count: int) -> bytes:
        buffer = self._buffer
        while len(buffer) < count:
            self._receive_or_fail()
        taken = bytes(buffer[:count])
        del buffer[:count]
        return taken

    def _take_line(self) -> bytes:
        while (end := self._buffer.find(b"\r\n")) < 0:
            if len(self._buffer) > MAX_HEAD_BYTES:
                raise HttpError(400, "InvalidRequest", "A line between two chunks has no end")
            self._receive_or_fail()
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line

    def _receive_or_fail(self) -> None:
        if not self._receive():
            raise HttpError(400, "InvalidRequest", "The request ends before its body does")

    def _receive(self) -> bool:
        """Receive bytes. False: the client has left, or was idle between two requests for too long."""
        self.silent_since = time.monotonic()
        if self._deadline is None:
            self._socket.settimeout(self._timeouts.idle)
            try:
                received = self._socket.recv(_RECEIVE_BYTES)
            except TimeoutError:
                return False
            self._deadline = time.monotonic() + self._timeouts.request
        else:
            try:
                self._socket.settimeout(max(self._deadline - time.monotonic(), 0.001))
                received = self._socket.recv(_RECEIVE_BYTES)
            except TimeoutError:
                message = f"The request did not arrive within {self._timeouts.request:g} seconds"
                raise HttpError(408, "RequestTimeout", message) from None
        self._buffer += received
        return bool(received)


def _checked_length(digits: str | bytes, base: int, before: int = 0) -> int:
    """Return a number of bytes that follow `before` others; HttpError if they are too many together."""
    length = int(digits, base) if len(digits) <= _MOST_DIGITS else MAX_BODY_BYTES + 1
    if before + length > MAX_BODY_BYTES:
        message = f"The request body exceeds {MAX_BODY_BYTES} bytes"
        raise HttpError(413, "RequestEntityTooLargeException", message)
    return length


def _parse_head(head: str) -> tuple[str, str, str, dict[str, str]]:
    head = head.lstrip("\r\n")
    first, *lines = head.split("\r\n")
    if not len(lines) == head.count("\r") == head.count("\n"):
        # A proxy may read half a line end as a whole one, and see other headers.
        raise HttpError(400, "InvalidRequest", "A line of the headers ends with CR or LF alone")
    parts = first.split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/"):
        raise HttpError(400, "InvalidRequest", f"{first[:80]!r} is not an HTTP/1.1 request line")
    method, target, version = parts
    if version not in ("HTTP/1.1", "HTTP/1.0"):
        raise HttpError(505, "InvalidRequest", f"{version} is not supported; use HTTP/1.1")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name[0] in " \t" or name[-1] in " \t":
            raise HttpError(400, "InvalidRequest", f"{line[:80]!r} is not a header")
        name, value = name.lower(), value.strip(" \t")
        if name in headers:
            if name in ("content-length", "host", "authorization", "x-amz-target"):
                raise HttpError(400, "InvalidRequest", f"The header {name} occurs twice")
            value = f"{headers[name]},{value}"
        headers[name] = value
    return method, target, version, headers


_date: tuple[int, str] = (0, "")


def _http_date() -> str:
    """Format the time for the Date header, once a second."""
    global _date  # noqa: PLW0603 - a cache of one value; a race between threads only writes it twice
    second = int(time.time())
    if _date[0] != second:
        _date = (second, email.utils.formatdate(second, usegmt=True))
    return _date[1]
