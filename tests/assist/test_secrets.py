"""A secret is planted in the environment and sent in a header of each request: it is nowhere else to be found."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from jobtable import open_jobs
from jobtable.app import Services
from jobtable.jobs import Jobs, NewJob
from jobtable.settings import Settings
from jobtable.testing.assist import AssistServer, Question, Reply, failing
from tests.web.conftest import Served

SECRET = "IQoJplantedSECRETplantedSECRETplantedSECRET0123456789"
MARKER = "Which label does the comment have?"
TASKS = """
import logging

from jobtable.jobs import JobContext, task


@task
def ask(job: JobContext, prompt: str) -> str:
    logging.basicConfig(level=logging.DEBUG)
    logging.getLogger("own").debug("asking for %s", prompt)
    return job.assist("check", prompt)


@task
def embed(job: JobContext, prompt: str) -> list[float]:
    return job.embed([prompt]).vectors[0]
"""
PROVIDERS = {
    "openai": (
        "authorization",
        'kind = "openai"\napi_key_env = "PLANTED"\nbase_url = "{url}/v1"\nembedding_model = "v"',
    ),
    "bedrock": (
        "x-amz-security-token",
        'kind = "bedrock"\nregion = "eu-west-1"\nbase_url = "{url}"\nembedding_model = "amazon.titan-embed-text-v2:0"',
    ),
}
ASKED = ("fine", "refused", "unauthorized", "broken")


def reply(question: Question) -> Reply:
    """Answer as the last word of a prompt says, with errors that repeat the secret."""
    prompt = question.prompt or question.texts[0]
    how = prompt.rpartition(" ")[2]
    if how == "fine":
        return Reply(headers={"x-echo": SECRET})
    return failing("refused" if how == "broken" else how, message=f"the key {SECRET} is not for you")


class Place:
    """A folder with settings and tasks, and the commands that are run there with the secret in their environment."""

    def __init__(self, folder: Path, kind: str, url: str) -> None:
        self.folder = folder
        self.store = f"file:{folder / 'jobs.db'}"
        section = PROVIDERS[kind][1].format(url=url)
        (folder / "jobtable.toml").write_text(
            f'store = "{self.store}"\n[assist]\nprovider = "main"\n[assist.providers.main]\nmodel = "m"\n{section}\n'
        )
        (folder / "asking.py").write_text(TASKS)
        given = {"PLANTED": SECRET, "AWS_ACCESS_KEY_ID": "AKIA1", "AWS_SECRET_ACCESS_KEY": SECRET}
        self.environment = {**os.environ, **given, "AWS_SESSION_TOKEN": SECRET, "PYTHONPATH": os.pathsep.join(sys.path)}
        self.printed: list[str] = []

    def run(self, *arguments: str) -> str:
        """Run a command; return what it prints."""
        command = [sys.executable, "-m", "jobtable", *arguments]
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )
        self.printed.append(done.stdout + done.stderr)
        return done.stdout

    def submit(self, jobs: Jobs, task: str, how: str) -> str:
        params = {"prompt": f"{MARKER} {how}"}
        return jobs.submit(NewJob(name=how, task=f"asking:{task}", params=params, queue="default")).job_id


@pytest.fixture(params=PROVIDERS)
def worked(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Place, list[str]]]:
    """A folder in which a worker has asked for answers that failed in every way, and the ids of the jobs."""
    header = PROVIDERS[request.param][0]
    with AssistServer(reply) as server:
        place = Place(tmp_path, request.param, server.url)
        with open_jobs(place.store) as jobs:
            ids = [place.submit(jobs, "ask", how) for how in ASKED]
            ids += [place.submit(jobs, "embed", how) for how in ASKED[:2]]
        place.run("worker", "--until-empty")
        place.run("assist", "try", f"{MARKER} unauthorized")
        assert len(server.requests) >= len(ids)
        assert all(SECRET in each.headers[header] for each in server.requests)
        yield place, ids


def stored(place: Place) -> str:
    """Return all items and objects as text, with the files as they are."""
    services = Services.from_settings(Settings(store=place.store))
    parts: list[str] = []
    for table in services.store.tables.names():
        parts.append(str(services.store.backend.execute("Scan", {"TableName": table})["Items"]))
    for listed in services.objects.list():
        parts.append(services.objects.get(listed.key).decode("utf-8", "replace"))
    services.close()
    files = (each for each in place.folder.rglob("*") if each.is_file())
    return "".join([*parts, *(each.read_bytes().decode("latin-1") for each in files)])


def shown(place: Place) -> str:
    """Return the pages of jobs and their calls, and what they link to."""
    served = Served(store=place.store)
    try:
        client, seen = served.client(), dict[str, str]()
        waiting = ["/", "/jobs", "/assist", "/api/v1/jobs", "/api/v1/assist/costs", "/api/v1/assist/providers"]
        while waiting:
            path = waiting.pop()
            if path in seen:
                continue
            answered = _get(client, path)
            seen[path] = f"{answered.headers}{answered.text}"
            if "html" in answered.headers["content-type"]:
                links = re.findall(r'href="(/(?:jobs/|assist|api/)[^"#]*)"', answered.text)
                waiting += [each.replace("&amp;", "&") for each in links]
        assert any(path.startswith("/assist/calls/") for path in seen)
        return json.dumps(seen)
    finally:
        served.stop()


def _get(client: httpx.Client, path: str) -> httpx.Response:
    with client.stream("GET", path) as answered:
        if "event-stream" not in answered.headers.get("content-type", ""):
            answered.read()
        return answered


def test_a_planted_secret_is_found_nowhere(worked: tuple[Place, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    place, ids = worked
    refused = ids[ASKED.index("refused")]
    (call,) = json.loads(place.run("assist", "calls", refused, "--json"))["calls"]
    place.run("assist", "show", refused, call["call_id"])
    for command in ("jobs show", "jobs logs"):
        place.run(*command.split(), refused)
    for command in ("assist providers", "config show"):
        place.run(*command.split())
    monkeypatch.chdir(place.folder)
    monkeypatch.setenv("PLANTED", SECRET)

    where = {"stored": stored(place), "printed": "".join(place.printed), "shown": shown(place)}

    assert {name: MARKER in text for name, text in where.items()} == dict.fromkeys(where, True)
    assert {name: "is not for you" in text for name, text in where.items()} == dict.fromkeys(where, True)
    assert {name: SECRET in text for name, text in where.items()} == dict.fromkeys(where, False)
