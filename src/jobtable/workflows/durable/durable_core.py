"""What the parts of the durable service share."""

from __future__ import annotations

from datetime import datetime

from jobtable.clock import wall_time
from jobtable.errors import missing
from jobtable.jobs.engine import Jobs
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.durable.durable_arns import ExecutionArn
from jobtable.workflows.durable.durable_reads import DurableReads
from jobtable.workflows.durable.durable_tokens import DurableTokens
from jobtable.workflows.durable.entities import DurableExecution
from jobtable.workflows.durable.execution_state import ExecutionState
from jobtable.workflows.durable.lambda_shapes import HistoryEvents, OperationShapes
from jobtable.workflows.durable.large_payloads import LargePayloads
from jobtable.workflows.function_records import FunctionRecords
from jobtable.workflows.function_versions import FunctionVersions
from jobtable.workflows.functions import LATEST, Function, find_function
from jobtable.workflows.remembered import Remembered


class DurableCore:
    """A job engine, and what reads and writes executions on its store."""

    def __init__(self, jobs: Jobs, *, arns: Arns | None = None) -> None:
        self.jobs = jobs
        self.store = jobs.store
        self.clock = jobs.clock
        self.arns = arns or Arns()
        self.payloads = LargePayloads(jobs.objects, jobs.store)
        self.reads = DurableReads(self.store, jobs.objects)
        self.tokens = DurableTokens(self.store)
        self.shapes = OperationShapes(self.payloads, self.tokens)
        self.events = HistoryEvents(self.store, self.payloads, self.shapes)
        self.functions = FunctionRecords(self.store)
        self.versions = FunctionVersions(self.store)
        self.remembered: Remembered[ExecutionState] = Remembered()
        self._published: set[str] = set()

    def now(self) -> datetime:
        """Return the time on the wall clock, by which things are due."""
        return wall_time(self.clock)

    def get_execution(self, function: str, name: str) -> DurableExecution:
        """Return an execution, or raise NotFoundError."""
        return self.reads.get(function, name)

    def get_function(self, name: str, version: str | None = None) -> Function:
        """Return a function, or raise NotFoundError; one of this process is published, so that workers find it."""
        found = self.find_function(name, version)
        if found is None:
            what = name if version is None else f"{name}:{version}"
            raise missing("function", what, hint="import its module, or publish it with FunctionRecords.publish()")
        return found

    def find_function(self, name: str, qualifier: str | None = None) -> Function | None:
        """Return a function, or the version of it that a qualifier names; None if there is none."""
        if find_function(name) is not None and name not in self._published:
            self._published.update(each.name for each in self.functions.publish())
        if qualifier is None or qualifier == LATEST:
            return self.functions.find(name)
        version = self.versions.find_version(name, qualifier)
        recorded = None if version is None else self.versions.find(name, version)
        if recorded is None:
            return self.functions.find(name) if version == LATEST else None
        return self.versions.restore(recorded)

    def arn_of(self, execution: DurableExecution) -> ExecutionArn:
        """Return the ARN of an execution."""
        return ExecutionArn(
            execution.function,
            execution.name,
            execution.execution_id,
            execution.region,
            execution.account,
            execution.version,
        )
