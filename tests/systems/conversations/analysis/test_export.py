"""Polis exports: what is read, what is left out, and what is refused with its place."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtable.errors import JobtableError, ValueRefusedError
from jobtable.systems.conversations.analysis.polis_export import (
    CastVotes,
    Comment,
    PolisExport,
    Vote,
    parse_export,
    read_export,
    write_export,
)

COMMENTS = b"timestamp,datetime,comment-id,author-id,agrees,disagrees,moderated,comment-body\n"
VOTES = b"timestamp,datetime,comment-id,voter-id,vote\n"
REAL = sorted((Path(__file__).parents[5] / "shared" / "data" / "polis").glob("*/comments.csv"))


def test_comments_come_by_id_and_the_last_vote_counts() -> None:
    export = parse_export(
        COMMENTS + b'2,Mon,7,1,0,0,-1,"Two, quoted\nlines"\n1,Mon,3,1,0,0,1,  first  \n',
        VOTES + b"5,Mon,3,a,1\n9,Mon,7,b,0\n6,Mon,3,a,-1\n4,Mon,3,a,0\n1,Mon,99,a,1\n",
    )
    assert export.comments == (Comment(3, "first", 1), Comment(7, "Two, quoted\nlines", -1))
    assert export.votes == (Vote(3, "a", -1), Vote(7, "b", 0))
    assert export.unknown_votes == 1
    assert export.without_moderated_out() == PolisExport(
        (Comment(3, "first", 1),), (Vote(3, "a", -1),), 1, {3: CastVotes(votes=3, agrees=1, disagrees=1)}
    )


def test_other_names_of_the_columns_are_understood() -> None:
    export = parse_export(b"\xef\xbb\xbftid,txt\r\n1,Hello\r\n\r\n2,\r\n", b"TID,pid,Vote\n1,x,1\n")
    assert export.comments == (Comment(1, "Hello"), Comment(2, ""))
    assert export.votes == (Vote(1, "x", 1),)


@pytest.mark.parametrize(
    ("comments", "votes", "complaint"),
    [
        (b"", VOTES, "comments.csv has no column comment-id; it has none"),
        (b"comment-id,moderated\n", VOTES, "comments.csv has no column comment-body; it has comment-id, moderated"),
        (b"comment-id,comment-body\nx,y\n", VOTES, "comments.csv, line 2: comment-id must be a whole number, not 'x'"),
        (b"comment-id,comment-body\n-1,y\n", VOTES, "comments.csv, line 2: comment-id must be at least 0, not -1"),
        (b"comment-id,comment-body\n1,y\n1,z\n", VOTES, "comments.csv, line 3: comment 1 is a duplicate"),
        (b"comment-id,comment-body\n1,y,z\n", VOTES, "comments.csv, line 2: 3 values for 2 columns"),
        (b'comment-id,comment-body\n1,"y\n', VOTES, "comments.csv, line 2: unexpected end of data"),
        (b"comment-id,comment-body\n1,\xff\n", VOTES, "comments.csv, line 2: not UTF-8 text"),
        (b"comment-id,comment-body\n1," + b"y" * 10_001, VOTES, "is a quotation mark missing?"),
        (b"comment-id,comment-body\n1," + b"y" * 200_000, VOTES, "field larger than field limit"),
        (b"comment-id,comment-body\n1_0,y\n", VOTES, "comment-id must be a whole number, not '1_0'"),
        ("comment-id,comment-body\n\u0661,y\n".encode(), VOTES, "comment-id must be a whole number"),
        (b"comment-id,comment-body\n" + b"1" * 42 + b",y\n", VOTES, "comment-id must have at most 18 digits, not 42"),
        (b"comment-id,Comment_ID,comment-body\n1,2,y\n", VOTES, "comments.csv has two columns comment-id"),
        (b"comment-id,comment-body\n", b"comment-id,voter-id,vote\n1,a,2\n", "vote must be from -1 to 1, not 2"),
        (b"comment-id,comment-body\n", b"comment-id,voter-id,vote\n1,a,\n", "vote must be a whole number, not ''"),
    ],
)
def test_a_broken_file_is_refused_with_its_place(comments: bytes, votes: bytes, complaint: str) -> None:
    with pytest.raises(ValueRefusedError) as refused:
        parse_export(comments, votes)
    assert complaint in str(refused.value)


def test_a_folder_without_the_files_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueRefusedError, match=r"not the folder of a Polis export: cannot read comments.csv"):
        read_export(tmp_path)


@given(st.binary(max_size=300), st.binary(max_size=300), st.booleans())
def test_any_bytes_are_read_or_refused(comments: bytes, votes: bytes, with_header: bool) -> None:
    head = (b"comment-id,comment-body\n", b"comment-id,voter-id,vote\n") if with_header else (b"", b"")
    with contextlib.suppress(JobtableError):
        export = parse_export(head[0] + comments, head[1] + votes)
        assert all(comment.comment_id >= 0 for comment in export.comments)


texts = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=40).map(str.strip)


@given(
    st.dictionaries(st.integers(0, 9), st.tuples(texts, st.sampled_from([-1, 0, 1]))),
    st.dictionaries(st.tuples(st.integers(0, 9), st.sampled_from(["1", "2", "x y"])), st.sampled_from([-1, 0, 1])),
)
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, comments: dict[int, tuple[str, int]], votes: dict[tuple[int, str], int]
) -> None:
    export = PolisExport(
        tuple(Comment(number, *rest) for number, rest in sorted(comments.items())),
        tuple(Vote(*where, value) for where, value in sorted(votes.items()) if where[0] in comments),
    )
    folder = tmp_path_factory.mktemp("export")
    write_export(export, folder)
    assert read_export(folder) == export


@pytest.mark.parametrize("folder", [path.parent for path in REAL], ids=lambda folder: folder.name)
def test_real_exports_are_read(folder: Path) -> None:
    export = read_export(folder)
    assert len(export.comments) > 30
    assert export.unknown_votes == 0
    assert len(export.without_moderated_out().comments) < len(export.comments)
