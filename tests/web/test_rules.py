"""Every route, with every role and with none, gives what its rule says."""

from __future__ import annotations

import re

import pytest
from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute, iter_route_contexts
from tests.contributions import contributions
from tests.web.conftest import Served

from jobtable.access.entities import Role
from jobtable.errors import DefinitionError
from jobtable.web.api.kept_files import find_checkpoint, get_checkpoint
from jobtable.web.api.route_parts import PREFIX
from jobtable.web.api.store import read_items
from jobtable.web.api.workers import get_held_job, list_queue_states
from jobtable.web.application import refuse_routes_without_rule
from jobtable.web.guard import ANYONE, KNOWN, READ, WORK, WRITE, GuardedRoute, allow, rule_of

_FOR_WORKERS = (
    find_checkpoint,
    get_checkpoint,
    get_held_job,
    list_queue_states,
    *(route for system in contributions("routes") for route in system.FOR_WORKERS),
)
"""A worker reads what it needs for the jobs that it holds, and nothing else."""


def test_a_route_without_a_rule_cannot_be_declared() -> None:
    router = APIRouter(route_class=GuardedRoute)

    def unguarded() -> None:
        """Says nothing of who may use it."""

    with pytest.raises(DefinitionError, match="/secrets has no access rule"):
        router.add_api_route("/secrets", unguarded)


def test_a_route_that_was_added_past_the_guard_stops_the_server(open_server: Served) -> None:
    refuse_routes_without_rule(open_server.app)
    app = type(open_server.app)()
    with pytest.raises(DefinitionError, match="has no access rule"):
        refuse_routes_without_rule(app)  # a bare app has routes of its own, for its description


def test_a_rule_that_nobody_asks_for_stops_the_server() -> None:
    app = FastAPI(openapi_url=None)

    @app.get("/secrets")
    @allow(WRITE)
    def marked() -> None:
        """Its router is a plain one."""

    with pytest.raises(DefinitionError, match="/secrets does not check its access rule; create its router with"):
        refuse_routes_without_rule(app)


def test_routes_are_analysed_when_they_are_declared_and_not_again_by_each_server(open_server: Served) -> None:
    assert all(isinstance(route, APIRoute) for route in open_server.app.routes)


def test_what_is_open_to_anyone_and_which_pages_are_for_writers_is_decided_here(open_server: Served) -> None:
    found = list(iter_route_contexts(open_server.app.routes))
    routes = [(rule_of(route.endpoint), str(route.path)) for route in found]
    assert {path for rule, path in routes if rule is ANYONE} == {
        "/healthz",
        "/login",
        "/logout",
        "/static/{asked}/{name:path}",
        f"{PREFIX}/openapi.json",
    }
    assert {path for rule, path in routes if rule is KNOWN} == {f"{PREFIX}/me"}
    pages = {
        (str(route.path), "POST" in (route.methods or ())): rule_of(route.endpoint)
        for route in found
        if not str(route.path).startswith(PREFIX) and rule_of(route.endpoint) is not ANYONE
    }
    for_writers = {"/submit", "/tokens", "/workflows/new", "/workflows/machines/{name}/definition"}
    forms = {(path, True) for path in ("/inbox", "/inbox/{task_id}")}
    not_for_readers = {page: rule for page, rule in pages.items() if rule is not READ}
    assert not_for_readers == dict.fromkeys({*((path, False) for path in for_writers), *forms}, WRITE)


def test_reading_routes_only_read_and_writing_ones_need_more(open_server: Served) -> None:
    for route in iter_route_contexts(open_server.app.routes):
        rule = rule_of(route.endpoint)
        if not str(route.path).startswith(PREFIX) or rule is ANYONE:
            continue
        # What is asked of the tables does not fit into an address, so it is posted.
        if route.endpoint in _FOR_WORKERS:
            assert rule is WORK, route.path
        elif set(route.methods or ()) <= {"GET", "HEAD"} or route.endpoint is read_items:
            is_secret = str(route.path).endswith("/tokens")
            assert rule in ((WRITE,) if is_secret else (READ, KNOWN)), route.path
        else:
            assert rule in (WRITE, WORK), route.path


def test_every_route_gives_every_role_what_its_rule_says(guarded: Served) -> None:
    clients = {role: guarded.client(role) for role in Role}
    nobody = guarded.client()
    tried = 0
    for route in iter_route_contexts(guarded.app.routes):
        rule = rule_of(route.endpoint)
        assert rule is not None, route.path
        path = re.sub(r"\{[^}]*\}", "1", str(route.path_format))
        for method in sorted(route.methods or ()):
            for role, client in [(None, nobody), *clients.items()]:
                with client.stream(method, path) as response:
                    status = response.status_code
                told = f"{method} {path} as {role}: {status}"
                if rule is ANYONE:
                    assert status not in (401, 403) or path == "/login", told
                elif role is None:
                    assert status == 401, told
                elif role in rule.roles:
                    assert status not in (401, 403), told
                else:
                    assert status == 403, told
                assert status < 500, told
                tried += 1
    assert tried > 700
