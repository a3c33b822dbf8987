"""The embedded backend: DynamoDB's operations, in this process, on one SQLite file."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic_core import PydanticSerializationError

from jobtable.clock import SYSTEM_CLOCK, Clock
from jobtable.embedded.dispatch import handler_of
from jobtable.embedded.request_model import read_request, wrong_type
from jobtable.embedded.storage import Storage
from jobtable.embedded.wordings import expect_type, in_words_of
from jobtable.errors import RequestError, RequestRefused, TableInUse, TableNotFound
from jobtable.store.backend import Request, Response, StoreRequest


class EmbeddedBackend:
    """DynamoDB's API on the SQLite file at `path`, or on a private temporary database without a path.

    With `durability="full"` an acknowledged write survives a power cut; with "normal" it survives a crash of the
    process, and a power cut may undo the last writes.
    """

    takes_encoded_items: Literal[True] = True

    def __init__(
        self, path: Path | None, *, durability: Literal["full", "normal"] = "full", clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._storage = Storage(path, durability=durability, clock=clock)

    def execute(self, operation: str, request: Request) -> Response:
        """Run one operation, or raise RequestError."""
        handler = handler_of(operation)
        if type(request) is not StoreRequest:
            expect_type(request, dict)
        try:
            return handler(self._storage, request)
        except (RequestRefused, TableNotFound, TableInUse) as refusal:
            if wrong_type(operation, request) is not None:
                return self._execute_as_read(operation, request, refusal)
            answer = in_words_of(operation, refusal)
            if answer is refusal:
                raise
            raise answer from refusal
        except (UnicodeEncodeError, PydanticSerializationError) as error:
            raise RequestRefused(
                f"The request has text that is not Unicode: {error}", code="SerializationException"
            ) from error

    def _execute_as_read(self, operation: str, request: Request, refusal: RequestError) -> Response:
        """Run a refused request with members of other JSON types again, if DynamoDB would read all of them."""
        try:
            read = read_request(operation, request)
        except RequestRefused as mistyped:
            raise mistyped from refusal
        return self.execute(operation, read)

    def change_mark(self) -> object:
        """Return a value that differs once any process has written something; it may also differ without that."""
        return self._storage.change_mark()

    def keep_up(self) -> int:
        """Delete expired items and trim the journals now; return how many items expired."""
        return self._storage.keep_up()

    def close(self) -> None:
        """Release the file. Closing twice is harmless."""
        self._storage.close()
