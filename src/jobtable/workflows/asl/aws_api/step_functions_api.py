"""Step Functions' API in process: operations by name, with requests and answers in wire form."""

from __future__ import annotations

from dataclasses import replace

from jobtable.errors import OperationRefused, ValueRefusedError
from jobtable.objects import ObjectStore
from jobtable.store import Store
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.aws_api.aws_calls import Call, Diagnose, Request, Response
from jobtable.workflows.asl.aws_api.member_rules import check
from jobtable.workflows.asl.aws_api.operation_map import operation_named
from jobtable.workflows.asl.aws_api.request_rules import REQUESTS
from jobtable.workflows.asl.catalogue.activities import Activities
from jobtable.workflows.asl.catalogue.machine_verbs import MachineVerbs
from jobtable.workflows.asl.verbs import ExecutionVerbs


class StepFunctionsApi:
    """The operations of Step Functions on one store.

    Requests are in wire form: `execute("StartExecution", {"stateMachineArn": ..., "input": "{}"})`. Times in answers
    are seconds since 1970. Workers move the executions.
    """

    def __init__(
        self,
        store: Store,
        objects: ObjectStore,
        machines: MachineVerbs,
        executions: ExecutionVerbs,
        diagnose: Diagnose,
        *,
        arns: Arns | None = None,
    ) -> None:
        self._store = store
        self._objects = objects
        self._machines = machines
        self._activities = Activities(store)
        self._executions = executions
        self._diagnose = diagnose
        self._arns = arns or Arns()

    def execute(self, operation: str, request: Request, *, region: str | None = None) -> Response:
        """Run one operation, or raise OperationRefused with AWS's code. New ARNs name the region."""
        run = operation_named(operation)
        arns = self._arns if region is None else replace(self._arns, region=region)
        try:
            check(REQUESTS[operation], request)
            return run(self._call(request, arns))
        except ValueRefusedError as error:
            raise OperationRefused(str(error)) from error
        except UnicodeEncodeError as error:
            message = f"The request has text that is not Unicode: {error}"
            raise OperationRefused(message, code="SerializationException") from error

    def _call(self, request: Request, arns: Arns) -> Call:
        return Call(
            request,
            arns,
            self._store,
            self._objects,
            self._machines,
            self._activities,
            self._executions,
            self._diagnose,
        )
