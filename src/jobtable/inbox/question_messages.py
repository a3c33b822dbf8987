"""The queue and topic `jobtable-inbox`: what a state machine sends there becomes a question.

{"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken", "Arguments": {
  "QueueUrl": "https://sqs.eu-west-1.amazonaws.com/123456789012/jobtable-inbox",
  "MessageBody": {"title": "Ship it?", "choices": ["yes", "no"], "token": "{% $states.context.Task.Token %}"}}}
"""

from __future__ import annotations

import json
import uuid
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from jobtable.errors import ValueRefusedError
from jobtable.inbox.questions import LONGEST_WAIT, WORKFLOWS, Question, Questions
from jobtable.jobs.engine import Jobs
from jobtable.workflows.message_handlers import Message

_IDS = uuid.UUID("7d1f9c52-8f0e-5a53-9a4b-40d0b5b4a9de")
_ERROR_NAME = Field(min_length=1, max_length=256)


class QuestionMessage(BaseModel):
    """The body of a message that asks a person. Unknown members are refused, so that a misspelled one is noticed."""

    model_config = ConfigDict(extra="forbid")

    title: str = Field(min_length=1, max_length=200)
    text: str = ""
    answer_schema: Any = Field(None, alias="schema")
    choices: list[Any] = []
    answer_within_seconds: float = Field(7 * 86400.0, ge=1, le=LONGEST_WAIT.total_seconds())
    on_expiry: Literal["fail", "timeout"] = "fail"
    rejected_error: Annotated[str, _ERROR_NAME] = "Rejected"
    expired_error: Annotated[str, _ERROR_NAME] = "Expired"
    deliver: str | None = None
    about: str | None = None
    system: str = Field(WORKFLOWS, min_length=1, max_length=200)
    token: str | None = Field(None, validation_alias=AliasChoices("token", "TaskToken", "taskToken"))

    def question(self) -> Question:
        return Question(
            title=self.title,
            text=self.text,
            schema=self.answer_schema,
            choices=self.choices,
            answer_within=timedelta(seconds=self.answer_within_seconds),
            on_expiry=self.on_expiry,
            rejected_error=self.rejected_error,
            expired_error=self.expired_error,
            deliver=self.deliver,
            about=self.about,
            system=self.system,
        )


def receive(message: Message, jobs: Jobs) -> None:
    """Ask a person what a message asks; the same message, delivered again after a crash, is the same question."""
    try:
        asked = QuestionMessage.model_validate(json.loads(message.body))
    except ValidationError as error:
        why = "; ".join(f"{'.'.join(map(str, each['loc'])) or 'body'}: {each['msg']}" for each in error.errors()[:5])
        raise ValueRefusedError(f"the message is no question: {why}") from error
    except (ValueError, RecursionError) as error:
        raise ValueRefusedError(f"the message is no question: its body is not JSON ({error})") from error
    task_id = str(uuid.uuid5(_IDS, message.message_id))
    Questions(jobs).ask(asked.question(), by="workflow", workflow_token=asked.token, task_id=task_id)
