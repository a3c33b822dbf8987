"""Retriers and catchers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jobtable.workflows.asl.machine_definition.findings import Place
from jobtable.workflows.asl.machine_definition.object_checks import Shape
from jobtable.workflows.asl.machine_definition.value_checks import (
    array_of,
    choice_of,
    fraction,
    jsonata,
    result_path,
    text,
    whole,
)
from jobtable.workflows.asl.machine_definition.variable_checks import assign

_ALL = "States.ALL"
_MOST_ATTEMPTS = 99_999_999
_LONGEST_DELAY = 31_622_400

_ERROR_NAMES = array_of(text, least=1)
_RETRIER = Shape(
    members={
        "Comment": text,
        "ErrorEquals": _ERROR_NAMES,
        "IntervalSeconds": whole(0, _MOST_ATTEMPTS),
        "MaxAttempts": whole(0, _MOST_ATTEMPTS),
        "BackoffRate": fraction(1.0),
        "MaxDelaySeconds": whole(1, _LONGEST_DELAY),
        "JitterStrategy": choice_of("NONE", "FULL"),
    },
    required=("ErrorEquals",),
)
_CATCHER = Shape(
    members={"Comment": text, "ErrorEquals": _ERROR_NAMES, "Next": text, "Assign": assign},
    jsonpath={"ResultPath": result_path},
    jsonata={"Output": jsonata},
    required=("ErrorEquals", "Next"),
)


def retry(value: Any, place: Place) -> None:
    """The retriers of a state."""
    array_of(_RETRIER)(value, place)
    _check_wildcard(value, place)


def catch(value: Any, place: Place) -> None:
    """The catchers of a state: only their expressions read the error."""
    array_of(_CATCHER)(value, replace(place, has_error_output=True))
    _check_wildcard(value, place)


def _check_wildcard(value: Any, place: Place) -> None:
    if not isinstance(value, list):
        return
    for index, clause in enumerate(value):
        names = clause.get("ErrorEquals") if isinstance(clause, dict) else None
        if isinstance(names, list) and _ALL in names and (len(names) > 1 or index < len(value) - 1):
            place.element(index).member("ErrorEquals").error(f"{_ALL} must appear alone and at end of list")
