"""Live events: told to those who look, once for all of them, and never silently lost."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from tests.web.conftest import Served

from jobtable.web.events import encode
from jobtable.web.live import LiveFeed

Event = tuple[str, Any]


def events(response: httpx.Response) -> Iterator[Event]:
    """The events of a stream."""
    name = ""
    for line in response.iter_lines():
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
    job = client.post("/api/v1/jobs", json={"name": "a#b%c", "job_id": "a#b%c", "queue": "seen"}).json()
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


def test_very_many_changes_are_told_as_that(open_server: Served) -> None:
    client, writer = open_server.client(), open_server.client()
    with client.stream("GET", "/api/v1/live", params={"topic": ["jobs"]}) as response:
        stream = events(response)
        wait_for(stream, lambda event: event[0] == "ready")
        writer.post("/api/v1/job-batches", json=[{"name": f"m{n}", "queue": "many"} for n in range(600)])
        incomplete = wait_for(stream, lambda event: event[0] == "changes" and not event[1]["is_complete"])
        assert incomplete[1]["changes"] == []


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
            ready.wait(20)
            seen.append(wait_for(stream, lambda event: event[0] == "overview")[1]["html"])

    viewers = [threading.Thread(target=look) for _ in range(10)]
    for viewer in viewers:
        viewer.start()
    ready.wait(20)
    served.client().post("/api/v1/jobs", json={"name": "new", "queue": "seen-by-all"})
    for viewer in viewers:
        viewer.join(20)
    assert len(seen) == 10
    assert all("seen-by-all" in html for html in seen)
    assert len(made) < 5


def test_nothing_is_read_while_nobody_looks(serve: Callable[..., Served]) -> None:
    served = serve()
    served.client().get("/")
    assert not [name for name in served.services.store.capacity.by_pattern() if name.startswith("changes.")]
    assert served.app.state.feed._thread is None


@pytest.mark.parametrize("topic", ["", "everything", "job:", "jobs:1"])
def test_unknown_topics_are_refused(open_server: Served, topic: str) -> None:
    assert open_server.client().get("/api/v1/live", params={"topic": topic}).status_code == 422


def test_texts_cannot_break_out_of_an_event() -> None:
    assert encode("changes", {"text": "a\n\nevent: evil\ndata: x\r"}).count(b"\n") == 3
