"""The tables and objects of a server, read-only."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import BinaryIO

from jobtable.errors import ObjectNotFoundError, ObjectStoreError, RequestRefused
from jobtable.objects import ListedObject, ObjectInfo, Source, key_parts
from jobtable.objects.object_store import CHUNK_SIZE, check_range
from jobtable.remote.server_requests import Body, Server, path_of
from jobtable.store.backend import Request, Response

_READS = frozenset({"GetItem", "BatchGetItem", "TransactGetItems", "Query"})


class ServerBackend:
    """A backend that reads through a server and refuses writes: a server accepts verbs, not items."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def execute(self, operation: str, request: Request) -> Response:
        if operation not in _READS:
            raise RequestRefused(f"{operation} cannot be done through {self._server.url}: it needs the store itself")
        response: Response = self._server.read("POST", path_of("store", operation), request)
        return response

    def close(self) -> None:
        self._server.close()


class ServerObjects:
    """The objects of a server, read one by one."""

    def __init__(self, server: Server) -> None:
        self._server = server

    @property
    def bucket(self) -> str:
        """The address of the server takes the place of a bucket."""
        return self._server.url

    def open(self, key: str) -> BinaryIO:
        return self._opened(key)

    def _opened(self, key: str, part: range | None = None) -> Body:
        key_parts(key)  # refuses an invalid key
        try:
            return self._server.open(path_of("objects", *key.split("/")), part=part)
        except ObjectNotFoundError as error:
            raise ObjectNotFoundError(f"there is no object {key} on {self._server.url}") from error

    def get(self, key: str) -> bytes:
        with self.open(key) as stream:
            return stream.read()

    def get_range(self, key: str, start: int, length: int) -> bytes:
        check_range(start, length)
        with self._opened(key, range(start, start + max(1, length))) as stream:
            if stream.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                return b""
            if stream.status != HTTPStatus.PARTIAL_CONTENT:  # a proxy has requested all of it
                while start > 0 and (skipped := stream.read(min(start, CHUNK_SIZE))):
                    start -= len(skipped)
            return stream.read(length)

    def head(self, key: str) -> ObjectInfo:
        raise self._refused(f"what is known of object {key}")

    def describe(self, key: str) -> ListedObject:
        raise self._refused(f"what is known of object {key}")

    def put(self, key: str, source: Source) -> ObjectInfo:
        raise self._refused(f"storing object {key}")

    def list(self, prefix: str = "") -> Iterator[ListedObject]:
        raise self._refused(f"listing objects below {prefix or 'the root'}")

    def delete(self, key: str) -> None:
        raise self._refused(f"deleting object {key}")

    def url(self, key: str, *, expires_in: timedelta = timedelta(hours=1)) -> str | None:
        return None

    def remove_unfinished(self, before: datetime) -> int:
        raise self._refused("removing what is unfinished")

    def close(self) -> None:
        """Keep the connection, which belongs to the backend."""

    def _refused(self, what: str) -> ObjectStoreError:
        return ObjectStoreError(f"{what} cannot be done through {self._server.url}: it needs the object store itself")
