"""One page of a Query or Scan: at most 1 MB of items, measured before any filter."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic_core import from_json

from jobtable.embedded.schema import IndexSchema, Range, TableSchema
from jobtable.embedded.storage import View
from jobtable.embedded.units import Units, read_units
from jobtable.store.backend import Item
from jobtable.store.sizes import item_size

PAGE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Reading:
    """Which entries of a table or index to read, in which direction, and how much of them is wanted."""

    table: TableSchema
    index: IndexSchema | None
    bounds: Range
    reverse: bool
    limit: int | None
    fetches_from_table: bool
    """Whether the entries of an index are completed from the table."""
    wants_items: bool
    as_json: bool
    """Whether whole items may stay JSON."""


@dataclass(frozen=True, slots=True)
class Page:
    """The entries that were read."""

    items: list[Item] | list[bytes]
    """Empty if only their number was wanted."""
    scanned: int
    last: Item | None
    """The last entry read, if the page ended before the entries did (or just there)."""
    read_bytes: int
    fetched_sizes: list[int]
    """The sizes of the items that were fetched from the table to complete entries of an index."""

    def units(self, index: IndexSchema | None, rate: float) -> Units:
        """What reading the page consumed; `rate` is the units of a block."""
        consumed = read_units(self.read_bytes, rate)
        if index is None:
            return Units(consumed)
        units = Units(sum((read_units(size, rate) for size in self.fetched_sizes), 0.0))
        units.add_to_index(index, consumed)
        return units


def read_page(view: View, reading: Reading) -> Page:
    """The entries from the beginning of the range up to the limit, 1 MB, or the end."""
    index = reading.index
    if index is None or index.projection == "ALL":
        return _whole_items(view, reading)
    return _projected_items(view, reading, index)


def _whole_items(view: View, reading: Reading) -> Page:
    """Sizes come with the rows, and one call parses all items."""
    limit = reading.limit or -1
    entries = view.range(reading.table, reading.index, *reading.bounds, reverse=reading.reverse)
    bodies: list[bytes] = []
    total = 0
    is_cut = False
    for size, body in entries:
        bodies.append(body)
        total += size
        if len(bodies) == limit:
            is_cut = True
            break
        if total >= PAGE_BYTES:
            is_cut = next(entries, None) is not None
            break
    last: Item | None = from_json(bodies[-1], cache_strings="keys") if is_cut else None
    if reading.as_json:
        return Page(bodies, len(bodies), last, total, [])
    items: list[Item] = from_json(b"[" + b",".join(bodies) + b"]", cache_strings="keys") if reading.wants_items else []
    return Page(items, len(bodies), last, total, [])


def _projected_items(view: View, reading: Reading, index: IndexSchema) -> Page:
    """Each entry is the part of the item that the index holds, unless it is completed from the table."""
    table = reading.table
    entries = view.range(table, index, *reading.bounds, reverse=reading.reverse)
    items: list[Item] = []
    fetched_sizes: list[int] = []
    total = page_bytes = 0
    last: Item | None = None
    for size, body in entries:
        item: Item = from_json(body)
        entry = table.projected(index, item)
        entry_size = item_size(entry)
        total += entry_size
        if reading.fetches_from_table:
            fetched_sizes.append(size)
        items.append(item if reading.fetches_from_table else entry)
        page_bytes += size if reading.fetches_from_table else entry_size
        if len(items) == reading.limit or (page_bytes >= PAGE_BYTES and next(entries, None) is not None):
            last = items[-1]
            break
        if page_bytes >= PAGE_BYTES:
            break
    return Page(items if reading.wants_items else [], len(items), last, total, fetched_sizes)
