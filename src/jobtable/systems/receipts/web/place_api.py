"""The cache of answers of a places service."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Query
from pydantic import Field

from jobtable.errors import missing
from jobtable.systems.receipts.entities import PlacesCache
from jobtable.systems.receipts.places import DAYS_TO_LIVE, PlacesService
from jobtable.web.api.parts import Body, Written, api_router
from jobtable.web.dependencies import PageOf, Paging, TheStore, path_id
from jobtable.web.guard import READ, WRITE, allow

router = api_router("places")

SearchType = Annotated[str, path_id("ADDRESS")]
SearchValue = Annotated[str, Query(min_length=1, max_length=1000, examples=["1 Main Street"])]


async def _places(store: TheStore) -> PlacesService:
    return PlacesService(store, store.clock)


ThePlaces = Annotated[PlacesService, Depends(_places)]


class PlaceBody(Body):
    """What the places service has answered to a search."""

    search_value: str = Field(min_length=1, max_length=1000, examples=["1 Main Street"])
    place_id: str = Field(min_length=1, max_length=500, examples=["ChIJ2eUgeAK6j4ARbn5u_wAGqWA"])
    response: Any
    days_to_live: float = Field(DAYS_TO_LIVE, gt=0, le=3660)


class MarkBody(Body):
    """Whether an answer has been found right."""

    search_value: str = Field(min_length=1, max_length=1000)
    validation_status: str = Field(min_length=1, max_length=100, examples=["VALID"])


@router.put("/places/{search_type}")
@allow(WRITE)
def keep_place(search_type: SearchType, body: PlaceBody, places: ThePlaces) -> PlacesCache:
    """Keep an answer, in place of an older one to the same search."""
    return places.keep(search_type, body.search_value, body.place_id, body.response, days_to_live=body.days_to_live)


@router.get("/places/{search_type}")
@allow(READ)
def list_places_of_type(search_type: SearchType, places: ThePlaces, paging: Paging) -> PageOf[PlacesCache]:
    """The answers to searches of one type."""
    return paging.page(places.list_by_type(search_type))


@router.get("/places/{search_type}/answer")
@allow(READ)
def find_place(search_type: SearchType, search_value: SearchValue, places: ThePlaces) -> PlacesCache:
    """The answer to a search as it is stored, expired or not, without counting a hit."""
    return _needed(places.find(search_type, search_value), search_value)


@router.post("/places/{search_type}/look-up")
@allow(WRITE)
def look_up_place(search_type: SearchType, search_value: SearchValue, places: ThePlaces) -> PlacesCache:
    """The answer to a search, counted as a hit; 404 where there is none or its time is over."""
    return _needed(places.look_up(search_type, search_value), search_value)


@router.post("/places/{search_type}/mark")
@allow(WRITE)
def mark_place(search_type: SearchType, body: MarkBody, places: ThePlaces) -> PlacesCache:
    """Say whether an answer has been found right."""
    return places.mark(search_type, body.search_value, body.validation_status)


@router.get("/place-ids/{place_id}")
@allow(READ)
def list_answers_of_place(
    place_id: Annotated[str, path_id("ChIJ2eUgeAK6j4ARbn5u_wAGqWA")], places: ThePlaces, paging: Paging
) -> PageOf[PlacesCache]:
    """The answers that name a place."""
    return paging.page(places.list_by_place(place_id))


@router.get("/least-recent-places")
@allow(READ)
def list_least_recently_used(places: ThePlaces, paging: Paging) -> PageOf[PlacesCache]:
    """The answers, those first that were not asked for the longest."""
    return paging.page(places.list_least_recently_used())


@router.post("/least-recent-places/evict")
@allow(WRITE)
def evict_places(count: Annotated[int, Query(ge=1, le=1000)], places: ThePlaces) -> Written:
    """Delete the least recently used answers; one that is used meanwhile stays."""
    return Written(count=places.evict(count))


def _needed(answer: PlacesCache | None, search_value: str) -> PlacesCache:
    if answer is None:
        raise missing("answer to the search for", repr(search_value))
    return answer
