"""The properties of the model, over every entity of the systems, and over those that strangers may declare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.declared import entity_classes
from tests.every_entity import ENTITIES
from tests.model import test_properties

from jobtable.model import Entity
from jobtable.testing.strategies import entities

_PROPERTIES = [test for name, test in vars(test_properties).items() if name.startswith("test_")]
_NAMES = [f"{system}-{cls.__name__}" for system, cls in ENTITIES]
_RELAXED = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


def _of_every_entity(test: Callable[..., Any]) -> Any:
    """Return a test of its own: Hypothesis nests the settings of a test once for each of its parameters."""

    @pytest.mark.parametrize("cls", [cls for _, cls in ENTITIES], ids=_NAMES)
    @settings(max_examples=3, database=None, suppress_health_check=_RELAXED)
    @given(data=st.data())
    def holds(cls: type[Entity], data: st.DataObject) -> None:
        test.hypothesis.inner_test(cls, data)  # type: ignore[attr-defined]  # Hypothesis keeps what it decorates there

    return holds


for _property in _PROPERTIES:
    globals()[_property.__name__] = _of_every_entity(_property)


@pytest.mark.parametrize("test", _PROPERTIES, ids=lambda test: test.__name__.removeprefix("test_"))
@settings(max_examples=40, suppress_health_check=_RELAXED)
@given(data=st.data())
def test_it_holds_for_entities_that_strangers_declare(test: Callable[..., Any], data: st.DataObject) -> None:
    test.hypothesis.inner_test(data.draw(entity_classes()), data)  # type: ignore[attr-defined]


@settings(max_examples=40, suppress_health_check=_RELAXED)
@given(data=st.data())
def test_their_items_are_the_same_when_they_are_made_again(data: st.DataObject) -> None:
    cls = data.draw(entity_classes())
    entity = data.draw(entities(cls))
    assert cls.__schema__.codec.encode(entity.replace()) == cls.__schema__.codec.encode(entity)
