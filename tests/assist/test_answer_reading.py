"""Whatever a class of answers looks like, its valid objects are read back; whatever a model writes, nothing breaks."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from enum import Enum
from typing import Any, Literal
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel, create_model

from jobtable.assist.answer_reading import LONGEST_ANSWER, AnswerShape, BadAnswerError, read_answer
from jobtable.assist.answer_schemas import strict_schema
from jobtable.assist.asking import Question, messages_of, most_tokens, question_of, request_text
from jobtable.assist.providers import ChatAnswer, Usage
from jobtable.assist.quoting import quoted, quoted_all
from jobtable.assist.vectors import DIGEST_BYTES, _places
from jobtable.errors import ValueRefusedError


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Tree(BaseModel):
    name: str
    below: list[Tree] = []


class Every(BaseModel):
    """Of each kind of field something."""

    text: str
    number: float
    count: int
    yes: bool
    colour: Colour
    kind: Literal["a", 1]
    day: dt.date
    moment: dt.datetime
    span: dt.timedelta
    id: UUID
    price: Decimal
    pair: tuple[int, str]
    several: set[int]
    named: dict[str, Tree]
    maybe: Tree | None = None


_FINITE = st.floats(allow_nan=False, allow_infinity=False)
_UNICODE = st.text(st.characters(exclude_categories=["Cs"]))
_ANY = st.text(st.characters(exclude_categories=[]))
"""With halves of surrogates, which are no valid Unicode."""
_FIELDS: dict[Any, st.SearchStrategy[Any]] = {
    str: _UNICODE,
    int: st.integers(-(2**63), 2**63),
    float: _FINITE,
    bool: st.booleans(),
    Colour: st.sampled_from(Colour),
    dt.date: st.dates(),
    UUID: st.uuids(),
    list[int]: st.lists(st.integers(-(2**63), 2**63)),
    dict[str, float]: st.dictionaries(_UNICODE, _FINITE),
    str | None: st.none() | _UNICODE,
    Literal["x", "y"]: st.sampled_from("xy"),
}
_NAMES = st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True).filter(lambda name: not hasattr(BaseModel, name))


@st.composite
def objects(draw: st.DrawFn) -> BaseModel:
    """An object of a class with any fields."""
    kinds = draw(st.dictionaries(_NAMES, st.sampled_from([*_FIELDS]), min_size=1, max_size=6))
    made = create_model("Made", **{name: (kind, ...) for name, kind in kinds.items()})  # type: ignore[call-overload]
    values = {name: draw(_FIELDS[kind]) for name, kind in kinds.items()}
    return made(**values)  # type: ignore[no-any-return]


def read(text: str, output: type[BaseModel], finish: str = "stop") -> Any:
    return read_answer(ChatAnswer(text, Usage(), "m", finish), AnswerShape.of(output))


@given(objects(), st.sampled_from(["{}", "```json\n{}\n```", "Here:\n```\n{}\n```\nDone.", "\n\n {} \n"]))
def test_every_valid_object_is_read_back(made: BaseModel, around: str) -> None:
    text = made.model_dump_json()
    assert read(around.replace("{}", text), type(made)) == made


@given(objects(), st.data())
def test_an_object_without_a_field_or_with_another_one_is_refused(made: BaseModel, data: st.DataObject) -> None:
    fields = json.loads(made.model_dump_json())
    missing = data.draw(st.sampled_from(sorted(fields)))
    with pytest.raises(BadAnswerError, match="this field is missing"):
        read(json.dumps({name: value for name, value in fields.items() if name != missing}), type(made))
    with pytest.raises(BadAnswerError, match="there is no such field"):
        read(json.dumps({**fields, "Another": 1}), type(made))


@given(objects())
def test_every_class_has_a_schema_that_is_strict_or_known_not_to_be(made: BaseModel) -> None:
    schema = AnswerShape.of(type(made)).schema
    has_open_part = any(field.annotation == dict[str, float] for field in type(made).model_fields.values())
    assert (strict_schema(schema) is None) == has_open_part


@given(_ANY)
@example("\ud800")
def test_no_text_of_a_model_breaks_anything(text: str) -> None:
    try:
        found = read(text, Every)
    except BadAnswerError as bad:
        fault = str(bad)
        assert fault
        assert len(fault) <= 1_010
        fault.encode()
    else:
        raise AssertionError(f"nobody writes {found} by chance")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from([*Every.model_fields]), inner),
    max_leaves=20,
)


@given(_JSON)
def test_no_json_of_a_model_breaks_anything(value: Any) -> None:
    try:
        found = read(json.dumps(value), Tree)
    except BadAnswerError as bad:
        str(bad).encode()
    else:
        assert isinstance(found, Tree)


def test_each_kind_of_field_is_read() -> None:
    text = (
        '{"text": "t", "number": 1, "count": 2, "yes": true, "colour": "red", "kind": 1, "day": "2025-11-01",'
        '"moment": "2025-11-01T20:30:00Z", "span": "PT3S", "id": "12345678-1234-5678-1234-567812345678",'
        '"price": "1.10", "pair": [1, "x"], "several": [1, 2, 2],'
        '"named": {"a": {"name": "n", "below": [{"name": "m", "below": []}]}}, "maybe": null}'
    )
    found = read(text, Every)
    assert (found.price, found.several, found.span) == (Decimal("1.10"), {1, 2}, dt.timedelta(seconds=3))
    assert found.named["a"].below == [Tree(name="m")]


@pytest.mark.parametrize("number", ["1e400", "-1e400", "[1, [1e999]]"])
def test_a_number_that_no_float_can_hold_is_refused(number: str) -> None:
    with pytest.raises(BadAnswerError, match="this number is too large"):
        read(f'{{"name": {number}}}', Tree)


def test_a_text_is_refused_unread_if_it_is_too_long() -> None:
    with pytest.raises(BadAnswerError, match="longer than 1,000,000 characters"):
        read("[" * (LONGEST_ANSWER + 1), Tree)


def test_an_error_of_a_validator_is_a_fault() -> None:
    class Even(BaseModel):
        number: int

        def model_post_init(self, _: Any) -> None:
            if self.number % 2:
                raise ValueError(f"{self.number} is odd")

    with pytest.raises(BadAnswerError, match="3 is odd"):
        read('{"number": 3}', Even)


# --- requests


@given(st.lists(_UNICODE.filter(str.strip), min_size=1, max_size=3), st.floats(0, 1), st.integers(1, 9_999))
def test_equal_questions_have_equal_requests_and_others_do_not(texts: list[str], warmth: float, most: int) -> None:
    def request(model: str = "m", **changes: Any) -> str:
        messages = [{"role": "user", "content": text} for text in texts]
        given: dict[str, Any] = {"temperature": warmth, "max_output_tokens": most} | changes
        return request_text("p", question_of("label", messages, None, None, **given).request(model, None))

    assert request() == request()
    others = {request("n"), request(temperature=warmth / 2 if warmth else 1.0), request(max_output_tokens=most + 1)}
    assert len({request(), *others}) == 4
    assert json.loads(request())["messages"][0]["content"] == texts[0]


@given(_UNICODE)
def test_a_text_has_no_more_tokens_than_bytes(text: str) -> None:
    assert most_tokens(text) == len(text.encode()) >= len(text)


@given(_ANY)
def test_a_prompt_is_sent_as_it_is_or_refused(text: str) -> None:
    try:
        (message,) = messages_of(text, None)
    except ValueRefusedError:
        assert not text.strip() or any("\ud800" <= letter <= "\udfff" for letter in text)
    else:
        assert message == {"role": "user", "content": text}


def test_the_order_of_fields_is_part_of_a_request() -> None:
    """A model writes its answer in that order, so it is another question."""
    one, other = (create_model("Made", **{a: (int, ...), b: (int, ...)}) for a, b in ("xy", "yx"))  # type: ignore[call-overload]
    texts = {
        request_text("p", Question("q", messages_of("?", None), AnswerShape.of(each)).request("m", None))
        for each in (one, other)
    }
    assert len(texts) == 2


# --- data of others


@given(_ANY)
def test_quoted_data_cannot_end_its_own_quotation(text: str) -> None:
    wrapped = quoted(text, "comment")
    first, last = wrapped.split("\n", 1)[0], wrapped.rsplit("\n", 1)[1]
    code = first.removeprefix("[data comment ").removesuffix(" begins]")
    assert (first, last) == (f"[data comment {code} begins]", f"[data comment {code} ends]")
    assert wrapped[len(first) + 1 : -len(last) - 1] == text
    assert code not in text
    assert quoted(text, "comment") == wrapped


def test_data_is_named_or_numbered() -> None:
    assert quoted_all({"before": "x", "after": "y"}).count("\n\n") == 1
    assert "[data 2 " in quoted_all(["x", "y"])
    assert quoted_all("x") == quoted("x")


@pytest.mark.parametrize("name", ["", "a\nb", "a]", "[a"])
def test_an_impossible_name_of_data_is_refused(name: str) -> None:
    with pytest.raises(ValueRefusedError, match="cannot name data"):
        quoted("x", name)


# --- digests


_DIGESTS = st.binary(min_size=DIGEST_BYTES, max_size=DIGEST_BYTES) | st.sampled_from(
    [bytes(DIGEST_BYTES), bytes([0] * 8 + [1] * 8), bytes([1] * 8 + [0] * 8)]
)


@given(st.lists(_DIGESTS, unique=True), st.sets(_DIGESTS, max_size=40), st.data())
def test_digests_are_found_where_they_are(have: list[bytes], other: set[bytes], data: st.DataObject) -> None:
    wanted = other | set(data.draw(st.lists(st.sampled_from(have)))) if have else other
    found = dict(_places(b"".join(have), set(wanted)))
    assert found == {each: at for at, each in enumerate(have) if each in wanted}
