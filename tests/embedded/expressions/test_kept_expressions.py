"""What is made of expressions is kept, but not so much that it fills the memory."""

from __future__ import annotations

import gc
import sys
import weakref

import pytest

from jobtable.embedded.expressions.placeholders import Names, Placeholders, remembered
from jobtable.embedded.expressions.projections import compile_projection

LONG = "x" * 2000


class Made:
    """What a function made of a text and its names."""


@remembered
def make(text: str, names: Names) -> Made:
    return Made()


def test_what_was_made_of_a_short_text_is_given_again() -> None:
    assert make("a = #b", (("#b", "c"),)) is make("a = #b", (("#b", "c"),))
    assert make("a = #b", (("#b", "c"),)) is not make("a = #b", (("#b", "d"),))


@pytest.mark.parametrize(("text", "names"), [(LONG, ()), ("a = #b", (("#b", LONG),)), ("a = #b", ((f"#{LONG}", "c"),))])
def test_what_was_made_of_a_long_text_or_name_is_not_kept(text: str, names: Names) -> None:
    made = weakref.ref(make(text, names))
    gc.collect()
    assert made() is None


def test_long_names_of_a_request_are_not_kept() -> None:
    name = "".join(["x"] * 2000)
    held_before = sys.getrefcount(name)
    compile_projection("#n", Placeholders({"#n": name}))
    gc.collect()
    assert sys.getrefcount(name) == held_before
