"""JSON schemas of answers: checked when a question is asked, and met by every answer."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn

from jobtable.errors import MissingExtraError, ValueRefusedError
from jobtable.model import Json

if TYPE_CHECKING:
    import jsonschema_rs

_MOST_FAULTS = 5


def check_schema(schema: Json) -> None:
    """Raise ValueRefusedError for a schema that no answer can be checked against."""
    _validator(_text(schema))


def check_answer(answer: Json, schema: Json, task_id: str) -> None:
    """Raise ValueRefusedError with the faults of an answer that does not meet its schema."""
    faults = []
    for error in _validator(_text(schema)).iter_errors(answer):
        place = ".".join(map(str, error.instance_path)) or "answer"
        faults.append(f"{place}: {error.message}")
        if len(faults) == _MOST_FAULTS:
            break
    if faults:
        raise ValueRefusedError(f"the answer to task {task_id} is invalid: {'; '.join(faults)}")


@lru_cache(maxsize=64)
def _validator(schema: str) -> jsonschema_rs.Validator:
    try:
        import jsonschema_rs  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "questions need jsonschema-rs, which is not installed: pip install 'jobtable[workflows]'"
        ) from error
    # Patterns in linear time, and no reference that leaves the schema: both come from whoever asks.
    options: dict[str, Any] = {"retriever": _refuse, "pattern_options": jsonschema_rs.RegexOptions()}
    try:
        return jsonschema_rs.validator_for(schema, **options)
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        reason = getattr(error, "message", None) or str(error)
        raise ValueRefusedError(f"the schema of the answer is invalid: {reason}") from error


def _text(schema: Json) -> str:
    return json.dumps(schema, sort_keys=True)


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"{uri} lies outside of the schema")
