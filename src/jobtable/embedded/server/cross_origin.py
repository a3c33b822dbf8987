"""Requests that pages of other sites send through a browser (CORS)."""

from __future__ import annotations

from jobtable.embedded.server.http1 import HttpRequest, HttpResponse

_TWO_DAYS_SECONDS = 172_800
_EXPOSED = "x-amzn-RequestId,x-amzn-ErrorType,x-amz-request-id,x-amz-id-2,x-amzn-ErrorMessage,Date"


def is_question(request: HttpRequest) -> bool:
    """Whether a browser asks if it may send a page's request."""
    return request.method == "OPTIONS" and "origin" in request.headers


def with_allowance(response: HttpResponse, request: HttpRequest) -> HttpResponse:
    """Return the response with the headers that let the page read it."""
    allowed = [("Access-Control-Allow-Origin", "*"), ("Access-Control-Expose-Headers", _EXPOSED)]
    if is_question(request):
        allowed.append(("Access-Control-Max-Age", str(_TWO_DAYS_SECONDS)))
        for what in ("Method", "Headers"):
            asked = request.headers.get(f"access-control-request-{what.lower()}")
            if asked is not None:
                allowed.append((f"Access-Control-Allow-{what.rstrip('s')}s", asked))
    return HttpResponse(response.status, (*response.headers, *allowed), response.body)
