"""OpenAI's HTTP API: which request is answered by what."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from threading import RLock
from typing import Any, NamedTuple

from jobtable.testing.assist.answered_keys import AnsweredKeys
from jobtable.testing.assist.openai_answers import answer, page
from jobtable.testing.assist.openai_checks import chat_question, embed_question
from jobtable.testing.assist.openai_files import Files, fingerprint_of
from jobtable.testing.assist.openai_refusals import Refusal, scripted_refusal
from jobtable.testing.assist.replies import Question, Reply
from jobtable.testing.assist.scripted_batches import Batches
from jobtable.testing.assist.scripted_service import LOST, Request, Response, Service, delivered


class _Route(NamedTuple):
    method: str
    path: str
    operation: str
    """By which a test scripts it."""
    act: Callable[[Request, str], Any]
    """Takes the id in the path; returns what becomes the body."""


class OpenAiApi:
    """Answers as OpenAI does. A key that was answered gets the same answer, and nothing is charged for it."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._lock = RLock()
        self._keys = AnsweredKeys()
        self._files = files = Files()
        batches = Batches(service, files)
        self._routes = (
            _Route("GET", "/v1/models", "models.list", lambda each, _: page(self._models(), each.query)),
            _Route("GET", "/v1/chat/completions", "chat.list", lambda each, _: page(self._stored(each), each.query)),
            _Route("POST", "/v1/files", "files.create", lambda each, _: files.upload(each)),
            _Route("GET", "/v1/files", "files.list", lambda each, _: page(self._uploads(each), each.query)),
            _Route("GET", "/v1/files/(.+)/content", "files.content", lambda _, id_: files.content(id_)),
            _Route("GET", "/v1/files/([^/]+)", "files.retrieve", lambda _, id_: files.describe(id_)),
            _Route("DELETE", "/v1/files/([^/]+)", "files.delete", lambda _, id_: files.delete(id_)),
            _Route("POST", "/v1/batches", "batches.create", lambda each, _: batches.create(parsed(each))),
            _Route("GET", "/v1/batches", "batches.list", lambda each, _: page(batches.newest_first(), each.query)),
            _Route("GET", "/v1/batches/([^/]+)", "batches.retrieve", lambda _, id_: batches.describe(id_)),
            _Route("POST", "/v1/batches/([^/]+)/cancel", "batches.cancel", lambda _, id_: batches.cancel(id_)),
        )

    def respond(self, request: Request) -> Response:
        """Answer one request below /v1."""
        try:
            self._check_key(request)
            match request.method, request.path:
                case "POST", "/v1/chat/completions":
                    return self._ask(request, chat_question)
                case "POST", "/v1/embeddings":
                    return self._ask(request, embed_question)
            return self._operate(request)
        except Refusal as refusal:
            return refusal.response()

    def _check_key(self, request: Request) -> None:
        keys = self._service.options.keys
        if keys is None:
            return
        kind, _, key = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not key:
            raise Refusal("You didn't provide an API key.", status=401)
        if key not in keys:
            # The genuine service masks the middle; others repeat the whole key, so this one does.
            raise Refusal(f"Incorrect API key provided: {key}.", code="invalid_api_key", status=401)

    def _ask(self, request: Request, question_of: Callable[..., Question]) -> Response:
        body = parsed(request)
        question = question_of(body, self._service.options, request.key)
        content = request.path.encode() + request.body
        key = request.key if self._service.options.heeds_keys else None
        return self._keys.once(key, content, lambda: answer(self._service, question, body))

    def _operate(self, request: Request) -> Response:
        """Do what is not a question, unless the script says how it fails."""
        tried = (
            (each, re.fullmatch(each.path, request.path)) for each in self._routes if each.method == request.method
        )
        route, found = next(((each, match) for each, match in tried if match), (None, None))
        if route is None or found is None:
            raise Refusal(f"Invalid URL ({request.method} {request.path})", status=404)
        id_ = found[1] if found.groups() else ""
        content = fingerprint_of(request) if route.operation == "files.create" else request.body
        key = request.key if request.method == "POST" else None
        return self._keys.once(key, content, lambda: self._act(route, request, id_))

    def _act(self, route: _Route, request: Request, id_: str) -> Response:
        reply = self._service.next_reply(route.operation) or Reply()
        self._service.wait_as_told(reply)
        if reply.loses == "request":
            return LOST
        if reply.trouble is not None:
            raise scripted_refusal(reply)
        with self._lock:
            return delivered(route.act(request, id_), reply)

    def _models(self) -> list[dict[str, Any]]:
        models = self._service.options.models or ()
        return [{"id": each, "object": "model", "created": 0, "owned_by": "test"} for each in models]

    def _stored(self, request: Request) -> list[dict[str, Any]]:
        """Return the stored completions that have the metadata in a query."""
        named = ((re.fullmatch(r"metadata\[(.+)\]", name), values[0]) for name, values in request.query.items())
        wanted = {found[1]: value for found, value in named if found}
        return [each for each in self._service.stored if wanted.items() <= each["metadata"].items()]

    def _uploads(self, request: Request) -> list[dict[str, Any]]:
        return self._files.newest_first(request.query.get("purpose", [None])[0])


def parsed(request: Request) -> dict[str, Any]:
    """Return the object in a body; Refusal otherwise."""
    try:
        body = json.loads(request.body)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise Refusal(
            "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP "
            "library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)"
        )
    return body
