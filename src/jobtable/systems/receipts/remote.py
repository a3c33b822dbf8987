"""The OCR results of a server: read through its store, changed through its REST API."""

from __future__ import annotations

from dataclasses import fields

from pydantic_core import to_jsonable_python

from jobtable.jobs.engine import Jobs
from jobtable.remote.server_requests import Server, path_of
from jobtable.systems.receipts.ocr import OcrResult, OcrService, Progress, StoredResult


class ServerOcr(OcrService):
    """The OCR results of a server."""

    def __init__(self, server: Server, jobs: Jobs) -> None:
        super().__init__(jobs.store)
        self._server = server

    def store(self, result: OcrResult, progress: Progress | None = None) -> StoredResult:
        result.check()
        body = {each.name: to_jsonable_python(getattr(result, each.name)) for each in fields(result)}
        stored = StoredResult(**self._server.write("PUT", "/images", body))
        if progress:
            total = stored.written + stored.already_there + stored.removed
            progress(total, total)
        return stored

    def delete_image(self, image_id: str) -> int:
        return int(self._server.write("DELETE", path_of("images", image_id))["count"])
