"""The cache of answers of a places service."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from pydantic import Field

from jobtable.systems.receipts.places import DAYS_TO_LIVE, PlacesService
from jobtable.systems.receipts.web.api import on_store
from jobtable.web.api.route_parts import Body, api_router
from jobtable.web.api.verb_routes import add_verbs
from jobtable.web.injection import path_id

router = api_router("places")

SearchType = Annotated[str, path_id("ADDRESS")]
ThePlaces = Annotated[PlacesService, on_store(PlacesService)]


class PlaceBody(Body):
    """The answer of a places service to a search."""

    search_value: str = Field(min_length=1, max_length=1000, examples=["1 Main Street"])
    place_id: str = Field(min_length=1, max_length=500, examples=["ChIJ2eUgeAK6j4ARbn5u_wAGqWA"])
    response: Any
    days_to_live: float = Field(DAYS_TO_LIVE, gt=0, le=3660)


class MarkBody(Body):
    """The validation status of an answer."""

    search_value: str = Field(min_length=1, max_length=1000)
    validation_status: str = Field(min_length=1, max_length=100, examples=["VALID"])


add_verbs(
    router,
    ThePlaces,
    {
        "search_type": SearchType,
        "search_value": Annotated[str, Query(min_length=1, max_length=1000, examples=["1 Main Street"])],
        "place_id": Annotated[str, path_id("ChIJ2eUgeAK6j4ARbn5u_wAGqWA")],
        "count": Annotated[int, Query(ge=1, le=1000)],
    },
    ("keep_place", "PUT /places/{search_type}", PlacesService.keep, PlaceBody),
    ("mark_place", "POST /places/{search_type}/mark", PlacesService.mark, MarkBody),
    ("list_places_of_type", "GET /places/{search_type}", PlacesService.list_by_type),
    ("find_place", "GET /places/{search_type}/answer", PlacesService.find),
    ("look_up_place", "POST /places/{search_type}/look-up", PlacesService.look_up),
    ("list_answers_of_place", "GET /place-ids/{place_id}", PlacesService.list_by_place),
    ("list_least_recently_used", "GET /least-recent-places", PlacesService.list_least_recently_used),
    ("evict_places", "POST /least-recent-places/evict", PlacesService.evict),
)
