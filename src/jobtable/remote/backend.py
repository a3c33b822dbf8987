"""The tables and objects of a server, to read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import BinaryIO

from jobtable.errors import ObjectNotFoundError, ObjectStoreError, RequestRefused
from jobtable.objects import ListedObject, ObjectInfo, Source, key_parts
from jobtable.objects.store import CHUNK_SIZE, check_range
from jobtable.remote.server import Body, Server, path_of
from jobtable.store.backend import Request, Response

_READS = frozenset({"GetItem", "BatchGetItem", "TransactGetItems", "Query"})


class ServerBackend:
    """A backend that reads through a server. What would write is refused here: a server takes verbs, not items."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def execute(self, operation: str, request: Request) -> Response:
        """The answer to a request that reads."""
        if operation not in _READS:
            raise RequestRefused(f"{operation} cannot be done through {self._server.url}: it needs the store itself")
        response: Response = self._server.read("POST", path_of("store", operation), request)
        return response

    def close(self) -> None:
        """Close the connection."""
        self._server.close()


class ServerObjects:
    """The objects of a server, to read one by one."""

    def __init__(self, server: Server) -> None:
        self._server = server

    @property
    def bucket(self) -> str:
        """The server stands in the place of a bucket."""
        return self._server.url

    def open(self, key: str) -> BinaryIO:
        """The object as a stream; the caller closes it."""
        return self._opened(key)

    def _opened(self, key: str, part: range | None = None) -> Body:
        key_parts(key)  # refuses what is no key
        try:
            return self._server.open(path_of("objects", *key.split("/")), part=part)
        except ObjectNotFoundError as error:
            raise ObjectNotFoundError(f"there is no object {key} on {self._server.url}") from error

    def get(self, key: str) -> bytes:
        """The whole object."""
        with self.open(key) as stream:
            return stream.read()

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """At most `length` bytes from `start`."""
        check_range(start, length)
        with self._opened(key, range(start, start + max(1, length))) as stream:
            if stream.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                return b""
            if stream.status != HTTPStatus.PARTIAL_CONTENT:  # what stands between has asked for all of it
                while start > 0 and (skipped := stream.read(min(start, CHUNK_SIZE))):
                    start -= len(skipped)
            return stream.read(length)

    def head(self, key: str) -> ObjectInfo:
        """Not through a server."""
        raise self._refused(f"what is known of object {key}")

    def describe(self, key: str) -> ListedObject:
        """Not through a server."""
        raise self._refused(f"what is known of object {key}")

    def put(self, key: str, source: Source) -> ObjectInfo:
        """Not through a server."""
        raise self._refused(f"storing object {key}")

    def list(self, prefix: str = "") -> Iterator[ListedObject]:
        """Not through a server."""
        raise self._refused(f"listing objects below {prefix or 'the root'}")

    def delete(self, key: str) -> None:
        """Not through a server."""
        raise self._refused(f"deleting object {key}")

    def url(self, key: str, *, expires_in: timedelta = timedelta(hours=1)) -> str | None:
        """None: the caller hands out the bytes itself."""
        return None

    def remove_unfinished(self, before: datetime) -> int:
        """Not through a server."""
        raise self._refused("removing what is unfinished")

    def close(self) -> None:
        """Nothing is held."""

    def _refused(self, what: str) -> ObjectStoreError:
        return ObjectStoreError(f"{what} cannot be done through {self._server.url}: it needs the object store itself")
