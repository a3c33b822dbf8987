"""Tokens of a server: read from its store, created and revoked by its REST API."""

from __future__ import annotations

from datetime import timedelta

from jobtable.access.entities import AccessToken, Role
from jobtable.access.tokens import NewToken, Tokens
from jobtable.clock import Clock
from jobtable.remote.server_requests import Server, path_of
from jobtable.store import Store


class ServerTokens(Tokens):
    """The tokens of a server; the caller's own token says who creates them."""

    def __init__(self, server: Server, store: Store, *, clock: Clock) -> None:
        super().__init__(store, clock=clock)
        self._server = server

    def create(
        self, role: Role, *, name: str = "", expires_in: timedelta | None = None, created_by: str = "local"
    ) -> NewToken:
        seconds = None if expires_in is None else expires_in.total_seconds()
        body = {"role": role.value, "name": name, "expires_in_seconds": seconds}
        created = self._server.write("POST", "/tokens", body)
        return NewToken(self._get(created["token_id"]), created["token"])

    def revoke(self, token_id: str) -> AccessToken:
        self._server.write("DELETE", path_of("tokens", token_id))
        return self._get(token_id)

    def _get(self, token_id: str) -> AccessToken:
        return self._store.get(AccessToken.key(token_id=token_id))
