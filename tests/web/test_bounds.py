"""However much there is, an answer costs the same: every GET is asked of a store with many of everything, and more."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import pytest
from fastapi.routing import iter_route_contexts
from tests.contributions import contributions
from tests.web import workflow_crowd
from tests.web.conftest import Served
from tests.web.crowd import START, fill

from jobtable.web.guard import READ, WRITE, rule_of

MANY, MORE = 130, 260
"""More than a page shows; the bounds of pages that are larger are made small."""
_SMALL = 10
_BOUNDED = r"jobtable\.(web|assist\.costs|systems\.\w+\.web|jobs\.read\.(listing|waiting|reading))\b"
"""Where they stand."""
_SPARE_UNITS = 1.5
"""Less than it costs to read as many of the smallest items as one store has more than the other."""
_API = "/api/v1"
_LIVE = f"{_API}/live"
"""It never ends."""
_IDS = {
    "call_id": "chat-0",
    "date": str(START.date()),
    "epoch": "3",
    "instance_id": "i",
    "job_id": "job",
    "key": "reports/x.json",
    "metric_name": "loss",
    "queue_name": "gpu",
    "resource_id": "gpu-0",
    "table_name": "jobtable",
    "verb": "accept",
}
_ASKED = {
    f"{_API}/jobs": ["", "status=RUNNING", "user=ada", "text=none", "tag=none", "parent=job", "parent=job&tag=none"],
    f"{_API}/jobs/{{job_id}}/logs": ["", "level=ERROR"],
    f"{_API}/jobs/{{job_id}}/logs/search": ["text=none"],
    f"{_API}/statuses": ["status=COMPLETED"],
    f"{_API}/jobs/{{job_id}}/metrics": ["", "since=2999-01-01T00:00:00Z"],
    f"{_API}/metrics/{{metric_name}}": ["", "by_job=true", "job_id=job", "since=2025-01-01T00:00:00Z"],
    f"{_API}/queues/{{queue_name}}/jobs": ["", "group_id=none"],
    f"{_API}/instances": ["", "status=TERMINATED"],
    f"{_API}/queue-states": ["queue=gpu"],
    f"{_API}/tables/{{table_name}}/items": ["partition=JOB%23job"],
    "/compare": ["id=job&id=child-1", "id=child-1"],
    "/jobs": ["", "text=none"],
    "/tables/{table_name}": ["partition=JOB%23job"],
}
"""What is asked of a route beside what its path says."""
_WHOLE = {
    "/": "all queues and workers are counted",
}
"""What is asked for as a whole, and is as large as it is."""

_IDS |= workflow_crowd.IDS
_WHOLE |= workflow_crowd.WHOLE
for _system in contributions("crowd"):
    _IDS |= _system.IDS
    _ASKED |= _system.ASKED
    _WHOLE |= _system.WHOLE


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
        assert answer.status_code in (200, 303, 404), f"{address}: {answer.text}"
        units[address] = sum(each.read for each in spent.values())
    return units


def test_what_an_answer_costs_does_not_depend_on_how_much_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = []
    for count in (MANY, MORE):
        served = Served()
        for name, module in list(sys.modules.items()):
            for constant, value in vars(module).items() if re.match(_BOUNDED, name) else ():
                if re.match("_(MOST|LARGEST)", constant) and isinstance(value, int):
                    monkeypatch.setattr(module, constant, min(value, _SMALL))
        fill(served.services, count)
        workflow_crowd.fill(served.services, count)
        measured.append(_read_units(served))
        served.stop()
    few, more = measured
    grown = {address: (few[address], units) for address, units in more.items() if units > few[address] + _SPARE_UNITS}
    assert grown == {}
