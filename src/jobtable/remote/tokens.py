"""Tokens of a server: read as here, made and revoked by its REST API."""

from __future__ import annotations

from datetime import timedelta

from jobtable.access.entities import AccessToken, Role
from jobtable.access.tokens import NewToken, Tokens
from jobtable.clock import Clock
from jobtable.remote.server import Server, path_of
from jobtable.store import Store


class ServerTokens(Tokens):
    """The tokens of a server."""

    def __init__(self, server: Server, store: Store, *, clock: Clock) -> None:
        super().__init__(store, clock=clock)
        self._server = server

    def create(
        self, role: Role, *, name: str = "", expires_in: timedelta | None = None, created_by: str = "local"
    ) -> NewToken:
        """Make a token; its text is given this once. Who has made it, the caller's own token says."""
        seconds = None if expires_in is None else expires_in.total_seconds()
        body = {"role": role.value, "name": name, "expires_in_seconds": seconds}
        made = self._server.write("POST", "/tokens", body)
        return NewToken(self._get(made["token_id"]), made["token"])

    def revoke(self, token_id: str) -> AccessToken:
        """Make a token useless from now on."""
        self._server.write("DELETE", path_of("tokens", token_id))
        return self._get(token_id)

    def _get(self, token_id: str) -> AccessToken:
        return self._store.get(AccessToken.key(token_id=token_id))
