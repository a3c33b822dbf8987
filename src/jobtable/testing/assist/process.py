"""The server in a process of its own, which survives the kill of its clients."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from jobtable.testing.assist.replies import Question, Reply
from jobtable.testing.assist.scripted_service import Charge, Request

CONTROL_PATH = "/_assist"


class AssistProcess:
    """Runs `python -m jobtable.testing.assist` until the block ends, or the process that started it."""

    def __init__(self, script: Iterable[Reply] | Path = (), **options: Any) -> None:
        """Reply as `AssistServer` does; a path names a Python file with a function `reply(question)`."""
        self._replies = None if isinstance(script, Path) else tuple(script)
        named = ["--script", str(script)] if isinstance(script, Path) else []
        given = ["--options", json.dumps(options)] if options else []
        self._command = [sys.executable, "-m", "jobtable.testing.assist", "--end-with-stdin", *named, *given]
        self.url = ""

    def __enter__(self) -> AssistProcess:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        self.url = _stream(self._process.stdout).readline().strip()
        if not self.url:
            raise RuntimeError(f"the server did not start: {' '.join(self._command)}")
        if self._replies:
            self.script(*self._replies)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        for each in (self._process.stdin, self._process.stdout):
            _stream(each).close()

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def charges(self) -> list[Charge]:
        return [Charge(**each) for each in self._state()["charges"]]

    @property
    def questions(self) -> list[Question]:
        """Every valid question; its messages and texts are lists here."""
        return [Question(**each) for each in self._state()["questions"]]

    @property
    def requests(self) -> list[Request]:
        found = self._state()["requests"]
        return [Request(**{**each, "body": each["body"].encode("latin-1")}) for each in found]

    def script(self, *replies: Reply, operation: str = "ask") -> None:
        """Add replies for the next questions, or for the next requests of another operation."""
        self._control({"script": [asdict(each) for each in replies], "operation": operation})

    def release(self, name: str) -> None:
        """Let the answers go that are held under a name."""
        self._control({"release": name})

    def _control(self, change: dict[str, Any]) -> None:
        self._request("POST", json.dumps(change))

    def _state(self) -> Any:
        return json.loads(self._request("GET"))

    def _request(self, method: str, body: str | None = None) -> bytes:
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=30)
        try:
            connection.request(method, CONTROL_PATH, body)
            return connection.getresponse().read()
        finally:
            connection.close()


def _stream(given: IO[str] | None) -> IO[str]:
    assert given is not None
    return given
