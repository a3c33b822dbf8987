"""A position in the text of a path or an intrinsic function, and the tokens that both have."""

from __future__ import annotations

import re

from jobtable.workflows.asl.query_languages.expression_errors import MOST_CHARACTERS, ExpressionSyntaxError

QUOTES = ("'", '"')
_SPACE = re.compile(r"\s*")


class ExpressionText:
    """Reads tokens from a text; raises ExpressionSyntaxError with the position."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0
        if len(text) > MOST_CHARACTERS:
            raise ExpressionSyntaxError(f"it has more than {MOST_CHARACTERS} characters")

    @property
    def is_at_end(self) -> bool:
        """Whether nothing is left."""
        return self.at >= len(self.text)

    @property
    def next(self) -> str:
        """The next character; empty at the end."""
        return self.text[self.at : self.at + 1]

    def take(self, expected: str) -> bool:
        """Skip the expected text and return True if it is next."""
        if self.text.startswith(expected, self.at):
            self.at += len(expected)
            return True
        return False

    def expect(self, expected: str) -> None:
        """Skip the expected text, or raise."""
        if not self.take(expected):
            raise self.error(f"expected {expected!r}")

    def skip_space(self) -> None:
        """Skip white space."""
        self.match(_SPACE)

    def match(self, pattern: re.Pattern[str]) -> str | None:
        """Skip and return what matches here."""
        found = pattern.match(self.text, self.at)
        if found is None:
            return None
        self.at = found.end()
        return found.group()

    def quoted(self) -> str:
        """Read a string in single or double quotes; a backslash escapes the next character."""
        quote = self.next
        self.at += 1
        parts: list[str] = []
        while not self.is_at_end:
            character = self.next
            self.at += 1
            if character == quote:
                return "".join(parts)
            if character == "\\" and not self.is_at_end:
                character = self.next
                self.at += 1
            parts.append(character)
        raise self.error("a string is not closed")

    def enter(self, most: int) -> None:
        """Go one level deeper, or raise."""
        self.depth += 1
        if self.depth > most:
            raise self.error(f"nested more than {most} levels deep")

    def leave(self) -> None:
        """Go one level back."""
        self.depth -= 1

    def error(self, message: str) -> ExpressionSyntaxError:
        """Return an error at this position."""
        return ExpressionSyntaxError(f"{message} at character {self.at + 1}")
