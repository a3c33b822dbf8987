"""OpenAI's batches: requests in a file, answered a part at each look, with files of answers and of errors."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from jobtable.testing.assist.openai_answers import answer
from jobtable.testing.assist.openai_checks import chat_question, embed_question
from jobtable.testing.assist.openai_files import Files
from jobtable.testing.assist.openai_refusals import Refusal, missing
from jobtable.testing.assist.replies import Question
from jobtable.testing.assist.scripted_service import Response, Service, digest

_QUESTION_OF: Mapping[str, Callable[..., Question]] = {
    "/v1/chat/completions": chat_question,
    "/v1/embeddings": embed_question,
}
_ENDED = ("completed", "failed", "expired", "cancelled")
_MOST_PAIRS, _MOST_NAME, _MOST_VALUE = 16, 64, 512
_UNDONE = {
    "expired": ("batch_expired", "This request could not be executed before the completion window expired."),
    "cancelled": ("batch_cancelled", "This request was not executed because the batch was cancelled."),
}


@dataclass
class _Batch:
    described: dict[str, Any]
    lines: list[dict[str, Any]] = field(default_factory=list)
    answers: list[dict[str, Any]] = field(default_factory=list)
    errors: list[dict[str, Any]] = field(default_factory=list)
    polls: int = 0

    @property
    def done(self) -> int:
        return len(self.answers) + len(self.errors)

    def become(self, status: str) -> None:
        self.described["status"] = status
        if f"{status}_at" in self.described:
            self.described[f"{status}_at"] = int(time.time())


class Batches:
    """The batches of the service. Its callers hold the lock."""

    def __init__(self, service: Service, files: Files) -> None:
        self._service = service
        self._files = files
        self._batches: dict[str, _Batch] = {}

    def create(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Take a valid batch; its file is checked when somebody looks after it."""
        for name in ("input_file_id", "endpoint", "completion_window"):
            if not isinstance(body.get(name), str):
                raise missing(name)
        if body["endpoint"] not in _QUESTION_OF:
            raise Refusal(f"Invalid value: '{body['endpoint']}'.", param="endpoint", code="invalid_value")
        if body["completion_window"] != "24h":
            raise Refusal("Invalid value for 'completion_window'.", param="completion_window", code="invalid_value")
        _check_metadata(body.get("metadata") or {})
        self._files.describe(body["input_file_id"])
        described = _new_batch(f"batch_{len(self._batches) + 1:06d}", body)
        self._batches[described["id"]] = _Batch(described)
        return described

    def describe(self, id_: str) -> dict[str, Any]:
        """Return a batch after it has gone on by one step."""
        batch = self._find(id_)
        if batch.described["status"] not in _ENDED:
            self._advance(batch)
        return batch.described

    def cancel(self, id_: str) -> dict[str, Any]:
        batch = self._find(id_)
        status = batch.described["status"]
        if status in _ENDED:
            raise Refusal(f"Cannot cancel a batch with status '{status}'.", status=409)
        batch.become("cancelling")
        return batch.described

    def newest_first(self) -> list[dict[str, Any]]:
        return [each.described for each in reversed(self._batches.values())]

    def _find(self, id_: str) -> _Batch:
        if id_ not in self._batches:
            raise Refusal(f"No batch found with id '{id_}'.", status=404)
        return self._batches[id_]

    def _advance(self, batch: _Batch) -> None:
        options, status = self._service.options, batch.described["status"]
        if status == "validating" and not self._is_valid(batch):
            return
        if status == "cancelling":
            self._finish(batch, "cancelled")
        elif status == "finalizing":
            self._finish(batch, "completed")
        else:
            batch.polls += 1
            total = len(batch.lines)
            wanted = math.ceil(total * min(1.0, batch.polls / max(1, options.polls_of_batch)))
            is_expiring = options.lines_until_expiry is not None and wanted >= options.lines_until_expiry
            self._do(batch, min(wanted, options.lines_until_expiry or 0) if is_expiring else wanted)
            if is_expiring:
                self._finish(batch, "expired")
            else:
                batch.become("finalizing" if batch.done == total else "in_progress")

    def _is_valid(self, batch: _Batch) -> bool:
        """Read the lines of the input; the batch fails if one of them is invalid."""
        content = self._files.find(batch.described["input_file_id"]) or b""
        faults = list(_read_lines(content, batch))
        if not batch.lines and not faults:
            faults = [_fault(None, "empty_file", "The batch file is empty.")]
        if faults:
            batch.described["errors"] = {"object": "list", "data": faults}
            batch.become("failed")
            return False
        batch.described["request_counts"]["total"] = len(batch.lines)
        batch.become("in_progress")
        return True

    def _do(self, batch: _Batch, wanted: int) -> None:
        """Answer lines until so many are done."""
        for line in batch.lines[batch.done : wanted]:
            response = self._answer(batch, line)
            id_ = f"batch_req_{digest((batch.described['id'] + line['custom_id']).encode())}"
            content = {"status_code": response.status, "request_id": f"req_{id_}", "body": json.loads(response.body)}
            result = {"id": id_, "custom_id": line["custom_id"], "response": content, "error": None}
            (batch.answers if response.status == 200 else batch.errors).append(result)
        counts = batch.described["request_counts"]
        counts |= {"completed": len(batch.answers), "failed": len(batch.errors)}

    def _answer(self, batch: _Batch, line: Mapping[str, Any]) -> Response:
        try:
            question = _QUESTION_OF[line["url"]](line["body"], self._service.options, None)
            asked = replace(question, batch_id=batch.described["id"], custom_id=line["custom_id"])
            return answer(self._service, asked, line["body"])
        except Refusal as refusal:
            return refusal.response()

    def _finish(self, batch: _Batch, status: str) -> None:
        """End a batch: write its files, with the lines that were not done among the errors."""
        for line in batch.lines[batch.done :]:
            code, message = _UNDONE[status]
            fault = {"code": code, "message": message}
            id_ = f"batch_req_{digest((batch.described['id'] + line['custom_id']).encode())}"
            batch.errors.append({"id": id_, "custom_id": line["custom_id"], "response": None, "error": fault})
        for name, results in (("output", batch.answers), ("error", batch.errors)):
            if results:
                # The service promises no order of the lines, so they are not in that of the input.
                content = b"".join(json.dumps(each).encode() + b"\n" for each in reversed(results))
                file = self._files.add(content, f"{batch.described['id']}_{name}.jsonl", "batch_output")
                batch.described[f"{name}_file_id"] = file["id"]
        batch.become(status)


def _new_batch(id_: str, body: Mapping[str, Any]) -> dict[str, Any]:
    now = int(time.time())
    steps = ("in_progress", "finalizing", "completed", "failed", "expired", "cancelling", "cancelled")
    return {
        "id": id_,
        "object": "batch",
        "endpoint": body["endpoint"],
        "errors": None,
        "input_file_id": body["input_file_id"],
        "completion_window": body["completion_window"],
        "status": "validating",
        "output_file_id": None,
        "error_file_id": None,
        "created_at": now,
        "expires_at": now + 86400,
        **{f"{each}_at": None for each in steps},
        "request_counts": {"total": 0, "completed": 0, "failed": 0},
        "metadata": body.get("metadata"),
    }


def _check_metadata(metadata: Any) -> None:
    if not isinstance(metadata, dict) or len(metadata) > _MOST_PAIRS:
        raise Refusal(f"Invalid 'metadata': at most {_MOST_PAIRS} properties.", param="metadata")
    for name, value in metadata.items():
        if not isinstance(value, str) or len(name) > _MOST_NAME or len(value) > _MOST_VALUE:
            raise Refusal(f"Invalid 'metadata.{name}'.", param=f"metadata.{name}", code="string_above_max_length")


def _fault(line: int | None, code: str, message: str, param: str | None = None) -> dict[str, Any]:
    return {"code": code, "line": line, "message": message, "param": param}


def _read_lines(content: bytes, batch: _Batch) -> Iterator[dict[str, Any]]:
    """Add the lines of a file to their batch; yield what is wrong with them."""
    seen: set[str] = set()
    for number, text in enumerate(content.splitlines(), 1):
        if not text.strip():
            continue
        try:
            line = json.loads(text)
        except ValueError:
            yield _fault(number, "invalid_json_line", "This line is not parseable as valid JSON.")
            continue
        absent = [name for name in ("custom_id", "method", "url", "body") if name not in line]
        if absent:
            yield _fault(number, "missing_required_parameter", f"Missing required parameter: '{absent[0]}'.", absent[0])
        elif line["method"] != "POST" or line["url"] != batch.described["endpoint"]:
            yield _fault(number, "invalid_url", "The URL provided for this request does not match the batch endpoint.")
        elif line["custom_id"] in seen:
            message = f"The custom_id '{line['custom_id']}' is a duplicate of another request in the batch."
            yield _fault(number, "duplicate_custom_id", message, "custom_id")
        else:
            seen.add(line["custom_id"])
            batch.lines.append(line)
