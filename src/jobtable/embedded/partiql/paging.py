"""Reading what a SELECT has planned, page by page."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from jobtable.embedded.pages import PAGE_BYTES, Page, Reading, read_page
from jobtable.embedded.partiql.selections import Plan
from jobtable.embedded.queries import cursor_of, from_start
from jobtable.embedded.start_keys import start_position
from jobtable.embedded.storage import Storage, View
from jobtable.embedded.units import Units, read_rate, wanted_capacity
from jobtable.embedded.values import validate_item
from jobtable.errors import CursorError, RequestRefused
from jobtable.store.backend import Item, Request, Response
from jobtable.store.cursors import read_cursor, write_cursor

_MOST_OF_PARTITIONS = 10
"""Items of a page that reads several partitions."""
_INVALID = "Invalid NextToken"


@dataclass(slots=True)
class _Progress:
    """Where a SELECT has come to, and what it has read on this page."""

    at: int
    """The number of the range that comes next."""
    after: Item | None
    """The key in it behind which reading goes on."""
    items: list[Any] = field(default_factory=list)
    units: Units = field(default_factory=Units)
    scanned: int = 0
    read_bytes: int = 0


def read(storage: Storage, request: Request, plan: Plan) -> Response:
    """The next page of a SELECT: at most as many items are looked at as Limit says, and at most 1 MB of them."""
    progress = _start(request, plan)
    limit: int | None = request.get("Limit")
    if len(plan.ranges) > 1:
        limit = min(limit or _MOST_OF_PARTITIONS, _MOST_OF_PARTITIONS)
    last: Item | None = None
    with storage.read() as view:
        while progress.at < len(plan.ranges):
            page = _page(view, plan, progress, limit)
            progress.items += page.items
            progress.units.add(page.units(plan.source.index, read_rate(request)))
            progress.scanned += page.scanned
            progress.read_bytes += page.read_bytes
            last = page.last
            if last is not None and not plan.has_whole_keys:
                progress.after = cursor_of(plan.source, last)
                break
            progress.at, progress.after = progress.at + 1, None
            if progress.scanned == limit or progress.read_bytes >= PAGE_BYTES:
                break
    return _answer(request, plan, progress, last)


def _page(view: View, plan: Plan, progress: _Progress, limit: int | None) -> Page:
    source = plan.source
    start = None if progress.after is None else start_position(source, progress.after)
    reading = Reading(
        table=source.table,
        index=source.index,
        bounds=from_start(plan.ranges[progress.at], start, forward=not plan.is_reverse),
        reverse=plan.is_reverse,
        limit=None if limit is None else limit - progress.scanned,
        fetches_from_table=source.fetches_from_table(),
        wants_items=True,
        as_json=False,
    )
    return read_page(view, reading)


def _answer(request: Request, plan: Plan, progress: _Progress, last: Item | None) -> Response:
    source = plan.source
    kept = progress.items if source.filter is None else filter(source.filter.holds, progress.items)
    response: Response = {"Items": [plan.row(item) for item in kept]}
    if progress.at < len(plan.ranges):
        place = {"range": progress.at, "after": progress.after}
        response["NextToken"] = write_cursor(place, _fingerprint(request))
        if last is not None:
            response["LastEvaluatedKey"] = cursor_of(source, last)
    capacity = wanted_capacity(request)
    if capacity:
        response["ConsumedCapacity"] = progress.units.report(source.table.name, capacity)
    return response


def _start(request: Request, plan: Plan) -> _Progress:
    """Where the token of the last page says that this one begins; RequestRefused if no such page can have ended so."""
    token = request.get("NextToken")
    if token is None:
        return _Progress(0, None)
    try:
        place = read_cursor(token, _fingerprint(request))
    except CursorError as error:
        raise RequestRefused(_INVALID) from error
    at, after = place.get("range"), place.get("after")
    if type(at) is not int or not 0 <= at < len(plan.ranges):
        raise RequestRefused(_INVALID)
    if after is not None:
        _check_start(plan, at, after)
    return _Progress(at, after)


def _check_start(plan: Plan, at: int, after: object) -> None:
    if not isinstance(after, dict) or set(after) != set(plan.source.cursor_names()):
        raise RequestRefused(_INVALID)
    try:
        position = start_position(plan.source, validate_item(after))
    except RequestRefused as error:
        raise RequestRefused(_INVALID) from error
    low, high = plan.ranges[at]
    if position < low or (high is not None and position >= high):
        raise RequestRefused(_INVALID)


def _fingerprint(request: Request) -> bytes:
    """What a token is bound to: the statement and its parameters."""
    bound = [request["Statement"], request.get("Parameters")]
    return hashlib.sha256(json.dumps(bound, sort_keys=True).encode("utf-8", "surrogatepass")).digest()
