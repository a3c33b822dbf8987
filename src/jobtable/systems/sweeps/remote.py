"""Sweeps of a server: read through its store, changed through its REST API, and run by remote workers."""

from __future__ import annotations

from typing import Any

from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.jobs.stored.entities import Job
from jobtable.jobs.verbs import WorkVerbs
from jobtable.remote.recording import lease_of
from jobtable.remote.server_requests import TIMEOUT_SECONDS, Server, path_of
from jobtable.systems.sweeps.desk import EarlierRuns, SweepDesk
from jobtable.systems.sweeps.service import Sweeps
from jobtable.systems.sweeps.sweep import Sweep

_PLANNING_SECONDS = 600.0
"""Some samplers take long if they learn from many trials."""


class ServerSweeps(Sweeps):
    """Sweeps that the workers of a server run; the token decides in whose name."""

    def __init__(self, server: Server, jobs: Jobs) -> None:
        super().__init__(jobs)
        self._server = server

    def submit(self, sweep: Sweep, *, sweep_id: str | None = None, user: str = "local") -> Job:
        body = {**sweep.job_config(), "sweep_id": sweep_id}
        return Job.model_validate(self._server.create("/sweeps", body))

    def stop(self, sweep_id: str, *, by: str = "local") -> Job:
        return Job.model_validate(self._server.write("POST", path_of("sweeps", sweep_id, "stop")))

    def resume(self, sweep_id: str, *, by: str = "local") -> int:
        return int(self._server.write("POST", path_of("sweeps", sweep_id, "resume"))["count"])

    def extend(self, sweep_id: str, *, trials: int | None = None, total: int | None = None, by: str = "local") -> int:
        body = {"trials": trials, "total": total}
        path = path_of("sweeps", sweep_id, "extend")
        return int(self._server.create(path, body)["total"])


class ServerSweepDesk(SweepDesk):
    """The sweep of a job that a remote worker holds; it waits for a server that does not answer."""

    def __init__(self, server: Server, work: WorkVerbs, lease: Lease) -> None:
        self._server = server
        self._lease = lease

    def get_definition(self) -> Sweep:
        return Sweep.model_validate(self._read("sweep"))

    def plan(self, *, is_inline: bool) -> int:
        planned = self._write("POST", "sweep", "plan", timeout_seconds=_PLANNING_SECONDS, is_inline=is_inline)
        return int(planned["count"])

    def find_earlier_runs(self) -> EarlierRuns:
        return EarlierRuns.model_validate(self._read("trial"))

    def keep_rung(self, rung: int, value: float, *, epoch: int, is_stopped: bool) -> None:
        self._write("PUT", "trial", "rungs", str(rung), value=value, training_epoch=epoch, is_stopped=is_stopped)

    def keep_stop(self, value: float, *, epoch: int | None) -> None:
        self._write("PUT", "trial", "stop", value=value, training_epoch=epoch)

    def list_others_at(self, rung: int) -> list[float]:
        return [float(value) for value in self._read("trial", "rungs", str(rung))]

    def adapt(self) -> int:
        return int(self._write("POST", "sweep", "adapt")["count"])

    def _read(self, *parts: str) -> Any:
        return self._server.read("GET", path_of("jobs", self._lease.job.job_id, *parts), query=lease_of(self._lease))

    def _write(self, method: str, *parts: str, timeout_seconds: float = TIMEOUT_SECONDS, **more: Any) -> Any:
        path = path_of("jobs", self._lease.job.job_id, *parts)
        body = {**lease_of(self._lease), **more}
        return self._server.write(method, path, body, timeout_seconds=timeout_seconds)
