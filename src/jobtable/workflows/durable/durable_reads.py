"""What is read of durable executions, here or through a server."""

from __future__ import annotations

from jobtable.errors import missing
from jobtable.objects import ObjectStore
from jobtable.store import Store
from jobtable.store.patterns import access_pattern
from jobtable.store.queries import Query
from jobtable.workflows.durable.entities import DurableExecution, DurableOperation, DurableStatus
from jobtable.workflows.durable.large_payloads import LargePayloads

_MOST_NUMBER = 999_999


class DurableReads:
    """The reading half of DurableVerbs."""

    def __init__(self, store: Store, objects: ObjectStore) -> None:
        self._store = store
        self._payloads = LargePayloads(objects)

    @access_pattern("Get a durable execution")
    def get(self, function: str, name: str) -> DurableExecution:
        """Return an execution."""
        execution = self._store.find(DurableExecution.key(function=function, name=name))
        if execution is None:
            raise missing("durable execution", f"{function}/{name}")
        return execution

    @access_pattern("List the executions of a durable function", index="GSI1")
    @access_pattern("List the executions of a durable function by status", index="GSI2")
    def list(
        self, function: str, *, status: DurableStatus | None = None, newest_first: bool = True
    ) -> Query[DurableExecution]:
        """The executions of a function, the newest first."""
        if status is None:
            return self._store.query(DurableExecution.by_function(function=function), newest_first=newest_first)
        selection = DurableExecution.by_status(function=function, status=status)
        return self._store.query(selection, newest_first=newest_first)

    @access_pattern("List the operations of a durable execution")
    def operations(self, function: str, name: str) -> Query[DurableOperation]:
        """The operations of an execution, in the order in which they were started."""
        return self._store.query(DurableOperation.key(function=function, execution=name))

    @access_pattern("Get an operation of a durable execution")
    def get_operation(self, function: str, name: str, number: int) -> DurableOperation:
        """Return an operation of an execution."""
        found = None
        if 1 <= number <= _MOST_NUMBER:
            found = self._store.find(DurableOperation.key(function=function, execution=name, number=number))
        if found is None:
            raise missing("operation", f"{number} of durable execution {function}/{name}")
        return found

    def input_of(self, execution: DurableExecution) -> str | None:
        """Return the JSON text with which an execution was started."""
        return self._payloads.read(execution.input)

    def output_of(self, execution: DurableExecution) -> str | None:
        """Return the JSON text that an execution returned, or None."""
        return self._payloads.read(execution.output)
