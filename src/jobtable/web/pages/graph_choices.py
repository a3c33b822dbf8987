"""What a person has chosen on a page with a graph, kept in its address so that it can be shared and reloaded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import Depends, Query

from jobtable.web.formats import query

_MOST_FOLDS = 200
_LONGEST_PATH = 2000
PathText = Annotated[str, Query(max_length=_LONGEST_PATH)]


@dataclass(frozen=True)
class GraphChoices:
    """The chosen state and iteration, the boxes that were folded or unfolded, and the part of the history."""

    state: str = ""
    """The path of a state."""
    visit: int = 0
    """The event with which it was entered, if not the last time."""
    iteration: int = 0
    """The event with which an iteration of a Map began; 0 for all iterations."""
    fold: tuple[str, ...] = ()
    order: str = "newest"
    page: int = 1
    status: str = ""
    """Of a Map, the iterations to list."""

    def address(self, **changes: Any) -> str:
        """Return the query of the page with some choices changed."""
        changed = replace(self, **changes)
        return query(
            state=changed.state,
            visit=changed.visit or None,
            iteration=changed.iteration or None,
            fold=list(changed.fold),
            order="" if changed.order == "newest" else changed.order,
            page=changed.page if changed.page > 1 else None,
            status=changed.status,
        )

    def toggled(self, path: str) -> str:
        """Return the query of the page with a box folded or unfolded."""
        others = tuple(each for each in self.fold if each != path)
        return self.address(fold=others if path in self.fold else (*others, path))


async def _choices(
    state: PathText = "",
    visit: Annotated[int, Query(ge=0, le=99_999)] = 0,
    iteration: Annotated[int, Query(ge=0, le=99_999)] = 0,
    fold: Annotated[list[Annotated[str, Query(max_length=_LONGEST_PATH)]], Query(max_length=_MOST_FOLDS)] = [],  # noqa: B006 - FastAPI copies it
    order: Annotated[str, Query(pattern="^(newest|oldest)$")] = "newest",
    page: Annotated[int, Query(ge=1, le=10_000)] = 1,
    status: Annotated[str, Query(pattern="^[a-z]{0,20}$")] = "",
) -> GraphChoices:
    return GraphChoices(state, visit, iteration, tuple(fold), order, page, status)


TheChoices = Annotated[GraphChoices, Depends(_choices)]
