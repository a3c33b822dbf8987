"""Functions of users that proposals and rules name: only those that their author has marked for that are called."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import reduce
from typing import Any, TypeVar

from jobtable.errors import DefinitionError, kind_and_text

F = TypeVar("F", bound=Callable[..., Any])
_MARK = "__jobtable_inbox__"


def applies(function: F) -> F:
    """Mark `apply(tx, proposal, jobs)`: it adds what a proposal changes to a transaction.

    It also adds the conditions under which the change is right, so that a proposal whose ground has changed is refused
    as stale. It may raise StaleProposalError itself.
    """
    setattr(function, _MARK, "@applies")
    return function


def accepts(function: F) -> F:
    """Mark `accept(proposal)`: a rule accepts the proposals for which it returns true."""
    setattr(function, _MARK, "@accepts")
    return function


def load_marked(path: str, mark: str) -> Callable[..., Any]:
    """Return the function at `module:name`, or raise DefinitionError, also if it is not marked for this.

    The path comes from a record. Without the mark, whoever may write one could have any function called.
    """
    module, _, name = path.partition(":")
    try:
        found: Any = reduce(getattr, name.split("."), importlib.import_module(module))
    except (Exception, SystemExit) as error:  # anything that importing a module may raise
        raise DefinitionError(f"cannot load {path!r} as module:function: {kind_and_text(error)}") from error
    if getattr(found, _MARK, None) != mark:
        raise DefinitionError(f"{path} is not marked with {mark}; write it above the function")
    return found  # type: ignore[no-any-return]  # getattr knows no types
