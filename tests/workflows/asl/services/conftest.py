"""Services on the embedded engine, with objects in memory and in a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from jobtable.embedded import EmbeddedBackend
from jobtable.jobs.engine import Jobs
from jobtable.objects import ObjectStore
from jobtable.objects.filesystem import FilesystemObjectStore
from jobtable.objects.memory import MemoryObjectStore
from jobtable.store import Store
from jobtable.testing import FakeClock
from jobtable.workflows.asl.run import CallService
from jobtable.workflows.asl.services.service_calls import ServiceCalls
from jobtable.workflows.table_and_queues import workflows

EXECUTION = "arn:aws:states:us-east-1:000000000000:execution:machine:first"
Ask: TypeAlias = Callable[..., Any]


@pytest.fixture
def store() -> Iterator[Store]:
    with Store(EmbeddedBackend(None), clock=FakeClock()) as made:
        made.tables.create(workflows)
        yield made


@pytest.fixture(params=["memory", "folder"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    return MemoryObjectStore() if request.param == "memory" else FilesystemObjectStore(tmp_path / "objects")


@pytest.fixture
def services(store: Store, objects: ObjectStore) -> ServiceCalls:
    return ServiceCalls(Jobs(store, objects))


@pytest.fixture
def ask(services: ServiceCalls) -> Ask:
    """Call a service, as in `ask("dynamodb:getItem", TableName="orders", ...)`."""

    def call(resource: str, /, *, visit: int = 1, **arguments: Any) -> Any:
        service, _, action = resource.rpartition(":")
        return services.call(CallService("0", visit, service, action, arguments), EXECUTION)

    return call
