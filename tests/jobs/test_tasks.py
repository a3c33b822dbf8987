"""What a task takes, what it refuses, and how it is found."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from jobtable.errors import DefinitionError, TaskError
from jobtable.jobs.submit.definition import NewJob
from jobtable.jobs.tasks import Task, resolve, task

if TYPE_CHECKING:
    from jobtable.jobs.report.context import JobContext


class Optimiser(BaseModel):
    name: str
    momentum: float = 0.0


@task
def train(job: JobContext, learning_rate: float, epochs: int = 3) -> tuple[object, float, int]:
    return job, learning_rate, epochs


@task(inline=True)
def add(a: int, b: int) -> int:
    return a + b


@task
def convert(day: date, where: Path, optimiser: Optimiser, *, limits: list[float] | None = None) -> dict[str, Any]:
    return {"day": day, "where": where, "optimiser": optimiser, "limits": limits}


@task
def collect(first: int, **others: Any) -> dict[str, Any]:
    return {"first": first, **others}


def task_of(function: object) -> Task:
    found: Task = function.__jobtable_task__  # type: ignore[attr-defined]  # set by @task
    return found


def test_a_marked_function_is_still_the_function() -> None:
    assert add(2, 3) == 5
    assert task_of(add).is_inline
    assert not task_of(train).is_inline


def test_a_parameter_of_the_contexts_type_gets_it_wherever_it_stands_and_whatever_its_name() -> None:
    def log(text: str, *, ctx: JobContext) -> tuple[object, str]:
        return ctx, text

    def job_of(name: str, job: str) -> str:
        return name + job

    context = object()
    logging = Task(log)
    assert logging.takes_context
    assert logging.call(context, {"text": "hello"}) == (context, "hello")
    with pytest.raises(TaskError, match="it takes \\(text: 'str'\\)"):
        logging.call(context, {})
    plain = Task(job_of)
    assert not plain.takes_context
    assert plain.call(context, {"name": "a", "job": "b"}) == "ab"


def test_the_context_comes_first_and_params_by_name() -> None:
    context = object()
    assert task_of(train).call(context, {"learning_rate": 0.1}) == (context, 0.1, 3)
    assert task_of(add).call(context, {"b": 1, "a": 41}) == 42


def test_params_become_what_the_annotations_say() -> None:
    params = {"day": "2025-11-01", "where": "/data", "optimiser": {"name": "sgd"}, "limits": [1, 2]}
    assert task_of(convert).call(None, params) == {
        "day": date(2025, 11, 1),
        "where": Path("/data"),
        "optimiser": Optimiser(name="sgd"),
        "limits": [1.0, 2.0],
    }


def test_further_params_go_where_the_function_takes_any() -> None:
    assert task_of(collect).call(None, {"first": 1, "x": [2], "self": 3}) == {"first": 1, "x": [2], "self": 3}


@pytest.mark.parametrize(
    ("function", "params", "said"),
    [
        (train, {}, "missing a required argument: 'learning_rate'"),
        (train, {"learning_rate": 0.1, "momentum": 0}, "unexpected keyword argument 'momentum'"),
        (train, {"learning_rate": 0.1, "job": 0}, "unexpected keyword argument 'job'"),
        (train, {"learning_rate": "fast"}, "learning_rate: Input should be a valid number"),
        (train, {"learning_rate": 0.1, "epochs": 1.5}, "epochs: Input should be a valid integer"),
        (convert, {"day": 0, "where": "", "optimiser": {"momentum": 1}}, "optimiser.name: Field required"),
    ],
)
def test_wrong_params_are_refused_before_anything_runs(function: object, params: dict[str, Any], said: str) -> None:
    with pytest.raises(TaskError) as refused:
        task_of(function).call(None, params)
    assert said in str(refused.value)
    assert task_of(function).path in str(refused.value)


def test_annotations_may_name_what_is_defined_later() -> None:
    @task
    def early(value: Later) -> object:
        return value

    assert task_of(early).call(None, {"value": {"number": "7"}}) == Later(number=7)


class Later(BaseModel):
    number: int


def test_an_annotation_that_means_nothing_is_told() -> None:
    def strange(value: Any) -> None: ...

    strange.__annotations__["value"] = "Nowhere"
    task(strange)
    with pytest.raises(TaskError, match="Nowhere"):
        task_of(strange).call(None, {"value": 1})


def test_functions_that_cannot_be_tasks_are_refused_where_they_are_marked() -> None:
    async def later() -> None: ...
    def positional(x: int, /) -> None: ...
    def many(*x: int) -> None: ...

    for function in (later, positional, many):
        with pytest.raises(DefinitionError, match=function.__name__):
            task(function)


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.syspath_prepend(tmp_path)
    text = "from jobtable.jobs.tasks import task\n\n@task\ndef good(): return 1\n\ndef bare(): return 2\n"
    (tmp_path / "some_tasks.py").write_text(text)
    (tmp_path / "broken_tasks.py").write_text("1 / 0\n")
    (tmp_path / "greedy_tasks.py").write_text("import nowhere_at_all\n")
    yield "some_tasks"
    sys.modules.pop("some_tasks", None)


def test_a_path_is_resolved(module: str) -> None:
    found = resolve(f"{module}:good")
    assert found.call(None, {}) == 1
    assert found.path == f"{module}:good"
    assert resolve(f"{module}:good") is found


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("good", "write module:function"),
        (":good", "write module:function"),
        ("some_tasks:", "write module:function"),
        ("nowhere_at_all:good", "nowhere_at_all cannot be imported: .* start the worker in its folder"),
        ("some_tasks.inside:good", "some_tasks.inside cannot be imported: .*, or install it$"),
        ("greedy_tasks:good", "No module named 'nowhere_at_all'$"),
        ("broken_tasks:good", "ZeroDivisionError"),
        ("some_tasks:missing", r"some_tasks \(.*some_tasks.py\) has no missing"),
        ("some_tasks:bare", "write @task above it"),
        ("__main__:good", "move the task into a module"),
    ],
)
@pytest.mark.usefixtures("module")
def test_a_path_that_leads_nowhere_says_why(path: str, said: str) -> None:
    with pytest.raises(TaskError, match=said) as refused:
        resolve(path)
    assert path in str(refused.value)


def test_a_job_may_name_the_function_itself() -> None:
    job = NewJob(name="sum", task=add, params={"a": 1, "b": 2})
    assert job.task == f"{__name__}:add"
    assert job == NewJob(name="sum", task=f"{__name__}:add", params={"a": 1, "b": 2})


def test_a_function_that_no_worker_can_run_is_refused_before_it_is_submitted(monkeypatch: pytest.MonkeyPatch) -> None:
    def bare() -> None: ...

    with pytest.raises(TaskError, match=r"test_tasks\..*bare is not a task; write @task above it"):
        NewJob(name="bare", task=bare)
    for nameless in (lambda: None, task(lambda: None)):
        with pytest.raises(TaskError, match=r"<lambda>' is a lambda, .*; write a function in a module"):
            NewJob(name="nameless", task=nameless)
    with pytest.raises(TaskError, match=r"inner' is inside a function or class, where no worker finds it"):
        NewJob(name="inner", task=_with_a_task_inside())
    with pytest.raises(TaskError, match=r"it takes \(a: 'int', b: 'int'\), not \['a', 'c'\]"):
        NewJob(name="wrong params", task=add, params={"a": 1, "c": 2})
    monkeypatch.setattr(task_of(add), "path", "__main__:add")
    with pytest.raises(TaskError, match="move the task into a module"):
        NewJob(name="of a script", task=add, params={"a": 1, "b": 2})


def _with_a_task_inside() -> Callable[[], None]:
    @task
    def inner() -> None: ...

    return inner
