"""What the model uses of pydantic's internals; tests/model/test_pydantic_internals.py fails when they change."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pydantic import BaseModel

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)

__all__ = [
    "COLLECTING_MODULE",
    "ModelMetaclass",
    "is_collecting_fields",
    "put_extra",
    "put_fields_set",
    "put_private",
    "put_values",
]

COLLECTING_MODULE = "pydantic._internal._fields"
"""Where pydantic collects the fields of a class."""

_SLOTS = ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
put_values, put_fields_set, put_extra, put_private = (vars(BaseModel)[slot].__set__ for slot in _SLOTS)
"""Set the four attributes that an instance of a model consists of: an instance made so is not validated."""


def is_collecting_fields() -> bool:
    """Return whether pydantic, as it makes a class, asks the descriptor that calls this for its value."""
    asking = sys._getframe(2)  # the caller of the descriptor's `__get__`
    return asking.f_globals.get("__name__") == COLLECTING_MODULE
