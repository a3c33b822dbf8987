"""What requests say of statements, whichever operation they are for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jobtable.embedded.partiql.grammar import parse
from jobtable.embedded.partiql.syntax import Parsed, Select
from jobtable.embedded.partiql.terms import Terms
from jobtable.embedded.requests import (
    AT_LEAST_ONE,
    RETURN_VALUES_ON_FAILURE,
    Member,
    check_members,
    constraint,
    constraints_broken,
    lower_first,
)
from jobtable.errors import RequestError
from jobtable.store.backend import AttributeValue, Request

STATEMENT = Member(str, required=True, shortest=1, longest=8192)
PARAMETERS = Member(list, shortest=1)
MEMBERS = {
    "Statement": STATEMENT,
    "Parameters": PARAMETERS,
    "ReturnValuesOnConditionCheckFailure": RETURN_VALUES_ON_FAILURE,
}


@dataclass(frozen=True, slots=True)
class Given:
    """One statement of a request that has several."""

    number: int
    request: Request
    parsed: Parsed
    parameters: Sequence[AttributeValue]

    def terms(self) -> Terms:
        """Its names and values; RequestRefused if a parameter is missing."""
        return Terms(self.parsed, self.parameters)

    def is_read(self) -> bool:
        """Whether it reads. EXISTS goes together with writes."""
        return isinstance(self.parsed.statement, Select)


def requests_of(request: Request, member: str, most: int, members: Mapping[str, Member]) -> list[Request]:
    """The statements of a request with their options, or RequestRefused if they are none, too many or not right."""
    bodies: list[Any] = request[member]
    path = lower_first(member)
    if not bodies:
        raise constraints_broken([constraint(path, "'[]'", AT_LEAST_ONE)])
    if len(bodies) > most:
        rule = f"Member must have length less than or equal to {most}"
        raise constraints_broken([constraint(path, f"'[{len(bodies)} statements]'", rule)])
    for number, body in enumerate(bodies, 1):
        check_members(body, members, f"{path}.{number}.member.")
    return bodies


def given(number: int, body: Request, parameters: Sequence[AttributeValue]) -> Given:
    """A statement of a request; RequestRefused if its text is none."""
    return Given(number, body, parse(body["Statement"]), parameters)


def short_code(fault: RequestError) -> str:
    """What a batch, or the reasons of a cancelled transaction, call a fault."""
    code = fault.code.removesuffix("Exception")
    return "ValidationError" if code == "Validation" else code
