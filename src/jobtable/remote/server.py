"""A server, spoken to over HTTP."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from jobtable import errors
from jobtable.errors import (
    AccessDenied,
    BackendUnavailable,
    ConflictError,
    ConnectionUrlError,
    JobtableError,
    NotFoundError,
    RequestError,
    RequestRefused,
    Throttled,
    request_error,
)

API = "/api/v1"
_TIMEOUT_SECONDS = 60.0
_LONGEST_EXCERPT = 200


class Server:
    """One server, with the token that it knows its caller by. Any thread may use it."""

    def __init__(self, url: str, token: str | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ConnectionUrlError(f"{url!r} is no server: write http://HOST:PORT or https://HOST")
        self.url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self._parts = parts
        self._headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        self._kept = threading.local()

    def read(self, method: str, path: str, body: Any = None) -> Any:
        """The answer to a request that changes nothing, so it is sent again where its connection has gone stale."""
        connection: http.client.HTTPConnection | None = getattr(self._kept, "connection", None)
        if connection is not None:
            try:
                return self._answer(self._send(connection, method, path, body))
            except (OSError, http.client.HTTPException):
                connection.close()
        connection = self._kept.connection = self._connect()
        try:
            return self._answer(self._send(connection, method, path, body))
        except (OSError, http.client.HTTPException) as error:
            self._kept.connection = None
            raise self._unreachable(error) from error

    def write(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> Any:
        """The answer to a request that changes something: it is sent once, and BackendUnavailable says that nobody
        knows whether it took effect. With a key it takes effect once, however often it is sent."""
        asked = {name: str(value).lower() for name, value in (query or {}).items()}
        connection = self._connect()
        try:
            headers = {"Idempotency-Key": key} if key else {}
            full = f"{path}?{urlencode(asked)}" if asked else path
            return self._answer(self._send(connection, method, full, body, headers))
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from error
        finally:
            connection.close()

    def open(self, path: str) -> http.client.HTTPResponse:
        """The body of an answer as a stream; the caller closes it."""
        try:
            # So that closing the stream closes the connection.
            response = self._send(self._connect(), "GET", path, more={"Connection": "close"})
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from error
        if response.status >= 400:
            self._answer(response)
        return response

    def close(self) -> None:
        """Close the connection of the calling thread."""
        connection: http.client.HTTPConnection | None = getattr(self._kept, "connection", None)
        if connection is not None:
            connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "https":
            return http.client.HTTPSConnection(
                host, port, timeout=_TIMEOUT_SECONDS, context=ssl.create_default_context()
            )
        return http.client.HTTPConnection(host, port, timeout=_TIMEOUT_SECONDS)

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

    def _answer(self, response: http.client.HTTPResponse) -> Any:
        content = response.read()
        try:
            answer = json.loads(content) if content else None
        except ValueError as error:
            excerpt = content[:_LONGEST_EXCERPT].decode(errors="replace")
            raise BackendUnavailable(
                f"{self.url} does not answer as a Jobtable server: HTTP {response.status}, {excerpt!r}"
            ) from error
        if response.status >= 400:
            raise _error(response.status, answer if isinstance(answer, dict) else {}, self.url)
        return answer

    def _unreachable(self, error: Exception) -> BackendUnavailable:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return BackendUnavailable(f"{self.url} cannot be reached: {reason}")


def path_of(*parts: str) -> str:
    """A path made of parts, none of which can leave its place."""
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def _error(status: int, problem: Mapping[str, Any], url: str) -> JobtableError:
    """The error that the server met, as it would have been raised here."""
    detail = str(problem.get("detail") or problem.get("title") or f"HTTP {status}")
    kind = getattr(errors, str(problem.get("type")), None)
    if isinstance(kind, type) and issubclass(kind, RequestError):
        code, _, message = detail.partition(": ")
        return request_error(code, message)
    if isinstance(kind, type) and issubclass(kind, JobtableError):
        return kind(detail)
    if status in (401, 403):
        return AccessDenied(f"{url}: {detail}")
    if status == 429:
        return Throttled(f"{url}: {detail}")
    if status >= 500:
        return BackendUnavailable(f"{url}: {detail}")
    if status == 404:
        return NotFoundError(f"{url}: {detail}")
    return ConflictError(detail) if status == 409 else RequestRefused(_with_places(detail, problem))


def _with_places(detail: str, problem: Mapping[str, Any]) -> str:
    """The sentence, and where the request is wrong, as far as the server says it."""
    places = problem.get("errors") or []
    told = [json.dumps(place) if not isinstance(place, str) else place for place in places]
    return f"{detail}: {'; '.join(told)}" if told else detail
