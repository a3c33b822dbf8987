"""Conditions, updates and selections as values."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.samples import Comment, Job, JobMetric, Stage, Status

from jobtable.errors import DefinitionError, ValueRefusedError
from jobtable.model.conditions import Condition, Placeholders, Written, as_condition
from jobtable.model.expressions import Update, attribute_of, unchanged, write_updates


def text_of(condition: Condition) -> tuple[str, dict[str, str], list[object]]:
    placeholders = Placeholders()
    text = condition.write(placeholders)
    return text, placeholders.names, [next(iter(value.values())) for value in placeholders.values.values()]


@pytest.mark.parametrize(
    ("condition", "text", "values"),
    [
        (Job.status == Status.DONE, "#n0 = :v0", ["DONE"]),
        (Job.priority != 3, "#n0 <> :v0", ["3"]),
        ((Job.priority > 99) & (Job.attempts >= 5), "#n0 > :v0 AND #n1 >= :v1", ["99", "5"]),
        ((Job.priority < 3) | ~(Job.attempts >= 5), "#n0 < :v0 OR NOT #n1 >= :v1", ["3", "5"]),
        (~((Job.priority < 3) | (Job.attempts > 1)), "NOT (#n0 < :v0 OR #n1 > :v1)", ["3", "1"]),
        (Job.priority.between(1, 2), "#n0 BETWEEN :v0 AND :v1", ["1", "2"]),
        (Job.status.is_in(Status.DONE, Status.RUNNING), "#n0 IN (:v0, :v1)", ["DONE", "RUNNING"]),
        (Job.queue == None, "attribute_not_exists(#n0) OR #n0 = :v0", [True]),  # noqa: E711 - it makes a condition
        (Job.queue != None, "NOT (attribute_not_exists(#n0) OR #n0 = :v0)", [True]),  # noqa: E711
        (Job.priority == 50, "attribute_not_exists(#n0) OR #n0 = :v0", ["50"]),
        (~(Job.priority == 50), "NOT (attribute_not_exists(#n0) OR #n0 = :v0)", ["50"]),
        (Job.priority != 50, "attribute_exists(#n0) AND #n0 <> :v0", ["50"]),
        (Job.priority <= 50, "attribute_not_exists(#n0) OR #n0 <= :v0", ["50"]),
        (Job.priority.between(1, 50), "attribute_not_exists(#n0) OR #n0 BETWEEN :v0 AND :v1", ["1", "50"]),
        (Job.priority.is_in(1, 50), "attribute_not_exists(#n0) OR #n0 IN (:v0, :v1)", ["1", "50"]),
        (Job.queue.begins_with("g"), "begins_with(#n0, :v0)", ["g"]),
        (Job.tags.contains("a"), "contains(#n0, :v0)", ["a"]),
        (Job.history.size() > 3, "size(#n0) > :v0", ["3"]),
        (Job.limits["memory_mb"] >= 5, "#n0.#n1 >= :v0", ["5"]),
        (Job.history[2] == "x", "#n0[2] = :v0", ["x"]),
        (Job.job_config["a"]["b"][0].exists(), "attribute_exists(#n0.#n1.#n2[0])", []),
        (Job.priority > Job.attempts, "#n0 > #n1", []),
    ],
)
def test_conditions(condition: Condition, text: str, values: list[object]) -> None:
    written, names, placed = text_of(condition)
    assert (written, placed) == (text, values)
    assert "#n0" in names


def test_conditions_of_one_word_stand_in_one_row() -> None:
    first, second, third = Job.priority > 51, Job.priority > 52, Job.priority > 53
    for row in ((first & second) & third, first & (second & third)):
        assert text_of(row)[0] == "#n0 > :v0 AND #n0 > :v1 AND #n0 > :v2"
    assert text_of((first | second) & third)[0] == "(#n0 > :v0 OR #n0 > :v1) AND #n0 > :v2"


def test_what_was_read_can_be_asked_for() -> None:
    at = datetime(2025, 11, 1, tzinfo=UTC)
    job = Job(job_id="1", created_at=at, created_by="dana", priority=7, tags=frozenset({"x"}))
    same = unchanged(job, Job.priority, Job.queue, Job.tags, Job.status)
    queue, status = "attribute_not_exists(#n1) OR #n1 = :v1", "attribute_not_exists(#n3) OR #n3 = :v3"
    text = f"#n0 = :v0 AND ({queue}) AND #n2 = :v2 AND ({status})"
    assert text_of(same)[::2] == (text, ["7", True, ["x"], "PENDING"])
    assert text_of(unchanged(job.replace(tags=frozenset()), Job.tags))[0] == "attribute_not_exists(#n0)"
    either = unchanged(job, Job.status) | (Job.priority == 9)
    assert text_of(either)[0] == "(attribute_not_exists(#n0) OR #n0 = :v0) OR #n1 = :v1"


@pytest.mark.parametrize(
    "changed", [lambda read: read.replace(step=4), lambda read: read.model_copy(update={"step": 4})]
)
def test_what_a_changed_copy_still_has_is_asked_for_as_it_was_read(changed: Any) -> None:
    metric = JobMetric(job_id="1", metric_name="loss", timestamp=datetime(2025, 11, 1, tzinfo=UTC), value=0.5, step=3)
    codec = JobMetric.__schema__.codec
    copied = changed(codec.decode({**codec.encode(metric), "value": {"S": "0.5"}, "step": {"S": "3"}}))
    asked = unchanged(copied, attribute_of(JobMetric.value), attribute_of(JobMetric.step))
    placeholders = Placeholders()
    asked.write(placeholders)
    assert list(placeholders.values.values()) == [{"S": "0.5"}, {"N": "4"}]


def test_the_names_of_an_envelope_are_followed() -> None:
    placeholders = Placeholders()
    condition: object = Stage.can_skip == True  # noqa: E712 - it makes a condition
    assert isinstance(condition, Condition)
    assert condition.write(placeholders) == "#n0.#n1 = :v0"
    assert placeholders.names == {"#n0": "Data", "#n1": "canSkip"}


@pytest.mark.parametrize(
    ("update", "text"),
    [
        (Job.status.set(Status.DONE), "SET #n0 = :v0"),
        (Job.queue.set(None), "REMOVE #n0"),
        (Job.queue.remove(), "REMOVE #n0"),
        (Job.attempts.increment(), "SET #n0 = if_not_exists(#n0, :v0) + :v1"),
        (Job.attempts.increment(-1), "SET #n0 = if_not_exists(#n0, :v0) + :v1"),
        (Job.attempts.add(2), "ADD #n0 :v0"),
        (Job.attempts.add(-2), "ADD #n0 :v0"),
        (Job.tags.add(frozenset({"x"})), "ADD #n0 :v0"),
        (Job.tags.discard(frozenset({"x"})), "DELETE #n0 :v0"),
        (Job.history.append("x"), "SET #n0 = list_append(if_not_exists(#n0, :v1), :v0)"),
        (attribute_of(Comment.embedding).append(0.5), "SET #n0 = list_append(if_not_exists(#n0, :v1), :v0)"),
        (Job.queue.set_if_missing("x"), "SET #n0 = if_not_exists(#n0, :v0)"),
        (Job.limits["memory_mb"].set(3), "SET #n0.#n1 = :v0"),
        (Job.job_config["x"].set(None), "SET #n0.#n1 = :v0"),
    ],
)
def test_updates(update: Update, text: str) -> None:
    assert _written(update).text == text


def _written(*updates: Update) -> Written:
    placeholders = Placeholders()
    text = write_updates([update.attribute.form_of(update.action).write(placeholders) for update in updates])
    written = placeholders.written(text)
    placeholders.take(written, [value for update in updates for value in update.values()])  # as many as placeholders
    return written


def test_clauses_are_grouped() -> None:
    text = _written(Job.attempts.add(1), Job.status.set(Status.DONE), Job.queue.remove(), Job.priority.set(1)).text
    assert text == "SET #n1 = :v1, #n3 = :v2 REMOVE #n2 ADD #n0 :v0"


def test_a_condition_has_no_truth_value() -> None:
    with pytest.raises(TypeError, match=r"& \| ~"):
        assert Job.priority > 3 and Job.attempts > 1  # noqa: PT018 - what a newcomer would write


def test_the_elements_of_a_field_are_not_there_to_be_iterated() -> None:
    history: Any = Job.history
    with pytest.raises(TypeError, match="not iterable"):
        list(history)
    with pytest.raises(TypeError, match=r"write Job.history.contains\('x'\)"):
        assert "x" in history


def test_a_plain_value_is_no_condition() -> None:
    with pytest.raises(DefinitionError, match="must compare an attribute"):
        as_condition(True)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: attribute_of(Job.priority).set("high"), "Job.priority: 'high': Input should be a valid integer"),
        (lambda: Job.priority.set(1000), "less than or equal to 999"),
        (lambda: Job.status == "nonsense", "Job.status: 'nonsense'"),
        (attribute_of(Job.created_by).remove, "Job.created_by is required, .* set it instead"),
        (Job.limits["memory_mb"].remove, r"Job.limits\['memory_mb'\] is required"),
        (lambda: Job.queue.append("x"), "Job.queue is not a list"),
        (lambda: Job.job_config == 1e300, r"Job.job_config: 1E\+300 is outside"),
        (Job.status.is_in, "1 to 100 values"),
        (lambda: Job.queue.contains(3), "Job.queue must be compared with a string, not 3"),
        (lambda: Job.limits["nothing"], "has no field 'nothing'; it has memory_mb, note"),
        (lambda: Job.priority["x"], "cannot be indexed with 'x'"),
        (lambda: attribute_of(JobMetric.job_id) == "1", "exists only in the key"),
        (Job.key, r"Job.key\(job_id\) requires job_id"),
        (lambda: Job.key(job_id=None), "Job.job_id: None"),
        (lambda: Job.by_queue(queue=None), "None selects nothing, because an item without a value has no such key"),
        (lambda: Job.key(job_id="1", color="red"), "has no field 'color'"),
        (lambda: JobMetric.key(job_id="1", timestamp="2025-01-01"), "from left to right"),
        (lambda: JobMetric.by_name(metric_name="x", timestamp="yesterday"), "JobMetric.timestamp: 'yesterday'"),
    ],
)
def test_wrong_values_are_refused_where_they_are_given(wrong: object, message: str) -> None:
    assert callable(wrong)
    with pytest.raises(ValueRefusedError, match=message):
        wrong()
