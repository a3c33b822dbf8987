"""ExpressionAttributeNames and ExpressionAttributeValues of one request."""

from __future__ import annotations

from typing import Any


class Placeholders:
    """The two maps, validated, and what the expressions of the request used of them."""

    def __init__(self, names: Any = None, values: Any = None) -> None:
        """RequestRefused if a map is given but malformed; None is a map that was not given."""
        raise NotImplementedError

    def finish(self) -> None:
        """RequestRefused if an entry of a map was used by no expression."""
        raise NotImplementedError
