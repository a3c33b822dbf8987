"""The frame of all pages: templates, navigation, and rendering."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from datetime import datetime
from importlib.resources import files
from itertools import islice
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse
from jinja2 import BaseLoader, ChoiceLoader, Environment, PackageLoader, PrefixLoader, StrictUndefined

import jobtable
from jobtable.access.entities import Role
from jobtable.assist.prices import rough_dollars
from jobtable.clock import wall_time
from jobtable.errors import ObjectNotFoundError, ObjectStoreError, ValueRefusedError
from jobtable.objects import ObjectStore, content_type
from jobtable.system import NavigationEntry, declared
from jobtable.web import formats
from jobtable.web.guard import PageRoute
from jobtable.web.problems import Problem
from jobtable.web.static_files import static_url

_NAVIGATION = (
    NavigationEntry("/", "Overview", "overview"),
    NavigationEntry("/inbox", "Inbox", "inbox"),
    NavigationEntry("/jobs", "Jobs", "jobs", also=("/submit", "/compare")),
    NavigationEntry("/queues", "Queues & workers", "queues", also=("/workers",)),
    NavigationEntry("/workflows", "Workflows", "workflows"),
    NavigationEntry("/assist", "Assistants", "assist"),
)
_NAVIGATION_END = (
    NavigationEntry("/tables", "Tables", "tables"),
    NavigationEntry("/tokens", "Tokens", "key", is_for_writers=True),
)
_SHOWN_BY_BROWSERS = {"image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml"}
_MOST_ASKED = 20
"""How many objects of a page are looked up; a page shows a few."""


def navigation() -> list[NavigationEntry]:
    """Return the navigation: the core's pages, with those of the systems in between."""
    return [*_NAVIGATION, *(entry for _, entries in declared("navigation") for entry in entries), *_NAVIGATION_END]


def _templates_of_systems() -> dict[str, BaseLoader]:
    """Return a loader for each system with templates, by name: a page renders `evals/eval.html`."""
    packages = {system.name: package for system, package in declared("web")}
    return {
        name: PackageLoader(package) for name, package in packages.items() if (files(package) / "templates").is_dir()
    }


def _environment() -> Environment:
    environment = Environment(
        loader=ChoiceLoader([PackageLoader("jobtable.web"), PrefixLoader(_templates_of_systems())]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        ago=formats.ago,
        ahead=formats.ahead,
        bytes=formats.bytes_text,
        clock_time=formats.clock_time,
        dollars=rough_dollars,
        duration=formats.duration_text,
        moment=formats.minute,
        money=formats.money,
        number=formats.number,
        object_address=formats.object_address,
        pretty=formats.pretty,
        rough=formats.rough,
        segment=formats.segment,
        setting=formats.setting_text,
        shell=shlex.quote,
    )
    environment.globals.update(
        navigation=navigation(),
        icons_of_systems={name: drawing for _, icons in declared("icons") for name, drawing in icons.items()},
        query=formats.query,
        static_url=static_url,
        version=jobtable.__version__,
        Role=Role,
    )
    return environment


ENVIRONMENT = _environment()


def page_router() -> APIRouter:
    """Return a router for pages; mark each of their functions with @allow(...)."""
    return APIRouter(route_class=PageRoute, include_in_schema=False)


def render(request: Request, template: str, *, title: str, status: int = 200, **values: Any) -> Response:
    """Return a page. `title` is the title of the browser's tab; `values` are the template's own."""
    caller = getattr(request.state, "caller", None)
    page = ENVIRONMENT.get_template(template).render(
        title=title,
        now=wall_time(request.app.state.services.store.clock),
        path=request.url.path,
        caller=caller,
        may_write=caller is not None and caller.role is Role.FULL,
        demands_token=request.app.state.guard.demands_token,
        inbox_count="" if caller is None else request.app.state.waiting.read(),
        **values,
    )
    return HTMLResponse(page, status)


def render_fragment(template: str, *, now: datetime, **values: Any) -> str:
    """Return a part of a page."""
    return ENVIRONMENT.get_template(template).render(now=now, **values)


def error_page(request: Request, problem: Problem) -> Response:
    """Return a problem as a page, or a redirect to the login if a valid token is missing."""
    if problem.status == 401:
        # The address as it was requested: still encoded, and with its query.
        asked = request.scope["raw_path"].decode() + (f"?{request.url.query}" if request.url.query else "")
        return Response(status_code=303, headers={"Location": "/login" + formats.query(next=asked)})
    here = request.url.path
    has_query = bool(request.url.query)  # then the same page without it may work
    holders = (entry for entry in navigation() if entry.holds(here) and (has_query or entry.path != here))
    nearest = next(holders, _NAVIGATION[0])
    return render(request, "error.html", title=problem.title, status=problem.status, problem=problem, nearest=nearest)


def picture_address(key: str) -> str | None:
    """Return the address of an object that browsers show as a picture, else None. Scripts in an SVG do not run."""
    return formats.object_address(key) if content_type(key) in _SHOWN_BY_BROWSERS else None


def find_gone(objects: ObjectStore, keys: Iterable[str]) -> set[str]:
    """Return the keys of missing objects; if object storage does not answer, none counts as missing."""
    gone = set()
    for key in islice(dict.fromkeys(keys), _MOST_ASKED):
        try:
            objects.describe(key)
        except (ObjectNotFoundError, ValueRefusedError):  # the latter: another program's key, which no object can have
            gone.add(key)
        except ObjectStoreError:  # the rest of the page is still useful, and asking on would delay it
            break
    return gone
