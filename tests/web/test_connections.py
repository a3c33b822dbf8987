"""How the server sends its answers, and what it does with those who do not get on with asking and reading."""

from __future__ import annotations

import os
import resource
import selectors
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress

import httpx
import pytest
from tests.web.conftest import Served

from jobtable.files import allow_open_files
from jobtable.web import limits, listening
from jobtable.web.listening import MOST_CONNECTIONS, MOST_FILES, bind

_HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
LONGER_AND_LONGER = (3.0, 12.0, 48.0)
"""A machine that stands still for as long as somebody may pause makes everybody too slow, whatever is tested."""
Connect = Callable[..., socket.socket]


@pytest.fixture
def connect(open_server: Served) -> Iterator[Connect]:
    """Connections to the server; a small one takes in little that is not read."""
    port = httpx.URL(open_server.url).port
    with ExitStack() as opened:

        def start(*, is_small: bool = False) -> socket.socket:
            started = opened.enter_context(socket.socket())
            if is_small:
                started.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            started.connect(("127.0.0.1", port))
            started.settimeout(120)
            return started

        yield start


def read_until_cut(connection: socket.socket) -> int:
    """How many bytes come before the other side ends it."""
    count = 0
    with suppress(ConnectionResetError):
        while data := connection.recv(1 << 20):
            count += len(data)
    return count


def readable(connections: Iterable[socket.socket], seconds: float) -> set[object]:
    """Those on which something has come, or which were ended, as soon as it is one of them."""
    with selectors.DefaultSelector() as waiting:
        for each in connections:
            waiting.register(each, selectors.EVENT_READ)
        return {key.fileobj for key, _ in waiting.select(seconds)}


def ports_of(opened: Iterable[socket.socket]) -> set[int]:
    return {each.getsockname()[1] for each in opened}


def wait_until_seen(server: Served, opened: Iterable[socket.socket]) -> None:
    """Return when the server, which looks at its connections every second, knows that these wait."""
    while not ports_of(opened) <= {held.client[1] for held in server.waiting() if held.client}:
        time.sleep(0.01)


def test_the_parts_of_an_answer_do_not_wait_for_each_other() -> None:
    """With Nagle's algorithm every answer on a connection that is kept takes 40 ms longer."""
    with bind("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()[:2]):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


def test_who_sends_no_head_or_does_not_end_it_is_cut(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "LONGEST_HEAD_SECONDS", 2.0)
    silent, slow, second = connect(), connect(), connect()
    second.sendall(_HEAD + b"\r\n" + _HEAD)
    with suppress(ConnectionResetError, BrokenPipeError):
        for _ in range(1200):
            slow.sendall(b"G")
            time.sleep(0.2)
        pytest.fail("a head that does not end is still taken")
    assert read_until_cut(silent) == 0
    assert read_until_cut(second) > 0


def test_who_does_not_read_on_is_cut_and_who_reads_slowly_is_not(
    open_server: Served, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = os.urandom(12 << 20)
    open_server.services.objects.put("large.bin", data)
    ask = _HEAD.replace(b"/healthz", b"/api/v1/objects/large.bin") + b"Connection: close\r\n\r\n"

    def is_all_read(longest_pause: float) -> bool:
        """Whether somebody gets all who needs twice as long as a pause may be."""
        monkeypatch.setattr(listening, "LONGEST_PAUSE_SECONDS", longest_pause)
        slow, answer = connect(), b""
        slow.sendall(ask)
        with suppress(ConnectionResetError):
            while chunk := slow.recv(1 << 20):
                answer += chunk
                time.sleep(longest_pause / 6)
        return answer.endswith(data)

    assert any(map(is_all_read, LONGER_AND_LONGER))
    monkeypatch.setattr(listening, "LONGEST_PAUSE_SECONDS", 3.0)
    stuck = connect(is_small=True)
    stuck.sendall(ask)
    wait_until_seen(open_server, [stuck])
    while ports_of([stuck]) & {held.client[1] for held in open_server.connected() if held.client}:
        time.sleep(0.01)
    assert read_until_cut(stuck) < len(data)
    assert open_server.client().get("/healthz").status_code == 200


@pytest.mark.parametrize("path", [b"/api/v1/queues", b"/api/v1/journey-imports"])
def test_a_body_that_stops_or_drips_is_refused(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, path: bytes
) -> None:
    monkeypatch.setattr(limits, "LONGEST_SILENCE_SECONDS", 1.5)
    head = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n" % path
    stops, drips = connect(), connect()
    stops.sendall(head + b"{" * 2000)
    drips.sendall(head)
    for _ in range(600):
        if readable([drips], 0.2):
            break
        drips.sendall(b"{")
    for refused in (stops, drips):
        assert refused.recv(28) == b"HTTP/1.1 408 Request Timeout"
    assert caplog.text == ""


def test_a_body_may_pause_again_and_again(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:

    def is_taken(longest_silence: float) -> bool:
        """Whether a body is taken that needs twice as long as a silence may be."""
        monkeypatch.setattr(limits, "LONGEST_SILENCE_SECONDS", longest_silence)
        part = int(longest_silence * 1000 / 3)  # nearly as many bytes a second as there must be
        body = b'{"queue_name": "pauses"' + b" " * 4 * part + b"}"
        pauses = connect()
        pauses.sendall(b"POST /api/v1/queues HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")
        pauses.sendall(b"Content-Length: %d\r\n\r\n" % len(body))
        with suppress(ConnectionResetError, BrokenPipeError):
            for start in range(0, len(body), part):
                pauses.sendall(body[start : start + part])
                time.sleep(longest_silence / 2.2)
            return pauses.recv(20) == b"HTTP/1.1 201 Created"
        return False

    assert any(map(is_taken, LONGER_AND_LONGER))


def test_of_too_many_connections_those_go_that_wait_the_longest(
    open_server: Served, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_server.client().stream("GET", "/api/v1/live", params={"topic": "jobs"}) as live:
        events = live.iter_lines()
        assert next(events) == "event: ready"
        old = [connect() for _ in range(15)]
        wait_until_seen(open_server, old)
        new = [connect() for _ in range(15)]
        monkeypatch.setattr(listening, "MOST_CONNECTIONS", 20)
        cut = readable([*old, *new], 120)
        assert 0 < len(cut) <= len(old)
        assert cut <= set(old)
        assert open_server.client().get("/healthz").status_code == 200
        open_server.client().post("/api/v1/queues", json={"queue_name": "q"})
        open_server.client().post("/api/v1/jobs", json={"name": "x", "task": "m:f"})
        assert "event: changes" in events


def test_as_many_files_may_be_open_as_connections_need() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = (256, before[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, few)
    try:
        allow_open_files(MOST_FILES)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= min(MOST_CONNECTIONS, before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
