"""What the model uses of pydantic's internals is where it was."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from pydantic import BaseModel

from jobtable.model.pydantic_internals import (
    COLLECTING_MODULE,
    ModelMetaclass,
    is_collecting_fields,
    put_extra,
    put_fields_set,
    put_private,
    put_values,
)


class Model(BaseModel):
    name: str
    _note: str | None = None


def test_the_metaclass_is_pydantics_own() -> None:
    assert sys.modules["pydantic._internal._model_construction"].ModelMetaclass is ModelMetaclass


def test_an_instance_consists_of_these_four() -> None:
    whole = Model(name="a")
    made = object.__new__(Model)
    put_values(made, {"name": "a"})
    put_fields_set(made, {"name"})
    put_extra(made, None)
    put_private(made, {"_note": None})
    assert made == whole
    assert made.model_dump() == whole.model_dump()
    assert {*Model.__slots__, "__dict__"} >= {"__dict__", "__pydantic_fields_set__", "__pydantic_extra__"}


def test_fields_are_collected_where_it_is_known() -> None:
    asked: list[bool] = []

    class Field:
        def __get__(self, instance: Any, owner: type) -> Any:
            asked.append(is_collecting_fields())
            raise AttributeError

    class Parent(BaseModel):
        name: str

    type.__setattr__(Parent, "name", Field())
    assert getattr(Parent, "name", None) is None
    assert asked == [False]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        type("Child", (Parent,), {"__annotations__": {"name": str}, "__module__": __name__})
    assert True in asked
    assert COLLECTING_MODULE in sys.modules
