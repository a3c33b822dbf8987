"""HTTP requests to a server."""

from __future__ import annotations

import http.client
import io
import json
import os
import selectors
import ssl
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import wraps
from http import HTTPStatus
from pathlib import Path
from typing import Any, BinaryIO, TypeVar
from urllib.parse import SplitResult, quote, urlencode, urlsplit

from jobtable.errors import (
    AccessDenied,
    BackendUnavailable,
    ConflictError,
    ConnectionUrlError,
    ErrorReason,
    JobtableError,
    NotFoundError,
    RequestError,
    RequestRefused,
    Throttled,
    request_error,
)
from jobtable.settings import without_secret
from jobtable.workflows.asl.machine import Diagnostic, InvalidDefinitionError

T = TypeVar("T")

API = "/api/v1"
TIMEOUT_SECONDS = 60.0
_UPLOAD_TIMEOUT_SECONDS = 600.0
"""A server may need a while for a large file after its last byte."""
_CONSENT_SECONDS = 5.0
"""How long an upload waits for `100 Continue`, which a proxy may swallow."""
_CHUNK_BYTES = 1 << 20
_LONGEST_EXCERPT = 200
_BINARY = "application/octet-stream"
_STATUS = slice(9, 12)
"""The position of the status in `HTTP/1.1 100 Continue`."""


class Server:
    """One server, with the caller's token. Any thread may use it."""

    def __init__(self, url: str, token: str | None = None) -> None:
        parts = _parts(url)
        if token is not None and not (token.isascii() and token.isprintable()):
            raise ConnectionUrlError(f"the token for {url} has invalid characters; copy it as it was printed")
        self.url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self._parts = parts
        self._headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        self._kept: deque[http.client.HTTPConnection] = deque()
        """Idle connections for further reads."""
        self._process_id = os.getpid()

    def read(self, method: str, path: str, body: Any = None, *, query: Mapping[str, Any] | None = None) -> Any:
        """Return the answer to a request that changes nothing; it is sent again if its connection was stale."""
        path += _query_of(query)
        kept = self._take_kept()
        if kept is not None:
            try:
                return self._read(kept, method, path, body)
            except (OSError, http.client.HTTPException):
                kept.close()
        connection = self._connect()
        with self._reaching(connection):
            return self._read(connection, method, path, body)

    def write(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        key: str | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> Any:
        """Return the answer to a request that changes something, which is sent once.

        After BackendUnavailable nobody knows whether it took effect; with a key it does so once, however often sent.
        """
        headers = {"Idempotency-Key": key} if key else {}
        with closing(self._connect(timeout_seconds)) as connection, self._reaching(connection):
            return self._answer(self._send(connection, method, path + _query_of(query), body, headers))

    def create(self, path: str, body: Any) -> Any:
        """Return the answer to a request that creates something, which takes effect once."""
        return self.write("POST", path, body, key=str(uuid.uuid4()))

    def upload(
        self,
        method: str,
        path: str,
        source: Path | bytes,
        *,
        query: Mapping[str, Any],
        media_type: str = _BINARY,
    ) -> Any:
        """Return the answer to a request whose body is a file or bytes; a body that the server refuses is not sent."""
        path += _query_of(query)
        with (
            source.open("rb") if isinstance(source, Path) else io.BytesIO(source) as stream,
            closing(self._connect(_UPLOAD_TIMEOUT_SECONDS)) as connection,
            self._reaching(connection),
        ):
            return self._answer(self._send_stream(connection, method, path, media_type, stream))

    def open(self, path: str, query: Mapping[str, Any] | None = None, *, part: range | None = None) -> Body:
        """Return the body of an answer as a stream that the caller closes; the status of a missing part is 416."""
        more = {"Connection": "close"} | ({"Range": f"bytes={part[0]}-{part[-1]}"} if part else {})
        connection = self._connect()
        with self._reaching(connection):
            response = self._send(connection, "GET", path + _query_of(query), more=more)
            if response.status >= 300 and response.status != HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                with closing(connection):
                    self._answer(response)
        return Body(response, connection, self.url)

    def close(self) -> None:
        """Close the idle connections."""
        while (connection := self._take_kept()) is not None:
            connection.close()

    def _take_kept(self) -> http.client.HTTPConnection | None:
        if self._process_id != os.getpid():  # this process was forked: the connections are its parent's
            self._kept, self._process_id = deque(), os.getpid()
        try:
            return self._kept.pop()
        except IndexError:
            return None

    def _read(self, connection: http.client.HTTPConnection, method: str, path: str, body: Any) -> Any:
        response = self._send(connection, method, path, body)
        content = response.read()
        self._kept.append(connection)
        return self._parsed(response, content)

    def _connect(self, timeout_seconds: float = TIMEOUT_SECONDS) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "https":
            return http.client.HTTPSConnection(
                host, port, timeout=timeout_seconds, context=ssl.create_default_context()
            )
        return http.client.HTTPConnection(host, port, timeout=timeout_seconds)

    def _send(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: Any = None,
        more: Mapping[str, str] | None = None,
    ) -> http.client.HTTPResponse:
        headers = {**self._headers, **(more or {})}
        content = None
        if body is not None:
            content = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        connection.request(method, f"{self._parts.path.rstrip('/')}{API}{path}", content, headers)
        return connection.getresponse()

    def _send_stream(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        media_type: str,
        stream: BinaryIO,
    ) -> http.client.HTTPResponse:
        size = stream.seek(0, io.SEEK_END)
        stream.seek(0)
        connection.putrequest(method, f"{self._parts.path.rstrip('/')}{API}{path}")
        sent = {"Content-Type": media_type, "Content-Length": str(size), "Expect": "100-continue"}
        for name, value in {**self._headers, **sent}.items():
            connection.putheader(name, value)
        connection.endheaders()
        answers = connection.sock.makefile("rb")
        with selectors.DefaultSelector() as selector:
            selector.register(connection.sock, selectors.EVENT_READ)
            has_answered = bool(selector.select(_CONSENT_SECONDS))
        if not has_answered or answers.peek(_STATUS.stop)[_STATUS] == b"100":
            while chunk := stream.read(_CHUNK_BYTES):
                connection.send(chunk)
        response = http.client.HTTPResponse(_Begun(answers), method=method)  # type: ignore[arg-type]  # all it asks of a socket
        response.begin()
        return response

    def _answer(self, response: http.client.HTTPResponse) -> Any:
        return self._parsed(response, response.read())

    def _parsed(self, response: http.client.HTTPResponse, content: bytes) -> Any:
        if 300 <= response.status < 400:  # following it could reveal the token
            elsewhere = response.headers.get("Location", "another address")
            raise ConnectionUrlError(f"{self.url} redirects to {elsewhere}; use that address if it is right")
        try:
            answer = json.loads(content) if content else None
        except ValueError as error:
            excerpt = content[:_LONGEST_EXCERPT].decode(errors="replace")
            raise BackendUnavailable(
                f"{self.url} does not answer as a Jobtable server: HTTP {response.status}, {excerpt!r}"
            ) from error
        if response.status >= 400:
            problem = answer if isinstance(answer, dict) else {}
            raise error_of({**problem, "status": response.status}, self.url)
        return answer

    @contextmanager
    def _reaching(self, connection: http.client.HTTPConnection) -> Iterator[None]:
        """Close a broken connection, and raise BackendUnavailable."""
        try:
            yield
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise BackendUnavailable(f"{self.url} cannot be reached: {reason}") from error


class Body(io.BufferedReader):
    """The whole body of an answer; BackendUnavailable if the connection broke before its end."""

    def __init__(self, response: http.client.HTTPResponse, connection: http.client.HTTPConnection, url: str) -> None:
        super().__init__(_Received(response, connection, url), _CHUNK_BYTES)
        self.status = response.status


class _Received(io.RawIOBase):
    """A body whose premature end is an error; http.client takes it for the end of the body."""

    def __init__(self, response: http.client.HTTPResponse, connection: http.client.HTTPConnection, url: str) -> None:
        self._response = response
        self._connection = connection
        self._url = url

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            count = self._response.readinto(buffer)
        except (OSError, http.client.HTTPException) as error:
            raise self._broken() from error
        if count == 0 and self._response.length:
            raise self._broken()
        return count

    def close(self) -> None:
        self._response.close()
        self._connection.close()
        super().close()

    def _broken(self) -> BackendUnavailable:
        return BackendUnavailable(f"{self._url} was lost in the middle of an answer: ask again")


class _Begun:
    """A socket whose answers were partly read ahead."""

    def __init__(self, answers: io.BufferedReader) -> None:
        self._answers = answers

    def makefile(self, mode: str) -> io.BufferedReader:
        return self._answers


def _parts(url: str) -> SplitResult:
    wrong = ConnectionUrlError(
        f"{without_secret(url)!r} is not the address of a server; write http://HOST:PORT or https://HOST"
    )
    try:
        parts = urlsplit(url)
        is_wrong = parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0
    except ValueError as error:
        raise wrong from error
    if is_wrong or parts.query or parts.fragment:
        raise wrong
    if parts.path.rstrip("/").endswith(API):
        server = without_secret(url).rstrip("/").removesuffix(API)
        raise ConnectionUrlError(f"{server}{API} is the address of an API; write {server}")
    _, at, host = parts.netloc.rpartition("@")
    if at:
        raise ConnectionUrlError(
            f"the server at {host} identifies its caller by a token, not by a name; "
            f"write {parts.scheme}://{host} and set JOBTABLE_TOKEN"
        )
    return parts


def _query_of(query: Mapping[str, Any] | None) -> str:
    """Return the query part of an address, without values that are None."""
    given = {name: value for name, value in (query or {}).items() if value is not None}
    texts = {name: str(value).lower() if isinstance(value, bool) else value for name, value in given.items()}
    return f"?{urlencode(texts, doseq=True)}" if texts else ""


def only_at_store(*verbs: str) -> Callable[[type[T]], type[T]]:
    """Make verbs that a service inherits, and that no route of the server offers, raise RequestRefused."""

    def refuse(kind: type[T]) -> type[T]:
        for name in verbs:
            setattr(kind, name, _refusing(getattr(kind, name)))
        return kind

    return refuse


def _refusing(verb: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(verb)
    def refused(*_: Any, **__: Any) -> Any:
        raise RequestRefused(f"{verb.__qualname__} cannot be done through a server: it needs the store itself")

    return refused


def path_of(*parts: str) -> str:
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def error_of(problem: Mapping[str, Any], url: str) -> JobtableError:
    """Return the error that a problem describes, as it would have been raised here."""
    error = _error(problem, url)
    reason = problem.get("reason")
    error.hint, error.reason = problem.get("hint"), ErrorReason(reason) if reason in set(ErrorReason) else None
    if isinstance(error, NotFoundError):
        error.kind, error.key = problem.get("kind"), problem.get("key")
    return error


def _error(problem: Mapping[str, Any], url: str) -> JobtableError:
    status = int(problem["status"])
    text = problem.get("detail") or problem.get("title")
    detail = str(text or f"HTTP {status}")
    cls = _class_named(str(problem.get("type")))
    if cls is not None and issubclass(cls, RequestError):
        reason = problem.get("reason")
        return cls(detail) if reason is None or reason in set(ErrorReason) else request_error(str(reason), detail)
    if cls is InvalidDefinitionError:
        return InvalidDefinitionError(tuple(Diagnostic(**each) for each in problem.get("errors") or ()))
    if cls is not None:
        return cls(detail)
    if status in (401, 403):
        return AccessDenied(f"{url}: {detail}")
    if status == 429:
        return Throttled(f"{url}: {detail}")
    if status >= 500 or status == HTTPStatus.REQUEST_TIMEOUT:
        return BackendUnavailable(f"{url}: {detail}")
    if status == 404:
        return NotFoundError(f"{url}: {detail}")
    if text is None:
        return RequestRefused(f"{url} does not answer as a Jobtable server: {detail}")
    return ConflictError(detail) if status == 409 else RequestRefused(_with_members(detail, problem))


def _class_named(name: str) -> type[JobtableError] | None:
    """Return the class of errors with this name, of those that are loaded: who asks knows which may come."""
    waiting: list[type[JobtableError]] = [JobtableError]
    while waiting:
        cls = waiting.pop()
        if cls.__name__ == name:
            return cls
        waiting += cls.__subclasses__()
    return None


def _with_members(detail: str, problem: Mapping[str, Any]) -> str:
    """Return the message with the invalid members of the request that the server names."""
    members = problem.get("errors") or []
    named = [member if isinstance(member, str) else json.dumps(member) for member in members]
    return f"{detail}: {'; '.join(named)}" if named else detail
