"""Items of the main table about the callers of the server."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from jobtable.jobs.stored.entities import main
from jobtable.model import Attr, Entity, Key, Name, Timestamp, default


class Role(StrEnum):
    """The access of a token."""

    READ = "read"
    """Reads."""
    FULL = "full"
    """Reads and writes."""
    WORKER = "worker"
    """Only claims jobs and reports on them."""


class AccessToken(Entity, table=main, type="ACCESS_TOKEN"):
    """A token for the server. Only the SHA-256 of its secret is stored."""

    key = Key("TOKEN#{token_id}", "TOKEN")

    token_id: str
    name: str
    role: Role
    secret_sha256: str
    created_at: Timestamp
    created_by: str
    expires_at: Timestamp | None = None
    revoked_at: Attr[Timestamp | None] = default(None)
    time_to_live: Annotated[Attr[int | None], Name("TimeToLive")] = default(None)


class AnsweredRequest(Entity, table=main, type="ANSWERED_REQUEST"):
    """A request with an idempotency key and its response, which repeated requests get for a day."""

    key = Key("REQUEST#{caller}#{request_key}", "ANSWER")

    caller: str
    request_key: str
    fingerprint: Attr[str]
    begun_at: Timestamp
    status_code: Attr[int | None] = default(None)
    body: Attr[str | None] = default(None)
    time_to_live: Annotated[int, Name("TimeToLive")]
