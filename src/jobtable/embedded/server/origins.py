"""What a browser is told about requests of the pages of other sites (CORS): that they may all do what they ask for.

That is what DynamoDB says. It is safe only where requests must be signed: a page has no key but one that it was given.
"""

from __future__ import annotations

from jobtable.embedded.server.http1 import HttpRequest, HttpResponse

_TWO_DAYS_SECONDS = 172_800
_EXPOSED = "x-amzn-RequestId,x-amzn-ErrorType,x-amz-request-id,x-amz-id-2,x-amzn-ErrorMessage,Date"


def is_from_page(request: HttpRequest) -> bool:
    """Whether a browser sent the request for a page of some web site."""
    return request.headers.get("origin", "").startswith("http")


def is_question(request: HttpRequest) -> bool:
    """Whether a browser asks, before it sends a page's request, whether it may."""
    return request.method == "OPTIONS" and "origin" in request.headers


def with_allowance(response: HttpResponse, request: HttpRequest) -> HttpResponse:
    """The response to a request of a page, which the browser then lets the page read."""
    allowed = [("Access-Control-Allow-Origin", "*"), ("Access-Control-Expose-Headers", _EXPOSED)]
    if is_question(request):
        allowed.append(("Access-Control-Max-Age", str(_TWO_DAYS_SECONDS)))
        for what in ("Method", "Headers"):
            asked = request.headers.get(f"access-control-request-{what.lower()}")
            if asked is not None:
                allowed.append((f"Access-Control-Allow-{what.rstrip('s')}s", asked))
    return HttpResponse(response.status, (*response.headers, *allowed), response.body)
