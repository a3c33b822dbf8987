"""Live events: told to those who look, once for all of them, and never silently lost."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from tests.web.conftest import Served

from jobtable.access.entities import Role
from jobtable.jobs.stored.entities import Job, main
from jobtable.store.changes import Change
from jobtable.web.api import live
from jobtable.web.events import encode, encode_changes
from jobtable.web.live import RELOAD, LiveFeed, Viewer

Event = tuple[str, Any]
NOON = datetime(2025, 3, 14, 12, tzinfo=UTC)


def events(response: httpx.Response) -> Iterator[Event]:
    """The events of a stream."""
    name, deadline = "", time.monotonic() + 240
    for line in response.iter_lines():
        assert time.monotonic() < deadline, "what was waited for did not come"
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def wait_for(stream: Iterator[Event], is_it: Callable[[Event], bool]) -> Event:
    return next(event for event in stream if is_it(event))


def changes_of(event: Event, kind: str) -> list[dict[str, Any]]:
    return [each["values"] for each in event[1].get("changes", []) if each["type"] == kind]


def test_changes_reach_those_who_look_at_them(open_server: Served) -> None:
    client = open_server.client()
    job = client.post("/api/v1/jobs", json={"task": "m:f", "name": "a#b%c", "job_id": "a#b%c", "queue": "seen"}).json()
    with client.stream("GET", "/api/v1/live", params={"topic": [f"job:{job['job_id']}", "jobs"]}) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        stream = events(response)
        assert wait_for(stream, lambda event: True) == ("ready", {})
        writer = open_server.client()
        (lease,) = writer.post("/api/v1/queues/seen/claim", json={"instance_id": "w"}).json()
        started = wait_for(stream, lambda event: bool(changes_of(event, "Job")))
        assert changes_of(started, "Job")[0]["status"] == "RUNNING"
        held = {"instance_id": "w", "epoch": lease["epoch"], "lines": [{"message": "hello"}]}
        assert writer.post("/api/v1/jobs/a%23b%25c/logs", json=held).status_code == 200
        logged = wait_for(stream, lambda event: bool(changes_of(event, "JobLog")))
        assert changes_of(logged, "JobLog")[0]["message"] == "hello"


def test_what_others_do_is_not_told(open_server: Served) -> None:
    client, writer = open_server.client(), open_server.client()
    with client.stream("GET", "/api/v1/live", params={"topic": ["queues"]}) as response:
        stream = events(response)
        wait_for(stream, lambda event: event[0] == "ready")
        writer.post("/api/v1/queues", json={"queue_name": "own-topic"})
        told = wait_for(stream, lambda event: event[0] == "changes")
        assert told[1]["topic"] == "queues"
        assert [each["type"] for each in told[1]["changes"]] == ["Queue"]


def change_of(job_id: str, progress: float = 0, name: str = "x") -> Change:
    job = Job(job_id=job_id, name=name, created_at=NOON, created_by="ada", progress=progress)
    return Change(main, "changed", NOON, None, Job.__schema__.codec.encode(job), is_expiry=False)


def told(changes: list[Change]) -> Any:
    return json.loads(encode_changes("jobs", changes).split(b"data: ")[1])


def test_of_each_item_the_last_change_is_told_and_of_very_many_only_that_there_were() -> None:
    few = told([change_of("1", 10), change_of("2"), change_of("1", 20)])
    assert few["is_complete"]
    assert {each["values"]["job_id"]: each["values"]["progress"] for each in few["changes"]} == {"1": 20, "2": 0}
    only_that_there_were = {"topic": "jobs", "changes": [], "is_complete": False}
    assert told([change_of(str(number)) for number in range(201)]) == only_that_there_were
    assert told([change_of(str(number), name="x" * 300_000) for number in range(4)]) == only_that_there_were


def test_who_is_too_slow_is_told_to_read_again() -> None:
    async def look() -> list[bytes | None]:
        viewer = Viewer(asyncio.get_running_loop(), frozenset())
        for number in range(100):
            viewer.send(str(number).encode())
        viewer.send(None)
        await asyncio.sleep(0)
        seen: list[bytes | None] = []
        while (event := await viewer.next(1)) is not None:
            seen.append(event)
        return seen

    seen = asyncio.run(look())
    assert seen[0] == RELOAD
    assert seen[1:] == [str(number).encode() for number in range(100 - len(seen) + 1, 100)]


def test_the_overview_is_made_once_for_all(serve: Callable[..., Served]) -> None:
    served = serve()
    made: list[int] = []
    feed: LiveFeed = served.app.state.feed
    summary = feed._summaries["overview"]

    def counted() -> Any:
        made.append(1)
        return summary()

    feed._summaries = {"overview": counted}
    seen: list[str] = []
    ready = threading.Barrier(11)

    def look() -> None:
        with served.client().stream("GET", "/api/v1/live", params={"topic": ["overview"]}) as response:
            stream = events(response)
            wait_for(stream, lambda event: event[0] == "ready")
            ready.wait()
            seen.append(wait_for(stream, lambda event: event[0] == "overview")[1]["html"])

    viewers = [threading.Thread(target=look) for _ in range(10)]
    for viewer in viewers:
        viewer.start()
    ready.wait()
    served.client().post("/api/v1/jobs", json={"task": "m:f", "name": "new", "queue": "seen-by-all"})
    for viewer in viewers:
        viewer.join()
    assert len(seen) == 10
    assert all("seen-by-all" in html for html in seen)
    assert len(made) < 5


def test_what_nobody_has_foreseen_does_not_end_live_views(
    serve: Callable[..., Served], caplog: pytest.LogCaptureFixture
) -> None:
    served = serve()
    feed: LiveFeed = served.app.state.feed
    faults = iter([KeyError("unforeseen")])

    def fail_once() -> Any:
        for fault in faults:
            raise fault
        return "made"

    feed._summaries = {"overview": fail_once}
    writer = served.client()
    with served.client().stream("GET", "/api/v1/live", params={"topic": ["overview"]}) as response:
        stream = events(response)
        for expected in ("ready", "reload", "ready"):
            assert wait_for(stream, lambda event: True)[0] == expected
            writer.post("/api/v1/jobs", json={"task": "m:f", "name": "seen"})
        assert wait_for(stream, lambda event: event[0] == "overview") == ("overview", "made")
    assert "unforeseen" in caplog.text


def test_no_burst_of_viewers_passes_their_bound(serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobtable.web.live._MOST_VIEWERS", 3)
    server = serve()

    async def look_at_once() -> list[httpx.Response]:
        async with httpx.AsyncClient(base_url=server.url, timeout=240) as client, AsyncExitStack() as streams:
            looking = (client.stream("GET", "/api/v1/live", params={"topic": "jobs"}) for _ in range(30))
            return await asyncio.gather(*map(streams.enter_async_context, looking))

    answers = asyncio.run(look_at_once())
    assert sorted(answer.status_code for answer in answers) == [200] * 3 + [503] * 27
    assert {answer.headers["retry-after"] for answer in answers if answer.status_code == 503} == {"10"}
    until = time.monotonic() + 240
    while server.app.state.feed.viewers and time.monotonic() < until:
        time.sleep(0.01)
    assert server.app.state.feed.viewers == 0


def test_nothing_is_read_while_nobody_looks(serve: Callable[..., Served]) -> None:
    served = serve()
    served.client().get("/")
    assert not [name for name in served.services.store.capacity.by_pattern() if name.startswith("changes.")]
    assert served.app.state.feed._thread is None


def test_who_has_lost_the_token_is_told_nothing_more(guarded: Served) -> None:
    token = guarded.app.state.tokens.create(Role.READ)
    viewer = guarded.client(Authorization=f"Bearer {token.text}")
    writer = guarded.client(Role.FULL)
    with viewer.stream("GET", "/api/v1/live", params={"topic": ["queues"]}) as response:
        stream = events(response)
        wait_for(stream, lambda event: event[0] == "ready")
        guarded.app.state.tokens.revoke(token.record.token_id)
        time.sleep(live._CHECK_SECONDS)
        writer.post("/api/v1/queues", json={"queue_name": "after-the-end"})
        assert list(stream) == []


def test_a_quiet_stream_ends_with_its_token_too(guarded: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "_KEEP_ALIVE_SECONDS", 0.1)
    monkeypatch.setattr(live, "_CHECK_SECONDS", 0.1)
    token = guarded.app.state.tokens.create(Role.READ, expires_in=timedelta(days=1))
    viewer = guarded.client(Authorization=f"Bearer {token.text}")
    with viewer.stream("GET", "/api/v1/live", params={"topic": ["job:quiet"]}) as response:
        stream = events(response)
        assert next(stream) == ("ready", {})
        guarded.services.store.put(token.record.replace(expires_at=token.record.created_at))
        assert list(stream) == []


@pytest.mark.parametrize("topic", ["", "everything", "job:", "jobs:1"])
def test_unknown_topics_are_refused(open_server: Served, topic: str) -> None:
    assert open_server.client().get("/api/v1/live", params={"topic": topic}).status_code == 422


def test_texts_cannot_break_out_of_an_event() -> None:
    assert encode("changes", {"text": "a\n\nevent: evil\ndata: x\r"}).count(b"\n") == 3
