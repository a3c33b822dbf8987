"""Tasks: the functions that workers may run."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, get_type_hints, overload

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError

from jobtable.errors import DefinitionError, TaskError, kind_and_text
from jobtable.system import current_path

F = TypeVar("F", bound=Callable[..., Any])

CONTEXT_NAME, _CONTEXT_TYPE = "job", "JobContext"
_MARK = "__jobtable_task__"
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)


@overload
def task(function: F, /) -> F: ...
@overload
def task(*, inline: bool = False) -> Callable[[F], F]: ...
def task(function: F | None = None, /, *, inline: bool = False) -> F | Callable[[F], F]:
    """Mark a function that workers may run, and return it unchanged.

    A parameter annotated with JobContext, or a first one named `job`, gets the job's context; the others get the job's
    params by name. What the function returns (JSON) is the job's result. With `inline=True`, a small and fast task may
    run in the worker's own process.
    """

    def mark(marked: F) -> F:
        setattr(marked, _MARK, Task(marked, is_inline=inline))
        return marked

    return mark if function is None else mark(function)


def _context_in(parameters: list[inspect.Parameter]) -> str | None:
    for parameter in parameters:
        # With `from __future__ import annotations` an annotation is text.
        kind = getattr(parameter.annotation, "__name__", parameter.annotation)
        if isinstance(kind, str) and kind.rpartition(".")[2] == _CONTEXT_TYPE:
            return parameter.name
    return CONTEXT_NAME if parameters and parameters[0].name == CONTEXT_NAME else None


class FailTask(BaseException):
    """Raise it when a task has failed for good: its job is FAILED with this message and result, without a retry.

    Like StopTask and SuspendTask it is not an Exception, so handlers in the task do not catch it.
    """

    def __init__(self, message: str, result: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.result = result


class StopTask(BaseException):
    """Raise it to end a task early, in order: its job is STOPPED, with this message and result."""

    def __init__(self, message: str, result: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.result = result


class SuspendTask(BaseException):
    """Raise it to let a task wait without a worker: its job is PENDING, and starts again when it is due or woken.

    It starts from the beginning, with the same attempt. Without `until`, only `wake` starts it.
    """

    def __init__(self, until: datetime | None = None, message: str | None = None) -> None:
        super().__init__(message)
        self.until = until
        self.message = message


class Task:
    """A function marked with @task, and its parameters."""

    def __init__(self, function: Callable[..., Any], *, is_inline: bool = False) -> None:
        self.function = function
        self.is_inline = is_inline
        self.path = f"{function.__module__}:{function.__qualname__}"
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            advice = "write a plain function, which may call asyncio.run() or list()"
            raise DefinitionError(f"{self.path} is asynchronous or a generator; {advice}")
        parameters = list(inspect.signature(function).parameters.values())
        for parameter in parameters:
            if parameter.kind not in _BY_NAME:
                raise DefinitionError(f"{self.path}: {parameter} cannot be passed by name, as params are")
        self._context = _context_in(parameters)
        self._parameters = [parameter for parameter in parameters if parameter.name != self._context]
        self._signature = inspect.Signature(self._parameters)

    @property
    def takes_context(self) -> bool:
        """Whether the function takes the job's context."""
        return self._context is not None

    def call(self, context: object, params: Mapping[str, Any]) -> Any:
        """Call the function; TaskError if it does not take these params."""
        arguments = self.arguments(params)
        if self._context is not None:
            arguments[self._context] = context
        return self.function(**arguments)

    def arguments(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Convert the params to the function's annotations, or raise TaskError."""
        self.check_names(params)
        arguments = dict(params)
        for name, checked in self._adapters.items():
            if name in arguments:
                try:
                    arguments[name] = checked.validate_python(arguments[name])
                except ValidationError as error:
                    told = "; ".join(_told(name, problem["loc"], problem["msg"]) for problem in error.errors())
                    raise TaskError(f"{self.path}: {told}; it takes ({self._taken()})") from error
        return arguments

    def check_names(self, names: Iterable[str]) -> None:
        """Raise TaskError unless the function takes exactly params of these names."""
        try:
            self._signature.bind(**dict.fromkeys(names))
        except TypeError as error:
            raise TaskError(f"{self.path}: {error}; it takes ({self._taken()}), not {sorted(names)}") from error

    @cached_property
    def _adapters(self) -> dict[str, TypeAdapter[Any]]:
        """The adapter of each annotated param; made late, because annotations may name later definitions."""
        named = [p for p in self._parameters if p.kind is not inspect.Parameter.VAR_KEYWORD]
        annotations = {p.name: p.annotation for p in named if p.annotation is not inspect.Parameter.empty}
        names = inspect.unwrap(self.function).__globals__
        try:
            hints = get_type_hints(SimpleNamespace(__annotations__=annotations), names, include_extras=True)
            return {name: TypeAdapter(hint) for name, hint in hints.items() if hint is not Any}
        except (NameError, TypeError, PydanticUserError) as error:
            raise TaskError(f"{self.path}: an annotation of its parameters is invalid: {error}") from error

    def _taken(self) -> str:
        return ", ".join(str(parameter) for parameter in self._parameters)


def task_of(function: Callable[..., Any]) -> Task:
    """Return the task of a marked function; TaskError if it is unmarked, or no worker would find it."""
    found: Task | None = getattr(function, _MARK, None)
    if found is None:
        named = f"{function.__module__}.{getattr(function, '__qualname__', function)}"
        _refuse_lambda(named, function)
        raise TaskError(f"{named} is not a task; write @task above it")
    module_name, _, function_name = found.path.partition(":")
    _refuse_lambda(found.path, function)
    _refuse_script(found.path, module_name)
    if "." in function_name:
        raise TaskError(
            f"{found.path!r} is inside a function or class, where no worker finds it; move it to the top of its module"
        )
    return found


def is_path(path: str) -> bool:
    """Whether a text has the form `module:function`."""
    module_name, _, function_name = path.partition(":")
    return bool(module_name and function_name) and path.split() == [path]


def resolve(path: str) -> Task:
    """Import and return the task that `module:function` names, or raise TaskError."""
    if not is_path(path):
        raise TaskError(f"{path!r} is not a path of a task; write module:function")
    module_name, _, function_name = current_path(path).partition(":")
    _refuse_script(path, module_name)
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # whatever a module raises while it is imported
        why = kind_and_text(error)
        if isinstance(error, ModuleNotFoundError) and f"{module_name}.".startswith(f"{error.name}."):
            why += f"; start the worker in its folder (this is {Path.cwd()}), or install it"
        raise TaskError(f"{path!r}: {module_name} cannot be imported: {why}") from error
    function = getattr(module, function_name, None)
    found: Task | None = getattr(function, _MARK, None)
    if function is None:
        where = getattr(module, "__file__", None) or "without a file"
        raise TaskError(f"{path!r}: {module_name} ({where}) has no {function_name}")
    if found is None:
        raise TaskError(f"{path!r} is not a task; write @task above it")
    return found


def _refuse_lambda(path: str, function: Callable[..., Any]) -> None:
    if getattr(function, "__name__", None) == "<lambda>":
        raise TaskError(f"{path!r} is a lambda, which has no name for workers; write a function in a module")


def _refuse_script(path: str, module_name: str) -> None:
    if module_name == "__main__":
        raise TaskError(f"{path!r}: a worker cannot import the main script; move the task into a module")


def _told(name: str, where: tuple[int | str, ...], problem: str) -> str:
    return f"{'.'.join(map(str, (name, *where)))}: {problem}"
