"""Deletes orphans: objects that no record names.

An object is stored before the record that names it, so a crash between the two leaves an orphan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from jobtable.clock import SYSTEM_CLOCK, Clock, wall_time
from jobtable.errors import ObjectNotFoundError, ValueRefusedError
from jobtable.objects.object_store import ListedObject, ObjectStore

DEFAULT_GRACE = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What a sweep found. In a dry run nothing is deleted, and the counts say what would have been."""

    objects: int
    orphans: int
    orphan_bytes: int
    unfinished: int
    is_dry_run: bool


def sweep(
    objects: ObjectStore,
    is_referenced: Callable[[str], bool],
    *,
    prefix: str = "",
    grace: timedelta = DEFAULT_GRACE,
    dry_run: bool = False,
    clock: Clock = SYSTEM_CLOCK,
) -> SweepReport:
    """Delete every object under the prefix that is older than the grace time and that no record names.

    The grace time must be longer than any put takes until its record is written; then a sweep may run while others
    write. `is_referenced` is called once for each old object, after the object was listed. Remains of unfinished puts
    are deleted too, and not counted in a dry run.
    """
    if grace < timedelta(0):
        raise ValueRefusedError(f"the grace time cannot be negative: {grace}")
    before = wall_time(clock) - grace
    seen = orphans = orphan_bytes = 0
    for found in objects.list(prefix):
        seen += 1
        if found.modified_at >= before or is_referenced(found.key) or _is_new(objects, found, before):
            continue
        orphans += 1
        orphan_bytes += found.size
        if not dry_run:
            objects.delete(found.key)
    unfinished = 0 if dry_run else objects.remove_unfinished(before)
    return SweepReport(seen, orphans, orphan_bytes, unfinished, dry_run)


def _is_new(objects: ObjectStore, found: ListedObject, before: datetime) -> bool:
    """Return whether an object was deleted or stored again since it was listed: its record may be written now."""
    try:
        return objects.describe(found.key).modified_at >= before
    except ObjectNotFoundError:
        return True
