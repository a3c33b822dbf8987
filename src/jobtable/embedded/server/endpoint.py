"""Several APIs at one address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from jobtable.embedded.server.http1 import HttpRequest, HttpResponse


class Service(Protocol):
    """One API: a protocol of AWS over whatever executes its operations."""

    def handles(self, request: HttpRequest) -> bool:
        """Return whether the request is one for this API."""
        ...

    def respond(self, request: HttpRequest) -> HttpResponse:
        """Return the response to a request; never raises."""
        ...


class Endpoint:
    """Passes each request to the first service that handles it; the last one answers the rest."""

    def __init__(self, services: Sequence[Service]) -> None:
        self._services = services

    def respond(self, request: HttpRequest) -> HttpResponse:
        """Return the response to one request."""
        *others, last = self._services
        chosen = next((service for service in others if service.handles(request)), last)
        return chosen.respond(request)
