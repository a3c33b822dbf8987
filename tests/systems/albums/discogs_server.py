"""A local server that speaks the part of Discogs' API that albums ask."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

RELEASES: dict[str, dict[str, Any]] = {
    "101": {"title": "Pink Floyd - Animals", "year": 2011, "master_id": 9},
    "102": {"title": "The Beatles - Abbey Road", "year": 1969},
    "103": {"title": "Nirvana (2) - Dummy", "year": 1990},
    "104": {"title": "Kraftwerk - Autobahn", "year": 0},
}
MASTERS = {"9": {"year": 1977}}
SUGGESTIONS = {"101": {"Very Good Plus (VG+)": {"currency": "USD", "value": 31.456}}, "104": {}}
STATS = {
    "102": {"lowest_price": {"currency": "USD", "value": 18.5}, "num_for_sale": 9},
    "104": {"lowest_price": None, "num_for_sale": 0},
}
TOKEN = "a token"


class DiscogsServer:
    """Answers as Discogs does; what is in `refusals` is sent first, one for each request."""

    def __init__(self) -> None:
        self.refusals: list[tuple[int, dict[str, str]]] = []
        self.asked: list[str] = []
        self.agents: set[str] = set()
        self.remaining = 60
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @contextmanager
    def running(self) -> Iterator[DiscogsServer]:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()

    def answer(self, path: str, query: dict[str, list[str]]) -> tuple[int, Any]:
        *_, kind, last = path.split("/")
        if path == "/database/search":
            wanted = query["release_title"][0].lower()
            found = [{"id": int(id_), **each} for id_, each in RELEASES.items() if wanted in each["title"].lower()]
            return 200, {"pagination": {"items": len(found)}, "results": found}
        tables: dict[str, dict[str, Any]] = {
            "releases": RELEASES,
            "masters": MASTERS,
            "price_suggestions": SUGGESTIONS,
            "stats": STATS,
        }
        found_one = tables.get(kind, {}).get(last)
        return (404, {"message": "The requested resource was not found."}) if found_one is None else (200, found_one)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked = urlsplit(self.path)
                server.asked.append(asked.path)
                server.agents.add(self.headers["User-Agent"])
                server.remaining = max(0, server.remaining - 1)
                limits = {"X-Discogs-Ratelimit": "60", "X-Discogs-Ratelimit-Remaining": str(server.remaining)}
                if self.headers["Authorization"] != f"Discogs token={TOKEN}":
                    self._send(401, {"message": "You must authenticate to access this resource."}, limits)
                elif server.refusals:
                    status, headers = server.refusals.pop(0)
                    self._send(status, {"message": "You are making requests too quickly."}, limits | headers)
                else:
                    self._send(*server.answer(asked.path, parse_qs(asked.query)), limits)

            def _send(self, status: int, content: Any, headers: dict[str, str]) -> None:
                body = json.dumps(content).encode()
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name in the class
                """Say nothing."""

        return Handler
