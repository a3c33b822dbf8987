"""The overview shows the tasks that wait for people."""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.systems.albums import access_patterns as albums
from tests.web.conftest import Served

from jobtable.systems.albums.entities import WorkflowType
from jobtable.systems.albums.service import AlbumWorkflows


def test_tasks_for_people_are_told_apart_and_not_counted_short(serve: Callable[..., Served]) -> None:
    served = serve()
    _ = served.services.get(AlbumWorkflows)  # with its table
    client = served.client(Accept="text/html")

    def wait(number: int) -> None:
        task = albums.task(f"task {number}", WorkflowType.STEP_FUNCTIONS, number)
        served.services.store.put(task.replace(albums=[each.replace(artist=f"<{number}>") for each in task.albums * 2]))

    def counted() -> str:
        told = re.search("Needs a person</span><strong[^>]*>([^<]+)", client.get("/").text)
        return told[1] if told else ""

    for number in range(8):
        wait(number)
    assert counted() == "8"
    wait(8)
    assert counted() == "8+"
    for path, last in (("/", 7), ("/executions/tasks", 8), ("/inbox", 8)):
        shown = client.get(path).text
        assert "Check 2 albums" in shown
        assert f"Abbey Road by &lt;{last}&gt;, and 1 more" in shown, path
    assert re.search('data-region="inbox-count">9<', client.get("/jobs").text)
    assert "Check 2 albums" not in client.get("/inbox?kind=proposal").text
    assert "Check 2 albums" not in client.get("/inbox?system=workflows").text
    waiting = client.get("/api/v1/inbox-waiting", headers={"Accept": "application/json"}).json()
    assert {(each["system"], each["path"].partition("%")[0], each["task_id"]) for each in waiting} == {
        ("albums", "/executions/tasks/task", None)
    }
    assert all(each["due"] > each["since"] for each in waiting)
