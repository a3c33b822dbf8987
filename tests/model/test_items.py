"""Items as they stand in a table, to the byte, and items that others wrote."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from typing import Any

import pytest
from pydantic import ValidationError
from tests.samples import Album, Comment, Execution, Job, JobMetric, Kitchen, Line, Stage, Status, Step, Word

from jobtable.errors import ItemShapeError, ValueRefusedError
from jobtable.model import Entity, Index, Key, PackedFloats, Part, Stored, Table
from jobtable.model.expressions import attribute_of
from jobtable.store import requests

NOON = datetime(2025, 11, 1, 12, tzinfo=UTC)
UUID = "f84d63ed-3b42-448e-9a1d-3474137f4e80"


def encode(entity: Entity) -> dict[str, Any]:
    return type(entity).__schema__.codec.encode(entity)


def test_a_flat_item() -> None:
    job = Job(job_id="7", created_at=NOON, created_by="ann#1", queue="gpu", tags=frozenset({"b", "a"}))
    assert encode(job) == {
        "PK": {"S": "JOB#7"},
        "SK": {"S": "JOB"},
        "TYPE": {"S": "JOB"},
        "created_at": {"S": "2025-11-01T12:00:00.000000Z"},
        "created_by": {"S": "ann#1"},
        "status": {"S": "PENDING"},
        "priority": {"N": "50"},
        "queue": {"S": "gpu"},
        "attempts": {"N": "0"},
        "tags": {"SS": ["a", "b"]},
        "history": {"L": []},
        "GSI1PK": {"S": "STATUS#PENDING"},
        "GSI1SK": {"S": "CREATED#2025-11-01T12:00:00.000000Z"},
        "GSI2PK": {"S": "USER#ann%231"},
        "GSI2SK": {"S": "CREATED#2025-11-01T12:00:00.000000Z"},
        "GSI3PK": {"S": "QUEUE#gpu"},
        "GSI3SK": {"S": "PRIORITY#050#2025-11-01T12:00:00.000000Z"},
    }


def test_an_item_in_an_envelope() -> None:
    stage = Stage(journey_id="J", order=1, stage_id="raw", steps=[Step(step_id="s", ai_assisted=True)], created_at=NOON)
    assert encode(stage) == {
        "PK": {"S": "JOURNEY#J"},
        "SK": {"S": "STAGE#01#raw"},
        "EntityType": {"S": "StageDefinition"},
        "GSI1PK": {"S": "JOURNEY#J#STAGES"},
        "GSI1SK": {"S": "01"},
        "CreatedAt": {"S": "2025-11-01T12:00:00.000000Z"},
        "Data": {
            "M": {
                "order": {"N": "1"},
                "stageId": {"S": "raw"},
                "canSkip": {"BOOL": False},
                "steps": {"L": [{"M": {"stepId": {"S": "s"}, "aiAssisted": {"BOOL": True}}}]},
                "errorMessage": {"NULL": True},
            }
        },
    }


def test_an_item_without_its_envelope_has_the_defaults() -> None:
    class Light(Entity, table=Table("lights", pk="PK"), envelope="Data"):
        key = Key("LIGHT#{name}")
        name: str
        is_on: bool = False

    codec = Light.__schema__.codec
    hall = {"PK": {"S": "LIGHT#hall"}}
    assert codec.decode(hall) == codec.decode(hall | {"Data": {"NULL": True}}) == Light(name="hall")
    with pytest.raises(ItemShapeError, match="Light PK='LIGHT#hall': Data is not a map"):
        codec.decode(hall | {"Data": {"S": "kept"}})


def test_an_envelope_that_is_no_map_is_refused_also_where_the_key_says_everything() -> None:
    class Lamp(Entity, table=Table("lamps", pk="PK"), envelope="Data"):
        key = Key("LAMP#{name}")
        name: Stored[str]

    with pytest.raises(ItemShapeError, match="Lamp PK='LAMP#hall': Data is not a map"):
        Lamp.__schema__.codec.decode({"PK": {"S": "LAMP#hall"}, "Data": {"S": "kept"}})


def test_natural_keys() -> None:
    comment = Comment(job_id="j", comment_id=123, conversation_id="c", created_at=NOON, embedding=[0.5, 1.0])
    assert encode(comment) == {
        "job_id": {"S": "j"},
        "comment_id": {"N": "123"},
        "conversation_id": {"S": "c"},
        "created_at": {"S": "2025-11-01T12:00:00.000000Z"},
        "embedding": {"L": [{"N": "0.5"}, {"N": "1"}]},
    }


def test_multi_attribute_keys() -> None:
    execution = Execution(execution_id="e", workflow_type="step-functions", status="running", created_at=NOON)
    assert encode(execution) == {
        "pk": {"S": "e"},
        "sk": {"S": "metadata"},
        "entityType": {"S": "execution"},
        "executionId": {"S": "e"},
        "workflowType": {"S": "step-functions"},
        "status": {"S": "running"},
        "createdAt": {"S": "2025-11-01T12:00:00.000000Z"},
        "sortValue": {"N": "0"},
        "endTime": {"NULL": True},
    }
    album = encode(Album(execution_id="e", album_index=10, workflow_type="step-functions"))
    assert (album["sk"], album["sortValue"]) == ({"S": "album-10"}, {"N": "10"})


def test_numbers_in_keys() -> None:
    line = encode(Line(image_id=UUID.upper(), line_id=7, text="x", confidence=1))
    assert (line["PK"], line["SK"]) == ({"S": f"IMAGE#{UUID}"}, {"S": "LINE#00007"})
    word = encode(Word(image_id=UUID, line_id=7, word_id=12, confidence=0.85))
    assert (word["SK"], word["GSI1SK"]) == ({"S": "LINE#00007#WORD#00012"}, {"S": "CONFIDENCE#0.85"})
    metric = encode(JobMetric(job_id="1", metric_name="loss", timestamp=NOON, value=-1.5))
    assert metric["GSI2SK"] == {"S": "VALUE#4007ffffffffffff"}


class Unit(StrEnum):
    MEGA = "M"
    MILLI = "m"
    KILO = "k"


def test_texts_that_differ_only_in_case_are_members_of_their_own() -> None:
    class Measure(Part):
        unit: Unit

    texts = ["M", "m", "k", "K"]
    members = [Unit.MEGA, Unit.MILLI, Unit.KILO, Unit.KILO]
    assert [Measure.model_validate({"unit": text}).unit for text in texts] == members
    assert [Measure.__codec__.decode({"unit": {"S": unit}}).unit for unit in Unit] == list(Unit)


@pytest.mark.parametrize(
    "text",
    [
        "2025-11-01T12:00:00Z",
        "2025-11-01T12:00:00.000Z",
        "2025-11-01T13:00:00+01:00",
        "2025-11-01 12:00",
        "2025-11-01T12:00:00",
    ],
)
def test_any_iso_time_in_and_one_form_out(text: str) -> None:
    job = Job.model_validate({"job_id": "1", "created_at": text, "created_by": "a"})
    assert encode(job)["created_at"] == {"S": "2025-11-01T12:00:00.000000Z"}


@pytest.mark.parametrize("given", [Status.RUNNING, "RUNNING", "running", "Running"])
def test_enums_are_found_in_any_case(given: Any) -> None:
    assert Job(job_id="1", created_at=NOON, created_by="a", status=given).status is Status.RUNNING
    assert Job.status.set(given).value is Status.RUNNING
    assert Job.by_status(status=given).equal == {"GSI1PK": {"S": "STATUS#RUNNING"}}


ITEM = encode(JobMetric(job_id="1", metric_name="loss", timestamp=NOON, value=0.5, step=3))


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ({"value": {"N": "5E-1"}}, 0.5),
        ({"value": {"S": "0.5"}}, 0.5),
        ({"step": {"NULL": True}}, None),
        ({"step": {"N": "3.0"}}, 3),
    ],
)
def test_items_of_another_shape_are_understood(change: dict[str, Any], value: Any) -> None:
    metric = JobMetric.__schema__.codec.decode({**ITEM, **change})
    assert getattr(metric, next(iter(change))) == value


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"value": {"S": "much"}},
            "SK='METRIC#loss#2025-11-01T12:00:00.000000Z': value: Input should",
        ),
        ({"step": {"L": []}}, "step: Input should be a valid integer"),
        ({"PK": {"S": "WORK#1"}}, "'WORK#1' does not have the form 'JOB#{job_id}'"),
        ({"SK": {"S": "METRIC#loss#yesterday"}}, "'METRIC#loss#yesterday' does not have the form"),
        ({"PK": {"S": "JOB#50%"}}, "contains a % that is not part of %23 or %25"),
        ({"TYPE": {"S": "JOB"}}, "TYPE is 'JOB', not 'JOB_METRIC'"),
        ({"value": {"X": "?"}}, "value: 'X' is not a DynamoDB type"),
    ],
)
def test_a_malformed_item_names_its_key_and_the_field(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ItemShapeError) as raised:
        JobMetric.__schema__.codec.decode({**ITEM, **change})
    assert message in str(raised.value)


def test_a_missing_attribute_is_named() -> None:
    item = {name: value for name, value in ITEM.items() if name != "value"}
    assert JobMetric.__schema__.codec.decode(item).value == 0.5, "it stands in a key of an index too"
    del item["GSI2SK"]
    with pytest.raises(ItemShapeError, match=r"METRIC#loss.*value: Field required"):
        JobMetric.__schema__.codec.decode(item)


@pytest.mark.parametrize(
    ("entity", "message"),
    [
        (lambda: Line(image_id=UUID, line_id=100_000, text="", confidence=1), "100000 does not fit 5 digits"),
        (lambda: Line(image_id=UUID, line_id=-1, text="", confidence=1), "-1 does not fit 5 digits"),
        (lambda: Job(job_id="", created_at=NOON, created_by="a"), "empty"),
        (lambda: Comment(job_id="", comment_id=1, conversation_id="c", created_at=NOON, embedding=[]), "empty"),
        (lambda: Job(job_id="x" * 2050, created_at=NOON, created_by="a"), "2048"),
        (lambda: Job(job_id="é" * 1023, created_at=NOON, created_by="a"), "2050 bytes"),
        (lambda: Job(job_id="1", created_at=NOON, created_by="a", attempts=10**38 + 1), "39 significant digits"),
        (
            lambda: Execution(
                execution_id="1", workflow_type="step-functions", status="x" * 1000, created_at=NOON, sort_value=1
            ),
            "status, createdAt have 1027 bytes together",
        ),
        (lambda: Job(job_id="1", created_at=NOON, created_by="a", job_config=1e-140), "outside DynamoDB's range"),
        (lambda: Job(job_id="1", created_at=NOON, created_by="a", job_config=float("nan")), "no NaN"),
        (lambda: Job(job_id="1", created_at=NOON, created_by="a", job_config=object()), "type object cannot be stored"),
        (
            lambda: Job(job_id="1", created_at=NOON, created_by="a", job_config={1: 2}),
            "a map key must be a non-empty string",
        ),
        (lambda: Job(job_id="1", created_at=NOON, created_by="a", job_config={"\ud800": 2}), "not valid Unicode"),
        (lambda: Job(job_id="1", created_at=NOON, created_by="a", job_config={"é" * 40_000: 2}), "80,000 bytes"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(entity: Any, message: str) -> None:
    with pytest.raises(ValueRefusedError, match=message):
        encode(entity())


@pytest.mark.parametrize(("place", "shelf"), [("", b"x"), (None, b""), ("x" * 3000, b"x")])
def test_a_key_of_an_index_is_not_empty_or_too_long_where_another_may_be_missing(place: str, shelf: bytes) -> None:
    class Box(Entity, table=Table("boxes", pk="name", indexes=[Index("ByPlace", "place", "shelf")])):
        by_place = Key(index="ByPlace")
        name: str
        place: str | None
        shelf: bytes

    with pytest.raises(ValueRefusedError, match=r"Box: (place|shelf) .*(a key attribute cannot be empty|3000 bytes)"):
        requests.put(Box(name="a", place=place, shelf=shelf), None)
    assert encode(Box(name="a", place=None, shelf=b"x")) == {"name": {"S": "a"}, "shelf": {"B": "eA=="}}


@pytest.mark.parametrize(
    ("entity", "message"),
    [
        (
            lambda: Job(job_id="1", created_at=NOON, created_by="a", job_config={"x": [1e300]}),
            r"Job PK='JOB#1' SK='JOB': job_config: 1E\+300 is outside",
        ),
        (
            lambda: Job(job_id="", created_at=NOON, created_by="a", job_config=1e300),
            r"Job: job_id is empty, but PK \(JOB#\{job_id\}\) is built from it",
        ),
        (
            lambda: Job(job_id="1", created_at=NOON, created_by="a", queue=""),
            r"Job: queue is empty, but GSI3PK \(QUEUE#\{queue\}\) is built from it",
        ),
    ],
)
def test_who_puts_a_value_that_does_not_fit_is_told_the_field_and_the_key(entity: Any, message: str) -> None:
    with pytest.raises(ValueRefusedError, match=message):
        requests.put(entity(), None)


def test_who_asks_by_an_empty_part_of_a_key_is_told_the_field() -> None:
    with pytest.raises(
        ValueRefusedError, match=r"^metric_name \(METRIC#\{metric_name\}#\{timestamp\}\): .* cannot be empty$"
    ):
        JobMetric.key(job_id="1", metric_name="")


@pytest.mark.parametrize(
    ("update", "message"),
    [
        ({"priority": "high"}, r"Job\.priority: 'high': Input should be a valid integer.*; use replace"),
        ({"status": "done"}, r"Job\.status: 'done' is not yet a Status; .*; use replace"),
        ({"created_by": 3}, r"Job\.created_by: 3: Input should be a valid string"),
        ({"history": [1]}, r"Job\.history: \[1\]: Input should be a valid string"),
        ({"job_id": None}, r"Job\.job_id: None: Input should be a valid string"),
    ],
)
def test_a_value_that_nobody_has_looked_at_is_told_by_its_field(update: dict[str, Any], message: str) -> None:
    job = Job(job_id="1", created_at=NOON, created_by="a").model_copy(update=update)
    with pytest.raises(ValueRefusedError, match=message):
        requests.put(job, None)


class Weight(float):
    """A float that shows itself otherwise, as those of numpy do."""

    def __repr__(self) -> str:
        return f"Weight({float(self)})"


def test_a_number_is_stored_however_it_shows_itself() -> None:
    job = Job(job_id="1", created_at=NOON, created_by="a", job_config={"loss": Weight(0.5), "large": [Weight(2)]})
    assert encode(job)["job_config"] == {"M": {"loss": {"N": "0.5"}, "large": {"L": [{"N": "2"}]}}}
    metric = JobMetric(job_id="1", metric_name="loss", timestamp=NOON, value=0.5)
    assert encode(metric.model_copy(update={"value": Weight(0.25)}))["value"] == {"N": "0.25"}
    assert encode(metric.model_copy(update={"value": 3}))["value"] == {"N": "3"}
    assert attribute_of(JobMetric.value).increment(Weight(0.25)).values() == ({"N": "0.25"},)
    line = Line(image_id=UUID, line_id=1, text="", confidence=1)
    with pytest.raises(ValueRefusedError, match=r"confidence: '0\.5' is not a number"):
        requests.put(line.model_copy(update={"confidence": "0.5"}), None)


def test_a_set_inside_of_something_is_not_empty() -> None:
    class Basket(Entity, table=Table("baskets", pk="name")):
        name: str
        groups: list[set[str]] = []
        by_colour: dict[str, frozenset[int]] = {}

    assert encode(Basket(name="a", groups=[{"x"}]))["groups"] == {"L": [{"SS": ["x"]}]}
    for wrong in (Basket(name="a", groups=[{"x"}, set()]), Basket(name="a", by_colour={"red": frozenset()})):
        with pytest.raises(ValueRefusedError, match=r"Basket name='a': (groups|by_colour): DynamoDB has no empty set"):
            requests.put(wrong, None)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_no_field_holds_nan_or_infinity(value: float) -> None:
    with pytest.raises(ValidationError, match="finite"):
        JobMetric(job_id="1", metric_name="m", timestamp=NOON, value=value)
    with pytest.raises(ValidationError, match="finite"):
        Comment(job_id="1", comment_id=1, conversation_id="c", created_at=NOON, embedding=[value])


def test_lone_surrogates_are_refused_where_they_enter() -> None:
    with pytest.raises(ValueRefusedError, match="not valid Unicode"):
        Job.key(job_id="\ud800")
    with pytest.raises(ValueRefusedError, match="not valid Unicode"):
        requests.put(Job(job_id="\ud800", created_at=NOON, created_by="a"), None)


@pytest.mark.parametrize("microsecond", [0, 5, 500_000])
@pytest.mark.parametrize("zone", [None, UTC, timezone(timedelta(hours=2)), timezone(timedelta(hours=-5, minutes=-30))])
def test_a_time_that_nobody_has_looked_at_is_the_same_instant(zone: timezone | None, microsecond: int) -> None:
    noon = datetime(2025, 11, 1, 12, microsecond=microsecond, tzinfo=zone)
    job = Job(job_id="1", created_at=noon, created_by="a")
    assert encode(job.model_copy(update={"created_at": noon})) == encode(job)


def test_an_entity_is_immutable_and_replaced_as_a_whole() -> None:
    job = Job(job_id="1", created_at=NOON, created_by="a")
    with pytest.raises(ValidationError, match="frozen"):
        job.status = Status.DONE  # type: ignore[misc]  # the checker knows it, too
    assert job.replace(status="done").status is Status.DONE
    with pytest.raises(ValidationError, match="priority"):
        job.replace(priority=1000)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda job: pickle.loads(pickle.dumps(job))])
def test_an_entity_that_was_read_can_be_copied_and_sent(copied: Any) -> None:
    codec = Job.__schema__.codec
    item = encode(Job(job_id="1", created_at=NOON, created_by="a", tags=frozenset({"x"})))
    read = codec.decode({**item, "foreign": {"S": "kept"}})
    assert copied(read) == read
    assert encode(copied(read)) == {**item, "foreign": {"S": "kept"}}


@pytest.mark.parametrize("change", [{"value": {"S": "0.5"}}, {"step": {"N": "3.0"}}, {"unit": {"NULL": True}}])
def test_entities_are_equal_whatever_form_their_fields_have_in_the_items(change: dict[str, Any]) -> None:
    metric = JobMetric(job_id="1", metric_name="loss", timestamp=NOON, value=0.5, step=3)
    read = JobMetric.__schema__.codec.decode({**ITEM, **change})
    assert read == metric
    assert metric == read
    assert read == copy.copy(read)
    assert {read, metric} == {metric}
    assert read != metric.replace(value=0.75)
    assert read != JobMetric.__schema__.codec.decode({**ITEM, **change, "foreign": {"S": "also kept"}})
    assert read != "a metric"


def test_a_missing_list_is_a_new_one_each_time() -> None:
    codec = Job.__schema__.codec
    item = encode(Job(job_id="1", created_at=NOON, created_by="a"))
    del item["history"]
    codec.decode(item).history.append("x")
    assert codec.decode(item).history == []
    assert Job(job_id="1", created_at=NOON, created_by="a").history == []


def test_an_unknown_argument_is_refused() -> None:
    with pytest.raises(ValidationError, match="color"):
        Job.model_validate({"job_id": "1", "created_at": NOON, "created_by": "a", "color": "red"})


def test_packed_and_listed_vectors_are_both_read() -> None:
    codec = Kitchen.__schema__.codec
    packed = {"B": "AAAAPwAAgD8="}
    listed = {"L": [{"N": "0.5"}, {"N": "1"}]}
    kinds = (Kitchen.__schema__.fields["vector"].kind, Kitchen.__schema__.fields["packed"].kind)
    assert [kind.loosen(form) for kind in kinds for form in (packed, listed)] == [[0.5, 1.0]] * 4
    assert codec.schema.name == "Kitchen"


def test_a_packed_vector_stays_packed_in_either_field() -> None:
    entity = Comment(
        job_id="j", comment_id=1, conversation_id="c", created_at=NOON, embedding=PackedFloats([0.5, -2.0])
    )
    codec = Comment.__schema__.codec
    item = codec.encode(entity)
    assert item["embedding"] == {"B": "AAAAPwAAAMA="}
    assert codec.encode(codec.decode(item)) == item
    assert codec.encode(codec.decode(item).replace(comment_id=2))["embedding"] == item["embedding"]
    assert codec.encode(entity.replace(embedding=[0.5, -2.0]))["embedding"] == {"L": [{"N": "0.5"}, {"N": "-2"}]}


@pytest.mark.parametrize("nothing", [-0.0, -1e-60])
def test_what_is_packed_to_negative_zero_is_stored_as_the_zero_that_it_equals(nothing: float) -> None:
    kind = Kitchen.__schema__.fields["packed"].kind
    assert kind.to_wire([0.5, nothing, 1.0]) == kind.to_wire([0.5, 0.0, 1.0])
