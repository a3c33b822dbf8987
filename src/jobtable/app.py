"""Services: where settings, stores and the services of the installed systems meet."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from jobtable.clock import SYSTEM_CLOCK, Clock
from jobtable.connection import connect, default_objects_url
from jobtable.errors import DefinitionError, SettingsError, TableNotFound
from jobtable.model.table import Table
from jobtable.settings import Settings
from jobtable.store.store import Store
from jobtable.system import Service, System, registered

if TYPE_CHECKING:  # loaded when they are used
    from jobtable.access.tokens import Tokens
    from jobtable.assist.costs import AssistReads
    from jobtable.inbox.inbox import Inbox
    from jobtable.jobs.engine import Jobs
    from jobtable.jobs.stored.locations import JobObjects
    from jobtable.jobs.verbs import JobVerbs
    from jobtable.objects.object_store import ObjectStore
    from jobtable.workflows.asl.aws_api.step_functions_api import StepFunctionsApi
    from jobtable.workflows.asl.catalogue.activities import Activities
    from jobtable.workflows.asl.catalogue.machine_verbs import MachineVerbs
    from jobtable.workflows.asl.verbs import ExecutionVerbs
    from jobtable.workflows.durable.lambda_api import LambdaApi
    from jobtable.workflows.durable.verbs import DurableVerbs
    from jobtable.workflows.function_records import FunctionRecords
    from jobtable.workflows.workflow_objects import WorkflowObjects

T = TypeVar("T")


def open_jobs(store_url: str, objects_url: str | None = None, *, clock: Clock = SYSTEM_CLOCK) -> Jobs:
    """Open the job service of a store, as each process of a worker does.

    Close it, or write `with open_jobs(...) as jobs:`. Missing tables of an embedded store are created; create those in
    the cloud once with `jobtable tables create`.
    """
    return Services.open(store_url, objects_url, clock=clock).engine


class Services:
    """The services of one store and one object store, each made when it is first used.

    On an embedded store, the service of a system creates its missing tables.
    """

    def __init__(self, store: Store, objects: ObjectStore, *, is_embedded: bool, creates: bool = True) -> None:
        self.store = store
        self.objects = objects
        self._creates_tables = is_embedded and creates
        self._may_lack_tables = is_embedded and not creates
        self._made: dict[type, Any] = {}

    @classmethod
    def open(
        cls, store_url: str, objects_url: str | None = None, *, clock: Clock = SYSTEM_CLOCK, creates: bool = True
    ) -> Self:
        """Open what the URLs name; without `objects_url`, the objects lie beside the store's file.

        With `creates=False`, a dry run, a missing folder of objects counts as empty.
        """
        from jobtable.objects import open_objects

        store = connect(store_url, clock=clock)
        try:
            objects = open_objects(objects_url or default_objects_url(store_url), clock=clock, creates=creates)
        except BaseException:
            store.close()
            raise
        return cls(store, objects, is_embedded=store_url.startswith(("memory:", "file:")), creates=creates)

    @staticmethod
    def from_settings(settings: Settings, *, clock: Clock = SYSTEM_CLOCK, creates: bool = True) -> Services:
        """Open the server that the settings name, or else the store."""
        if settings.server is not None:
            return ServerServices(settings.server, settings.token, clock=clock)
        return Services.open(settings.store, settings.objects, clock=clock, creates=creates)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store and the object store."""
        self.store.close()
        self.objects.close()

    @property
    def jobs(self) -> JobVerbs:
        """What people do with jobs and queues."""
        return self.engine

    @cached_property
    def engine(self) -> Jobs:
        """The job engine on the store; SettingsError if the services are those of a server."""
        from jobtable.jobs.engine import Jobs
        from jobtable.jobs.stored.entities import main

        self._prepare(main)
        return Jobs(self.store, self.objects, clock=self.store.clock)

    @cached_property
    def durable(self) -> DurableVerbs:
        """Durable functions, which run as jobs."""
        from jobtable.workflows.durable.function_tasks import service_of

        self._prepare_workflows()
        return service_of(self.engine)

    @cached_property
    def functions(self) -> FunctionRecords:
        """The functions that were published, and where their code is."""
        from jobtable.workflows.function_records import FunctionRecords

        self._prepare_workflows()
        return FunctionRecords(self.store)

    @cached_property
    def machines(self) -> MachineVerbs:
        """State machines in the Amazon States Language."""
        from jobtable.workflows.asl.catalogue.machines import Machines
        from jobtable.workflows.asl.machine_definition import check_definition

        self._prepare_workflows()
        return Machines(self.store, self.objects, check_definition)

    @cached_property
    def activities(self) -> Activities:
        """Activities: tasks of state machines that programs anywhere poll for."""
        from jobtable.workflows.asl.catalogue.activities import Activities

        self._prepare_workflows()
        return Activities(self.store)

    @cached_property
    def executions(self) -> ExecutionVerbs:
        """Executions of state machines, which run as jobs."""
        from jobtable.workflows.asl.execution.executions import executions_of

        self._prepare_workflows()
        return executions_of(self.engine)

    @cached_property
    def inbox(self) -> Inbox:
        """What waits for people: questions of workflows, and proposals."""
        from jobtable.inbox.inbox import Inbox

        self._prepare_workflows()
        return Inbox(self.engine)

    @cached_property
    def step_functions(self) -> StepFunctionsApi:
        """The operations of Step Functions, by name and in wire form."""
        from jobtable.workflows.asl.aws_api.step_functions_api import StepFunctionsApi
        from jobtable.workflows.asl.machine_definition import diagnose

        return StepFunctionsApi(self.store, self.objects, self.machines, self.executions, diagnose)

    @cached_property
    def lambda_functions(self) -> LambdaApi:
        """The operations of Lambda on functions and durable executions, by name and in wire form."""
        from jobtable.workflows.durable.function_tasks import service_of
        from jobtable.workflows.durable.lambda_api import LambdaApi

        self._prepare_workflows()
        return LambdaApi(service_of(self.engine))

    @cached_property
    def assist(self) -> AssistReads:
        """The calls of models, what they cost, and the providers."""
        from jobtable.assist.costs import AssistReads
        from jobtable.jobs.stored.entities import main

        self._prepare(main)
        return AssistReads(self.store, self.objects)

    def get(self, kind: type[T]) -> T:
        """Return the service of this class, or raise DefinitionError if no system declares it."""
        if kind not in self._made:
            system, service = _declared(kind)
            self.prepare(system)
            self._made[kind] = self._make(system, service)
        return cast("T", self._made[kind])

    def prepare(self, system: System) -> None:
        """Create the missing tables of a system on an embedded store, and that of the workflows that it may run."""
        from jobtable.workflows.table_and_queues import QUEUES, workflows

        runs_workflows = not set(QUEUES).isdisjoint(system.queues)
        self._prepare(*tables_of(system), *([workflows] if runs_workflows else []))

    def _prepare_workflows(self) -> None:
        from jobtable.workflows.table_and_queues import workflows

        self._prepare(workflows)

    def prepare_all(self) -> None:
        """Create the missing tables of the core and of every system with pages, routes or queues."""
        _ = self.engine
        self._prepare_workflows()
        for system in registered():
            if system.pages or system.api or system.queues:
                self.prepare(system)

    def _make(self, system: System, service: Service) -> Any:
        return system.load(service.local or service.kind)(self.jobs)

    @cached_property
    def tokens(self) -> Tokens:
        """The tokens of the server over this store."""
        from jobtable.access.tokens import Tokens
        from jobtable.jobs.stored.entities import main

        self._prepare(main)
        return Tokens(self.store, clock=self.store.clock)

    @cached_property
    def _job_objects(self) -> JobObjects:
        from jobtable.jobs.stored.locations import JobObjects

        return JobObjects(self.jobs.store)

    @cached_property
    def _workflow_objects(self) -> WorkflowObjects:
        from jobtable.workflows.workflow_objects import WorkflowObjects

        self._prepare_workflows()
        return WorkflowObjects(self.engine)

    def is_referenced(self, key: str) -> bool:
        """Return whether a record names the object, for `objects sweep`.

        An object under an unknown prefix belongs to another program and counts as named. A table that a dry run did
        not create names nothing.
        """
        try:
            return self._is_named(key)
        except TableNotFound:
            if not self._may_lack_tables:
                raise  # the wrong store, or a deleted table: nothing may be swept
            return False

    def _is_named(self, key: str) -> bool:
        prefix = key.partition("/")[0]
        if prefix == "jobs":
            from jobtable.assist import call_texts

            if call_texts.is_of_calls(key):
                return call_texts.is_referenced(self.jobs.store, key)
            return self._job_objects.is_referenced(key)
        if prefix in ("workflows", "durable"):
            return self._workflow_objects.is_referenced(key)
        for system in registered():
            if prefix in system.objects:
                return bool(self.get(system.load(system.objects[prefix])).is_referenced(key))
        return True

    def _prepare(self, *tables: Table) -> None:
        if self._creates_tables:
            self.store.tables.create(*tables)


class ServerServices(Services):
    """The services of a remote server: each verb is one request to its API, and its workers do the work."""

    def __init__(self, url: str, token: str | None, *, clock: Clock = SYSTEM_CLOCK) -> None:
        from jobtable.remote.backend import ServerBackend, ServerObjects
        from jobtable.remote.server_requests import Server

        self._server = Server(url, token)
        try:
            prefix = self._server.read("GET", "/store")["prefix"]
        except BaseException:
            self._server.close()
            raise
        store = Store(ServerBackend(self._server), prefix=prefix, clock=clock)
        super().__init__(store, ServerObjects(self._server), is_embedded=False)

    @cached_property
    def engine(self) -> Jobs:
        raise SettingsError(f"this needs the store itself, not the server {self._server.url}", hint="set `--store`")

    @property
    def jobs(self) -> JobVerbs:
        """Jobs and queues, for people; workers open `remote.work`."""
        return self._server_jobs

    @cached_property
    def _server_jobs(self) -> JobVerbs:
        from jobtable.remote.jobs import ServerJobs

        return ServerJobs(self._server, self.store, self.objects)

    def _make(self, system: System, service: Service) -> Any:
        if service.remote is None:
            return super()._make(system, service)
        return system.load(service.remote)(self._server, self.jobs)

    @cached_property
    def durable(self) -> DurableVerbs:
        from jobtable.remote.durable import ServerDurable

        return ServerDurable(self._server, self.store, self.objects)

    @cached_property
    def machines(self) -> MachineVerbs:
        from jobtable.remote.machines import ServerMachines

        return ServerMachines(self._server, self.store, self.objects)

    @cached_property
    def activities(self) -> Activities:
        from jobtable.remote.machines import ServerActivities

        return ServerActivities(self._server, self.store)

    @cached_property
    def assist(self) -> AssistReads:
        from jobtable.remote.assist_reads import ServerAssistReads

        return ServerAssistReads(self._server, self.store, self.objects)

    @cached_property
    def executions(self) -> ExecutionVerbs:
        from jobtable.remote.executions import ServerExecutions

        return ServerExecutions(self._server, self.store)

    @cached_property
    def inbox(self) -> Inbox:
        from jobtable.remote.inbox import ServerInbox

        return ServerInbox(self._server, self.store)

    @cached_property
    def tokens(self) -> Tokens:
        """The tokens of the server."""
        from jobtable.remote.tokens import ServerTokens

        return ServerTokens(self._server, self.store, clock=self.store.clock)


def tables_of(system: System) -> list[Table]:
    """Return the tables that a system declares, without the main table."""
    declared = system.load_all(system.tables)
    return [table for each in declared for table in ([each] if isinstance(each, Table) else each)]


def _declared(kind: type) -> tuple[System, Service]:
    path = f"{kind.__module__}:{kind.__qualname__}"
    for system in registered():
        for service in system.services:
            if service.kind == path:
                return system, service
    raise DefinitionError(f"no installed system has the service {path}; declare it under `services` of its system")
