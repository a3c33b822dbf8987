"""Lines from the bytes that a program writes, in pieces of any size, in any encoding, with progress bars among them."""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST_LINE = 16 << 10
"""A line with more bytes is given in pieces."""
OWN_LINE = b"\x1e"
"""Marks the beginning of what the job's context sends among what the job prints."""
_LINE_END = re.compile(rb"[\r\n\x1e]")
_LAST_BYTES = 4 << 10
_RETURN, _FEED, _MARK = b"\r\n\x1e"


@dataclass(frozen=True, slots=True)
class Line:
    """A line without its end."""

    text: str
    is_overwritten: bool = False
    """It ended with a carriage return: on a terminal the next line takes its place, as in a progress bar."""
    is_marked: bool = False
    """It began with the mark of what the job's context sends."""


class LineSplitter:
    """Takes bytes as they come and gives lines. It holds back at most one unfinished line of bounded length."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._held = b""
        self._start = 0
        self._taken = 0
        self._last_line = 0

    def feed(self, data: bytes) -> None:
        """Take more bytes."""
        self._held = self._held[self._taken :] + data
        self._start -= self._taken
        self._taken = 0

    def consumed(self) -> bytes:
        """The bytes of the lines that were given or left out since the last call, as they came."""
        data = self._held[self._taken : self._start]
        self._taken = self._start
        return data

    def consumed_before_line(self) -> bytes:
        """The same, without those of the line that was given last."""
        data = self._held[self._taken : self._last_line]
        self._taken = self._start
        return data

    def next(self) -> Line | None:
        """The next whole line, or the next piece of one that is too long; None if more bytes are needed."""
        begin = self._last_line = self._start
        # A mark at the beginning belongs to this line; only the next one ends it.
        look_from = begin + self._held.startswith(OWN_LINE, begin)
        found = _LINE_END.search(self._held, look_from, begin + self._longest + 1)
        if found is None:
            return self._piece(begin) if len(self._held) - begin > self._longest else None
        end = found.start()
        is_return = self._held[end] == _RETURN
        if is_return and end + 1 == len(self._held):
            return None  # a line feed may follow
        ends_with_feed = is_return and self._held[end + 1] == _FEED
        self._start = end + 1 + ends_with_feed if self._held[end] != _MARK else end
        return self._line(begin, end, is_overwritten=is_return and not ends_with_feed)

    def skip(self) -> tuple[int, list[str]]:
        """Leave out what is there up to the next mark, or the last line feed: how many lines, and the last of them.

        That is many times faster than to take them one by one.
        """
        mark = self._held.find(OWN_LINE, self._start)
        end = mark if mark >= 0 else self._held.rfind(b"\n") + 1
        if end <= self._start:
            return 0, []
        is_unended = self._held[end - 1] != _FEED
        count = self._held.count(b"\n", self._start, end) + is_unended
        last = self._held[max(self._start, end - _LAST_BYTES) : end - (not is_unended)].split(b"\n")
        if end - _LAST_BYTES > self._start:
            last.pop(0)  # its beginning is missing
        self._start = end
        return count, [line.rstrip(b"\r").rpartition(b"\r")[2].decode("utf-8", "replace") for line in last]

    def end(self) -> Line | None:
        """The last line, which nothing ended; None if there is none."""
        begin, self._start = self._start, len(self._held)
        rest = self._held[begin:].rstrip(b"\r")
        return self._line(begin, begin + len(rest)) if rest else None

    def _piece(self, begin: int) -> Line:
        """The beginning of a line that is too long."""
        self._start = self._boundary(begin + self._longest)
        return self._line(begin, self._start)

    def _line(self, begin: int, end: int, *, is_overwritten: bool = False) -> Line:
        is_marked = self._held.startswith(OWN_LINE, begin)
        return Line(self._held[begin + is_marked : end].decode("utf-8", "replace"), is_overwritten, is_marked)

    def _boundary(self, at: int) -> int:
        """The end of a character at or just before a place; the place itself where the bytes are no UTF-8."""
        for place in range(at, at - 4, -1):
            if self._held[place] & 0xC0 != 0x80:
                return place
        return at
