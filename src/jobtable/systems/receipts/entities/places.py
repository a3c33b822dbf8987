"""Answers of a places service, kept so that nothing is asked twice."""

from __future__ import annotations

from typing import Annotated

from jobtable.jobs.stored.entities import main
from jobtable.jobs.stored.fields import Count
from jobtable.model import Attr, Entity, Json, Key, Name, Stored, Timestamp, default


class PlacesCache(Entity, table=main, type="PLACES_CACHE"):
    """The answer to one search. A hit moves `last_updated`, by which the least recently used are found."""

    key = Key("PLACES#{search_type}", "VALUE#{search_value}")
    by_place = Key("PLACE_ID", "PLACE_ID#{place_id}", index="GSI1")
    by_use = Key("LAST_USED", "{last_updated}", index="GSI2")

    search_type: Stored[str]
    search_value: Stored[str]
    place_id: str
    places_response: Json
    last_updated: Attr[Timestamp]
    query_count: Attr[Count] = default(0)
    validation_status: Attr[str | None] = default(None)
    normalized_value: str | None = None
    value_hash: str | None = None
    time_to_live: Annotated[Attr[int | None], Name("TimeToLive")] = default(None)
