"""Programs that do the same again and again: after some rounds they hold no more than before them.

What is counted of a program and of all processes that it has started: open files, threads, processes (zombies too),
temporary files, and memory. A round does each thing some times, so whatever one of them leaves behind is there some
times for each round.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from faults.jobs import REPOSITORY, url_of

from jobtable.app import open_jobs
from jobtable.jobs.engine import Jobs
from jobtable.jobs.submit.definition import NewJob
from jobtable.testing.servers import free_port

Round = Callable[[int], None]
Program = Callable[[Path], AbstractContextManager[tuple[int, Round]]]

_WARM_UP = 2
"""Rounds until caches, pools and threads are as they stay."""
_TIMES = 10
"""How often a round does each thing."""
_SLACK = 12
"""How many more files or threads may be there for another reason, as another reader of the database is."""
_MOST_MEGABYTES = 64.0
"""How much more memory may be taken: caches that have a bound are filled after many rounds only."""
_LOOKS = 10
_SECONDS_TO_REST = 240.0
"""Until what a round has left to be done is over, on a machine that has much else to do."""
_PATIENCE_SECONDS = 300.0
_TEMPORARY = "temporary"
_START = "from jobtable.cli.main import run; run()"


class Held(NamedTuple):
    """What a program has, together with all processes that it has started."""

    files: int = 0
    threads: int = 0
    processes: int = 0
    temporary_files: int = 0
    megabytes: float = 0.0


def run(trials: int = 100) -> Iterator[dict[str, object]]:
    """Let each program do so many rounds; what it has at rest afterwards is compared with what it had before them."""
    programs: dict[str, Program] = {"dynamodb serve": _dynamodb_server, "up": _whole_product}
    for name, program in programs.items():
        with tempfile.TemporaryDirectory(prefix="jobtable-soak-") as folder, program(Path(folder)) as (pid, do_round):
            look = partial(held_by, pid, Path(folder) / _TEMPORARY)
            for number in range(_WARM_UP):
                do_round(number)
            before = _least(look)
            for number in range(_WARM_UP, _WARM_UP + trials):
                do_round(number)
            after = _at_rest(look, before)
        problems = growth(before, after)
        for problem in problems:
            print(f"{name}: {problem}", file=sys.stderr)
        told = {"program": name, "before": before._asdict(), "after": after._asdict()}
        yield {"fault": "soak", "trials": trials, "violations": len(problems), **told}


def growth(before: Held, after: Held) -> list[str]:
    """What has become more than chance explains, in words."""
    most = Held(files=_SLACK, threads=_SLACK, megabytes=_MOST_MEGABYTES)
    return [
        f"{name}: {was:g} before, {now:g} afterwards"
        for name, was, now, more in zip(Held._fields, before, after, most, strict=True)
        if now > was + more
    ]


def _least(look: Callable[[], Held]) -> Held:
    """The least of each that a program has within a moment: the end of a round leaves something to be done."""
    seen = [look()]
    while len(seen) < _LOOKS:
        time.sleep(0.2)
        seen.append(look())
    return Held(*map(min, zip(*seen, strict=True)))


def _at_rest(look: Callable[[], Held], before: Held) -> Held:
    """What a program has when it is done with everything, which may take a while."""
    deadline = time.monotonic() + _SECONDS_TO_REST
    while growth(before, after := look()) and time.monotonic() < deadline:
        time.sleep(0.5)
    return after


def held_by(pid: int, temporary: Path) -> Held:
    """What a process has now, together with those that it has started."""
    files = threads = processes = kilobytes = 0
    for one in _with_descendants(pid):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            status = dict(line.split(":", 1) for line in Path(f"/proc/{one}/status").read_text().splitlines())
            processes += 1
            threads += int(status["Threads"])
            if "VmRSS" in status:  # else it is a zombie
                kilobytes += int(status["VmRSS"].split()[0])
                files += len(os.listdir(f"/proc/{one}/fd"))
    return Held(files, threads, processes, sum(1 for _ in temporary.rglob("*")), kilobytes / 1024)


def _with_descendants(pid: int) -> Iterator[int]:
    yield pid
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):
            for child in thread.read_text().split():
                yield from _with_descendants(int(child))


@contextmanager
def _started(folder: Path, *arguments: str) -> Iterator[tuple[int, str]]:
    """A command of the package that serves, with temporary files in the folder; gives its process, and its address."""
    port, temporary = free_port(), folder / _TEMPORARY
    temporary.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", _START, *arguments, "--port", str(port)],
        cwd=REPOSITORY,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_until(partial(_listens, port), f"{' '.join(arguments)} listens")
        yield process.pid, f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def _listens(port: int) -> bool:
    with suppress(ConnectionError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


def _wait_until(is_so: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            raise RuntimeError(f"it is in vain to wait until {what}")
        time.sleep(0.1)


# --- the DynamoDB server ---------------------------------------------------------------------------------------------


@contextmanager
def _dynamodb_server(folder: Path) -> Iterator[tuple[int, Round]]:
    with _started(folder, "dynamodb", "serve", "--data", str(folder), "--durability", "normal") as (pid, server):
        yield pid, partial(_ask_dynamodb, server)


def _ask_dynamodb(server: str, number: int) -> None:
    """Tables that come and go, texts that never come again, and clients that come, break off and talk nonsense."""
    for time_ in range(_TIMES):
        name = f"table-{number}-{time_}"
        key = {"id": {"S": "1"}}
        _request(server, "CreateTable", _table(name))
        _request(server, "PutItem", {"TableName": name, "Item": {**key, f"a{number}": {"S": "x"}}})
        changes = {
            "UpdateExpression": f"REMOVE a{number}_{time_}",
            "ConditionExpression": f"attribute_exists(a{number})",
        }
        _request(server, "UpdateItem", {"TableName": name, "Key": key, **changes})
        _request(server, "ExecuteStatement", {"Statement": f"SELECT a{number}_{time_} FROM \"{name}\" WHERE id = '1'"})
        _request(server, "DeleteTable", {"TableName": name})
        _request(server, f"Nonsense{number}", {})
        for said in (b"", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n{", b"nonsense\r\n\r\n"):
            with _connected(server) as client:
                client.sendall(said)


def _table(name: str) -> dict[str, Any]:
    return {
        "TableName": name,
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "BillingMode": "PAY_PER_REQUEST",
    }


def _request(server: str, operation: str, request: dict[str, Any]) -> None:
    headers = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": f"DynamoDB_20120810.{operation}"}
    with closing(http.client.HTTPConnection(server, timeout=60)) as connection:
        connection.request("POST", "/", json.dumps(request), headers)
        answer = connection.getresponse()
        answer.read()
    if (answer.status == 200) == operation.startswith("Nonsense"):
        raise RuntimeError(f"{operation} was answered with {answer.status}")


def _connected(server: str) -> socket.socket:
    host, _, port = server.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=60)


# --- the server with its worker ---------------------------------------------------------------------------------------


@contextmanager
def _whole_product(folder: Path) -> Iterator[tuple[int, Round]]:
    url = url_of(folder)
    with _started(folder, "up", "--store", url) as (pid, server):
        jobs = open_jobs(url)
        try:
            yield pid, partial(_use_product, jobs, server)
        finally:
            jobs.store.close()
            jobs.objects.close()


def _use_product(jobs: Jobs, server: str, number: int) -> None:
    """Jobs that end in every way, pages, and viewers that come and go, some of whom never read."""
    ways = ("returns", "prints", "raises", "leaves a process", "hangs")
    submitted = [
        NewJob(name=how, task="faults.tasks:end", params={"how": how}, timeout_seconds=0.5 if how == "hangs" else None)
        for how in ways
    ]
    ids = [job.job_id for job in jobs.submit_many(submitted)]
    for time_ in range(_TIMES):
        for path in ("/", "/jobs", "/queues", f"/jobs/{ids[0]}", "/metrics", f"/none/{number}/{time_}"):
            with closing(http.client.HTTPConnection(server, timeout=60)) as connection:
                connection.request("GET", path)
                connection.getresponse().read()
        for is_reading in (True, False):
            with _connected(server) as viewer:
                topics = f"topic=jobs&topic=overview&topic=job:{number}-{time_}"
                viewer.sendall(f"GET /api/v1/live?{topics} HTTP/1.1\r\nHost: {server}\r\n\r\n".encode())
                if is_reading:
                    viewer.recv(1)
    _wait_until(partial(_have_ended, jobs, ids), "the jobs of a round have ended")


def _have_ended(jobs: Jobs, ids: list[str]) -> bool:
    return all(job is not None and job.is_final for job in jobs.queries.read_jobs(ids))
