"""Regular expressions whose matching ends soon, whatever the expression and the text.

Python's own engine backtracks, and `(a+)+$` on thirty letters keeps it busy for minutes. This one follows all ways at
once, so its time grows with the length of the text times that of the expression, and after a number of steps it stops.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from jobtable.workflows.asl.query_languages.pattern_syntax import (
    Accept,
    Edge,
    Jump,
    Letter,
    Look,
    Program,
    Save,
    Split,
    compile_program,
)

_MOST_STEPS = 3_000_000
_GROUP_REFERENCE = re.compile(r"\\g<(\d+)>|\\(\d)|\\(.)", re.DOTALL)
_Slots = tuple[int, ...]


class PatternTimeoutError(Exception):
    """Matching took too many steps."""


class Match:
    """What a pattern found, with the methods of `re.Match` that callers use."""

    def __init__(self, text: str, slots: _Slots) -> None:
        self._text = text
        self._slots = slots

    def start(self) -> int:
        return self._slots[0]

    def end(self) -> int:
        return self._slots[1]

    def group(self, number: int = 0) -> str | None:
        start, end = self._slots[number * 2 : number * 2 + 2]
        return None if start < 0 or end < 0 else self._text[start:end]

    def groups(self) -> tuple[str | None, ...]:
        return tuple(self.group(number) for number in range(1, len(self._slots) // 2))


class Pattern:
    """A compiled regular expression, with the methods of `re.Pattern` that callers use."""

    def __init__(self, text: str, program: Program) -> None:
        self.pattern = text
        self._program = program

    def search(self, string: str) -> Match | None:
        """Return the first match."""
        slots = _Run(string).find(self._program, 0)
        return None if slots is None else Match(string, slots)

    def matches_all(self, string: str) -> bool:
        """Return whether the whole string matches."""
        return _Run(string).find(self._program, 0, is_anchored=True, to_end=True) is not None

    def finditer(self, string: str) -> Iterator[Match]:
        """Yield the matches that do not overlap."""
        run = _Run(string)
        at = 0
        while at <= len(string):
            slots = run.find(self._program, at)
            if slots is None:
                return
            yield Match(string, slots)
            at = slots[1] if slots[1] > slots[0] else slots[1] + 1

    def sub(self, repl: str | Callable[[Match], str], string: str, count: int = 0) -> str:
        """Replace matches; a text may refer to groups by `\\g<1>`."""
        parts: list[str] = []
        at = 0
        for number, match in enumerate(self.finditer(string), start=1):
            parts += [string[at : match.start()], self._expand(repl, match) if isinstance(repl, str) else repl(match)]
            at = match.end()
            if number == count:
                break
        return "".join([*parts, string[at:]])

    def _expand(self, template: str, match: Match) -> str:
        def resolve(reference: re.Match[str]) -> str:
            number = reference[1] or reference[2]
            if number is None:
                return str(reference[0])
            if int(number) > self._program.group_count:
                raise ValueError(f"invalid group reference {number} at position {reference.start() + 3}")
            return match.group(int(number)) or ""

        return _GROUP_REFERENCE.sub(resolve, template)

    def split(self, string: str, maxsplit: int = 0) -> list[str]:
        """Return the texts between the matches."""
        parts: list[str] = []
        at = 0
        for match in self.finditer(string):
            if maxsplit and len(parts) >= maxsplit:
                break
            parts.append(string[at : match.start()])
            at = match.end()
        return [*parts, string[at:]]


@lru_cache(maxsize=512)
def compile_pattern(
    text: str, *, ignores_case: bool = False, is_multiline: bool = False, dot_is_all: bool = False
) -> Pattern:
    """Compile a regular expression, or raise ValueError."""
    program = compile_program(text, ignores_case=ignores_case, is_multiline=is_multiline, dot_is_all=dot_is_all)
    return Pattern(text, program)


class _Run:
    """Follows programs over one text, within one budget."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.steps = 0

    def find(self, program: Program, start: int, *, is_anchored: bool = False, to_end: bool = False) -> _Slots | None:
        """Return the positions of the leftmost match and its groups, the preferred one as Perl has it."""
        nothing = (-1,) * (2 * program.group_count + 2)
        instructions = program.instructions
        found: _Slots | None = None
        threads: list[tuple[int, _Slots]] = []
        seen: set[int] = set()
        for at in range(start, len(self.text) + 1):
            if found is None and (at == start or not is_anchored):
                self._follow(program, threads, seen, 0, (at, *nothing[1:]), at)
            if not threads and (found is not None or is_anchored):
                break
            self._spend(len(threads) + 1)
            character = self.text[at : at + 1]
            waiting, threads, seen = threads, [], set()
            for place, slots in waiting:
                instruction = instructions[place]
                if isinstance(instruction, Letter):
                    if character and instruction.accepts(character):
                        self._follow(program, threads, seen, place + 1, slots, at + 1)
                elif not to_end or at == len(self.text):
                    found = (slots[0], at, *slots[2:])
                    break
        return found

    def _follow(
        self, program: Program, threads: list[tuple[int, _Slots]], seen: set[int], place: int, slots: _Slots, at: int
    ) -> None:
        """Add the threads that wait for a character, or accept, in the order of preference."""
        todo = [(place, slots)]
        while todo:
            place, slots = todo.pop()
            if place in seen:
                continue
            seen.add(place)
            self._spend(1)
            match program.instructions[place]:
                case Jump(target):
                    todo.append((target, slots))
                case Split(first, second):
                    todo += [(second, slots), (first, slots)]
                case Save(slot):
                    todo.append((place + 1, (*slots[:slot], at, *slots[slot + 1 :])))
                case Edge() as edge:
                    if self._is_at(edge, at):
                        todo.append((place + 1, slots))
                case Look() as look:
                    if self._looks(look, at) is not look.is_negative:
                        todo.append((place + 1, slots))
                case Letter() | Accept():
                    threads.append((place, slots))

    def _looks(self, look: Look, at: int) -> bool:
        if not look.is_behind:
            return self.find(look.program, at, is_anchored=True) is not None
        before = _Run(self.text[:at])
        before.steps = self.steps
        holds = any(
            before.find(look.program, start, is_anchored=True, to_end=True) is not None for start in range(at, -1, -1)
        )
        self.steps = before.steps
        return holds

    def _is_at(self, edge: Edge, at: int) -> bool:
        if edge.kind == "^":
            return at == 0 or (edge.is_multiline and self.text[at - 1] == "\n")
        if edge.kind == "$":
            return at == len(self.text) or (edge.is_multiline and self.text[at] == "\n")
        is_edge = self._is_word(at - 1) is not self._is_word(at)
        return is_edge if edge.kind == "b" else not is_edge

    def _is_word(self, at: int) -> bool:
        return 0 <= at < len(self.text) and (
            self.text[at] == "_" or (self.text[at].isascii() and self.text[at].isalnum())
        )

    def _spend(self, steps: int) -> None:
        self.steps += steps
        if self.steps > _MOST_STEPS:
            raise PatternTimeoutError("a regular expression took too many steps")
