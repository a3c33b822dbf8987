"""The HTTP layer over real sockets: what is understood, what is refused, and who is cut off."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from jobtable.embedded.server import Server
from jobtable.embedded.server.http1 import MAX_BODY_BYTES, HttpRequest, HttpResponse, Timeouts


def echo(request: HttpRequest) -> HttpResponse:
    content = {
        "method": request.method,
        "target": request.target,
        "headers": request.headers,
        "body": request.body.decode("latin-1"),
    }
    return HttpResponse(200, (("X-Echo", "yes"),), json.dumps(content).encode())


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(echo, timeouts=Timeouts(idle=600, request=600, response=600)) as running:
        yield running


class Client:
    """A raw connection that understands just enough of responses."""

    def __init__(self, server: Server) -> None:
        self._socket = socket.create_connection(server.address, timeout=120)
        self._file = self._socket.makefile("rb")

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def response(self, *, has_body: bool = True) -> tuple[int, dict[str, str], bytes]:
        status = int(self._file.readline().split()[1])
        headers: dict[str, str] = {}
        while line := self._file.readline().strip():
            name, _, value = line.decode().partition(": ")
            headers[name.lower()] = value
        return status, headers, self._file.read(int(headers.get("content-length", "0")) if has_body else 0)

    def ask(self, data: bytes) -> dict[str, Any]:
        self.send(data)
        status, _, body = self.response()
        assert status == 200
        answer: dict[str, Any] = json.loads(body)
        return answer

    def is_closed(self) -> bool:
        return self._file.read(1) == b""

    def close(self) -> None:
        self._file.close()
        self._socket.close()


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    connected = Client(server)
    yield connected
    connected.close()


def test_many_requests_share_one_connection(client: Client) -> None:
    for number in range(20):
        body = str(number).encode() * number
        request = b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % len(body)
        assert client.ask(request + body)["body"] == body.decode()


def test_pipelined_requests_are_answered_in_order(client: Client) -> None:
    client.send(b"".join(b"GET /%d HTTP/1.1\r\nHost: h\r\n\r\n" % number for number in range(5)))
    targets = [json.loads(client.response()[2])["target"] for _ in range(5)]
    assert targets == [f"/{number}" for number in range(5)]


def test_a_request_may_come_byte_by_byte(client: Client) -> None:
    for byte in b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc":
        client.send(bytes([byte]))
    assert json.loads(client.response()[2])["body"] == "abc"


def test_header_names_are_lower_case_and_repeated_ones_are_joined(client: Client) -> None:
    headers = client.ask(b"GET / HTTP/1.1\r\nHOST: h\r\nX-A:  1 \r\nx-a: 2\r\n\r\n")["headers"]
    assert headers == {"host": "h", "x-a": "1,2"}


def test_a_body_in_chunks_is_put_together(client: Client) -> None:
    head = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = client.ask(head + b"3\r\nabc\r\n2;note=x\r\nde\r\n0\r\nTrailer: t\r\n\r\n")
    assert answer["body"] == "abcde"
    assert client.ask(b"GET /next HTTP/1.1\r\nHost: h\r\n\r\n")["target"] == "/next"


def test_an_answer_to_head_has_no_body(client: Client) -> None:
    client.send(b"HEAD / HTTP/1.1\r\nHost: h\r\n\r\nGET /next HTTP/1.1\r\nHost: h\r\n\r\n")
    assert client.response(has_body=False)[0] == 200
    assert json.loads(client.response()[2])["target"] == "/next"


def test_expect_continue_is_answered_before_the_body(client: Client) -> None:
    client.send(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
    assert client.response()[0] == 100
    assert client.ask(b"ok")["body"] == "ok"


@pytest.mark.parametrize(
    "request_head",
    [b"GET / HTTP/1.0\r\nHost: h\r\n\r\n", b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"],
)
def test_the_connection_is_closed_when_the_client_asks(client: Client, request_head: bytes) -> None:
    client.send(request_head)
    status, headers, _ = client.response()
    assert (status, headers["connection"]) == (200, "close")
    assert client.is_closed()


def test_an_answer_says_when_and_by_whom_it_was_given(client: Client) -> None:
    client.send(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    headers = client.response()[1]
    assert headers["server"] == "Server"  # As DynamoDB calls itself.
    assert headers["date"].endswith(" GMT")


@pytest.mark.parametrize(
    "request_head",
    [b"GET / HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n", b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"],
)
def test_a_client_is_told_that_its_connection_is_kept(client: Client, request_head: bytes) -> None:
    client.send(request_head)
    assert client.response()[1]["connection"] == "keep-alive"  # Without it a client of HTTP/1.0 waits for the end.
    assert client.ask(request_head)["method"] == "GET"


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: h\nContent-Length: 1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: h\rContent-Length: 1\r\n\r\n", 400),
        (b"GET / HTTP/3.0\r\n\r\n", 505),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nName : x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: h\r\n folded\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 501),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n-2\r\nab\r\n0\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0x2\r\nab\r\n0\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0_2\r\nab\r\n0\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", 400),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 16_384 + b"\r\n\r\n", 400),
        (b"GET /" + b"a" * 16_384 + b" HTTP/1.1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY_BYTES + 1), 413),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n" % (MAX_BODY_BYTES + 1), 413),
    ],
)
def test_what_is_no_request_is_answered_once_and_the_connection_closed(
    client: Client, data: bytes, status: int
) -> None:
    client.send(data)
    answered, headers, body = client.response()
    assert (answered, headers["connection"]) == (status, "close")
    assert json.loads(body)["__type"]
    assert client.is_closed()


def test_an_oversized_body_is_refused_also_while_it_is_being_sent(client: Client) -> None:
    client.send(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY_BYTES + 1))
    client.send(b"x" * (MAX_BODY_BYTES + 1))
    assert client.response()[0] == 413


def test_a_client_that_dawdles_within_a_request_is_cut_off() -> None:
    with Server(echo, timeouts=Timeouts(request=0.3)) as server:
        client = Client(server)
        client.send(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab")
        assert client.response()[0] == 408
        assert client.is_closed()
        client.close()


def test_an_idle_connection_is_closed_without_a_word() -> None:
    with Server(echo, timeouts=Timeouts(idle=0.05)) as server:
        client = Client(server)
        assert client.is_closed()
        client.close()


def test_many_more_connections_than_the_bound_are_all_answered() -> None:
    with Server(echo, max_connections=4, timeouts=Timeouts(place=600)) as server:
        clients = [Client(server) for _ in range(100)]
        for client in clients:
            client.send(b"GET / HTTP/1.1\r\n\r\n")
        assert [client.response()[0] for client in clients] == [200] * 100
        for client in clients:
            client.close()


def test_a_connection_for_which_no_other_ends_is_refused_with_an_answer() -> None:
    with Server(echo, max_connections=1, timeouts=Timeouts(place=0.05, request=600, spare=600)) as server:
        first = Client(server)
        first.send(b"GET / HTTP")
        second = Client(server)
        assert second.response()[0] == 503
        assert second.is_closed()
        first.send(b"/1.1\r\n\r\n")
        assert first.response()[0] == 200
        first.close()
        second.close()


@pytest.mark.parametrize("sent", [b"", b"GET /never HTTP/1.1\r\n"], ids=["nothing", "a part"])
def test_the_most_silent_connection_makes_room_for_another(sent: bytes) -> None:
    with Server(echo, max_connections=2, timeouts=Timeouts(spare=0.2, request=600, place=600)) as server:
        silent = Client(server)
        silent.send(sent)
        busy = Client(server)
        time.sleep(0.3)
        assert busy.ask(b"GET / HTTP/1.1\r\n\r\n")["target"] == "/"
        another = Client(server)
        assert another.ask(b"GET /another HTTP/1.1\r\n\r\n")["target"] == "/another"
        assert silent.is_closed()
        assert busy.ask(b"GET /again HTTP/1.1\r\n\r\n")["target"] == "/again"
        for client in (silent, busy, another):
            client.close()


def test_closing_answers_what_is_under_way_and_ends_idle_connections() -> None:
    started, go_on = threading.Event(), threading.Event()

    def slow(request: HttpRequest) -> HttpResponse:
        if request.target == "/slow":
            started.set()
            go_on.wait()
        return echo(request)

    server = Server(slow)
    address = server.address
    server.start()
    idle, busy = Client(server), Client(server)
    assert idle.ask(b"GET / HTTP/1.1\r\n\r\n")["target"] == "/"
    busy.send(b"GET /slow HTTP/1.1\r\n\r\n")
    started.wait()
    closing = threading.Thread(target=server.close)
    closing.start()
    assert idle.is_closed()
    go_on.set()
    status, headers, _ = busy.response()
    assert (status, headers["connection"]) == (200, "close")
    closing.join()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, timeout=5)
    idle.close()
    busy.close()


def test_a_taken_port_is_an_error_at_once() -> None:
    with Server(echo) as server, pytest.raises(OSError, match=r"[Aa]ddress already in use"):
        Server(echo, port=server.address[1])
