"""Create, list and revoke tokens."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from jobtable.access.entities import AccessToken, Role
from jobtable.web.api.route_parts import Body, api_router
from jobtable.web.guard import KNOWN, WRITE, allow
from jobtable.web.injection import CallerOf, PageOf, Paging, TheTokens, path_id

router = api_router("tokens")

TokenId = Annotated[str, path_id("3f6c1a2b4d5e6f70")]


class NewTokenBody(Body):
    """The token to create."""

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
    """A new token, with its secret text."""

    token: str


class CallerView(BaseModel):
    """The caller of a request."""

    name: str
    role: Role


def _view(record: AccessToken) -> TokenView:
    return TokenView.model_validate(record, from_attributes=True)


@router.get("/me")
@allow(KNOWN)
def get_caller(caller: CallerOf) -> CallerView:
    """Return the caller's name and role."""
    return CallerView(name=caller.name, role=caller.role)


@router.get("/tokens")
@allow(WRITE)
def list_tokens(tokens: TheTokens, paging: Paging) -> PageOf[TokenView]:
    """List all tokens without their secrets, in no particular order."""
    page = paging.page(tokens.list())
    return PageOf(items=[_view(record) for record in page.items], cursor=page.cursor)


@router.post("/tokens", status_code=201)
@allow(WRITE)
def create_token(body: NewTokenBody, tokens: TheTokens, caller: CallerOf) -> CreatedToken:
    """Create a token. Only this response contains its text; the server stores a digest."""
    expires_in = None if body.expires_in_seconds is None else timedelta(seconds=body.expires_in_seconds)
    new = tokens.create(body.role, name=body.name, expires_in=expires_in, created_by=caller.name)
    return CreatedToken(token=new.text, **_view(new.record).model_dump())


@router.delete("/tokens/{token_id}")
@allow(WRITE)
def revoke_token(token_id: TokenId, tokens: TheTokens) -> TokenView:
    """Revoke a token."""
    return _view(tokens.revoke(token_id))
