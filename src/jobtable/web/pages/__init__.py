"""The web pages: one module for each group."""

from __future__ import annotations

from fastapi import FastAPI

from jobtable.system import declared
from jobtable.web.pages import (
    api_docs,
    assist,
    comparison,
    durable,
    executions,
    inbox,
    jobs,
    login,
    machines,
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
    machines,
    executions,
    durable,
    assist,
    inbox,
    tables,
    tokens,
    api_docs,
)


def add_pages(app: FastAPI) -> None:
    """Add every group of pages."""
    of_systems = (group for system, paths in declared("pages") for group in system.load_all(paths))
    for group in (*_GROUPS, *of_systems):
        app.router.routes.extend(group.router.routes)
