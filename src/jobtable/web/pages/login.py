"""Logging in with a token, and logging out."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool

from jobtable.web.form_fields import read_form
from jobtable.web.guard import ANYONE, COOKIE, READ, PageRoute, allow
from jobtable.web.pages.frame import render

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_LONGEST_FORM = 64 * 1024
"""More than the longest address to return to. The caller is still unknown, so no more is read into memory."""


@router.get("/login")
@allow(ANYONE)
def show_login(request: Request, next: str = "/") -> Response:  # noqa: A002 - the name in the address
    return render(request, "login.html", title="Log in", next=_own(next), problem=None)


@router.post("/login")
@allow(ANYONE)
async def log_in(request: Request) -> Response:
    """Store a valid token in a cookie that scripts cannot read."""
    guard = request.app.state.guard
    guard.count_address(request)
    form = await read_form(request, _LONGEST_FORM)
    token, target = form.get("token", [""])[0].strip(), _own(form.get("next", ["/"])[0])
    record = await run_in_threadpool(request.app.state.tokens.find_valid, token)
    if record is None:
        return _refuse(request, 401, target, "This token is unknown, expired or revoked.")
    if record.role not in READ.roles:
        return _refuse(
            request,
            403,
            target,
            f"Tokens with the role {record.role} cannot open pages; use one with the role read or full.",
        )
    response = Response(status_code=303, headers={"Location": target})
    response.set_cookie(COOKIE, token, httponly=True, samesite="strict", secure=request.url.scheme == "https")
    return response


def _refuse(request: Request, status: int, target: str, problem: str) -> Response:
    return render(request, "login.html", title="Log in", status=status, next=target, problem=problem)


@router.post("/logout")
@allow(ANYONE)
def log_out() -> Response:
    response = Response(status_code=303, headers={"Location": "/login"})
    response.delete_cookie(COOKIE)
    return response


def _own(address: str) -> str:
    """Return an address on this server, or the overview instead of any other."""
    is_own = address.startswith("/") and not address.startswith(("//", "/\\"))
    return address if is_own and address.isascii() and address.isprintable() else "/"
