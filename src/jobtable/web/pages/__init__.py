"""The web pages: one module a group of pages."""

from __future__ import annotations

from fastapi import FastAPI

from jobtable.web.pages import (
    comparison,
    conversations,
    executions,
    jobs,
    journeys,
    login,
    overview,
    queues,
    receipts,
    sweeps,
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
