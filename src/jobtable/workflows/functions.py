"""Functions: what Lambda functions are on AWS, registered under a name and run by workers as jobs."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, overload

from jobtable.errors import DefinitionError

F = TypeVar("F", bound=Callable[..., Any])


LATEST = "$LATEST"
"""The version that is whatever is registered."""
_SDK = "aws_durable_execution_sdk_python.execution"


@dataclass(frozen=True)
class DurableConfig:
    """How long an execution of a durable function may take, and how long it is kept after its end."""

    execution_timeout_seconds: int = 31_622_400
    """At most, and by default, a year."""
    retention_days: int = 14


@dataclass(frozen=True)
class Function:
    """A registered handler: `handler(event, context)` as Lambda calls it, or with the event alone."""

    name: str
    path: str
    """`module:name`, by which a worker imports it."""
    handler: Callable[..., Any]
    timeout_seconds: float = 900.0
    memory_mb: int = 128
    """For the comparison of costs; no limit."""
    is_inline: bool = False
    """Small and fast: it runs in the process that moves the execution, without a job of its own."""
    durable: DurableConfig | None = None
    code_sha256: str | None = None
    """Of the file of its module, as this process read it; None if it has no file."""
    version: str = LATEST

    @property
    def is_durable(self) -> bool:
        """Whether each call is a durable execution: it was declared so, or AWS's SDK made the handler."""
        return self.durable is not None or getattr(self.handler, "__globals__", {}).get("__name__") == _SDK


_REGISTERED: dict[str, Function] = {}


@overload
def function(handler: F, /) -> F: ...
@overload
def function(
    *,
    name: str | None = None,
    timeout_seconds: float = 900.0,
    memory_mb: int = 128,
    inline: bool = False,
    durable: DurableConfig | None = None,
) -> Callable[[F], F]: ...
def function(
    handler: F | None = None,
    /,
    *,
    name: str | None = None,
    timeout_seconds: float = 900.0,
    memory_mb: int = 128,
    inline: bool = False,
    durable: DurableConfig | None = None,
) -> F | Callable[[F], F]:
    """Register a handler as the function of that name, by default its own, and return it unchanged."""

    def register(marked: F) -> F:
        registered = Function(
            name or marked.__name__,
            f"{marked.__module__}:{marked.__qualname__}",
            marked,
            timeout_seconds,
            memory_mb,
            inline,
            durable,
            _digest_of(marked.__module__),
        )
        other = _REGISTERED.get(registered.name)
        if other is not None and other.path != registered.path:
            raise DefinitionError(
                f"function {registered.name} is {other.path} and cannot also be {registered.path}; pass another name"
            )
        _REGISTERED[registered.name] = registered
        return marked

    return register if handler is None else register(handler)


@cache
def _digest_of(module: str) -> str | None:
    """Return the digest of the file of a module, read when its first function is registered."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file and Path(file).is_file() else None


def find_function(name: str) -> Function | None:
    """Return a registered function, or None; the module that registers it must have been imported."""
    return _REGISTERED.get(name)


def functions() -> list[Function]:
    """Return all registered functions, by name."""
    return [_REGISTERED[name] for name in sorted(_REGISTERED)]
