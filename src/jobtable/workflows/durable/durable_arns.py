"""The names of functions and executions in Lambda's form."""

from __future__ import annotations

import re
from dataclasses import dataclass

from jobtable.errors import ValueRefusedError
from jobtable.workflows.asl.arns import ACCOUNT, REGION

_EXECUTION_ARN = re.compile(
    r"arn:[a-zA-Z0-9-]+:lambda:(?P<region>[a-zA-Z0-9-]+):(?P<account>\d{12}):function:(?P<function>[a-zA-Z0-9_-]+)"
    r":(?P<version>\$LATEST(?:\.PUBLISHED)?|[0-9]+)"
    r"/durable-execution/(?P<name>[a-zA-Z0-9_-]+)/(?P<execution_id>[a-zA-Z0-9_-]+)"
)
_FUNCTION = re.compile(
    r"(arn:aws[a-zA-Z-]*:lambda:)?((?P<region>(eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\d):)?"
    r"((?P<account>\d{12}):)?(function:)?(?P<name>[a-zA-Z0-9-_.]+)"
    r"(:(?P<qualifier>\$LATEST(\.PUBLISHED)?|[a-zA-Z0-9-_]+))?"
)
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_MOST_FUNCTION_CHARACTERS = 256


@dataclass(frozen=True)
class ExecutionArn:
    """The ARN of a durable execution, taken apart."""

    function: str
    name: str
    execution_id: str
    region: str = REGION
    account: str = ACCOUNT
    version: str = "$LATEST"

    def __str__(self) -> str:
        return f"{self.function_arn}/durable-execution/{self.name}/{self.execution_id}"

    @property
    def function_arn(self) -> str:
        """The ARN of its function, with the version."""
        return f"arn:aws:lambda:{self.region}:{self.account}:function:{self.function}:{self.version}"


@dataclass(frozen=True)
class FunctionTarget:
    """A function as requests name it: by its name, a part of its ARN, or the whole ARN."""

    name: str
    qualifier: str | None = None
    region: str | None = None
    account: str | None = None


def read_execution_arn(text: str) -> ExecutionArn:
    """Return the parts of an execution's ARN, or raise ValueRefusedError."""
    found = _EXECUTION_ARN.fullmatch(text)
    if found is None:
        raise ValueRefusedError(f"Invalid Durable Execution ARN: {text!r}")
    return ExecutionArn(**found.groupdict())


def read_function(text: str) -> FunctionTarget:
    """Return the parts of a function's name or ARN, or raise ValueRefusedError."""
    found = _FUNCTION.fullmatch(text) if len(text) <= _MOST_FUNCTION_CHARACTERS else None
    if found is None:
        raise ValueRefusedError(f"Invalid function ARN '{text}'")
    return FunctionTarget(found["name"], found["qualifier"], found["region"], found["account"])


def check_execution_name(name: str) -> None:
    """Raise ValueRefusedError unless a name can be that of an execution."""
    if not _NAME.fullmatch(name):
        raise ValueRefusedError(
            f"{name!r} cannot name a durable execution; use 1 to 64 letters, digits, hyphens and underscores"
        )


def check_function_name(name: str) -> None:
    """Raise ValueRefusedError unless executions of a function can be named."""
    if not _NAME.fullmatch(name):
        raise ValueRefusedError(
            f"the function {name!r} cannot run durably: its name must have 1 to 64 letters, digits, hyphens and "
            "underscores",
            hint="register it under another name, as in @function(name=...)",
        )
