"""Reads what a model returned: valid as a whole, or refused with a reason in plain words."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import from_json

from jobtable.assist.providers import ChatAnswer
from jobtable.errors import ValueRefusedError
from jobtable.jobs.report.log_lines import clean

M = TypeVar("M", bound=BaseModel)

LONGEST_ANSWER = 1_000_000
"""Characters of an answer that is read; a longer one is refused unread, and recorded up to here."""
_MOST_PROBLEMS = 5
_LONGEST_FAULT = 1_000
_FENCED = re.compile(r"^[ \t]*```[ \t]*\w*[ \t]*\n(.*?)^[ \t]*```[ \t]*$", re.DOTALL | re.MULTILINE)
_BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True)
class AnswerShape(Generic[M]):
    """The class of an answer, and the JSON schema by which a model is asked for it."""

    output: type[M]
    schema: Mapping[str, Any]

    @staticmethod
    def of(output: type[M]) -> AnswerShape[M]:
        """Return the shape of a class; ValueRefusedError if JSON cannot describe it."""
        try:
            return AnswerShape(output, output.model_json_schema())
        except PydanticUserError as error:
            reason, *_ = str(error).splitlines()
            raise ValueRefusedError(f"no model can be asked for {output.__name__}: {reason}") from error

    @property
    def name(self) -> str:
        """The name of the class in the letters that services take."""
        return "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in self.output.__name__)[:64]


class BadAnswerError(Exception):
    """An answer is not valid; the text says why, as a model can read it."""

    def __init__(self, fault: str, *, is_refusal: bool = False) -> None:
        text = clean(fault)
        super().__init__(text if len(text) <= _LONGEST_FAULT else f"{text[:_LONGEST_FAULT]}...")
        self.is_refusal = is_refusal
        """Whether the model, or a filter, does not want to answer: asking again rarely helps."""


def read_answer(answer: ChatAnswer, shape: AnswerShape[M] | None) -> M | str:
    """Return the object or, without a shape, the text; BadAnswerError if it is not complete and valid."""
    if answer.finish == "refused":
        raise BadAnswerError("the model, or a content filter, refused to answer", is_refusal=True)
    if len(answer.text) > LONGEST_ANSWER:
        raise BadAnswerError(f"it is longer than {LONGEST_ANSWER:,} characters")
    if not answer.text.strip():
        raise BadAnswerError("it is empty")
    if answer.finish == "length":
        raise BadAnswerError("it was cut at the maximum number of tokens; be shorter")
    if clean(answer.text) != answer.text:
        raise BadAnswerError("it is not valid Unicode; send no halves of surrogate pairs")
    return answer.text if shape is None else _read_object(answer.text, shape)


def _read_object(text: str, shape: AnswerShape[M]) -> M:
    found, source = _read_json(text)
    place = _place_of_infinity(found)
    if place is not None:
        raise BadAnswerError(f"{place}: this number is too large")
    try:
        return shape.output.model_validate_json(source, strict=True, extra="forbid")
    except ValidationError as error:
        raise BadAnswerError(_problems(error)) from None


def _read_json(text: str) -> tuple[Any, str]:
    """Return the parsed JSON and its text: all of it, or that of its only code block."""
    whole = text.strip().removeprefix(_BYTE_ORDER_MARK).strip()
    try:
        return from_json(whole, allow_inf_nan=False), whole
    except ValueError as error:
        reason = str(error)
    blocks = _FENCED.findall(whole)
    if len(blocks) > 1:
        raise BadAnswerError(f"it has {len(blocks)} code blocks; send only the JSON")
    if not blocks:
        raise BadAnswerError(f"it is not JSON: {reason}")
    try:
        return from_json(blocks[0], allow_inf_nan=False), blocks[0]
    except ValueError as error:
        raise BadAnswerError(f"its code block is not JSON: {error}") from None


def _place_of_infinity(found: Any) -> str | None:
    """Return where a number is that no float can hold, because the parser reads it as infinity."""
    open_parts: list[tuple[str, Any]] = [("", found)]
    while open_parts:
        place, part = open_parts.pop()
        if isinstance(part, float) and math.isinf(part):
            return place.removeprefix(".")
        if isinstance(part, dict):
            open_parts += [(f"{place}.{name}", each) for name, each in part.items()]
        elif isinstance(part, list):
            open_parts += [(f"{place}.{number}", each) for number, each in enumerate(part)]
    return None


def _problems(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    told = [f"{_place(problem['loc'])}{_in_words(problem)}" for problem in found[:_MOST_PROBLEMS]]
    if len(found) > _MOST_PROBLEMS:
        told.append(f"{len(found) - _MOST_PROBLEMS} more problems")
    return "; ".join(told)


def _place(location: tuple[int | str, ...]) -> str:
    return f"{'.'.join(str(part) for part in location)[:200]}: " if location else ""


def _in_words(problem: Any) -> str:
    match problem["type"]:
        case "missing":
            return "this field is missing"
        case "extra_forbidden":
            return "there is no such field"
    message: str = problem["msg"]
    return message[:1].lower() + message[1:]
