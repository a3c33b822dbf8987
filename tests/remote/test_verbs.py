"""The engine and the clients of a server have the same verbs, and no verb of a client works on a local store."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from jobtable.access.tokens import Tokens
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.instances import Instances
from jobtable.jobs.lifecycle.many import ManyJobs
from jobtable.jobs.report.checkpoints import Checkpoints
from jobtable.jobs.report.log_text import RunText
from jobtable.jobs.report.recording import Recording
from jobtable.jobs.report.run_files import Artifacts
from jobtable.jobs.verbs import InstanceVerbs, JobVerbs, ManyVerbs, WorkVerbs
from jobtable.remote.durable import ServerDurable
from jobtable.remote.executions import ServerExecutions
from jobtable.remote.jobs import ServerJobs, ServerManyJobs
from jobtable.remote.machines import ServerActivities, ServerMachines
from jobtable.remote.recording import ServerArtifacts, ServerCheckpoints, ServerRecording, ServerText
from jobtable.remote.tokens import ServerTokens
from jobtable.remote.work import ServerInstances, ServerWork
from jobtable.system import declared, registered
from jobtable.workflows.asl.catalogue.activities import Activities
from jobtable.workflows.asl.catalogue.machine_verbs import MachineVerbs
from jobtable.workflows.asl.catalogue.machines import Machines
from jobtable.workflows.asl.execution.executions import Executions
from jobtable.workflows.asl.verbs import ExecutionVerbs
from jobtable.workflows.durable.durable_service import DurableService
from jobtable.workflows.durable.verbs import DurableVerbs

IMPLEMENTED = [
    (JobVerbs, Jobs),
    (JobVerbs, ServerJobs),
    (WorkVerbs, Jobs),
    (WorkVerbs, ServerWork),
    (ManyVerbs, ManyJobs),
    (ManyVerbs, ServerManyJobs),
    (InstanceVerbs, Instances),
    (InstanceVerbs, ServerInstances),
    (MachineVerbs, Machines),
    (MachineVerbs, ServerMachines),
    (ExecutionVerbs, Executions),
    (ExecutionVerbs, ServerExecutions),
    (DurableVerbs, DurableService),
    (DurableVerbs, ServerDurable),
]
READS = ("get", "find", "list", "is_", "has_", "count_", "records", "open", "read", "search")


def verbs_of(kind: type) -> dict[str, Any]:
    """The public methods and properties of a class, inherited ones included."""
    members = {name: inspect.getattr_static(kind, name) for name in dir(kind) if not name.startswith("_")}
    return {name: each for name, each in members.items() if inspect.isfunction(each) or isinstance(each, property)}


@pytest.mark.parametrize(("protocol", "kind"), IMPLEMENTED, ids=lambda kind: kind.__name__)
def test_every_verb_is_implemented_with_the_same_signature(protocol: type, kind: type) -> None:
    assert protocol in kind.__mro__
    for name, promised in verbs_of(protocol).items():
        own = inspect.getattr_static(kind, name)
        is_default = name == "close" or (protocol is ManyVerbs and name != "act")  # by way of what is implemented
        assert is_default or own is not promised, f"{kind.__name__} does not implement {name}"
        if inspect.isfunction(promised):
            assert inspect.signature(own).parameters == inspect.signature(promised).parameters, (
                f"{kind.__name__}.{name}"
            )


@pytest.mark.parametrize(
    "protocol", [JobVerbs, WorkVerbs, ManyVerbs, InstanceVerbs, MachineVerbs, ExecutionVerbs, DurableVerbs]
)
def test_the_contract_of_every_verb_is_stated_on_the_protocol(protocol: type) -> None:
    assert [name for name, each in verbs_of(protocol).items() if not each.__doc__] == []


def test_the_clients_of_a_server_do_not_inherit_the_engine() -> None:
    assert not issubclass(ServerJobs, Jobs)
    assert not issubclass(ServerWork, Jobs)


def services() -> Iterator[tuple[type, type]]:
    """Each service that changes something on a store, with the one that asks a server instead."""
    yield Tokens, ServerTokens
    yield Recording, ServerRecording
    yield RunText, ServerText
    yield Checkpoints, ServerCheckpoints
    yield Artifacts, ServerArtifacts
    yield Activities, ServerActivities
    for system in registered():
        for service in system.services:
            if service.remote is not None:
                yield system.load(service.local or service.kind), system.load(service.remote)
    for system, desks in declared("desks"):
        for local, remote in desks.items():
            yield system.load(local), system.load(remote)


LOCAL = {  # verbs that only read, or use those that are sent
    "Recording": {"insist", "log_text"},
    "Tokens": {"state_of"},
    "ConversationRuns": {"statuses"},
    "Watch": {"keep"},
}


@pytest.mark.parametrize(("local", "remote"), list(services()), ids=lambda kind: kind.__name__)
def test_every_verb_of_a_service_that_changes_something_is_sent_to_the_server(local: type, remote: type) -> None:
    own = {name: each for name, each in verbs_of(local).items() if inspect.isfunction(each)}
    for name, verb in own.items():
        if name.startswith(READS) or name in LOCAL.get(local.__name__, ()):
            continue
        sent = inspect.getattr_static(remote, name)
        assert sent is not verb, f"{remote.__name__}.{name} works on the local store"
        assert inspect.signature(sent) == inspect.signature(verb), f"{remote.__name__}.{name}"
