"""The slots of providers: how many requests all workers of a store send to one at a time, and pauses for all."""

from __future__ import annotations

from contextlib import suppress

from jobtable.assist.entities import ProviderSlots
from jobtable.clock import Clock
from jobtable.errors import AlreadyExistsError, ConditionFailedError, NotFoundError, TransactionFailedError
from jobtable.jobs.lifecycle.leases import Lease, check_lease, lost_if_refused
from jobtable.store import Store
from jobtable.store.retries import insist

_LOOK_SECONDS = 0.5
"""How long to wait at most before another look at slots that are all taken: one may be returned at any time."""


class Slots:
    """Takes and releases slots for the calls of one run. A slot that nobody releases is free again after its time."""

    def __init__(self, store: Store, clock: Clock, lease: Lease) -> None:
        self._store = store
        self._clock = clock
        self._lease = lease

    def take(self, provider: str, call_id: str, *, most: int, seconds: float) -> float:
        """Take a slot and return 0, or return the seconds to wait; LeaseLostError after the run was lost."""
        return insist(lambda: self._take(provider, call_id, most, seconds), f"take a slot of {provider}", self._clock)

    def _take(self, provider: str, call_id: str, most: int, seconds: float) -> float:
        while True:
            now = self._clock.seconds()
            slot = ProviderSlots.holders[self._holder(call_id)]
            is_free = (ProviderSlots.holders.size() < most) | slot.exists()
            try:
                with lost_if_refused(self._lease), self._store.transaction() as tx:
                    check_lease(tx, self._lease)
                    when = is_free & (ProviderSlots.paused_until <= now)
                    tx.update(ProviderSlots.key(provider=provider), slot.set(now + seconds), when=when)
            except TransactionFailedError as error:
                slots = next((each.current for each in error.failures if each.entity == ProviderSlots.__name__), None)
                if not isinstance(slots, ProviderSlots):
                    self._create(provider)
                elif not self._drop_expired(slots, now):
                    return _wait(slots, now, most)
            else:
                return 0.0

    def _create(self, provider: str) -> None:
        with suppress(AlreadyExistsError):
            self._store.add(ProviderSlots(provider=provider))

    def _drop_expired(self, slots: ProviderSlots, now: float) -> bool:
        """Remove the slots whose time is over; return whether there may be a free one now."""
        if slots.paused_until > now:
            return False
        expired = {holder: until for holder, until in slots.holders.items() if until <= now}
        for holder, until in expired.items():
            slot = ProviderSlots.holders[holder]
            try:
                self._store.update(slots, slot.remove(), when=slot == until)
            except ConditionFailedError:  # it was released, or taken again
                continue
        return bool(expired)

    def release(self, provider: str, call_id: str, *, pause_seconds: float = 0.0) -> None:
        """Return a slot, whoever holds the job now; with a pause, nobody takes one before it is over."""
        key = ProviderSlots.key(provider=provider)
        until = self._clock.seconds() + pause_seconds

        def release() -> None:
            self._store.update(key, ProviderSlots.holders[self._holder(call_id)].remove())
            if pause_seconds > 0:
                try:
                    is_later = ProviderSlots.paused_until < until
                    self._store.update(key, ProviderSlots.paused_until.set(until), when=is_later)
                except ConditionFailedError:  # it is paused for longer
                    return

        try:
            insist(release, f"release a slot of {provider}", self._clock)
        except NotFoundError:  # nobody has taken one
            return

    def _holder(self, call_id: str) -> str:
        return f"{self._lease.job.job_id}/{call_id}"


def _wait(slots: ProviderSlots, now: float, most: int) -> float:
    """Return the seconds until a slot may be free."""
    if slots.paused_until > now:
        return slots.paused_until - now
    if len(slots.holders) < most:
        return _LOOK_SECONDS / 10
    return min(_LOOK_SECONDS, max(min(slots.holders.values()) - now, _LOOK_SECONDS / 10))
