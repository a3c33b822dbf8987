"""Objects, served so that a browser never runs their content."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, BinaryIO
from urllib.parse import quote

from fastapi import Query, Request, Response
from fastapi.responses import StreamingResponse

from jobtable.objects import ListedObject, content_type, key_parts
from jobtable.objects.object_store import CHUNK_SIZE, chunks
from jobtable.web.api.route_parts import api_router
from jobtable.web.guard import READ, allow
from jobtable.web.injection import TheObjects, path_id
from jobtable.web.problems import Refusal

router = api_router("objects")

_SHOWN = {"image/png", "image/jpeg", "image/gif", "image/webp", "text/plain", "text/csv", "application/json"}
"""Types that a browser may show; it saves all others, because SVG, HTML and PDF can contain scripts."""
_AS_TEXT = {"text/markdown", "application/jsonl", "application/yaml"}
_LOCKED_IN = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; sandbox"
_RANGE = re.compile(r"bytes=(?=[^-]|-.)(?P<first>\d{0,18})-(?P<last>\d{0,18})")
"""One range. Several ranges, or an invalid one, return the whole object, as HTTP allows."""
_BYTES: dict[str, Any] = {"content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}


@router.head("/objects/{key:path}", include_in_schema=False)
@router.get(
    "/objects/{key:path}",
    response_class=StreamingResponse,
    responses={
        200: _BYTES,
        206: {"description": "The requested range.", **_BYTES},
        304: {"description": "Unchanged: `If-None-Match` contains its `ETag`."},
        416: {"description": "The range starts after the end of the object."},
    },
)
@allow(READ)
def get_object(
    key: Annotated[str, path_id("jobs/3f6c/log/1.txt")],
    request: Request,
    objects: TheObjects,
    download: Annotated[bool, Query(description="Let the browser save the object instead of showing it.")] = False,
) -> Response:
    """Return the content of an object, or the requested range of it. Types that may contain scripts are downloaded."""
    found = objects.describe(key)
    headers = _headers(found, download)
    # The header may list several tags, and a proxy may have made them weak, which does not matter here.
    if headers["ETag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    part = _part_asked_for(request, found.size, headers["ETag"])
    if part is not None:
        headers["Content-Range"] = f"bytes {part.start}-{part.stop - 1}/{found.size}"
    wanted = range(found.size) if part is None else part
    headers["Content-Length"] = str(len(wanted))
    status = 200 if part is None else 206
    if request.method == "HEAD":
        return Response(status_code=status, headers=headers)
    return StreamingResponse(chunks_of(objects.open(key), wanted), status, headers)


def _headers(found: ListedObject, download: bool) -> dict[str, str]:
    kind = content_type(found.key)
    is_shown = not download and (kind in _SHOWN or kind in _AS_TEXT)
    name = quote(key_parts(found.key)[-1], safe="")
    return {
        "Accept-Ranges": "bytes",
        "Cache-Control": "private, max-age=60",
        "Content-Disposition": f"{'inline' if is_shown else 'attachment'}; filename*=UTF-8''{name}",
        "Content-Security-Policy": _LOCKED_IN,
        "Content-Type": "text/plain; charset=utf-8" if kind in _AS_TEXT | {"text/plain", "text/csv"} else kind,
        "ETag": f'"{found.size:x}-{found.modified_at.timestamp():.6f}"',
        "X-Content-Type-Options": "nosniff",
    }


def _part_asked_for(request: Request, size: int, etag: str) -> range | None:
    """Return the requested range, or None for the whole object; raise Refusal if the range is outside it."""
    asked = _RANGE.fullmatch(request.headers.get("range", ""))
    if asked is None or request.headers.get("if-range", etag) != etag:
        return None
    first, last = asked["first"], asked["last"]
    if not first:
        part = range(max(0, size - int(last)), size)
    elif last and int(last) < int(first):
        return None
    else:
        part = range(int(first), min(int(last or size) + 1, size))
    if not part:
        raise Refusal(
            416, f"the range is outside the object, which has {size} bytes", {"Content-Range": f"bytes */{size}"}
        )
    return part


def chunks_of(stream: BinaryIO, part: range | None = None) -> Iterator[bytes]:
    """Yield a stream, or a part of it, in chunks, and close it."""
    with stream:
        if part is None:
            yield from chunks(stream)
            return
        _skip(stream, part.start)
        left = len(part)
        while left and (chunk := stream.read(min(left, CHUNK_SIZE))):
            left -= len(chunk)
            yield chunk


def _skip(stream: BinaryIO, count: int) -> None:
    """Skip bytes. A stream from another machine cannot seek."""
    if stream.seekable():
        stream.seek(count)
        return
    while count and (skipped := stream.read(min(count, CHUNK_SIZE))):
        count -= len(skipped)
