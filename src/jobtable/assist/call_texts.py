"""The requests and answers of calls: whole in the object store, below the prefix of their job."""

from __future__ import annotations

import json
from typing import Any

from jobtable.assist.entities import AssistCall
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.stored.locations import ROOT
from jobtable.model import Json
from jobtable.objects import ObjectStore, key_parts, object_key
from jobtable.store import Store

FOLDER = "assist"
"""Below the prefix of a job."""
_LARGEST_INLINE = 4_000
"""Characters of an answer that its record holds itself."""
_MEMBER = "object"
_NAMES = (["request", "json"], ["answer", "json"])
"""The endings of the names of objects."""


class CallTexts:
    """Keeps the requests and answers of one job's calls. An object is stored before the record that names it."""

    def __init__(self, objects: ObjectStore, job_id: str) -> None:
        self._objects = objects
        self._job_id = job_id

    def keep_request(self, call_id: str, request: str) -> str:
        """Store a request and return the key of its object."""
        return self._objects.put(self._key(call_id, "request"), request.encode()).key

    def keep_answer(self, call_id: str, answer: Any) -> Json:
        """Return what the record holds of an answer: itself, or the object in which it was stored."""
        text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        is_reference = isinstance(answer, dict) and answer.keys() == {_MEMBER}
        if len(text) <= _LARGEST_INLINE and not is_reference:
            kept: Json = json.loads(text)
            return kept
        return {_MEMBER: self._objects.put(self._key(call_id, "answer"), text.encode()).key}

    def _key(self, call_id: str, what: str) -> str:
        return object_key(ROOT, self._job_id, FOLDER, f"{call_id}.{what}.json")


def answer_of(objects: ObjectStore, call: AssistCall) -> Any:
    """Return the recorded answer of a call."""
    key = answer_key(call)
    return call.answer if key is None else json.loads(objects.get(key))


def answer_key(call: AssistCall) -> str | None:
    """Return the key of the object with the answer, if it is in one."""
    answer = call.answer
    return str(answer[_MEMBER]) if isinstance(answer, dict) and answer.keys() == {_MEMBER} else None


def is_of_calls(key: str) -> bool:
    """Return whether an object lies where the requests and answers of calls are."""
    return key_parts(key)[::2][:2] == (ROOT, FOLDER)


def is_referenced(store: Store, key: str) -> bool:
    """Return whether the record of a call names an object, for `objects sweep`; others stay as long as their job."""
    _, job_id, _, *name = key_parts(key)
    call_id, *what = name[0].split(".") if name else ("",)
    if what not in _NAMES:
        return store.find(Job.key(job_id=job_id)) is not None
    call = store.find(AssistCall.key(job_id=job_id, call_id=call_id))
    return call is not None and key in (call.request_key, answer_key(call))
