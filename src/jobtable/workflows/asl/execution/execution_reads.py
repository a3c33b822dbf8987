"""What is read of executions, here or through a server."""

from __future__ import annotations

from collections.abc import Iterator

from jobtable.errors import missing
from jobtable.objects import ObjectStore
from jobtable.store import Store
from jobtable.store.patterns import access_pattern
from jobtable.store.queries import Query
from jobtable.workflows.asl.entities import Execution, ExecutionStatus, MapRun
from jobtable.workflows.asl.execution.event_packs import History


class ExecutionReads:
    """The reading half of ExecutionVerbs."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @access_pattern("Get an execution")
    def get(self, machine: str, name: str) -> Execution:
        """Return an execution."""
        found = self._store.find(Execution.key(machine=machine, name=name))
        if found is None:
            raise missing("workflow execution", f"{machine}/{name}")
        return found

    @access_pattern("List the executions of a machine", index="GSI1")
    @access_pattern("List the executions of a machine by status", index="GSI2")
    def list(self, machine: str, *, status: ExecutionStatus | None = None) -> Query[Execution]:
        """The executions of a machine, the newest first."""
        if status is None:
            return self._store.query(Execution.by_machine(machine=machine), newest_first=True)
        return self._store.query(Execution.by_status(machine=machine, status=status), newest_first=True)

    @access_pattern("Read the history of an execution")
    def history(self, machine: str, name: str, *, newest_first: bool = False) -> History:
        """The events of an execution."""
        last = self.get(machine, name).last_event_id  # later ones are part of a change that is not finished
        return History(self._store, machine, name, last, newest_first=newest_first)

    @access_pattern("Get a map run")
    def get_map_run(self, map_run_id: str) -> MapRun:
        """Return a run of a distributed Map."""
        found = self._store.find(MapRun.key(map_run_id=map_run_id))
        if found is None:
            raise missing("map run", map_run_id)
        return found

    @access_pattern("List the map runs of an execution", index="GSI1")
    def list_map_runs(self, machine: str, name: str) -> Query[MapRun]:
        """The runs of distributed Maps of an execution, the oldest first."""
        return self._store.query(MapRun.by_execution(machine=machine, name=name))

    @access_pattern("List the executions of a map run", index="GSI1")
    def children(self, machine: str, map_run_id: str) -> Iterator[Execution]:
        """The child executions of a run of a distributed Map."""
        run = self.get_map_run(map_run_id)
        for each in self.list(f"{machine}/{run.label}"):
            if each.map_run_id == map_run_id:
                yield each


def read_input(execution: Execution, objects: ObjectStore) -> str:
    """Return the whole input of an execution as JSON text."""
    return execution.input if execution.input_object is None else objects.get(execution.input_object).decode()


def read_output(execution: Execution, objects: ObjectStore) -> str | None:
    """Return the whole output of an execution as JSON text, or None if it has none."""
    return execution.output if execution.output_object is None else objects.get(execution.output_object).decode()
