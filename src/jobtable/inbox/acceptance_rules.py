"""Rules of the user: which proposals are accepted without a person."""

from __future__ import annotations

import uuid
from typing import TypedDict, Unpack

from jobtable.errors import DefinitionError, ValueRefusedError, kind_and_text, missing
from jobtable.inbox.entities import InboxRule, InboxTask
from jobtable.inbox.users_functions import load_marked
from jobtable.store import Query, Store


class Conditions(TypedDict, total=False):
    """What a rule asks of a proposal; at least one of them."""

    system: str | None
    subject: str | None
    fields: list[str]
    most_cost_nanodollars: int | None
    least_confidence: float | None
    predicate: str | None


class Rules:
    """The rules of one store. A new rule applies to what is proposed from then on."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def add(self, *, by: str = "local", **conditions: Unpack[Conditions]) -> InboxRule:
        """Store a rule; ValueRefusedError if it has no condition, which would accept everything."""
        if not any(value not in (None, []) for value in conditions.values()):
            raise ValueRefusedError("a rule needs at least one condition; one without would accept every proposal")
        if (path := conditions.get("predicate")) is not None:
            load_marked(path, "@accepts")
        now = self._store.clock.now()
        rule = InboxRule(rule_id=uuid.uuid4().hex[:12], created_at=now, created_by=by, **conditions)
        self._store.add(rule)
        return rule

    def list(self) -> Query[InboxRule]:
        """List all rules, in no particular order."""
        return self._store.query(InboxRule.key())

    def remove(self, rule_id: str) -> None:
        """Delete a rule, or raise NotFoundError. What it has accepted stays."""
        if not self._store.delete(InboxRule.key(rule_id=rule_id)):
            raise missing("inbox rule", rule_id)

    def find_accepting(self, task: InboxTask) -> tuple[InboxRule | None, str | None]:
        """Return the oldest rule that accepts a proposal, and what went wrong with the predicates that were asked."""
        problems = []
        for rule in sorted(self.list(), key=lambda each: each.created_at):
            try:
                if is_met(rule, task):
                    return rule, None
            except DefinitionError as error:
                problems.append(f"rule {rule.rule_id}: {error}")
        return None, "; ".join(problems) or None


def is_met(rule: InboxRule, task: InboxTask) -> bool:
    """Return whether a proposal meets every condition of a rule; DefinitionError if its predicate cannot say."""
    changed = {change.field for change in task.changes}
    is_declared = (
        rule.system in (None, task.system)
        and rule.subject in (None, task.subject)
        and (not rule.fields or (bool(changed) and changed <= set(rule.fields)))
        and (rule.most_cost_nanodollars is None or task.cost_nanodollars <= rule.most_cost_nanodollars)
        and (
            rule.least_confidence is None or (task.confidence is not None and task.confidence >= rule.least_confidence)
        )
    )
    if not is_declared or rule.predicate is None:
        return is_declared
    try:
        return bool(load_marked(rule.predicate, "@accepts")(task))
    except DefinitionError:
        raise
    except Exception as error:  # whatever a user's function raises accepts nothing
        raise DefinitionError(f"{rule.predicate} raised {kind_and_text(error)}") from error


def conditions_of(rule: InboxRule) -> str:
    """Return the conditions of a rule in words."""
    cost = None if rule.most_cost_nanodollars is None else f"{rule.most_cost_nanodollars / 10**9:.9g}"
    confidence = None if rule.least_confidence is None else f"{rule.least_confidence:.0%}"
    said = {
        "of system {}": rule.system,
        "about a {}": rule.subject,
        "changes only {}": ", ".join(rule.fields),
        "cost at most ${}": cost,
        "confidence at least {}": confidence,
        "{} returns true": rule.predicate,
    }
    return ", ".join(words.format(value) for words, value in said.items() if value)
