"""The scripted server: both protocols, and the path by which a test in another process controls it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from jobtable.testing.assist.bedrock_api import BedrockApi
from jobtable.testing.assist.http_server import HttpServer
from jobtable.testing.assist.openai_api import OpenAiApi
from jobtable.testing.assist.process import CONTROL_PATH
from jobtable.testing.assist.replies import Question, Reply, Script
from jobtable.testing.assist.scripted_service import Charge, Options, Request, Response, Service


class AssistServer:
    """A scripted service of models on loopback, which speaks the protocols of OpenAI and of Amazon Bedrock.

    It replies to questions with the given replies, in order, or with what the given function returns; then with
    answers that fit the question. `options` are those of `Options`.
    """

    def __init__(self, script: Iterable[Reply] | Script = (), *, port: int = 0, **options: Any) -> None:
        self._service = Service(script, Options(**options))
        self._openai = OpenAiApi(self._service)
        self._bedrock = BedrockApi(self._service)
        self._http = HttpServer(self._respond, port)

    def __enter__(self) -> AssistServer:
        self._http.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._service.close()
        self._http.close()

    @property
    def url(self) -> str:
        """The address for Bedrock's clients."""
        return self._http.url

    @property
    def openai_url(self) -> str:
        """The base URL for OpenAI's clients."""
        return f"{self.url}/v1"

    @property
    def options(self) -> Options:
        """What kind of service it is; a test may change it at any time."""
        return self._service.options

    @property
    def charges(self) -> list[Charge]:
        """What is on the bill, in order."""
        return list(self._service.charges)

    @property
    def questions(self) -> list[Question]:
        """Every question that was answered or scripted to fail; not those whose key was already answered."""
        return list(self._service.questions)

    @property
    def requests(self) -> list[Request]:
        """Every request, in the order in which they arrived."""
        return list(self._service.requests)

    def script(self, *replies: Reply, operation: str = "ask") -> None:
        """Add replies for the next questions, or for the next requests of another operation, as `batches.create`."""
        self._service.script(*replies, operation=operation)

    def release(self, name: str) -> None:
        """Let the answers go that are held under a name."""
        self._service.release(name)

    def _respond(self, request: Request) -> Response:
        if request.path == CONTROL_PATH:
            return self._control(request)
        with self._service.lock:
            self._service.requests.append(request)
        protocol = self._bedrock if request.path.startswith("/model/") else self._openai
        return protocol.respond(request)

    def _control(self, request: Request) -> Response:
        if request.method == "GET":
            return Response(200, json.dumps(self._service.state()).encode())
        change = json.loads(request.body)
        if "release" in change:
            self.release(change["release"])
        else:
            self.script(*(Reply(**each) for each in change["script"]), operation=change["operation"])
        return Response(200, b"{}")
