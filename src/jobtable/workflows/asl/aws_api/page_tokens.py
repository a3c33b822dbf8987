"""Pages of lists, and the tokens of the next ones: opaque, bound to their query, and valid for a day."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar

from jobtable.errors import CursorError
from jobtable.store.queries import Paged
from jobtable.workflows.asl.aws_api.refusals import invalid_token

T = TypeVar("T")

_DEFAULT_SIZE = 100
_LONGEST_CURSOR = 16_384
_VALID_FOR = timedelta(hours=24)


def page_of(
    query: Paged[T],
    request: Mapping[str, Any],
    now: datetime,
    *,
    keep: Callable[[T], bool] = lambda _: True,
) -> tuple[list[T], str | None]:
    """Return the page of a query that a request asks for, and the token of the next one.

    A page has fewer results if `keep` leaves some out, but none only at the end.
    """
    size = request.get("maxResults") or _DEFAULT_SIZE
    token = request.get("nextToken")
    cursor = None if token is None else _cursor_of(token, now)
    kept: list[T] = []
    while True:
        try:
            page = query.page(cursor, size)
        except CursorError as error:
            raise invalid_token() from error
        kept += [each for each in page.items if keep(each)]
        cursor = page.cursor
        if kept or cursor is None:
            return kept, None if cursor is None else _token_of(cursor, now)


def _token_of(cursor: str, now: datetime) -> str:
    expires = int((now + _VALID_FOR).timestamp())
    packed = zlib.compress(f"{expires}.{cursor}".encode(), 9)
    return base64.urlsafe_b64encode(packed).decode()


def _cursor_of(token: str, now: datetime) -> str:
    try:
        packed = base64.b64decode(token, altchars=b"-_", validate=True)
        unpacking = zlib.decompressobj()
        text = unpacking.decompress(packed, _LONGEST_CURSOR).decode()
        expires, _, cursor = text.partition(".")
        is_valid = unpacking.eof and now.timestamp() < int(expires)
    except (ValueError, binascii.Error, zlib.error) as error:
        raise invalid_token() from error
    if not is_valid or not cursor:
        raise invalid_token()
    return cursor
