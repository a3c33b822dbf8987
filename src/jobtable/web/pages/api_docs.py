"""The interactive description of the API: Swagger UI, from an installed package."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from jobtable.web.api.route_parts import PREFIX
from jobtable.web.guard import READ, PageRoute, allow
from jobtable.web.pages.frame import render

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/docs")
@allow(READ)
def show_api_docs(request: Request) -> Response:
    return render(request, "api_docs.html", title="API", description_address=f"{PREFIX}/openapi.json")
