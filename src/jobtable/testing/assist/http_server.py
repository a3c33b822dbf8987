"""The HTTP server: on loopback, a thread for each connection, able to break off anywhere."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from jobtable.testing.assist.scripted_service import Request, Response

Respond = Callable[[Request], Response]


class HttpServer:
    """Serves a function from requests to responses."""

    def __init__(self, respond: Respond, port: int = 0) -> None:
        self._server = _Listener(("127.0.0.1", port), _handler(respond))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="assist server")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that left, as killed ones do; show the errors of scripts."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def _handler(respond: Respond) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            address = urlsplit(self.path)
            headers = {name.lower(): value for name, value in self.headers.items()}
            path = unquote(address.path)
            port = self.client_address[1]
            self._send(respond(Request(self.command, path, parse_qs(address.query), headers, body, connection=port)))

        do_GET = do_POST = do_DELETE = _answer  # noqa: N815 - the names of the class

        def _send(self, response: Response) -> None:
            if response.is_lost:
                self._break_off()
                return
            self.send_response(response.status)
            body = response.body if response.garbled is None else response.garbled
            sent = {"Content-Type": "application/json", **response.headers, "Content-Length": str(len(body))}
            for name, value in sent.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body[: response.cut_after])
            if response.cut_after is not None:
                self._break_off()

        def _break_off(self) -> None:
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name in the class
            """Say nothing: the requests are recorded."""

    return Handler
