"""The graph of every case: boxes do not overlap, lines begin and end at boxes, and folding hides what is inside."""

from __future__ import annotations

import json
from itertools import combinations

import pytest
from tests.workflows.asl.case_files import Case, read_cases

from jobtable.web.graphs.fitting import fit, width_of
from jobtable.web.graphs.state_graph import Box, Picture, all_states, draw_machine
from jobtable.workflows.asl.machine_definition import read_definition
from jobtable.workflows.asl.machine_transitions import TransitionKind, describe_condition, describe_retry

CASES = {json.dumps(case.definition): case for case in read_cases()}
TOLERANCE = 1.5


def drawn(definition: object, *toggled: str) -> Picture:
    picture = draw_machine(json.dumps(definition), frozenset(toggled))
    assert picture is not None
    return picture


@pytest.mark.parametrize("case", CASES.values(), ids=str)
def test_boxes_lie_beside_each_other_or_inside(case: Case) -> None:
    picture = drawn(case.definition)
    shown = {box.state.path for box in picture.boxes}
    assert shown == {state.path for state in all_states(read_definition(json.dumps(case.definition)))}
    for box in picture.boxes:
        assert box.x >= -TOLERANCE
        assert box.y >= -TOLERANCE
        assert box.x + box.width <= picture.width + TOLERANCE
        assert box.y + box.height <= picture.height + TOLERANCE
    for one, other in combinations(picture.boxes, 2):
        if other.state.path.startswith(f"{one.state.path}/"):
            assert is_inside(other, one), (other.state.path, one.state.path)
        elif not one.state.path.startswith(f"{other.state.path}/"):
            assert is_beside(one, other), (one.state.path, other.state.path)


def is_inside(inner: Box, outer: Box) -> bool:
    return (
        outer.x - TOLERANCE <= inner.x
        and inner.x + inner.width <= outer.x + outer.width + TOLERANCE
        and outer.y - TOLERANCE <= inner.y
        and inner.y + inner.height <= outer.y + outer.height + TOLERANCE
    )


def is_beside(one: Box, other: Box) -> bool:
    return (
        one.x + one.width <= other.x + TOLERANCE
        or other.x + other.width <= one.x + TOLERANCE
        or one.y + one.height <= other.y + TOLERANCE
        or other.y + other.height <= one.y + TOLERANCE
    )


@pytest.mark.parametrize("case", CASES.values(), ids=str)
def test_lines_begin_and_end_at_their_boxes(case: Case) -> None:
    picture = drawn(case.definition)
    boxes = {box.state.path: box for box in picture.boxes}
    for arrow in picture.arrows:
        if arrow.source is not None:
            assert touches(arrow.line.start, boxes[arrow.source]), arrow
        if arrow.target is not None:
            assert touches(arrow.line.parts[-1][2], boxes[arrow.target]), arrow


def touches(point: tuple[float, float], box: Box) -> bool:
    x, y = point
    near = 2.0
    is_within = box.x - near <= x <= box.x + box.width + near and box.y - near <= y <= box.y + box.height + near
    at_edge = min(abs(x - box.x), abs(x - box.x - box.width), abs(y - box.y), abs(y - box.y - box.height)) <= near
    return is_within and at_edge


CHOICE = {
    "StartAt": "Ask",
    "States": {
        "Ask": {
            "Type": "Task",
            "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
            "Retry": [{"ErrorEquals": ["States.Timeout"], "MaxAttempts": 1}],
            "Catch": [{"ErrorEquals": ["Refused", "States.ALL"], "Next": "Stop"}],
            "Next": "Sure?",
        },
        "Sure?": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.share", "NumericLessThan": 0.5, "Next": "Ask"}],
            "Default": "Each",
        },
        "Each": {
            "Type": "Map",
            "ItemProcessor": {"StartAt": "Inner", "States": {"Inner": {"Type": "Pass", "End": True}}},
            "End": True,
        },
        "Stop": {"Type": "Fail", "Error": "Stopped"},
    },
}


def test_lines_say_why_they_are_taken() -> None:
    picture = drawn(CHOICE)
    told = {(arrow.kind, arrow.label.text) for arrow in picture.arrows if arrow.label is not None}
    assert told == {
        (TransitionKind.CHOICE, "$.share < 0.5"),
        (TransitionKind.CHOICE, "otherwise"),
        (TransitionKind.CATCH, "Refused, States.ALL"),
    }
    (loop,) = (arrow for arrow in picture.arrows if arrow.source == arrow.target)
    assert loop.kind is TransitionKind.CATCH
    back = next(arrow for arrow in picture.arrows if arrow.label is not None and arrow.label.text.startswith("$"))
    assert back.line.start[1] > back.line.parts[-1][2][1], "it leads up"


def test_a_folded_box_hides_its_states_and_is_as_small_as_any_other() -> None:
    open_, folded = drawn(CHOICE), drawn(CHOICE, "/States/Each")
    assert len(open_.boxes) == len(folded.boxes) + 1
    (each,) = (box for box in folded.boxes if box.state.name == "Each")
    assert not each.is_unfolded
    assert each.can_fold
    assert folded.height < open_.height


def chain(count: int) -> dict[str, object]:
    states = {
        f"s{n}": {"Type": "Pass", **({"Next": f"s{n + 1}"} if n < count - 1 else {"End": True})} for n in range(count)
    }
    return {"StartAt": "s0", "States": states}


def test_a_machine_of_any_size_is_drawn_in_parts_or_not_at_all() -> None:
    assert len(drawn(chain(400)).boxes) == 400
    assert draw_machine(json.dumps(chain(401))) is None
    nested = {"StartAt": "M", "States": {"M": {"Type": "Map", "ItemProcessor": chain(399), "End": True}}}
    assert [box.state.name for box in drawn(nested).boxes] == ["M"]
    assert len(drawn(nested, "/States/M").boxes) == 400


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"Variable": "$.a", "StringEquals": "x"}, '$.a = "x"'),
        ({"Variable": "$.a", "NumericGreaterThanEqualsPath": "$.b"}, "$.a \N{GREATER-THAN OR EQUAL TO} $.b"),
        ({"Variable": "$.a", "IsNumeric": False}, "$.a is not numeric"),
        ({"Not": {"Variable": "$.a", "BooleanEquals": True}}, "not $.a = true"),
        (
            {"Or": [{"Variable": "$.a", "IsNull": True}, {"And": [{"Variable": "$.b", "StringMatches": "*"}]}]},
            '$.a is null or ($.b matches "*")',
        ),
        ({"Condition": "{% $states.input.a > 1 %}"}, "$states.input.a > 1"),
    ],
)
def test_conditions_are_told_in_words(rule: dict[str, object], words: str) -> None:
    assert describe_condition(rule) == words


def test_retries_are_told_in_words() -> None:
    told = describe_retry({"ErrorEquals": ["A", "B"], "MaxAttempts": 1, "BackoffRate": 1})
    assert told == "A, B: up to 1 more attempt, the first after 1 s"


@pytest.mark.parametrize(
    "text", ["", "x" * 200, "W" * 90, "words of a usual length, and some more of them", "\u5b57" * 60]
)
@pytest.mark.parametrize("lines", [1, 2])
def test_texts_fit(text: str, lines: int) -> None:
    fitted = fit(text, 160, lines=lines)
    assert 1 <= len(fitted) <= lines
    assert all(width_of(each) <= 165 for each in fitted)
    assert fitted[-1].endswith("\N{HORIZONTAL ELLIPSIS}") == ("".join(fitted).replace(" ", "") != text.replace(" ", ""))
