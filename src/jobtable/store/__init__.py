"""Typed verbs over a backend: get, find, add, put, update, delete, query, batch, transaction."""

from jobtable.store.backend import AttributeValue, Backend, Item, Request, Response
from jobtable.store.capacity import CapacityMeter, Units
from jobtable.store.changes import Change, Feed
from jobtable.store.collections import Undeclared
from jobtable.store.queries import Page, Query
from jobtable.store.retries import Backoff, TryAgain
from jobtable.store.store import Store
from jobtable.store.transactions import Failure, Transaction

__all__ = [
    "AttributeValue",
    "Backend",
    "Backoff",
    "CapacityMeter",
    "Change",
    "Failure",
    "Feed",
    "Item",
    "Page",
    "Query",
    "Request",
    "Response",
    "Store",
    "Transaction",
    "TryAgain",
    "Undeclared",
    "Units",
]
