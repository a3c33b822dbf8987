"""Jobs side by side: what differs, and a job with the earlier ones of its task."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.web.conftest import Served

from jobtable.access.entities import Role
from jobtable.jobs.lifecycle.leases import Outcome
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.submit.definition import NewJob
from jobtable.web.formats import NOTHING


def run(served: Served, name: str, outcome: Outcome | None = None, losses: tuple[float, ...] = (), **given: Any) -> str:
    """A job that has ended, by its id."""
    jobs = served.services.engine
    jobs.submit(NewJob(name=name, **{"task": "training:train", "queue": "q", **given}))
    (lease,) = jobs.claim("q", limit=1, instance_id="w", lease_seconds=60)
    with JobContext(jobs, lease) as context:
        for step, loss in enumerate(losses):
            context.metric("loss", loss, step=step)
    jobs.finish(lease, outcome or Outcome.completed())
    return lease.job.job_id


def compared(client: httpx.Client, *ids: str) -> dict[str, list[str]]:
    """The rows of the page: what is compared, and the value of each job."""
    page = client.get("/compare", params={"id": list(ids)})
    assert page.status_code == 200, page.text
    rows = re.findall(r"<tr(?: class=\"differs\")?><th scope=\"row\">(.*?)</th>(.*?)</tr>", page.text, re.DOTALL)
    return {name: [_text(cell) for cell in re.findall("<td>(.*?)</td>", cells, re.DOTALL)] for name, cells in rows}


def _text(markup: str) -> str:
    return " ".join(re.sub("<[^>]+>", " ", markup).split())


def test_what_differs_between_jobs_is_told_first(serve: Callable[..., Served]) -> None:
    served = serve(require_token=True)
    client = served.client(Role.READ, Accept="text/html")
    common = {"alpha": 1, "text": "<b>x</b>"}
    good = run(served, "one", Outcome.completed({"f1": 0.9}), (0.5, 0.25), params={**common, "rate": 0.1, "only": None})
    bad = run(served, "one", Outcome.failed("no <i>luck</i>"), (0.5,), params={**common, "rate": 0.2}, memory_mb=64)
    rows = compared(client, bad, good)
    assert rows["Status"] == ["failed", "completed"]
    assert rows["Message"] == ["no &lt;i&gt;luck&lt;/i&gt;", NOTHING]
    assert rows["rate"] == ["0.2", "0.1"]
    assert rows["only"] == [NOTHING, "null"]
    assert rows["text"] == ["&lt;b&gt;x&lt;/b&gt;"] * 2
    assert rows["f1"] == [NOTHING, "0.9"]
    assert rows["loss"] == ["0.5", "0.25"]
    assert rows["memory_mb"] == ["64", NOTHING]
    assert list(rows)[list(rows).index("only") :][:4] == ["only", "rate", "alpha", "text"], "those that differ first"
    page = client.get("/compare", params={"id": [bad, good]}).text
    assert '<tr class="differs"><th scope="row">rate</th>' in page
    assert '<tr><th scope="row">alpha</th>' in page


def test_a_job_alone_is_compared_with_the_earlier_ones_of_its_name_or_else_of_its_task(
    serve: Callable[..., Served],
) -> None:
    served = serve()
    client = served.client(Accept="text/html")
    first = run(served, "nightly", Outcome.failed("no"))
    run(served, "other", task="other:task")
    second, third = run(served, "nightly"), run(served, "once")
    assert compared(client, second)["Status"] == ["completed", "failed"]
    assert len(compared(client, third)["Status"]) == 3, "no job had its name"
    assert "This task has no earlier jobs" in client.get("/compare", params={"id": first}).text
    assert f'href="/compare?id={second}"' in client.get(f"/jobs/{second}").text


@pytest.mark.parametrize(("ids", "status"), [([], 422), (["none"], 404), ([str(n) for n in range(9)], 422)])
def test_what_cannot_be_compared_is_refused(open_server: Served, ids: list[str], status: int) -> None:
    answer = open_server.client(Accept="text/html").get("/compare", params={"id": ids})
    assert answer.status_code == status
    assert '<a class="button" href="/jobs">' in answer.text


def test_jobs_that_are_gone_are_left_out(serve: Callable[..., Served]) -> None:
    served = serve()
    kept, other = run(served, "a"), run(served, "b")
    client = served.client(Accept="text/html")
    assert len(compared(client, kept, "gone", other)["Status"]) == 2
