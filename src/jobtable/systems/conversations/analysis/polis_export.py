"""A Polis export of a conversation: comments.csv and votes.csv in one folder."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from jobtable.errors import ValueRefusedError

COMMENTS_FILE = "comments.csv"
VOTES_FILE = "votes.csv"
AGREE, PASS, DISAGREE = 1, 0, -1
ACCEPTED, MODERATED_OUT = 1, -1

_LONGEST_TEXT = 10_000
"""Comments of Polis are much shorter; a longer row has lost a quotation mark."""

_WHOLE = re.compile("[+-]?[0-9]+")
_MOST_DIGITS = 18
"""The longest number that fits the arrays of the analysis."""

# Exports of different years, and of the database itself, have different names for the same columns.
_COMMENT_ID = ("comment-id", "tid", "statement-id")
_TEXT = ("comment-body", "txt", "body", "text", "statement")
_MODERATION = ("moderated", "mod", "moderation")
_META = ("is-meta", "meta")
_TRUE = ("1", "t", "true", "yes")
_VOTER = ("voter-id", "pid", "participant-id", "participant")
_VOTE = ("vote", "value")
_TIME = ("timestamp", "created")


class Comment(NamedTuple):
    """A comment and its moderation: 1 accepted, 0 not reviewed, -1 rejected."""

    comment_id: int
    text: str
    moderation: int = 0
    is_meta: bool = False
    """Whether the export declares it as a statement about its author."""

    @property
    def is_moderated_out(self) -> bool:
        return self.moderation == MODERATED_OUT

    def is_shown(self, *, strict: bool = False) -> bool:
        """Return whether participants saw it: with strict moderation, only after a moderator accepted it."""
        return self.moderation == ACCEPTED if strict else not self.is_moderated_out


class Vote(NamedTuple):
    """A participant's vote on a comment: 1 agrees, -1 disagrees, 0 passes."""

    comment_id: int
    voter_id: str
    value: int


class CastVotes(NamedTuple):
    """How often people voted on a comment, also those who voted again: what Polis publishes of it."""

    votes: int = 0
    agrees: int = 0
    disagrees: int = 0

    def plus(self, value: int) -> CastVotes:
        return CastVotes(self.votes + 1, self.agrees + (value == AGREE), self.disagrees + (value == DISAGREE))


@dataclass(frozen=True)
class PolisExport:
    """A conversation: its comments by id, and the last vote of each participant on each comment.

    Votes are in the order in which participants first voted on the comments, as far as the files say.
    """

    comments: tuple[Comment, ...]
    votes: tuple[Vote, ...]
    unknown_votes: int = 0
    """The number of skipped votes on comments that the export does not contain."""
    repeated: Mapping[int, CastVotes] = field(default_factory=dict)
    """For the comments on which somebody voted again, all votes that were cast."""

    def without_moderated_out(self) -> PolisExport:
        """Return the conversation without the comments that a moderator rejected, and the votes on them."""
        comments = tuple(comment for comment in self.comments if not comment.is_moderated_out)
        kept = {comment.comment_id for comment in comments}
        repeated = {comment_id: cast for comment_id, cast in self.repeated.items() if comment_id in kept}
        return PolisExport(comments, tuple(v for v in self.votes if v.comment_id in kept), self.unknown_votes, repeated)


def read_export(folder: Path) -> PolisExport:
    """Read the export in a folder; ValueRefusedError names the file, the line, and the problem."""
    return parse_export(*read_files(folder))


def read_files(folder: Path) -> tuple[bytes, bytes]:
    """Read the bytes of comments.csv and votes.csv in a folder."""
    contents = []
    for name in (COMMENTS_FILE, VOTES_FILE):
        try:
            contents.append((folder / name).read_bytes())
        except OSError as error:
            message = f"{folder} is not the folder of a Polis export: cannot read {name} ({error.strerror})"
            raise ValueRefusedError(message) from error
    return contents[0], contents[1]


def parse_export(comments_csv: bytes, votes_csv: bytes) -> PolisExport:
    """Parse the bytes of the two files of an export."""
    comments = parse_comments(comments_csv)
    known = {comment.comment_id for comment in comments}
    last: dict[tuple[int, str], int] = {}
    cast: dict[int, CastVotes] = {}
    again: set[int] = set()
    unknown = 0
    for vote in _votes(votes_csv):
        if vote.comment_id in known:
            if (vote.comment_id, vote.voter_id) in last:
                again.add(vote.comment_id)
            last[vote.comment_id, vote.voter_id] = vote.value
            cast[vote.comment_id] = cast.get(vote.comment_id, CastVotes()).plus(vote.value)
        else:
            unknown += 1
    votes = tuple(Vote(*where, value) for where, value in last.items())
    return PolisExport(comments, votes, unknown, {comment_id: cast[comment_id] for comment_id in again})


def parse_comments(comments_csv: bytes) -> tuple[Comment, ...]:
    """Parse the bytes of comments.csv alone; return the comments by id."""
    return tuple(sorted(_comments(comments_csv)))


def write_export(export: PolisExport, folder: Path) -> None:
    """Write comments.csv and votes.csv as Polis does, in a folder that is created if missing."""
    folder.mkdir(parents=True, exist_ok=True)
    comment_rows = [(c.comment_id, c.moderation, c.text) for c in export.comments]
    _write(folder / COMMENTS_FILE, ("comment-id", "moderated", "comment-body"), comment_rows)
    _write(folder / VOTES_FILE, ("comment-id", "voter-id", "vote"), export.votes)


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def _comments(content: bytes) -> Iterator[Comment]:
    seen: set[int] = set()
    for row in _rows(COMMENTS_FILE, content, (_COMMENT_ID, _TEXT)):
        comment_id = row.integer(_COMMENT_ID, at_least=0)
        if comment_id in seen:
            raise row.refused(f"comment {comment_id} is a duplicate")
        seen.add(comment_id)
        text = row.text(_TEXT).strip()
        if len(text) > _LONGEST_TEXT:
            raise row.refused(f"a comment of {len(text)} characters; is a quotation mark missing?")
        moderation = row.integer(_MODERATION, at_least=-1, at_most=1) if row.find(_MODERATION) else 0
        is_meta = (row.find(_META) or "").strip().lower() in _TRUE
        yield Comment(comment_id, text, moderation, is_meta)


def _votes(content: bytes) -> list[Vote]:
    """Return the votes in the order in which they were cast, as far as the file says."""
    timed = []
    for row in _rows(VOTES_FILE, content, (_COMMENT_ID, _VOTER, _VOTE)):
        vote = Vote(row.integer(_COMMENT_ID, at_least=0), row.text(_VOTER), row.integer(_VOTE, at_least=-1, at_most=1))
        timed.append((row.integer(_TIME) if row.find(_TIME) else 0, vote))
    return [vote for _, vote in sorted(timed, key=lambda pair: pair[0])]


class _Row:
    def __init__(self, file_name: str, line: int, values: Mapping[str, str]) -> None:
        self._place = f"{file_name}, line {line}"
        self._values = values

    def refused(self, reason: str) -> ValueRefusedError:
        return ValueRefusedError(f"{self._place}: {reason}")

    def find(self, names: Sequence[str]) -> str | None:
        """Return the value of the first of these columns that the file has."""
        return next((self._values[name] for name in names if name in self._values), None)

    def text(self, names: Sequence[str]) -> str:
        return self.find(names) or ""

    def integer(self, names: Sequence[str], *, at_least: int | None = None, at_most: int | None = None) -> int:
        text = self.text(names).strip()
        if not _WHOLE.fullmatch(text):  # int() accepts more: 1_0, and digits of other scripts
            raise self.refused(f"{names[0]} must be a whole number, not {text[:80]!r}")
        if len(text) > _MOST_DIGITS:
            raise self.refused(f"{names[0]} must have at most {_MOST_DIGITS} digits, not {len(text)}")
        number = int(text)
        if (at_least is not None and number < at_least) or (at_most is not None and number > at_most):
            bounds = f"from {at_least} to {at_most}" if at_most is not None else f"at least {at_least}"
            raise self.refused(f"{names[0]} must be {bounds}, not {number}")
        return number


def _rows(file_name: str, content: bytes, required: Iterable[Sequence[str]]) -> Iterator[_Row]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueRefusedError(f"{file_name}, line {line}: not UTF-8 text") from error
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip().lower().replace("_", "-") for name in next(reader, [])]
        doubled = next((name for place, name in enumerate(header) if name and name in header[:place]), None)
        if doubled is not None:
            raise ValueRefusedError(f"{file_name} has two columns {doubled}; remove one")
        for names in required:
            if not set(names) & set(header):
                raise ValueRefusedError(f"{file_name} has no column {names[0]}; it has {', '.join(header) or 'none'}")
        for values in reader:
            if values:
                if len(values) != len(header):
                    message = f"{file_name}, line {reader.line_num}: {len(values)} values for {len(header)} columns"
                    raise ValueRefusedError(message)
                yield _Row(file_name, reader.line_num, dict(zip(header, values, strict=True)))
    except csv.Error as error:
        raise ValueRefusedError(f"{file_name}, line {reader.line_num}: {error}") from error
