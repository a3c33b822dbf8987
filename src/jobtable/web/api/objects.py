"""Objects, handed out so that a browser never runs what is in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, BinaryIO
from urllib.parse import quote

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from jobtable.objects import content_type, key_parts
from jobtable.objects.store import CHUNK_SIZE
from jobtable.web.dependencies import TheObjects, path_id
from jobtable.web.guard import READ, GuardedRoute, allow

router = APIRouter(route_class=GuardedRoute)

_SHOWN = {"image/png", "image/jpeg", "image/gif", "image/webp", "text/plain", "text/csv", "application/json"}
"""What a browser may show by itself; everything else it saves. SVG and HTML can hold scripts, and so can PDF."""
_AS_TEXT = {"text/markdown", "application/jsonl", "application/yaml"}
_LOCKED_IN = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; sandbox"


@router.get(
    "/objects/{key:path}",
    response_class=StreamingResponse,
    responses={200: {"content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}},
)
@allow(READ)
def get_object(
    key: Annotated[str, path_id("jobs/3f6c/log/1.txt")],
    objects: TheObjects,
    download: Annotated[bool, Query(description="Let the browser save it, whatever it is.")] = False,
) -> StreamingResponse:
    """An object's bytes. What could be active in a browser comes as a download, and nothing may run in it."""
    stream = objects.open(key)
    told = content_type(key)
    media_type = "text/plain; charset=utf-8" if told in _AS_TEXT | {"text/plain", "text/csv"} else told
    is_shown = not download and (told in _SHOWN or told in _AS_TEXT)
    name = quote(key_parts(key)[-1], safe="")
    headers = {
        "Content-Disposition": f"{'inline' if is_shown else 'attachment'}; filename*=UTF-8''{name}",
        "Content-Security-Policy": _LOCKED_IN,
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "private, max-age=60",
    }
    return StreamingResponse(chunks_of(stream), media_type=media_type, headers=headers)


def chunks_of(stream: BinaryIO) -> Iterator[bytes]:
    """A stream in pieces; it is closed at its end."""
    with stream:
        while chunk := stream.read(CHUNK_SIZE):
            yield chunk
