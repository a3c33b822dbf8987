"""The web pages: one module a group of pages."""

from __future__ import annotations

from fastapi import FastAPI

from jobtable.web.pages import jobs, login, overview, queues
from jobtable.web.pages.frame import error_page

__all__ = ["add_pages", "error_page"]

_GROUPS = (login, overview, jobs, queues)


def add_pages(app: FastAPI) -> None:
    """Add every group."""
    for group in _GROUPS:
        app.include_router(group.router, include_in_schema=False)
