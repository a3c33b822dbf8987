"""The task of an execution's jobs: runs as many steps as the workflow type assigns to one job."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from jobtable.errors import ConflictError, TaskError, ValueRefusedError, kind_and_text
from jobtable.jobs.tasks import resolve, task
from jobtable.systems.albums.definitions import load_definition
from jobtable.systems.albums.entities import Execution, ExecutionStatus
from jobtable.systems.albums.executions import Executions

if TYPE_CHECKING:
    from jobtable.jobs.report.context import JobContext


@task
def run_steps(job: JobContext, execution_id: str, step: str, definition: str, attempt: int = 1) -> dict[str, Any]:
    """Run the steps of this job, starting with this one, and return what each returned.

    A job that is retried skips the steps that are done, and all steps of a later attempt.
    """
    declared = load_definition(definition)
    executions = Executions(job.jobs)
    execution = executions.records.get_execution(execution_id)
    returned: dict[str, Any] = {}
    for each in declared.segment(step):
        if not _is_at(execution, each.name, attempt):
            continue
        job.info(f"step {each.name} starts")
        began = job.jobs.clock.monotonic()
        try:
            returned[each.name] = resolve(each.task).call(job, {"execution_id": execution_id})
        except (TaskError, ValueRefusedError) as error:  # a retry would be refused again
            _fail(job, executions, execution, error)
            raise TaskError(f"step {each.name}: {error}") from error
        except Exception as error:
            if job.attempt >= declared.max_attempts:
                _fail(job, executions, execution, error)
            raise
        try:
            execution = executions.advance(execution, definition, job.jobs.clock.monotonic() - began, job.lease)
        except ConflictError as error:  # stopped, or moved on by another process
            job.warning(f"step {each.name} is done, but its execution has moved on: {error}")
            return returned
        except ValueRefusedError as error:
            _fail(job, executions, execution, error)
            raise TaskError(f"after step {each.name}: {error}") from error
    executions.submit_step(execution, definition)
    return returned


def _is_at(execution: Execution, step: str, attempt: int) -> bool:
    is_here = execution.status is ExecutionStatus.RUNNING and execution.current_step == step
    return is_here and (execution.attempt or 1) == attempt


def _fail(job: JobContext, executions: Executions, seen: Execution, error: Exception) -> None:
    """Fail the execution, unless it has moved on or another worker holds the job."""
    with contextlib.suppress(ConflictError):
        executions.fail(seen, f"step {seen.current_step} failed: {kind_and_text(error)}", job.lease)
