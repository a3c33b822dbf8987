"""Executions on the server: retried by a button where they failed, and deleted."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from tests.systems.albums.access_patterns import DURABLE, STEP, at, metrics, task
from tests.systems.albums.driving import checked, work
from tests.web.conftest import Served

from jobtable.access.entities import Role
from jobtable.systems.albums.album_executions import Executions
from jobtable.systems.albums.entities import TaskStatus
from jobtable.systems.albums.web import pages


def test_a_failed_execution_is_retried_and_deleted(guarded: Served) -> None:
    executions = guarded.services.get(Executions)
    execution_id = executions.start(DURABLE, b"nothing", "shelf.txt").execution_id
    full, reader = guarded.client(Role.FULL), guarded.client(Role.READ)
    at = f"/api/v1/executions/{execution_id}"
    button = f'data-act="{at}/retry"'
    assert full.post(f"{at}/retry").status_code == 409
    assert full.delete(at).status_code == 409
    assert button not in full.get(f"/executions/{execution_id}").text
    checked(guarded.services.engine, execution_id)
    assert button in full.get(f"/executions/{execution_id}").text
    assert button not in reader.get(f"/executions/{execution_id}").text
    assert reader.post(f"{at}/retry").status_code == 403
    again = full.post(f"{at}/retry")
    assert (again.status_code, again.json()["attempt"], again.json()["status"]) == (200, 2, "running")
    assert reader.delete(at).status_code == 403
    assert full.delete(at, params={"stop": True}).json()["count"] > 2
    assert full.get(at).status_code == 404
    assert full.delete(at).status_code == 404


def test_an_execution_that_waits_for_a_person_leads_to_the_question(serve: Callable[..., Served]) -> None:
    served = serve(require_token=True)
    executions = served.services.get(Executions)
    shelf = b"Radiohead - OK Computer (1997)\n"
    execution_id = executions.start(DURABLE, shelf, "shelf.txt").execution_id
    work(served.services.engine)
    offered = re.compile(r'<a class="button button-primary" href="/executions/tasks/[^"]+">.*?Check 1 album</a>')
    page = f"/executions/{execution_id}"
    assert offered.search(served.client(Role.FULL).get(page).text)
    assert not offered.search(served.client(Role.READ).get(page).text), "who may not answer"


def test_what_albums_were_found_in_is_shown_and_missed_where_it_is_gone(serve: Callable[..., Served]) -> None:
    served = serve()
    executions, client = served.services.get(Executions), served.client()
    shelf = b"Radiohead - <OK Computer> (1997)\n"
    execution = executions.start(DURABLE, shelf, "shelf.txt")
    work(served.services.engine)
    pages = [
        f"/executions/{execution.execution_id}",
        f"/executions/tasks/{(executions.records.get_execution(execution.execution_id).task_ids or [''])[-1]}",
    ]
    for page in pages:
        assert '<pre class="code" tabindex="0">Radiohead - &lt;OK Computer&gt; (1997)' in client.get(page).text
    served.services.objects.delete(execution.image_s3_key)
    for page in pages:
        shown = client.get(page).text
        assert f"no longer in the object store. <code>{execution.image_s3_key}</code>" in shown
        assert "(1997)" not in shown


def test_a_long_question_is_answered_and_a_refused_answer_leaves_its_token_as_it_was(
    serve: Callable[..., Served],
) -> None:
    served = serve(require_token=True)
    executions, full = served.services.get(Executions), served.client(Role.FULL)
    shelf = "".join(f"Artist {number} - Album (1997)\n" for number in range(300)).encode()
    execution_id = executions.start(DURABLE, shelf, "shelf.txt").execution_id
    work(served.services.engine)
    task_id = (executions.records.get_execution(execution_id).task_ids or [""])[-1]
    asked = full.get(f"/api/v1/tasks/{task_id}").json()["albums"]
    token = full.post(f"/api/v1/tasks/{task_id}/token").json()["token"]
    at = f"/api/v1/tasks/{task_id}/complete"
    refused = full.post(at, json={"albums": [{**asked[0], "album_index": 999}]})
    assert (refused.status_code, "does not ask about album 999" in refused.text) == (400, True)
    assert full.post(at, json={"albums": asked, "token": "another"}).status_code == 403
    assert full.post(at, json={"albums": asked, "token": token}).json()["status"] == "running"
    work(served.services.engine)
    assert len(executions.records.list_albums(execution_id)) == 300


def test_tasks_of_any_workflow_stand_by_the_time_of_their_answers(guarded: Served) -> None:
    for number, kind in enumerate([STEP, DURABLE, STEP]):
        asked = task(f"answered-{number}", kind, number)
        guarded.services.store.put(asked.replace(status=TaskStatus.COMPLETED, completed_at=at(60 + number)))
    page = guarded.client(Role.READ).get("/executions/tasks").text
    assert re.findall("/executions/tasks/answered-([0-9])", page) == ["2", "1", "0"]


def test_how_long_executions_take_is_drawn_in_seconds(guarded: Served) -> None:
    guarded.services.store.put(metrics(14, STEP))
    page = guarded.client(Role.READ).get("/executions").text
    plots = [json.loads(text) for text in re.findall(r"<script type=.application/json.>(.*?)</script>", page)]
    drawn = {plot["title"]: dict(zip(plot["traces"][0]["x"], plot["traces"][0]["y"], strict=True)) for plot in plots}
    assert drawn["Executions per day"]["2025-01-14"] == 25
    assert drawn["Average duration in seconds"]["2025-01-14"] == 45


def test_an_image_that_is_not_base64_is_refused(guarded: Served) -> None:
    full = guarded.client(Role.FULL)
    body = {"workflow_type": DURABLE, "name": "shelf.txt"}
    for image in ("not base64 at all!", "aGVsbG8=\n", "aGVsbG8", "\u00e9"):
        refused = full.post("/api/v1/execution-runs", json=body | {"image": image})
        assert (refused.status_code, "base64" in refused.text) == (400, True)
    assert full.post("/api/v1/execution-runs", json=body | {"image": "aGVsbG8="}).status_code == 201


def test_a_day_with_very_many_executions_is_not_counted_for_the_page(
    guarded: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "_MOST_TODAY", 1)
    client = guarded.client(Role.READ)
    for number in range(2):
        assert ("too many executions" in client.get("/executions").text) == (number == 1)
        for _ in range(2):
            guarded.services.get(Executions).start(DURABLE, b"nothing", "shelf.txt")
