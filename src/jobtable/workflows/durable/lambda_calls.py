"""What an operation of Lambda works with: the request, and the service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from jobtable.errors import NotFoundError, OperationRefused
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.durable.durable_arns import ExecutionArn, FunctionTarget, read_execution_arn, read_function
from jobtable.workflows.durable.durable_service import DurableService
from jobtable.workflows.durable.entities import DurableExecution
from jobtable.workflows.durable.lambda_errors import lambda_error

DEFAULT_PAGE = 100


@dataclass(frozen=True)
class LambdaCall:
    """One call of an operation."""

    request: Mapping[str, Any]
    arns: Arns
    """Makes the ARNs of functions, and of what is started."""
    service: DurableService

    @property
    def execution_arn(self) -> ExecutionArn:
        """The ARN that the request names."""
        return read_execution_arn(self.request["DurableExecutionArn"])

    def execution(self) -> DurableExecution:
        """Return the execution that the request names."""
        arn = self.execution_arn
        try:
            found = self.service.get(arn.function, arn.name)
        except NotFoundError as error:
            raise _no_execution(arn) from error
        if (found.execution_id, found.version) != (arn.execution_id, arn.version):
            raise _no_execution(arn)
        return found

    def target(self) -> FunctionTarget:
        """Return the function that the request names, with its qualifier if there is one."""
        target = read_function(self.request["FunctionName"])
        qualifier = self.request.get("Qualifier")
        if None not in (qualifier, target.qualifier) and qualifier != target.qualifier:
            raise lambda_error(
                "InvalidParameterValueException",
                "The derived qualifier from the function name does not match the specified qualifier.",
            )
        return replace(target, qualifier=qualifier or target.qualifier)

    def version(self, target: FunctionTarget) -> str:
        """Return the version that a function's qualifier names, `$LATEST` without one."""
        version = self.service.core.versions.find_version(target.name, target.qualifier)
        if version is None:
            raise self.no_function(f"{target.name}:{target.qualifier}")
        return version

    def no_function(self, name: str) -> OperationRefused:
        """Return the error for a function that nobody has registered, or a version of it that does not exist."""
        return lambda_error("ResourceNotFoundException", f"Function not found: {self.arns.function(name)}")

    def page_size(self) -> int:
        """Return how many results the request asks for at most."""
        return self.request.get("MaxItems") or DEFAULT_PAGE

    def numeric_marker(self) -> int:
        """Return the number after which a page starts; 0 for the first page."""
        marker = self.request.get("Marker") or "0"
        if not (marker.isascii() and marker.isdigit() and len(marker) < 10):
            raise invalid_marker()
        return int(marker)


def invalid_marker() -> OperationRefused:
    """Return the error for a marker that no page has had."""
    return lambda_error("InvalidParameterValueException", "Invalid Marker; use the NextMarker of the page before")


def _no_execution(arn: ExecutionArn) -> OperationRefused:
    return lambda_error("ResourceNotFoundException", f"Durable execution not found: {arn}")
