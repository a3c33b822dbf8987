"""Bytes become lines, however they are cut."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtable.jobs.report.log_lines import OWN_LINE, LineSplitter, OutputLine

pieces = st.lists(
    st.sampled_from([b"\n", b"\r", b"\r\n", b"", b"10%", "größer".encode(), b"\xff\xfe", b"a" * 9, OWN_LINE])
)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


def split(chunks: list[bytes], longest: int = 1000) -> tuple[list[OutputLine], bytes]:
    """The lines, and the bytes that they were."""
    splitter = LineSplitter(longest)
    lines: list[OutputLine] = []
    consumed = b""
    for chunk in chunks:
        splitter.feed(chunk)
        while (line := splitter.next()) is not None:
            lines.append(line)
        consumed += splitter.consumed()
    last = splitter.end()
    return lines + ([last] if last else []), consumed + splitter.consumed()


@given(pieces, st.lists(st.integers(min_value=0)))
def test_lines_do_not_depend_on_how_the_bytes_come(parts: list[bytes], places: list[int]) -> None:
    data = b"".join(parts)
    assert split(cut(data, places))[0] == split([data])[0]


@given(pieces.map(lambda parts: b"".join(parts).replace(OWN_LINE, b"")), st.lists(st.integers(min_value=0)))
def test_lines_are_what_stands_between_line_ends_and_no_byte_is_lost(data: bytes, places: list[int]) -> None:
    lines, consumed = split(cut(data, places))
    expected = [text.decode("utf-8", "replace") for text in re.split(rb"\r\n|\n|\r", data)]
    if expected[-1] == "":
        expected.pop()
    if data.endswith(b"\r") and expected and expected[-1] == "":
        expected.pop()  # a bare carriage return at the very end shows nothing
    assert [line.text for line in lines] == expected
    assert consumed == data


@given(st.text(st.characters(exclude_characters="\r\n\x1e", exclude_categories=["Cs"])), st.integers(4, 20))
def test_an_overlong_line_comes_in_pieces_of_whole_characters(text: str, longest: int) -> None:
    lines, _ = split([text.encode()], longest)
    assert "".join(line.text for line in lines) == text
    assert all(len(line.text.encode()) <= longest for line in lines)


@given(st.binary(min_size=100, max_size=300).map(lambda data: data.translate(None, b"\r\n\x1e")))
def test_overlong_lines_of_any_bytes_are_bounded_and_complete(data: bytes) -> None:
    splitter = LineSplitter(16)
    splitter.feed(data)
    held = 0
    while splitter.next() is not None:
        held += len(splitter.consumed())
    assert len(data) - held <= 16


def test_a_progress_bar_is_overwritten_until_its_last_state() -> None:
    lines, _ = split([b"\r 10%|#", b"  \r 20%|##\r", b"100%|#####\nDone\n"])
    assert [line.text for line in lines if not line.is_overwritten] == ["100%|#####", "Done"]
    assert [line.text for line in lines if line.is_overwritten] == ["", " 10%|#  ", " 20%|##"]


def test_marked_lines_are_told_apart_and_end_what_stands_before_them() -> None:
    lines, text = split([b"half a line\x1esent\n\x1e  again\nprinted\n"])
    assert [(line.text, line.is_marked) for line in lines] == [
        ("half a line", False),
        ("sent", True),
        ("  again", True),
        ("printed", False),
    ]
    assert text == b"half a line\x1esent\n\x1e  again\nprinted\n"


def test_what_stands_before_a_line_can_be_taken_without_it() -> None:
    splitter = LineSplitter()
    splitter.feed(b"one\ntwo\x1esent\nthree\n")
    while (line := splitter.next()) is not None:
        if line.is_marked:
            assert splitter.consumed_before_line() == b"one\ntwo"
    assert splitter.consumed() == b"three\n"


@given(
    st.lists(st.sampled_from([b"one\n", b"two\n", b"one\r\n"])),
    st.sampled_from([b"", b"rest", OWN_LINE + b"sent\n", b"half" + OWN_LINE + b"sent\none\n"]),
)
def test_skipping_counts_the_lines_up_to_the_next_mark(lines: list[bytes], rest: bytes) -> None:
    splitter = LineSplitter()
    splitter.feed(b"".join(lines) + rest)
    before = [line.decode().rstrip("\r\n") for line in lines] + (["half"] if rest.startswith(b"half") else [])
    count, last = splitter.skip()
    assert count == len(before)
    assert last == before[-len(last) :] if last else not before
    left = splitter.next() or splitter.end()
    assert (left.text if left else "") == ("sent" if OWN_LINE in rest else rest.decode())


@pytest.mark.parametrize("data", [b"", b"\n\n", b"\r\r"])
def test_empty_lines(data: bytes) -> None:
    lines, consumed = split([data])
    assert all(line.text == "" for line in lines)
    assert consumed == data
