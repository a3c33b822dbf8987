"""The tasks of `jobtable assist try`: one question, or one request for vectors, recorded like those of any job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from pydantic import BaseModel, GetJsonSchemaHandler, RootModel, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import PydanticCustomError

from jobtable.errors import MissingExtraError, ValueRefusedError
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.tasks import task

JOB_TYPE = "assist-try"
PURPOSE = "try"


@task
def ask(
    job: JobContext,
    prompt: str,
    schema: dict[str, Any] | None = None,
    provider: str | None = None,
    model: str | None = None,
) -> Any:
    """Ask a model, and return its text, or what it answers by a JSON schema."""
    if schema is None:
        return job.assist(PURPOSE, prompt, provider=provider, model=model, cache="off")
    answer = job.assist(PURPOSE, prompt, output=answer_class(schema), provider=provider, model=model, cache="off")
    return answer.model_dump(mode="json")


@task
def embed(job: JobContext, text: str, provider: str | None = None, model: str | None = None) -> list[float]:
    """Return the vector of a text."""
    return job.embed([text], provider=provider, model=model, cache="off").vectors[0]


def answer_class(schema: Mapping[str, Any]) -> type[BaseModel]:
    """Return a class of answers that a JSON schema describes; ValueRefusedError if it is not a schema."""
    try:
        import jsonschema_rs  # noqa: PLC0415 - only answers by a schema need it
    except ModuleNotFoundError as error:
        raise MissingExtraError("a schema needs jsonschema_rs: pip install 'jobtable[assist]'") from error
    try:
        validator = jsonschema_rs.validator_for(dict(schema), retriever=_refuse_to_fetch)
    except (jsonschema_rs.ValidationError, ValueError) as error:
        reason, *_ = str(error).splitlines()
        raise ValueRefusedError(f"the schema of the answer is not a JSON schema: {reason}") from error

    class Answer(RootModel[Any]):
        """An answer by the schema."""

        @model_validator(mode="after")
        def follow_schema(self) -> Answer:
            problems = [f"{_place(each.instance_path)}{each.message}" for each in validator.iter_errors(self.root)]
            if problems:
                raise PydanticCustomError("schema", "{problems}", {"problems": "; ".join(problems)})
            return self

        @classmethod
        def __get_pydantic_json_schema__(cls, core_schema: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
            return dict(schema)

    return Answer


def _refuse_to_fetch(address: str) -> NoReturn:
    raise ValueError(f"it refers to {address}; write everything into one file")


def _place(path: list[str | int]) -> str:
    return f"{'.'.join(map(str, path))}: " if path else ""
