"""The services that executions ask, on the store and the object store of a job engine."""

from __future__ import annotations

from collections.abc import Iterable

from jobtable.jobs.engine import Jobs
from jobtable.workflows.asl.machine import StateFault
from jobtable.workflows.asl.run import CallService, Json
from jobtable.workflows.asl.services import item_reader, result_writer
from jobtable.workflows.asl.services.message_calls import publish, send_message
from jobtable.workflows.asl.services.object_calls import call_objects
from jobtable.workflows.asl.services.service_faults import id_of_call
from jobtable.workflows.asl.services.table_calls import call_table
from jobtable.workflows.asl.verbs import ChildExecution, ServiceVerbs
from jobtable.workflows.message_handlers import MessageHandlers


class ServiceCalls(ServiceVerbs):
    """`ServiceVerbs` on one store. Any thread may use it."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._handlers = MessageHandlers(jobs.store)

    def call(self, command: CallService, execution: str) -> Json:
        call_id = id_of_call(command, execution)
        match command.service:
            case "dynamodb" | "aws-sdk:dynamodb":
                return call_table(self._jobs.store.backend, command, call_id)
            case "aws-sdk:s3":
                return call_objects(self._jobs.objects, command, call_id)
            case "sqs":
                return send_message(self._jobs, self._handlers, command, call_id)
            case "sns":
                return publish(self._jobs, self._handlers, command, call_id)
        raise StateFault("States.Runtime", f"The service '{command.service}:{command.action}' is not supported")

    def read_items(self, reader: Json) -> Json:
        return item_reader.read_items(self._jobs.objects, reader)

    def write_results(self, writer: Json, results: list[Json], children: Iterable[ChildExecution]) -> Json:
        return result_writer.write_results(self._jobs.objects, writer, results, children)
