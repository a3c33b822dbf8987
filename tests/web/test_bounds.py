"""However much there is, an answer costs the same: every GET is asked of a store with many of everything, and more."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import pytest
from fastapi.routing import iter_route_contexts
from tests.web.conftest import Served
from tests.web.crowd import fill

from jobtable.web.guard import READ, WRITE, rule_of

MANY, MORE = 130, 260
"""More than a page shows; the bounds of pages that are larger are made small."""
_SMALL = 10
_BOUNDED = ("jobtable.web.", "jobtable.jobs.read.listing", "jobtable.jobs.read.waiting")
"""Where they stand."""
_SPARE_UNITS = 1.5
"""Less than it costs to read as many of the smallest items as one store has more than the other."""
_API = "/api/v1"
_LIVE = f"{_API}/live"
"""It never ends."""
_IDS = {
    "album_index": "3",
    "alias": "A1",
    "batch_id": "batch",
    "conversation_id": "talk",
    "day": "2025-01-01",
    "epoch": "3",
    "execution_id": "exec-1",
    "field_name": "total",
    "field_type": "DATE",
    "image_id": "image",
    "instance_id": "i",
    "item_id": "1",
    "job_id": "job",
    "journey_id": "J",
    "key": "reports/x.json",
    "label": "TOTAL",
    "label_target": "merchant",
    "line_id": "1",
    "merchant_name": "Shop",
    "metric_name": "loss",
    "other_id": "run-b",
    "place_id": "P",
    "queue_name": "gpu",
    "receipt_id": "1",
    "resource_id": "gpu-0",
    "result_type": "warning",
    "run_id": "run-a",
    "search_type": "ADDRESS",
    "stage_id": "raw_analysis",
    "sweep_id": "sweep",
    "table_name": "jobtable",
    "task_id": "task",
    "word_id": "1",
}
_ASKED = {
    f"{_API}/jobs": ["", "status=RUNNING", "user=ada", "text=none", "tag=none", "parent=job", "parent=job&tag=none"],
    f"{_API}/jobs/{{job_id}}/logs": ["", "level=ERROR"],
    f"{_API}/jobs/{{job_id}}/logs/search": ["text=none"],
    f"{_API}/statuses": ["status=COMPLETED"],
    f"{_API}/jobs/{{job_id}}/metrics": ["", "since=2999-01-01T00:00:00Z"],
    f"{_API}/metrics/{{metric_name}}": ["", "by_job=true", "job_id=job", "since=2025-01-01T00:00:00Z"],
    f"{_API}/queues/{{queue_name}}/jobs": ["", "group_id=none"],
    f"{_API}/journeys": ["", "status=failed"],
    f"{_API}/instances": ["", "status=TERMINATED"],
    f"{_API}/queue-states": ["queue=gpu"],
    f"{_API}/conversation-jobs/{{job_id}}/embeddings": ["", "conversation_id=none"],
    f"{_API}/executions": ["workflow_type=step-functions"],
    f"{_API}/executions/{{execution_id}}/tasks": ["workflow_type=step-functions"],
    f"{_API}/tasks": ["workflow_type=step-functions"],
    f"{_API}/workflow-metrics": ["workflow_type=step-functions"],
    f"{_API}/images/{{image_id}}/receipt-words": ["", "most_confidence=0.1"],
    f"{_API}/labels": ["", "label=TOTAL", "status=VALID"],
    f"{_API}/validations": ["status=NEEDS_REVIEW"],
    f"{_API}/validations/second-passes": ["status=VALID"],
    f"{_API}/validations/fields/{{field_name}}": ["status=VALID"],
    f"{_API}/batches": ["status=PENDING"],
    f"{_API}/places/{{search_type}}/answer": ["search_value=1"],
    f"{_API}/tables/{{table_name}}/items": ["partition=JOB%23job"],
    "/compare": ["id=job&id=child-1", "id=child-1"],
    "/jobs": ["", "text=none"],
    "/tables/{table_name}": ["partition=JOB%23job"],
}
"""What is asked of a route beside what its path says."""
_WHOLE = {
    f"{_API}/journeys/{{journey_id}}": "the whole journey, as it is asked for",
    f"{_API}/journeys/{{journey_id}}/rules": "a stage has 999 at most",
    f"{_API}/journeys/{{journey_id}}/export": "a file with everything",
    f"{_API}/conversation-runs/{{run_id}}/comparison/{{other_id}}": "all results of two runs",
    f"{_API}/executions/{{execution_id}}": "an execution with all its albums",
    f"{_API}/executions/{{execution_id}}/albums": "as above",
    f"{_API}/images/{{image_id}}/contents": "everything under an image",
    f"{_API}/images/{{image_id}}/receipts/{{receipt_id}}": "everything under a receipt",
    f"{_API}/images/{{image_id}}/receipts/{{receipt_id}}/analyses": "as above",
    "/": "all queues and workers are counted",
    "/journeys/{journey_id}": "the whole journey",
    "/executions/{execution_id}": "an execution with all its albums",
}
"""What is asked for as a whole, and is as large as it is."""


def _addresses(served: Served) -> Iterator[str]:
    for route in iter_route_contexts(served.app.routes):
        path = str(route.path)
        if (
            "GET" not in (route.methods or ())
            or rule_of(route.endpoint) not in (READ, WRITE)
            or path in (*_WHOLE, _LIVE)
        ):
            continue
        ids = {**_IDS, "job_id": "run-0"} if "executions/{job_id}" in path else _IDS
        address = re.sub(r"\{(\w+)(:path)?\}", lambda found: ids[found[1]], path)  # noqa: B023 - used at once
        for query in _ASKED.get(path, [""]):
            yield f"{address}?{query}" if query else address


def _read_units(served: Served) -> dict[str, float]:
    """What each address costs."""
    client, units = served.client(), {}
    for address in _addresses(served):
        with served.services.store.capacity.measure() as spent:
            answer = client.get(address, headers={"Accept": "*/*" if address.startswith(_API) else "text/html"})
        assert answer.status_code in (200, 404), f"{address}: {answer.text}"
        units[address] = sum(each.read for each in spent.values())
    return units


def test_what_an_answer_costs_does_not_depend_on_how_much_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = []
    for count in (MANY, MORE):
        served = Served()
        for name, module in list(sys.modules.items()):
            for constant, value in vars(module).items() if name.startswith(_BOUNDED) else ():
                if re.match("_(MOST|LARGEST)", constant) and isinstance(value, int):
                    monkeypatch.setattr(module, constant, min(value, _SMALL))
        fill(served.services, count)
        measured.append(_read_units(served))
        served.stop()
    few, more = measured
    grown = {address: (few[address], units) for address, units in more.items() if units > few[address] + _SPARE_UNITS}
    assert grown == {}
