"""Objects, handed out so that a browser never runs what is in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, BinaryIO
from urllib.parse import quote

from fastapi import Query, Request, Response
from fastapi.responses import StreamingResponse

from jobtable.objects import ListedObject, content_type, key_parts
from jobtable.objects.store import CHUNK_SIZE, chunks
from jobtable.web.api.parts import api_router
from jobtable.web.dependencies import TheObjects, path_id
from jobtable.web.guard import READ, allow
from jobtable.web.problems import Refused

router = api_router("objects")

_SHOWN = {"image/png", "image/jpeg", "image/gif", "image/webp", "text/plain", "text/csv", "application/json"}
"""What a browser may show by itself; everything else it saves. SVG and HTML can hold scripts, and so can PDF."""
_AS_TEXT = {"text/markdown", "application/jsonl", "application/yaml"}
_LOCKED_IN = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; sandbox"
_RANGE = re.compile(r"bytes=(?=[^-]|-.)(?P<first>\d{0,18})-(?P<last>\d{0,18})")
"""One range. Who asks for several, or for what is none, gets the whole object, as HTTP allows."""
_BYTES: dict[str, Any] = {"content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}


@router.head("/objects/{key:path}", include_in_schema=False)
@router.get(
    "/objects/{key:path}",
    response_class=StreamingResponse,
    responses={
        200: _BYTES,
        206: {"description": "The part that `Range` asks for.", **_BYTES},
        304: {"description": "It is still the one whose `ETag` is sent as `If-None-Match`."},
        416: {"description": "`Range` begins behind the end."},
    },
)
@allow(READ)
def get_object(
    key: Annotated[str, path_id("jobs/3f6c/log/1.txt")],
    request: Request,
    objects: TheObjects,
    download: Annotated[bool, Query(description="Let the browser save it, whatever it is.")] = False,
) -> Response:
    """An object's bytes, or with `Range` some of them. What could be active in a browser comes as a download, and
    nothing may run in it."""
    found = objects.describe(key)
    headers = _headers(found, download)
    # Several may be named, and what stands between may have made them weak, which does not matter here.
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
    told = content_type(found.key)
    is_shown = not download and (told in _SHOWN or told in _AS_TEXT)
    name = quote(key_parts(found.key)[-1], safe="")
    return {
        "Accept-Ranges": "bytes",
        "Cache-Control": "private, max-age=60",
        "Content-Disposition": f"{'inline' if is_shown else 'attachment'}; filename*=UTF-8''{name}",
        "Content-Security-Policy": _LOCKED_IN,
        "Content-Type": "text/plain; charset=utf-8" if told in _AS_TEXT | {"text/plain", "text/csv"} else told,
        "ETag": f'"{found.size:x}-{found.modified_at.timestamp():.6f}"',
        "X-Content-Type-Options": "nosniff",
    }


def _part_asked_for(request: Request, size: int, etag: str) -> range | None:
    """The part that the request asks for, or None where it gets all; Refused where there is no such part."""
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
        raise Refused(416, f"the object has only {size} bytes", {"Content-Range": f"bytes */{size}"})
    return part


def chunks_of(stream: BinaryIO, part: range | None = None) -> Iterator[bytes]:
    """A stream, or a part of it, in pieces; it is closed at its end."""
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
    """Go on behind so many bytes; what comes from another machine can only be read."""
    if stream.seekable():
        stream.seek(count)
        return
    while count and (skipped := stream.read(min(count, CHUNK_SIZE))):
        count -= len(skipped)
