"""Every access pattern, on every backend: the right items in the right order, without a scan, at the same cost."""

from __future__ import annotations

import pytest

from jobtable import reference
from jobtable.store import Store
from tests.access_patterns import RecordingBackend, World, measurement

WORLDS = measurement.worlds()


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_every_question_gets_its_answer(world: World, each_store: Store) -> None:
    world.create(each_store)
    costs = measurement.read_units(world)
    recorder = RecordingBackend(each_store.backend)
    store = Store(recorder, prefix=each_store.prefix)
    for name, question in world.questions.items():
        with store.capacity.measure() as spent:
            assert list(question.ask(store)) == question.answer, name
        assert sum(units.read for units in spent.values()) == costs[name] > 0, name
    assert "Scan" not in recorder.operations


def test_every_access_pattern_is_asked() -> None:
    asked = [name for world in WORLDS for name in world.questions]
    registered = [(reference.system_of(pattern.module), pattern.title) for pattern in reference.access_patterns()]
    assert sorted(asked) == sorted(registered)


def test_the_page_of_access_patterns_is_current() -> None:
    assert measurement.PAGE.read_text() == measurement.render(), "run `make reference`"


def test_the_page_of_entities_is_current() -> None:
    page = measurement.PAGE.with_name("entities.md")
    assert page.read_text() == reference.render_page(), "run `make reference`"
