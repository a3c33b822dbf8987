"""The pages of workflows, without a browser: what they show, to whom, and that texts stay texts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from tests.web.conftest import Served
from tests.web.workflow_world import (
    DISTRIBUTED,
    DONE,
    FAILED,
    FUNCTION,
    MACHINE,
    fill_workflows,
    move_executions,
    paths,
    start_durable,
)
from tests.web.world import MARKUP
from tests.workflows.asl.case_files import read_cases
from tests.workflows.asl.memory_runner import run_case
from tests.workflows.asl.stored_histories import create_machine, store_history
from tests.workflows.durable.driving import Driver, JumpingClock

from jobtable.access.entities import Role
from jobtable.jobs.stored.field_types import Status
from jobtable.workflows.asl.arns import Arns
from jobtable.workflows.asl.verbs import RunnableMachine

EXECUTION = f"/workflows/executions/{MACHINE}/{DONE}"
DURABLE = f"/workflows/durable/{FUNCTION}/waits-for-an-answer"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("workflows")
    server = Served(store=f"file:{folder / 'workflows.db'}", require_token=True)
    fill_workflows(server.services, MARKUP)
    start_durable(server.services, folder)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def pages(served: Served) -> httpx.Client:
    return served.client(Role.FULL, Accept="text/html")


@pytest.fixture(scope="module")
def looking(served: Served) -> httpx.Client:
    return served.client(Role.READ, Accept="text/html")


def statuses(page: str) -> dict[str, str]:
    """Return the status of each state in the graph."""
    return {
        name: words.rpartition(", ")[2]
        for name, words in re.findall(r'data-state-name="([^"]*)" aria-label="([^"]*)"', page)
    }


def test_texts_stay_texts(pages: httpx.Client) -> None:
    seen = 0
    for path in paths():
        page = pages.get(path)
        assert page.status_code == 200, path
        assert "<img src=x" not in page.text, path
        assert " style=" not in page.text, path
        seen += "&lt;img src=x" in page.text
    assert seen >= 5


def test_the_graph_has_the_states_of_the_execution(pages: httpx.Client) -> None:
    done = statuses(pages.get(EXECUTION).text)
    assert done["Unreadable"] == "not entered"
    assert {status for name, status in done.items() if name != "Unreadable"} == {"succeeded"}
    failed = statuses(pages.get(f"/workflows/executions/{MACHINE}/{FAILED}").text)
    assert (failed["Read image"], failed["Unreadable"], failed["Each album"]) == ("caught", "failed", "not entered")


def test_an_iteration_is_opened_and_shows_only_its_own_states(pages: httpx.Client) -> None:
    panel = pages.get(EXECUTION, params={"state": "/States/Each album"}).text
    assert "3 succeeded" in panel
    links = re.findall(r'class="count is-succeeded" href="([^"]*iteration[^"]*)"', panel)
    assert len(links) == 3
    entered = []
    for link in links:
        page = pages.get(EXECUTION + link.replace("&amp;", "&").partition("#")[0]).text
        assert "Show all iterations" in page
        entered.append(statuses(page)["Ask a person"])
    assert sorted(entered) == ["not entered", "not entered", "succeeded"]


def test_a_state_shows_its_input_output_and_attempts(pages: httpx.Client) -> None:
    page = pages.get(EXECUTION, params={"state": "/States/Read image"}).text
    panel = page.partition('id="state"')[2].partition("</section>")[0]
    assert "&#34;picture&#34;: &#34;&lt;img" in panel
    assert "&#34;n&#34;: 1" in panel
    assert "Busy" in panel
    assert panel.count("<li>") == 2, "two attempts"
    history = page.partition('id="history"')[2]
    assert "TaskStateEntered" in history
    assert "MapStateEntered" not in history


def test_the_history_is_paged_in_both_orders(pages: httpx.Client) -> None:
    found: dict[str, list[int]] = {}
    for order in ("newest", "oldest"):
        ids: list[int] = []
        for page in (1, 2):
            shown = pages.get(EXECUTION, params={"order": order, "page": page}).text
            ids += map(int, re.findall(r'id="event-(\d+)"', shown))
        found[order] = ids
    assert found["oldest"] == list(range(1, len(found["oldest"]) + 1))
    assert found["newest"] == found["oldest"][::-1]
    assert pages.get(EXECUTION, params={"order": "sideways"}).status_code in (400, 422)


def test_a_nested_execution_is_linked(pages: httpx.Client) -> None:
    path = next(path for path in re.findall(r'href="\?(state=[^"#]*Nested)', pages.get(EXECUTION).text))
    panel = pages.get(f"{EXECUTION}?{path}").text
    assert 'href="/workflows/executions/shelves/' in panel
    assert 'href="/workflows/machines/shelves"' in panel


def test_boxes_fold(pages: httpx.Client) -> None:
    machine = f"/workflows/machines/{MACHINE}"
    unfolded = pages.get(machine).text
    folded = pages.get(machine, params={"fold": "/States/Each album"}).text
    assert "Price" in statuses(unfolded)
    assert "Price" not in statuses(folded)
    assert 'aria-label="Unfold Each album"' in folded


def test_executions_are_filtered_by_status(pages: httpx.Client) -> None:
    failed = pages.get(f"/workflows/machines/{MACHINE}", params={"only": "FAILED"}).text
    assert f'href="/workflows/executions/{MACHINE}/{FAILED}"' in failed
    assert f'href="{EXECUTION}"' not in failed
    refused = pages.get(f"/workflows/machines/{MACHINE}", params={"only": "BOGUS"})
    assert refused.status_code == 400
    assert "unknown status" in refused.text


def test_who_may_only_look_is_offered_nothing_to_do(looking: httpx.Client) -> None:
    for path in (f"/workflows/machines/{MACHINE}", EXECUTION, DURABLE, "/workflows"):
        page = looking.get(path)
        assert page.status_code == 200, path
        main = page.text.partition("<main")[2]
        for offer in ("data-act=", "data-start=", "data-answer=", 'href="/workflows/new"'):
            assert offer not in main, (path, offer)
    for path in ("/workflows/new", f"/workflows/machines/{MACHINE}/definition"):
        assert looking.get(path).status_code == 403


def test_only_who_may_answer_gets_the_id_of_a_callback(
    served: Served, pages: httpx.Client, looking: httpx.Client
) -> None:
    durable = served.services.durable
    callback = next(each for each in durable.operations(FUNCTION, "waits-for-an-answer") if each.type == "CALLBACK")
    callback_id = durable.callback_id(callback)
    assert callback_id in pages.get(DURABLE).text
    assert callback_id not in looking.get(DURABLE).text


@pytest.mark.parametrize(
    "path",
    [
        "/workflows/machines/none",
        "/workflows/machines/none/definition",
        f"/workflows/executions/{MACHINE}/none",
        "/workflows/durable/none/none",
        "/workflows/map-runs/none",
    ],
)
def test_what_does_not_exist_is_a_page_that_says_so(pages: httpx.Client, path: str) -> None:
    page = pages.get(path)
    assert page.status_code == 404
    assert 'href="/workflows"' in page.text


def test_a_distributed_map_leads_to_its_run(pages: httpx.Client) -> None:
    page = pages.get(f"/workflows/executions/{DISTRIBUTED}/whole").text
    assert 'href="/workflows/map-runs/run-1"' in page
    run = pages.get("/workflows/map-runs/run-1").text
    assert f'href="/workflows/executions/{DISTRIBUTED}/whole"' in run


def test_the_input_of_an_execution_is_offered_again(pages: httpx.Client) -> None:
    page = pages.get(f"/workflows/machines/{MACHINE}", params={"like": DONE}).text
    assert "&#34;picture&#34;" in page.partition('name="input"')[2].partition("</textarea>")[0]


def test_functions_say_their_kind_and_limits(pages: httpx.Client) -> None:
    page = pages.get("/workflows/functions").text
    row = page.partition(f'href="/workflows/durable/{FUNCTION}"')[2].partition("</tr>")[0]
    assert "durable" in row
    assert "15 min" in row
    assert "128 MB" in row


def test_a_history_that_grows_is_followed(tmp_path: Path) -> None:
    server = Served(store=f"file:{tmp_path / 'grows.db'}")
    case = next(each for each in read_cases() if each.name == "a failing branch cuts the others")
    runner, ended = run_case(case)
    machine = create_machine(server.services, "grows", case.definition)
    client = server.client(Accept="text/html")
    history, runner.history = runner.history, []
    stored = store_history(server.services, machine, "one", runner)
    seen = []
    for event in history:
        stored.add([event])
        seen.append(statuses(client.get("/workflows/executions/grows/one").text)["Long"])
    stored.end(ended, runner.instant)
    assert [status for number, status in enumerate(seen) if not number or status != seen[number - 1]] == [
        "not entered",
        "waiting",
        "aborted",
    ]
    server.stop()


def test_every_case_has_a_page(tmp_path: Path) -> None:
    server = Served(store=f"file:{tmp_path / 'cases.db'}")
    client = server.client(Accept="text/html")
    cases = [each for each in read_cases() if each.type == "STANDARD" and each.subject != "limits"][::12]
    for number, case in enumerate(cases):
        runner, ended = run_case(case)
        machine = create_machine(server.services, f"case-{number}", case.definition)
        store_history(server.services, machine, "one", runner, ended)
        page = client.get(f"/workflows/executions/case-{number}/one")
        assert page.status_code == 200, case
        assert 'class="graph' in page.text, case
    server.stop()


# --- failures and attempts --------------------------------------------------------------------------------------------


def test_executions_that_failed_are_on_the_overview(serve: Callable[..., Served], tmp_path: Path) -> None:
    served = serve()
    services, jobs = served.services, served.services.engine
    fails = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "Card.Declined", "Cause": "no money"}}}
    runnable = RunnableMachine("orders", json.dumps(fails))
    services.executions.start(runnable, "{}", "order-7", arns=Arns())
    move_executions(jobs)
    Driver(jobs, JumpingClock(), tmp_path / "effects").run("failing_execution", "month-2")
    page = served.client(Accept="text/html").get("/").text
    failures = page.partition("Recent failures")[2].partition("</section>")[0]
    assert "Card.Declined: no money" in failures
    assert 'href="/workflows/executions/orders/order-7"' in failures
    assert "RuntimeError: the handler gives up" in failures
    assert 'href="/workflows/durable/failing_execution/month-2"' in failures
    assert {job.status for job in jobs.queries.list_jobs()} == {Status.FAILED}


def test_the_times_of_a_durable_execution_show_each_attempt_of_a_step(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    served = serve()
    driver = Driver(served.services.engine, JumpingClock(), tmp_path / "effects")
    driver.run("retried_step")
    page = served.client(Accept="text/html").get("/workflows/durable/retried_step/run").text
    times = page.partition("<h2>Times")[2].partition("</section>")[0]
    titles = [re.sub(r", [^,]*$", "", title) for title in re.findall("<title>(.*?)</title>", times)]
    attempts = ["attempt 1 failed", "attempt 2 failed", "attempt 3 succeeded"]
    assert titles == ["flaky: succeeded", *(f"flaky: {each}" for each in attempts)]
