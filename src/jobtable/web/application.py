"""The server: create_app puts it together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anyio import CapacityLimiter
from fastapi import FastAPI

import jobtable
from jobtable.access.tokens import Tokens
from jobtable.app import Services
from jobtable.errors import DefinitionError
from jobtable.settings import Settings
from jobtable.web import health, static_files
from jobtable.web.api import add_api
from jobtable.web.api.machine_executions import MOST_EXPRESS_RUNS
from jobtable.web.api.work import Recovery
from jobtable.web.events import all_topics
from jobtable.web.fastapi_internals import routes_of
from jobtable.web.guard import ANYONE, Guard, GuardedRoute, is_loopback, rule_of
from jobtable.web.headers import AnswerHeaders
from jobtable.web.health import Measured, ServerMetrics
from jobtable.web.idempotency import KeptAnswers
from jobtable.web.limits import BodyLimit, RateLimit, largest_files
from jobtable.web.live import LiveFeed
from jobtable.web.origins import OriginCheck
from jobtable.web.pages import add_pages, error_page
from jobtable.web.pages.overview import overview_event
from jobtable.web.problems import handle_errors
from jobtable.web.strictness import EncodedSlashes
from jobtable.web.uploads import MOST_AT_ONCE
from jobtable.web.waiting_count import WaitingCount


def create_app(services: Services, settings: Settings) -> FastAPI:
    """Return the whole server over these services as an ASGI app. The caller closes the services.

    Requests need a token if the settings demand it, and always if other machines can reach the server.
    """
    store = services.store
    services.prepare_all()
    tables = [table for topics in all_topics() for table in topics.tables]
    feed = LiveFeed(store, tables, {"overview": lambda: overview_event(services)})

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with feed.running():
            yield

    app = FastAPI(
        title="Jobtable",
        version=jobtable.__version__,
        openapi_url=None,  # served by the API itself, with access rules, and shown at /docs
        lifespan=lifespan,
    )
    demands_token = settings.require_token or not is_loopback(settings.host)
    rate = RateLimit(settings.requests_per_minute, store.clock)
    app.state.services = services
    app.state.settings = settings
    app.state.feed = feed
    app.state.tokens = Tokens(store, clock=store.clock)
    app.state.answers = KeptAnswers(store)
    app.state.guard = Guard(app.state.tokens, demands_token=demands_token, rate=rate)
    app.state.metrics = ServerMetrics(store, services.jobs.queries, services.assist, lambda: feed.viewers)
    app.state.uploads = CapacityLimiter(MOST_AT_ONCE)
    app.state.express_runs = CapacityLimiter(MOST_EXPRESS_RUNS)
    app.state.waiting = WaitingCount(services)
    app.state.recovery = Recovery(services.engine)
    # Routes are added as they are, here and below: include_router would analyse each again, which took half a second.
    for router in (health.router, static_files.router):
        app.router.routes.extend(router.routes)
    add_api(app)
    add_pages(app)
    handle_errors(app, error_page)
    # A request meets the middleware that is added last first.
    files = largest_files(app, settings.most_upload_bytes)
    app.add_middleware(BodyLimit, most_bytes=settings.most_request_bytes, files=files)
    app.add_middleware(OriginCheck, listens_on=settings.host, names=settings.host_names)
    app.add_middleware(Measured, metrics=app.state.metrics)
    app.add_middleware(AnswerHeaders)
    app.add_middleware(EncodedSlashes)
    refuse_routes_without_rule(app)
    return app


def refuse_routes_without_rule(app: FastAPI) -> None:
    """Raise DefinitionError for a route that has no access rule or does not check it, however it came into the app."""
    for route in routes_of(app):
        rule = rule_of(route.endpoint)
        if rule is None:
            raise DefinitionError(f"route {route.path} has no access rule; add @allow(...)")
        if rule is not ANYONE and not isinstance(route.original_route, GuardedRoute):
            raise DefinitionError(
                f"route {route.path} does not check its access rule; create its router with route_class=GuardedRoute"
            )
