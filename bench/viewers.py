"""Whether a hundred people who look on slow the workers: jobs a second with viewers of live pages, and without."""

from __future__ import annotations

import contextlib
import http.client
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.measure import report
from jobtable.app import Services
from jobtable.jobs.lifecycle.leases import Outcome
from jobtable.jobs.submit.definition import NewJob
from jobtable.settings import Settings
from jobtable.web.application import create_app
from jobtable.web.listening import bind, server_on

VIEWERS = 100
ROUNDS = 5
ROUND_SECONDS = 4.0
JOBS_AT_ONCE = 25


def run() -> None:
    """Let a worker in a process of its own run jobs, in turns with viewers and without."""
    with TemporaryDirectory() as folder:
        store = f"file:{Path(folder) / 'viewers.db'}"
        Services.open(store).close()
        worker = subprocess.Popen(
            [sys.executable, "-m", "bench.viewers", store], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        with_viewers, without = [], []
        with served(store) as port:
            for _ in range(ROUNDS):
                without.append(rate(worker))
                with viewers(port):
                    with_viewers.append(rate(worker))
        worker.communicate("", timeout=60)
    ours, peer = sorted(with_viewers)[ROUNDS // 2], sorted(without)[ROUNDS // 2]
    report(f"jobs with {VIEWERS} viewers of live pages", ours, "without viewers", peer, target=0.9)


def rate(worker: subprocess.Popen[str]) -> float:
    """Jobs a second in one round."""
    if worker.stdin is None or worker.stdout is None:
        raise RuntimeError("the worker has no pipes")
    worker.stdin.write("go\n")
    worker.stdin.flush()
    return float(worker.stdout.readline())


@contextlib.contextmanager
def served(store: str) -> Iterator[int]:
    """A server over the store, on a free port."""
    with Services.open(store) as services, bind("127.0.0.1", 0) as listening:
        server = server_on(create_app(services, Settings(requests_per_minute=1_000_000)))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield listening.getsockname()[1]
        server.should_exit = True
        thread.join()


@contextlib.contextmanager
def viewers(port: int) -> Iterator[None]:
    """Half of them look at the overview, half at the list of jobs. What they are told is read as it comes."""
    connections = []
    for number in range(VIEWERS):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", f"/api/v1/live?topic={'overview' if number % 2 else 'jobs'}")
        response = connection.getresponse()
        reader = threading.Thread(target=_read_on, args=(response,), daemon=True)
        reader.start()
        connections.append(connection)
    time.sleep(0.5)
    yield
    for connection in connections:
        if connection.sock is not None:
            connection.sock.shutdown(2)
        connection.close()
    time.sleep(0.5)


def _read_on(response: http.client.HTTPResponse) -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError, http.client.HTTPException):
        while response.readline():
            pass


def work(store: str) -> None:
    """The worker: for each line that comes in, run jobs for a while and say how many it were a second."""
    with Services.open(store) as services:
        jobs = services.engine
        for _ in sys.stdin:
            begin, done = time.perf_counter(), 0
            while time.perf_counter() - begin < ROUND_SECONDS:
                jobs.submit_many(NewJob(name="job", task="x:y") for _ in range(JOBS_AT_ONCE))
                leases = jobs.claim("default", limit=JOBS_AT_ONCE, instance_id="bench", lease_seconds=60)
                jobs.finish_many([(lease, Outcome.completed(None)) for lease in leases])
                done += len(leases)
            print(done / (time.perf_counter() - begin), flush=True)


if __name__ == "__main__":
    work(sys.argv[1])
