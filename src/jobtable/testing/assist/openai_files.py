"""OpenAI's files: uploaded by clients, or written by batches."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

from jobtable.testing.assist.openai_refusals import Refusal, missing
from jobtable.testing.assist.scripted_service import Request

_PURPOSES = ("assistants", "batch", "fine-tune", "vision", "user_data", "evals")


class Files:
    """The files of the service. Its callers hold the lock."""

    def __init__(self) -> None:
        self._described: dict[str, dict[str, Any]] = {}
        self._contents: dict[str, bytes] = {}

    def add(self, content: bytes, name: str, purpose: str) -> dict[str, Any]:
        """Keep a file; return its description."""
        id_ = f"file-{len(self._described) + 1:06d}"
        self._contents[id_] = content
        self._described[id_] = {
            "id": id_,
            "object": "file",
            "bytes": len(content),
            "created_at": int(time.time()),
            "filename": name,
            "purpose": purpose,
            "status": "processed",
        }
        return self._described[id_]

    def upload(self, request: Request) -> dict[str, Any]:
        """Keep the file in a form."""
        content, name, purpose = _uploaded(request)
        return self.add(content, name, purpose)

    def find(self, id_: str) -> bytes | None:
        return self._contents.get(id_)

    def content(self, id_: str) -> bytes:
        """Return what a file holds; Refusal if it does not exist."""
        self.describe(id_)
        return self._contents[id_]

    def describe(self, id_: str) -> dict[str, Any]:
        if id_ not in self._contents:
            raise Refusal(f"No such File object: {id_}", param="id", status=404)
        return self._described[id_]

    def delete(self, id_: str) -> dict[str, Any]:
        self.describe(id_)
        del self._contents[id_]
        return {"id": id_, "object": "file", "deleted": True}

    def newest_first(self, purpose: str | None) -> list[dict[str, Any]]:
        kept = [each for id_, each in self._described.items() if id_ in self._contents]
        return [each for each in reversed(kept) if purpose in (None, each["purpose"])]


def fingerprint_of(request: Request) -> bytes:
    """Return what identifies an upload: each sending draws another boundary."""
    content, name, purpose = _uploaded(request)
    return b"\0".join((request.path.encode(), name.encode(), purpose.encode(), content))


def _uploaded(request: Request) -> tuple[bytes, str, str]:
    fields = dict(_fields(request))
    if "file" not in fields:
        raise missing("file")
    purpose = fields.get("purpose", ("", b""))[1].decode()
    if purpose not in _PURPOSES:
        raise Refusal(f"'{purpose}' is not one of {list(_PURPOSES)} - 'purpose'", param="purpose")
    name, content = fields["file"]
    return content, name, purpose


def _fields(request: Request) -> Iterator[tuple[str, tuple[str, bytes]]]:
    """Yield the fields of a form: the name, the name of the file, and the content."""
    kind = request.headers.get("content-type", "")
    boundary = re.search(r'boundary="?([^";]+)', kind)
    if not kind.startswith("multipart/form-data") or boundary is None:
        raise Refusal("Could not parse multipart form")
    for part in (b"\r\n" + request.body).split(b"\r\n--" + boundary[1].encode())[1:-1]:
        head, _, content = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        names = dict(re.findall(r'(\w+)="([^"]*)"', head.decode()))
        yield names["name"], (names.get("filename", ""), content)
