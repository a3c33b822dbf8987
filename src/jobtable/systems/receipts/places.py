"""The places cache: answers with hit counts and a time to live, ordered by their last use."""

from __future__ import annotations

import hashlib
from datetime import timedelta

from jobtable.clock import Clock
from jobtable.errors import ConditionFailedError, NotFoundError
from jobtable.model import Json, unchanged
from jobtable.store import Query, Store
from jobtable.store.patterns import access_pattern
from jobtable.systems.receipts.entities import PlacesCache

DAYS_TO_LIVE = 30


class PlacesService:
    """Caches the answers of a places service."""

    def __init__(self, store: Store, clock: Clock | None = None) -> None:
        self._store = store
        self._clock = clock or store.clock

    def keep(
        self, search_type: str, search_value: str, place_id: str, response: Json, *, days_to_live: float = DAYS_TO_LIVE
    ) -> PlacesCache:
        """Store an answer and replace an older one to the same search."""
        now = self._clock.now()
        normalized = " ".join(search_value.split()).casefold()
        answer = PlacesCache(
            search_type=search_type,
            search_value=search_value,
            place_id=place_id,
            places_response=response,
            last_updated=now,
            normalized_value=normalized,
            value_hash=hashlib.sha256(normalized.encode()).hexdigest(),
            time_to_live=int(self._clock.seconds() + timedelta(days=days_to_live).total_seconds()),
        )
        self._store.put(answer)
        return answer

    @access_pattern("Get a cached place")
    def find(self, search_type: str, search_value: str) -> PlacesCache | None:
        """Return the cached answer to a search, even if it has expired, without counting a hit."""
        return self._store.find(PlacesCache.key(search_type=search_type, search_value=search_value))

    def look_up(self, search_type: str, search_value: str) -> PlacesCache | None:
        """Return the answer to a search and count a hit; nothing if it is not cached or has expired."""
        now = self._clock.now()
        is_alive = PlacesCache.time_to_live.missing() | (PlacesCache.time_to_live > int(self._clock.seconds()))
        try:
            return self._store.update(
                PlacesCache.key(search_type=search_type, search_value=search_value),
                PlacesCache.query_count.add(1),
                PlacesCache.last_updated.set(now),
                when=is_alive,
            )
        except (NotFoundError, ConditionFailedError):
            return None

    def mark(self, search_type: str, search_value: str, validation_status: str) -> PlacesCache:
        """Set the validation status of an answer."""
        key = PlacesCache.key(search_type=search_type, search_value=search_value)
        return self._store.update(key, PlacesCache.validation_status.set(validation_status))

    @access_pattern("List the cached answers for a place", index="GSI1")
    def list_by_place(self, place_id: str) -> Query[PlacesCache]:
        """List the cached answers that name a place."""
        return self._store.query(PlacesCache.by_place(place_id=place_id))

    @access_pattern("List the cached answers of a search type")
    def list_by_type(self, search_type: str) -> Query[PlacesCache]:
        """List the cached answers to searches of one type."""
        return self._store.query(PlacesCache.key(search_type=search_type))

    @access_pattern("List the least recently used answers", index="GSI2")
    def list_least_recently_used(self, *, limit: int | None = None) -> Query[PlacesCache]:
        """List the cached answers, least recently used first."""
        return self._store.query(PlacesCache.by_use(), limit=limit)

    def evict(self, count: int) -> int:
        """Delete the least recently used answers and return their number; an answer that is used meanwhile stays."""
        return sum(self._delete_unused(answer) for answer in list(self.list_least_recently_used(limit=count)))

    def _delete_unused(self, answer: PlacesCache) -> bool:
        try:
            return self._store.delete(answer, when=unchanged(answer, PlacesCache.last_updated))
        except (NotFoundError, ConditionFailedError):
            return False
