"""What an expression of a state can read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any


@dataclass(frozen=True)
class Scope:
    """The values that an expression of one state can read, at one instant."""

    input: Any
    """`$` in JSONPath, `$states.input` in JSONata: the state's input, or its result where a field reads the result."""
    context: Mapping[str, Any]
    """The context object: `$$` and `$states.context`."""
    variables: Mapping[str, Any]
    """`$name`."""
    now: datetime
    random: Random
    result: Any = None
    """`$states.result`."""
    error_output: Any = None
    """`$states.errorOutput`."""
