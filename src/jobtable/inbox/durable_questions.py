"""Questions of durable functions: asked in the submitter of `wait_for_callback`.

def approve(event, context):
    answer = context.wait_for_callback(asking(context, Question("Ship it?", choices=["yes", "no"])))
    return json.loads(answer)
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jobtable.inbox.questions import Question, Questions
from jobtable.workflows.function_calls import jobs_of

if TYPE_CHECKING:
    from aws_durable_execution_sdk_python import DurableContext

_IDS = uuid.UUID("b4a8e1a0-3e4c-5f0f-8d25-6f1a4f6f3c11")


def asking(context: DurableContext, question: Question) -> Callable[[str, Any], None]:
    """Return a submitter that puts a question into the inbox; the callback gets the answer as JSON.

    A rejection fails the callback with `rejected_error`, and expiry with `expired_error`.
    """
    jobs = jobs_of(context.lambda_context)

    def submit(callback_id: str, _: Any = None) -> None:
        task_id = str(uuid.uuid5(_IDS, callback_id))  # a submitter that runs again asks the same question
        Questions(jobs).ask(question, by="workflow", workflow_token=callback_id, task_id=task_id)

    return submit
