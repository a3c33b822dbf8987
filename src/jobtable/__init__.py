"""Jobtable: a typed data layer and job engine for DynamoDB, with an embedded engine that needs nothing started."""

from typing import TYPE_CHECKING

from jobtable import errors as errors  # for `except jobtable.errors.NotFoundError`
from jobtable.lazy_exports import offer

if TYPE_CHECKING:
    from jobtable.app import Services, open_jobs
    from jobtable.connection import connect
    from jobtable.model import (
        Attr,
        Attribute,
        Beside,
        Condition,
        Entity,
        Index,
        Json,
        Key,
        Name,
        OrNull,
        PackedVector,
        Part,
        Selection,
        Stored,
        Table,
        Timestamp,
        Update,
        Uuid,
        Vector,
        camel_case,
        default,
    )
    from jobtable.store import Backend, Page, Query, Store, Transaction

__version__ = "0.1.0"

__all__ = [
    "Attr",
    "Attribute",
    "Backend",
    "Beside",
    "Condition",
    "Entity",
    "Index",
    "Json",
    "Key",
    "Name",
    "OrNull",
    "PackedVector",
    "Page",
    "Part",
    "Query",
    "Selection",
    "Services",
    "Store",
    "Stored",
    "Table",
    "Timestamp",
    "Transaction",
    "Update",
    "Uuid",
    "Vector",
    "__version__",
    "camel_case",
    "connect",
    "default",
    "open_jobs",
]

if not TYPE_CHECKING:  # the command line can answer Ctrl-C before all of it is loaded
    __getattr__, __dir__ = offer(__name__, __all__, ["model", "store", "connection", "app"])
