"""The task of the demonstration asks nobody, whatever is set."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobtable.app import Services
from jobtable.assist.entities import CallStatus
from jobtable.demo import parts
from jobtable.testing.assist import AssistServer
from tests.running import run_jobs


def test_the_demonstration_asks_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with AssistServer() as server, Services.open("memory:") as services:
        provider = f'[assist.providers.set]\nkind = "openai"\nbase_url = "{server.openai_url}"\nmodel = "m"\n'
        Path("jobtable.toml").write_text(f'[assist]\nprovider = "set"\n{provider}')
        part = next(each for each in parts() if each.title == "Assistant")
        for _ in range(2):  # a second start changes nothing
            part.start(services, tmp_path)
        assert run_jobs(services.engine, "default") == 1
        state = part.look(services)
        assert (state.status, state.percent, state.is_settled) == ("COMPLETED", 100, True)
        job_id = part.page.removeprefix("/jobs/")
        assert services.jobs.queries.get_job(job_id).result == {"delivery": 2, "price": 2, "product": 2}
        calls = list(services.assist.list_calls(job_id))
        assert {call.status for call in calls} == {CallStatus.NOT_ASKED}
        assert len(calls) == 6
        assert services.assist.find_total(job_id) is None
        assert server.requests == []
