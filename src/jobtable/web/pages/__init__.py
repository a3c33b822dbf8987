"""The web pages: one module a group of pages."""

from __future__ import annotations

from fastapi import FastAPI

from jobtable.systems.albums.web import pages as executions
from jobtable.systems.conversations.web import pages as conversations
from jobtable.systems.journeys.web import pages as journeys
from jobtable.systems.receipts.web import pages as receipts
from jobtable.systems.sweeps.web import pages as sweeps
from jobtable.web.pages import (
    comparison,
    jobs,
    login,
    overview,
    queues,
    tables,
    tokens,
)
from jobtable.web.pages.frame import error_page

__all__ = ["add_pages", "error_page"]

_GROUPS = (
    login,
    overview,
    jobs,
    comparison,
    queues,
    sweeps,
    journeys,
    conversations,
    executions,
    receipts,
    tables,
    tokens,
)


def add_pages(app: FastAPI) -> None:
    """Add every group."""
    for group in _GROUPS:
        app.router.routes.extend(group.router.routes)
