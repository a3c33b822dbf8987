"""The files of the pages: those of jobtable, of each system, and those that other packages carry."""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from importlib import resources
from pathlib import Path

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from jobtable.errors import DefinitionError
from jobtable.system import declared
from jobtable.web.guard import ANYONE, PageRoute, allow
from jobtable.web.problems import Refusal

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_FOREVER = "public, max-age=31536000, immutable"
_IN_OTHER_PACKAGES = {
    "plotly.min.js": ("plotly", "package_data"),
    "swagger-ui-bundle.js": ("fastapi_offline", "static"),
    "swagger-ui.css": ("fastapi_offline", "static"),
}


@lru_cache
def static_files() -> dict[str, Path]:
    """Return the path of every served file by its name, which begins with the system's name for a system's files."""
    found = {name: _folder(*place) / name for name, place in _IN_OTHER_PACKAGES.items()} | _files_in("jobtable.web")
    for system, package in declared("web"):
        found |= {f"{system.name}/{name}": path for name, path in _files_in(package).items()}
    return found


def _folder(package: str, name: str) -> Path:
    return Path(str(resources.files(package) / name))


def _files_in(package: str) -> dict[str, Path]:
    folder = _folder(package, "static")
    return {path.name: path for path in folder.iterdir() if path.is_file()} if folder.is_dir() else {}


@lru_cache
def version() -> str:
    """Return a version that changes with any of the files. They share it, so modules find each other by name."""
    digest = hashlib.sha256()
    for name, path in sorted(static_files().items()):
        digest.update(name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def static_url(name: str) -> str:
    """Return the address of a file. It changes with the files, so browsers may keep what they load."""
    if name not in static_files():
        raise DefinitionError(f"static file {name} does not exist")
    return f"/static/{version()}/{name}"


class _ListedFiles(StaticFiles):
    def lookup_path(self, path: str) -> tuple[str, os.stat_result | None]:
        file = static_files().get(path)
        return ("", None) if file is None else (str(file), file.stat())


class _Compressed(Response):
    """A response that is compressed for browsers that accept it."""

    def __init__(self, response: Response) -> None:
        super().__init__()
        self._app = GZipMiddleware(response, minimum_size=1, compresslevel=6)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


_FILES = _ListedFiles()


@router.get("/static/{asked}/{name:path}")
@allow(ANYONE)
async def get_static_file(request: Request, asked: str, name: str) -> Response:
    """Return a file of the pages."""
    try:
        response = await _FILES.get_response(name, request.scope)
    except HTTPException as error:
        raise Refusal(404, f"static file {name[:100]!r} does not exist") from error
    response.headers["Cache-Control"] = _FOREVER if asked == version() else "no-cache"
    return _Compressed(response)
