"""The actions of a transaction: made ready one after the other, and the errors if that is not possible."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from jobtable.embedded.keys import SchemaMismatch
from jobtable.embedded.requests import AT_LEAST_ONE, Lookup, Tables, constraint, constraints_broken, table_of_arn
from jobtable.embedded.schema import TableSchema
from jobtable.embedded.storage import Storage
from jobtable.embedded.wordings import TooDeep
from jobtable.errors import ConditionalCheckFailed, RequestError, RequestRefused, TransactionCanceled
from jobtable.store.backend import Request

MAX_ACTIONS = 100
_ONE_ITEM_TWICE = "Transaction request cannot include multiple operations on one item"

T = TypeVar("T")


def actions_of(request: Request) -> list[Any]:
    """TransactItems, or RequestRefused if they are too many or none."""
    actions: list[Any] = request["TransactItems"]
    if not actions:
        raise constraints_broken([constraint("transactItems", "'[]'", AT_LEAST_ONE)])
    if len(actions) > MAX_ACTIONS:
        rule = f"Member must have length less than or equal to {MAX_ACTIONS}"
        raise constraints_broken([constraint("transactItems", f"'[{len(actions)} actions]'", rule)])
    return actions


def prepare_actions(storage: Storage, actions: Sequence[tuple[Callable[[Tables, Request], T], Request]]) -> list[T]:
    """What the actions ask for.

    A fault refuses all of them: first one that an action shows by itself, then one that a table shows. Only then a key
    that does not fit its schema cancels the transaction; the first alone is told, and no item is read.
    """
    prepared: list[T] = []
    found_in_table: RequestError | None = None
    unfit: tuple[int, SchemaMismatch] | None = None
    for number, (prepare, body) in enumerate(actions):
        tables = Lookup(storage)
        try:
            prepared.append(prepare(tables, body))
        except SchemaMismatch as error:
            unfit = unfit or (number, error)
        except RequestError as error:
            if not tables.is_asked:
                if isinstance(error, TooDeep):
                    _refuse_expressions(storage, prepare, body)
                raise
            found_in_table = found_in_table or error
    if found_in_table is not None:
        raise found_in_table
    if unfit is not None:
        raise cancelled([unfit[1] if number == unfit[0] else None for number in range(len(actions))]) from unfit[1]
    return prepared


def _refuse_expressions(storage: Storage, prepare: Callable[[Tables, Request], object], body: Request) -> None:
    """RequestRefused for the expressions of an action, which are looked at before a key that is nested too deep."""
    tables = Lookup(storage)
    try:
        prepare(tables, {**body, "Key": {}})
    except RequestError:
        if not tables.is_asked:
            raise


def refuse_same_item(targets: Sequence[tuple[TableSchema, bytes]]) -> None:
    """RequestRefused if two actions are about one item."""
    if len({(table.id, position) for table, position in targets}) < len(targets):
        raise RequestRefused(_ONE_ITEM_TWICE)


def cancelled(outcomes: Sequence[object]) -> TransactionCanceled:
    """The error for a transaction of which some outcomes are errors."""
    return cancelled_for([_reason(one) if isinstance(one, RequestError) else {"Code": "None"} for one in outcomes])


def cancelled_for(reasons: Sequence[dict[str, Any]]) -> TransactionCanceled:
    """The error for a transaction with one reason per action, of which some are none."""
    codes = ", ".join(reason["Code"] for reason in reasons)
    return TransactionCanceled(
        f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]",
        details={"CancellationReasons": list(reasons)},
    )


def _reason(error: RequestError) -> dict[str, Any]:
    code = "ConditionalCheckFailed" if isinstance(error, ConditionalCheckFailed) else "ValidationError"
    return {"Code": code, "Message": error.message, **error.details}


def given_names(actions: Iterable[Request]) -> dict[str, str]:
    """The ARNs by which actions name tables, by the tables' names: the answer calls a table what the request did."""
    named = [action["TableName"] for action in actions if action["TableName"].startswith("arn:")]
    return {table_of_arn(arn) or arn: arn for arn in named}
