"""Parts of requests and answers that several groups share."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from jobtable.model import Entity
from jobtable.store import Undeclared

Name = Annotated[str, Field(min_length=1, max_length=200)]
NewestFirst = Annotated[bool, Query(description="The newest first instead of the oldest.")]


def _in_addresses(given: str) -> str:
    """An id that an address can name: clients and proxies take a part that is only dots for a step in the path."""
    if given in {".", ".."}:
        raise ValueError(f"{given!r} cannot be part of an address; choose another id")
    return given


Id = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_in_addresses)]
"""An id that the caller chooses."""


class Body(BaseModel):
    """A request's body: what it does not know is refused, so that a slip of the pen is not taken for a default."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Written(BaseModel):
    """How many items were written or deleted."""

    count: int


def with_kind(item: Entity) -> dict[str, Any]:
    """An item of a list with several kinds: its values, and the name of its kind as `entity`."""
    values = item.item if isinstance(item, Undeclared) else item.model_dump(mode="json")
    return {"entity": type(item).__name__, **values}
