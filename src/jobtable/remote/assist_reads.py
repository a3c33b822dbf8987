"""Calls and costs of a server: read from its store, and its providers from its REST API."""

from __future__ import annotations

from jobtable.assist.costs import AssistReads
from jobtable.assist.provider_states import ProviderState
from jobtable.objects import ObjectStore
from jobtable.remote.server_requests import Server
from jobtable.store import Store


class ServerAssistReads(AssistReads):
    """The calls, costs and providers of a server."""

    def __init__(self, server: Server, store: Store, objects: ObjectStore) -> None:
        super().__init__(store, objects)
        self._server = server

    def list_providers(self) -> list[ProviderState]:
        return [ProviderState.model_validate(each) for each in self._server.read("GET", "/assist/providers")]
