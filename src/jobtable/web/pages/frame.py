"""The frame of all pages: the templates, what they can say, and how a page is made of one."""

from __future__ import annotations

import json
import shlex
from datetime import UTC, datetime
from decimal import Decimal
from importlib.resources import files
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse
from jinja2 import (
    BaseLoader,
    ChoiceLoader,
    Environment,
    PackageLoader,
    PrefixLoader,
    StrictUndefined,
    pass_context,
)
from jinja2.runtime import Context
from markupsafe import Markup

import jobtable
from jobtable.access.entities import Role
from jobtable.clock import wall_time
from jobtable.system import NavigationEntry, declared
from jobtable.web.durations import NOTHING, duration_text
from jobtable.web.guard import PageRoute
from jobtable.web.problems import Problem
from jobtable.web.static_files import static_url

_NAVIGATION = (
    NavigationEntry("/", "Overview", "overview"),
    NavigationEntry("/jobs", "Jobs", "jobs", also=("/submit", "/compare")),
    NavigationEntry("/queues", "Queues & workers", "queues", also=("/workers",)),
)
_NAVIGATION_END = (
    NavigationEntry("/tables", "Tables", "tables"),
    NavigationEntry("/tokens", "Tokens", "key", is_for_writers=True),
)


def navigation() -> list[NavigationEntry]:
    """The navigation: the core's pages, with those of the systems in between."""
    return [*_NAVIGATION, *(entry for _, entries in declared("navigation") for entry in entries), *_NAVIGATION_END]


_STEPS = ((60, "s", 1), (3600, "min", 60), (86400, "h", 3600), (float("inf"), "d", 86400))


@pass_context
def _ago(context: Context, moment: datetime | None) -> str:
    """A time as people say it; the exact one stands behind it, and the browser keeps it true."""
    if moment is None:
        return NOTHING
    seconds = (context["now"] - moment).total_seconds()
    said = "now" if seconds < 1 else f"{_in_one_unit(seconds)} ago"
    return Markup('<time datetime="{}" title="{}" data-ago>{}</time>').format(_exact(moment), _exact(moment), said)


@pass_context
def _ahead(context: Context, moment: datetime) -> str:
    """How far away a time is, which the browser keeps true as well."""
    seconds = (moment - context["now"]).total_seconds()
    said = "now" if seconds < 1 else f"in {_in_one_unit(seconds)}"
    return Markup('<time datetime="{}" title="{}" data-ahead>{}</time>').format(_exact(moment), _exact(moment), said)


def _in_one_unit(seconds: float) -> str:
    _, unit, size = next(step for step in _STEPS if seconds < step[0])
    return f"{int(seconds // size)} {unit}"


def _exact(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _clock_time(moment: datetime | None) -> str:
    """A time to the millisecond, for lists in which order matters."""
    if moment is None:
        return NOTHING
    exact = _exact(moment)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(exact, exact, exact[11:23])


def _moment(moment: datetime) -> str:
    """A time to the minute, for what is far away."""
    exact = _exact(moment)
    said = f"{exact[:10]} {exact[11:16]} UTC"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(exact, exact, said)


def _bytes(size: int | None) -> str:
    if size is None:
        return NOTHING
    value = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def _number(value: float | None) -> str:
    if value is None:
        return NOTHING
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def setting_text(value: Any) -> str:
    """A parameter or a result as one reads it: a text and a whole number as they are, a fraction to six digits."""
    if isinstance(value, str):
        return value
    return f"{value:.6g}" if isinstance(value, float) else json.dumps(value, ensure_ascii=False, default=str)


def _money(amount: Decimal | None) -> str:
    """An amount with its cents; one that is finer, as it is."""
    if amount is None:
        return NOTHING
    return f"{amount:.2f}" if amount == round(amount, 2) else str(amount)


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def _segment(text: object) -> str:
    """A text as one part of a path."""
    return quote(str(text), safe="")


def object_address(key: str) -> str:
    """Where an object is served. Its key holds what is encoded in it, so that is encoded once more."""
    return f"/api/v1/objects/{quote(key, safe='/')}"


def _query(**parameters: Any) -> str:
    """Parameters that are given, as the end of an address."""
    given = {name: value for name, value in parameters.items() if value not in (None, "", [])}
    return f"?{urlencode(given, doseq=True)}" if given else ""


def _templates_of_systems() -> dict[str, BaseLoader]:
    """The templates of each system that has some, by its name: a page renders `sweeps/sweep.html`."""
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
        ago=_ago,
        ahead=_ahead,
        bytes=_bytes,
        clock_time=_clock_time,
        duration=duration_text,
        moment=_moment,
        money=_money,
        number=_number,
        object_address=object_address,
        pretty=_pretty,
        segment=_segment,
        setting=setting_text,
        shell=shlex.quote,
    )
    environment.globals.update(
        navigation=navigation(),
        icons_of_systems={name: drawing for _, icons in declared("icons") for name, drawing in icons.items()},
        query=_query,
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
    """A page. `title` is that of the browser's tab; what else is given is the template's own."""
    caller = getattr(request.state, "caller", None)
    page = ENVIRONMENT.get_template(template).render(
        title=title,
        now=wall_time(request.app.state.services.store.clock),
        path=request.url.path,
        caller=caller,
        may_write=caller is not None and caller.role is Role.FULL,
        demands_token=request.app.state.guard.demands_token,
        **values,
    )
    return HTMLResponse(page, status)


def render_fragment(template: str, *, now: datetime, **values: Any) -> str:
    """A part of a page."""
    return ENVIRONMENT.get_template(template).render(now=now, **values)


def error_page(request: Request, problem: Problem) -> Response:
    """A problem as a page; without a valid token, the way to the login."""
    if problem.status == 401:
        # As it was asked for, encoded, with all that it asks.
        asked = request.scope["raw_path"].decode() + (f"?{request.url.query}" if request.url.query else "")
        address = "/login" + _query(next=asked)
        return Response(status_code=303, headers={"Location": address})
    here = request.url.path
    is_asked = bool(request.url.query)  # then the same page without it may be right
    holders = (entry for entry in navigation() if entry.holds(here) and (is_asked or entry.path != here))
    nearest = next(holders, _NAVIGATION[0])
    return render(request, "error.html", title=problem.title, status=problem.status, problem=problem, nearest=nearest)
