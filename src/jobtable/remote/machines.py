"""State machines and activities of a server: read from its store, changed by its REST API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_core import to_jsonable_python

from jobtable.objects import ObjectStore
from jobtable.remote.server_requests import Server, path_of
from jobtable.store import Store
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.catalogue.activities import Activities
from jobtable.workflows.asl.catalogue.machine_reads import MachineReads
from jobtable.workflows.asl.catalogue.machine_verbs import (
    AliasRoute,
    MachineChange,
    MachineDraft,
    MachineVerbs,
    Revision,
)
from jobtable.workflows.asl.catalogue.records import Activity, StateMachine, StateMachineAlias, StateMachineVersion


class ServerMachines(MachineReads, MachineVerbs):
    """The state machines of a server."""

    def __init__(self, server: Server, store: Store, objects: ObjectStore) -> None:
        super().__init__(store, objects)
        self._server = server

    def create(
        self, draft: MachineDraft, *, arns: Arns, publish: bool = False, description: str | None = None
    ) -> Revision:
        body = {**vars(draft), **vars(arns), "publish": publish, "description": description}
        return _revision(self._server.create("/machines", to_jsonable_python(body)))

    def update(
        self, name: str, change: MachineChange, *, publish: bool = False, description: str | None = None
    ) -> Revision:
        body = {**vars(change), "publish": publish, "description": description}
        return _revision(self._write("PATCH", name, body=to_jsonable_python(body)))

    def get(self, name: str) -> StateMachine:
        # Not from the store: a machine that was being deleted disappears when the server looks for it.
        return StateMachine.model_validate(self._server.read("GET", path_of("machines", name)))

    def delete(self, name: str) -> None:
        self._write("DELETE", name)

    def tag(self, name: str, add: Mapping[str, str], remove: frozenset[str] = frozenset()) -> StateMachine:
        body = {"add": dict(add), "remove": sorted(remove)}
        return StateMachine.model_validate(self._write("PUT", name, "tags", body=body))

    def publish(self, name: str, *, revision_id: str | None = None, description: str | None = None) -> Revision:
        body = {"revision_id": revision_id, "description": description}
        return _revision(self._server.create(path_of("machines", name, "versions"), body))

    def delete_version(self, name: str, number: int) -> None:
        self._write("DELETE", name, "versions", str(number))

    def create_alias(
        self, name: str, alias: str, routes: tuple[AliasRoute, ...], description: str | None = None
    ) -> StateMachineAlias:
        body = {"alias": alias, "routes": [vars(each) for each in routes], "description": description}
        return StateMachineAlias.model_validate(self._server.create(path_of("machines", name, "aliases"), body))

    def update_alias(
        self, name: str, alias: str, routes: tuple[AliasRoute, ...] | None, description: str | None = None
    ) -> StateMachineAlias:
        body = {"routes": routes and [vars(each) for each in routes], "description": description}
        return StateMachineAlias.model_validate(self._write("PATCH", name, "aliases", alias, body=body))

    def delete_alias(self, name: str, alias: str) -> None:
        self._write("DELETE", name, "aliases", alias)

    def _write(self, method: str, name: str, *more: str, body: Any = None) -> Any:
        return self._server.write(method, path_of("machines", name, *more), body)


class ServerActivities(Activities):
    """The activities of a server."""

    def __init__(self, server: Server, store: Store) -> None:
        super().__init__(store)
        self._server = server

    def create(
        self, name: str, *, arns: Arns, settings: Mapping[str, Any] | None = None, tags: Mapping[str, str] | None = None
    ) -> Activity:
        body = {"name": name, "settings": dict(settings or {}), "tags": dict(tags or {}), **vars(arns)}
        return Activity.model_validate(self._server.create("/activities", body))

    def get(self, name: str) -> Activity:
        # Not from the store: beside it are the tokens of its tasks, which only the role full may read.
        return Activity.model_validate(self._server.read("GET", path_of("activities", name)))

    def delete(self, name: str) -> None:
        self._server.write("DELETE", path_of("activities", name))

    def tag(self, name: str, add: Mapping[str, str], remove: frozenset[str] = frozenset()) -> Activity:
        body = {"add": dict(add), "remove": sorted(remove)}
        return Activity.model_validate(self._server.write("PUT", path_of("activities", name, "tags"), body))


def _revision(answer: Mapping[str, Any]) -> Revision:
    version = answer["version"]
    return Revision(
        StateMachine.model_validate(answer["machine"]),
        None if version is None else StateMachineVersion.model_validate(version),
    )
