"""Parts of requests and answers that several groups share."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, ConfigDict

NewestFirst = Annotated[bool, Query(description="The newest first instead of the oldest.")]


class Body(BaseModel):
    """A request's body: what it does not know is refused, so that a slip of the pen is not taken for a default."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Written(BaseModel):
    """How many items were written or deleted."""

    count: int
