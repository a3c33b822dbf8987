"""The files that pages are made of: the package's own, and plotly.js as its package carries it."""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import resources

from fastapi import APIRouter, Request, Response

from jobtable.errors import DefinitionError
from jobtable.system import declared
from jobtable.web.guard import ANYONE, PageRoute, allow
from jobtable.web.problems import Refused

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_FOREVER = "public, max-age=31536000, immutable"
_PLACES = {"plotly.min.js": ("plotly", "package_data")}
"""Files that other packages carry."""


@dataclass(frozen=True)
class StaticFile:
    """A file in memory."""

    content: bytes
    media_type: str

    @cached_property
    def compressed(self) -> bytes:
        """The content as most browsers want it."""
        return gzip.compress(self.content, 6, mtime=0)


@lru_cache
def static_files() -> dict[str, StaticFile]:
    """Every file that is served, by name; those of a system are under its name. What is not here does not exist."""
    found = {name: _read(name, *place) for name, place in _PLACES.items()} | _in_package("jobtable.web")
    for system, package in declared("web"):
        found |= {f"{system.name}/{name}": file for name, file in _in_package(package).items()}
    return found


def _in_package(package: str) -> dict[str, StaticFile]:
    folder = resources.files(package) / "static"
    names = [file.name for file in folder.iterdir() if file.is_file()] if folder.is_dir() else []
    return {name: _read(name, package, "static") for name in names}


def _read(name: str, package: str, folder: str) -> StaticFile:
    content = (resources.files(package) / folder / name).read_bytes()
    media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return StaticFile(content, media_type)


@lru_cache
def version() -> str:
    """What changes with any of the files. All have one, so that modules find each other by their names."""
    digest = hashlib.sha256()
    for name, file in sorted(static_files().items()):
        digest.update(name.encode() + hashlib.sha256(file.content).digest())
    return digest.hexdigest()[:16]


def static_url(name: str) -> str:
    """The address of a file, which changes with its content, so that browsers may keep it for good."""
    if name not in static_files():
        raise DefinitionError(f"there is no file {name} to serve")
    return f"/static/{version()}/{name}"


@router.get("/static/{asked}/{name:path}")
@allow(ANYONE)
def get_static_file(request: Request, asked: str, name: str) -> Response:
    """One file of the pages."""
    file = static_files().get(name)
    if file is None:
        raise Refused(404, f"there is no file {name[:100]!r}")
    headers = {"Vary": "Accept-Encoding", "Cache-Control": _FOREVER if asked == version() else "no-cache"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.compressed, media_type=file.media_type, headers=headers | {"Content-Encoding": "gzip"})
    return Response(file.content, media_type=file.media_type, headers=headers)
