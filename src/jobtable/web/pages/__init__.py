"""The web pages: one module a group of pages."""

from __future__ import annotations

from fastapi import APIRouter

from jobtable.web.pages import jobs, login, overview, queues
from jobtable.web.pages.frame import error_page

__all__ = ["error_page", "pages_router"]

_GROUPS = (login, overview, jobs, queues)


def pages_router() -> APIRouter:
    """All pages."""
    whole = APIRouter(include_in_schema=False)
    for group in _GROUPS:
        whole.include_router(group.router)
    return whole
