"""Tokens: made, listed, revoked."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from jobtable.access.entities import AccessToken, Role
from jobtable.web.api.parts import Body, api_router
from jobtable.web.dependencies import CallerOf, PageOf, Paging, TheTokens, path_id
from jobtable.web.guard import KNOWN, WRITE, allow

router = api_router("tokens")

TokenId = Annotated[str, path_id("3f6c1a2b4d5e6f70")]


class NewTokenBody(Body):
    """The token to make."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"role": "read", "name": "dashboards"}]})

    role: Role
    name: str = Field("", max_length=200)
    expires_in_seconds: float | None = Field(None, gt=0, le=10 * 366 * 86400)


class TokenView(BaseModel):
    """A token without its secret."""

    token_id: str
    name: str
    role: Role
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    revoked_at: datetime | None


class CreatedToken(TokenView):
    """A new token. Its text is shown this once."""

    token: str


class CallerView(BaseModel):
    """Who is asking."""

    name: str
    role: Role


def _view(record: AccessToken) -> TokenView:
    return TokenView.model_validate(record, from_attributes=True)


@router.get("/me")
@allow(KNOWN)
def get_caller(caller: CallerOf) -> CallerView:
    """Who the server takes the caller for."""
    return CallerView(name=caller.name, role=caller.role)


@router.get("/tokens")
@allow(WRITE)
def list_tokens(tokens: TheTokens, paging: Paging) -> PageOf[TokenView]:
    """All tokens, in no order, without their secrets."""
    page = paging.page(tokens.list())
    return PageOf(items=[_view(record) for record in page.items], cursor=page.cursor)


@router.post("/tokens", status_code=201)
@allow(WRITE)
def create_token(body: NewTokenBody, tokens: TheTokens, caller: CallerOf) -> CreatedToken:
    """Make a token. Its text is in this answer and nowhere else: only a digest is kept."""
    expires_in = None if body.expires_in_seconds is None else timedelta(seconds=body.expires_in_seconds)
    new = tokens.create(body.role, name=body.name, expires_in=expires_in, created_by=caller.name)
    return CreatedToken(token=new.text, **_view(new.record).model_dump())


@router.delete("/tokens/{token_id}")
@allow(WRITE)
def revoke_token(token_id: TokenId, tokens: TheTokens) -> TokenView:
    """Make a token useless from now on."""
    return _view(tokens.revoke(token_id))
