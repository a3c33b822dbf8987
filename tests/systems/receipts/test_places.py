"""The places cache: hits, age, use."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobtable.errors import NotFoundError
from jobtable.store import Store
from jobtable.systems.receipts.entities import PlacesCache
from jobtable.systems.receipts.places import PlacesService
from jobtable.testing import FakeClock


def test_hits_are_counted_and_make_an_answer_recently_used(store: Store) -> None:
    clock = FakeClock()
    service = PlacesService(store, clock)
    for name in ("one", "two", "three"):
        service.keep("ADDRESS", f"{name} Main  St", f"place-{name}", {"rating": 4.5})
        clock.advance(1)
    assert service.look_up("ADDRESS", "none") is None
    hit = service.look_up("ADDRESS", "one Main  St")
    assert hit is not None
    assert hit.query_count == 1
    assert hit.places_response == {"rating": 4.5}
    assert hit.normalized_value == "one main st"
    assert hit.last_updated >= clock.now() - timedelta(seconds=1)
    used = [answer.place_id for answer in service.list_least_recently_used()]
    assert used == ["place-two", "place-three", "place-one"]
    assert [answer.place_id for answer in service.list_least_recently_used(limit=1)] == ["place-two"]
    assert [answer.search_value for answer in service.list_by_place("place-one")] == ["one Main  St"]
    assert len(list(service.list_by_type("ADDRESS"))) == 3
    assert list(service.list_by_type("PHONE")) == []


def test_an_answer_whose_time_is_over_is_not_given(store: Store) -> None:
    clock = FakeClock()
    service = PlacesService(store, clock)
    service.keep("PHONE", "555", "place", None, days_to_live=1)
    clock.advance(23 * 3600)
    hit = service.look_up("PHONE", "555")
    assert hit is not None
    clock.advance(3600)
    assert service.look_up("PHONE", "555") is None, "a hit does not make an answer younger"
    service.keep("PHONE", "555", "place", None, days_to_live=1)
    assert service.look_up("PHONE", "555") is not None


def test_after_a_clock_was_ahead_answers_are_kept_as_long_as_they_were(store: Store) -> None:
    clock = FakeClock()
    service = PlacesService(store, clock)
    service.keep("PHONE", "555", "place", None, days_to_live=1)
    right = clock.now()
    clock.set(right + timedelta(days=2))
    clock.now()
    clock.set(right)
    assert service.look_up("PHONE", "555") is not None
    service.keep("PHONE", "555", "place", None, days_to_live=1)
    clock.advance(24 * 3600 + 1)
    assert service.look_up("PHONE", "555") is None


def test_the_least_recently_used_are_evicted(store: Store) -> None:
    clock = FakeClock()
    service = PlacesService(store, clock)
    for number in range(5):
        service.keep("URL", str(number), f"place-{number}", None)
        clock.advance(1)
    service.look_up("URL", "0")
    assert service.evict(2) == 2
    assert [answer.search_value for answer in service.list_by_type("URL")] == ["0", "3", "4"]


def test_an_answer_can_be_marked(store: Store) -> None:
    service = PlacesService(store)
    service.keep("URL", "x", "place", None)
    assert service.mark("URL", "x", "VALID").validation_status == "VALID"
    with pytest.raises(NotFoundError):
        service.mark("URL", "y", "VALID")
    assert store.find(PlacesCache.key(search_type="URL", search_value="y")) is None
