"""Definitions that were written to keep their reader busy."""

from __future__ import annotations

import pytest

from jobtable.errors import ValueRefusedError
from jobtable.jobs.submit.definition_files import parse_definition


def _tower(level: str, floors: int = 12) -> str:
    """Lines that each refer to the one before several times."""
    return "\n".join(["a0: &a0 {x: 1}", *(level.format(n=n, m=n - 1) for n in range(1, floors))])


@pytest.mark.parametrize(
    "level",
    [
        "a{n}: &a{n} [*a{m}, *a{m}, *a{m}, *a{m}, *a{m}]",
        "a{n}: &a{n} {{k: *a{m}, l: *a{m}, m: *a{m}, n: *a{m}, o: *a{m}}}",
        "a{n}: &a{n} {{<<: [*a{m}, *a{m}, *a{m}, *a{m}, *a{m}]}}",
    ],
)
def test_references_to_references_that_stand_for_too_much_are_refused(level: str) -> None:
    with pytest.raises(ValueRefusedError, match="is malformed: its references expand to more than 1,000,000 values"):
        parse_definition(_tower(level), "job.yaml")


def test_references_are_understood() -> None:
    text = "task: m:f\ncommon: &common {rate: 0.1}\nparams: {<<: *common, all: [*common, *common]}"
    assert parse_definition(text, "job.yaml").value["params"] == {
        "rate": 0.1,
        "all": [{"rate": 0.1}, {"rate": 0.1}],
    }
