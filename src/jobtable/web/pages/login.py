"""Logging in with a token, and out again."""

from __future__ import annotations

from urllib.parse import parse_qs

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool

from jobtable.web.guard import ANYONE, COOKIE, READ, PageRoute, allow
from jobtable.web.pages.frame import render
from jobtable.web.problems import Refused

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_LONGEST_FORM = 64 * 1024
"""More than the longest address that it may lead to. Nobody is known yet, so no more is taken into memory."""


@router.get("/login")
@allow(ANYONE)
def show_login(request: Request, next: str = "/") -> Response:  # noqa: A002 - the name in the address
    """The form for a token."""
    return render(request, "login.html", title="Log in", next=_own(next), problem=None)


@router.post("/login")
@allow(ANYONE)
async def log_in(request: Request) -> Response:
    """Keep a valid token in a cookie that no script can read."""
    guard = request.app.state.guard
    guard.count_address(request)
    form = parse_qs((await _read_form(request)).decode("latin-1"))
    token, target = form.get("token", [""])[0].strip(), _own(form.get("next", ["/"])[0])
    record = await run_in_threadpool(request.app.state.tokens.find_valid, token)
    if record is None:
        return _refuse(request, 401, target, "This token is not known, has expired, or was revoked.")
    if record.role not in READ.roles:
        return _refuse(
            request, 403, target, f"A token of the role {record.role} opens no pages: take one that may read."
        )
    response = Response(status_code=303, headers={"Location": target})
    response.set_cookie(COOKIE, token, httponly=True, samesite="strict", secure=request.url.scheme == "https")
    return response


async def _read_form(request: Request) -> bytes:
    read = b""
    async for chunk in request.stream():
        read += chunk
        if len(read) > _LONGEST_FORM:
            raise Refused(413, f"a login has {_LONGEST_FORM:,} bytes at most")
    return read


def _refuse(request: Request, status: int, target: str, problem: str) -> Response:
    return render(request, "login.html", title="Log in", status=status, next=target, problem=problem)


@router.post("/logout")
@allow(ANYONE)
def log_out() -> Response:
    """Forget the token."""
    response = Response(status_code=303, headers={"Location": "/login"})
    response.delete_cookie(COOKIE)
    return response


def _own(address: str) -> str:
    """An address within this server; anything else becomes the overview."""
    is_own = address.startswith("/") and not address.startswith(("//", "/\\"))
    return address if is_own and address.isascii() and address.isprintable() else "/"
