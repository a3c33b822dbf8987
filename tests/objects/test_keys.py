"""Keys are invertible, canonical, and never leave their place."""

from __future__ import annotations

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtable.errors import ValueRefusedError
from jobtable.objects.keys import MAX_KEY_BYTES, MAX_PART_BYTES, content_type, is_key, key_parts, object_key

HOSTILE = st.sampled_from(
    ["..", ".", "/", "\\", "\0", "\n", "%", "%2F", "%2f", ".hidden", " ", "~", "é", "e\u0301", "🗂"]
)
PART = st.lists(st.one_of(HOSTILE, st.text(max_size=3)), min_size=1, max_size=3).map("".join).filter(bool)
PARTS = st.lists(PART, min_size=1, max_size=4)


@given(PARTS)
def test_a_key_gives_its_parts_back(parts: list[str]) -> None:
    assert key_parts(object_key(*parts)) == tuple(parts)


@given(PARTS, PARTS)
def test_two_tuples_of_parts_have_two_keys(parts: list[str], others: list[str]) -> None:
    assert (object_key(*parts) == object_key(*others)) == (parts == others)


@given(PARTS)
def test_a_part_never_leaves_its_place(parts: list[str]) -> None:
    key = object_key("root", *parts)
    assert key.startswith("root/")
    assert key.count("/") == len(parts)
    assert posixpath.normpath(key) == key
    assert key.isascii()
    assert key.isprintable()
    assert not any(part.startswith(".") for part in key.split("/"))


@given(st.text(max_size=30))
def test_a_text_is_a_key_only_if_it_is_the_one_for_its_parts(text: str) -> None:
    assert not is_key(text) or object_key(*key_parts(text)) == text


@pytest.mark.parametrize(
    "key", ["", "a//b", "/a", "a/", "a/../b", ".a", "a/.b", "%41", "%2f", "%", "%zz", "%FF", "a b"]
)
def test_other_texts_are_no_keys(key: str) -> None:
    with pytest.raises(ValueRefusedError, match="object_key"):
        key_parts(key)


def test_ordinary_parts_look_as_they_are() -> None:
    key = object_key("journeys", "0b1c-22", "logs", 3, "Step_1.json")
    assert key == "journeys/0b1c-22/logs/3/Step_1.json"


def test_what_does_not_fit_is_refused() -> None:
    assert len(object_key("x" * MAX_PART_BYTES)) == MAX_PART_BYTES
    assert len(object_key("X" * (MAX_PART_BYTES // 3))) == MAX_PART_BYTES // 3
    parts = ["x" * 224] * 4
    assert len(object_key(*parts)) < MAX_KEY_BYTES
    for refused in (["x" * 256], ["X" * 86], ["🗂" * 30], [*parts, "x"], [""], ["a", ""], ["\ud800"], []):
        with pytest.raises(ValueRefusedError):
            object_key(*refused)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("a.json", "application/json"),
        ("a/b.PNG", "image/png"),
        ("a.log", "text/plain"),
        ("a.txt", "text/plain"),
        ("a.csv", "text/csv"),
        ("a.parquet", "application/vnd.apache.parquet"),
        ("a.tar.gz", "application/octet-stream"),
        ("a", "application/octet-stream"),
        ("a.json/b", "application/octet-stream"),
        ("data:text/html,x".replace(":", "%3A"), "application/octet-stream"),
    ],
)
def test_the_ending_tells_the_content_type(key: str, expected: str) -> None:
    assert content_type(key) == expected
