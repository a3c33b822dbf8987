"""The tokens of the server, for callers with the role full."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from jobtable.access.entities import Role
from jobtable.web.guard import WRITE, PageRoute, allow
from jobtable.web.injection import CallerOf, TheTokens
from jobtable.web.pages.frame import render

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_PAGE = 100
_ROLES = ((Role.READ, "see everything"), (Role.WORKER, "run jobs"), (Role.FULL, "do everything"))
_LIFETIMES = ((1, "in a day"), (7, "in a week"), (30, "in 30 days"), (90, "in 90 days"), (365, "in a year"))


@router.get("/tokens")
@allow(WRITE)
def show_tokens(request: Request, tokens: TheTokens, caller: CallerOf, cursor: str = "") -> Response:
    page = tokens.list().page(cursor or None, size=_PAGE)
    found = sorted(page.items, key=lambda token: token.created_at, reverse=True)
    return render(
        request,
        "tokens.html",
        title="Tokens",
        tokens=[(token, tokens.state_of(token)) for token in found],
        own_token=caller.token_id,
        roles=_ROLES,
        lifetimes=_LIFETIMES,
        cursor=page.cursor,
        is_first=not cursor,
    )
