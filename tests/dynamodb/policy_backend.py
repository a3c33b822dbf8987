"""A backend that allows what a policy of a template allows, as IAM would judge it."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from jobtable.errors import AccessDenied
from jobtable.store.backend import Backend, Request, Response

_IN_TRANSACTIONS = {
    "Get": "GetItem",
    "Put": "PutItem",
    "Update": "UpdateItem",
    "Delete": "DeleteItem",
    "ConditionCheck": "ConditionCheckItem",
}


class PolicyBackend:
    """Hands on the requests that the policy allows, and raises AccessDenied for the others."""

    def __init__(self, inner: Backend, template: dict[str, Any], policy: str) -> None:
        self._inner = inner
        self._resources = template["Resources"]
        self._statements = self._resources[policy]["Properties"]["PolicyDocument"]["Statement"]

    def execute(self, operation: str, request: Request) -> Response:
        for action, resource, leading_keys in _asked(operation, request):
            matching = [each for each in self._statements if self._concerns(each, action, resource, leading_keys)]
            if {each["Effect"] for each in matching} != {"Allow"}:
                raise AccessDenied(f"{action} on {resource} with the keys {leading_keys} is not allowed")
        return self._inner.execute(operation, request)

    def close(self) -> None:
        self._inner.close()

    def _concerns(self, statement: dict[str, Any], action: str, resource: str, leading_keys: list[str]) -> bool:
        actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
        places = statement["Resource"] if isinstance(statement["Resource"], list) else [statement["Resource"]]
        return (
            any(fnmatchcase(action, each) for each in actions)
            and any(fnmatchcase(resource, self._name(each)) for each in places)
            and _holds(statement.get("Condition"), leading_keys)
        )

    def _name(self, place: Any) -> str:
        """A resource of a statement, as `_asked` names it."""
        match place:
            case str():
                return place
            case {"Fn::GetAtt": [logical_id, "Arn" | "StreamArn"]}:
                return self._table_name(logical_id)
            case {"Fn::Sub": text}:
                logical_id = text.partition("}")[0].removeprefix("${").removesuffix(".Arn")
                return f"{self._table_name(logical_id)}{text.partition('}')[2]}"
        raise AssertionError(place)

    def _table_name(self, logical_id: str) -> str:
        return str(self._resources[logical_id]["Properties"].get("TableName", logical_id))


def _holds(condition: dict[str, Any] | None, leading_keys: list[str]) -> bool:
    if condition is None:
        return True
    patterns = condition["ForAnyValue:StringLike"]["dynamodb:LeadingKeys"]
    return any(fnmatchcase(key, pattern) for key in leading_keys for pattern in patterns)


def _asked(operation: str, request: Request) -> Iterator[tuple[str, str, list[str]]]:
    """What a request needs: each action, the table or index that it is on, and the text keys that it names."""
    for action in request.get("TransactItems", ()):
        for kind, inside in action.items():
            yield f"dynamodb:{_IN_TRANSACTIONS[kind]}", inside["TableName"], _texts(inside)
    for table, inside in request.get("RequestItems", {}).items():
        yield f"dynamodb:{operation}", table, _texts(inside)
    if "TableName" in request:
        index = f"/index/{request['IndexName']}" if "IndexName" in request else ""
        yield f"dynamodb:{operation}", request["TableName"] + index, _texts(request)
    elif operation == "ListTables":
        yield f"dynamodb:{operation}", "*", []


def _texts(part: Any) -> list[str]:
    """Every text value in it, among which the keys are."""
    if isinstance(part, dict):
        if set(part) == {"S"}:
            return [part["S"]]
        return [text for inside in part.values() for text in _texts(inside)]
    return [text for inside in part for text in _texts(inside)] if isinstance(part, list) else []
