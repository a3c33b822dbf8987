"""The server: a REST API and web pages over the services. The names here are what pages and routes of a system need."""

from typing import TYPE_CHECKING

from jobtable.lazy_exports import offer

if TYPE_CHECKING:
    from jobtable.web.api.route_parts import api_router
    from jobtable.web.events import LiveTopics
    from jobtable.web.guard import ANYONE, READ, WORK, WRITE, allow
    from jobtable.web.injection import AllServices, PageOf, Paging, TheJobs, TheObjects, TheStore, service
    from jobtable.web.pages.frame import page_router, render

__all__ = [
    "ANYONE",
    "READ",
    "WORK",
    "WRITE",
    "AllServices",
    "LiveTopics",
    "PageOf",
    "Paging",
    "TheJobs",
    "TheObjects",
    "TheStore",
    "allow",
    "api_router",
    "page_router",
    "render",
    "service",
]

if not TYPE_CHECKING:  # the modules need the extra `web`
    __getattr__, __dir__ = offer(__name__, __all__, ["guard", "injection", "events", "api.route_parts", "pages.frame"])
