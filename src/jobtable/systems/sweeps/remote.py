"""Sweeps of a server: read as here, changed by its REST API, and run by workers elsewhere."""

from __future__ import annotations

from typing import Any

from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.jobs.stored.entities import Job
from jobtable.remote.recording import lease_of
from jobtable.remote.server import TIMEOUT_SECONDS, Server, path_of
from jobtable.systems.sweeps.desk import EarlierRuns, SweepDesk
from jobtable.systems.sweeps.service import Sweeps
from jobtable.systems.sweeps.sweep import Sweep

_PLANNING_SECONDS = 600.0
"""Some samplers think for long, where there are many trials to learn from."""


class ServerSweeps(Sweeps):
    """Sweeps that a server's workers run. In whose name they are, the token says."""

    def __init__(self, server: Server, jobs: Jobs) -> None:
        super().__init__(jobs)
        self._server = server

    def submit(self, sweep: Sweep, *, sweep_id: str | None = None, user: str = "local") -> Job:
        """Submit a sweep; gives its parent job."""
        body = {**sweep.job_config(), "sweep_id": sweep_id}
        return Job.model_validate(self._server.create("/sweeps", body))

    def stop(self, sweep_id: str, *, by: str = "local") -> Job:
        """Make no more trials, let those that run end in order, and keep what there is."""
        return Job.model_validate(self._server.write("POST", path_of("sweeps", sweep_id, "stop")))

    def resume(self, sweep_id: str, *, by: str = "local") -> int:
        """Put every trial back into the queue that has ended but is not COMPLETED; gives their number."""
        return int(self._server.write("POST", path_of("sweeps", sweep_id, "resume"))["count"])

    def extend(self, sweep_id: str, *, trials: int | None = None, total: int | None = None, by: str = "local") -> int:
        """Give a sweep so many trials more, or so many in total; gives how many it has."""
        body = {"trials": trials, "total": total}
        path = path_of("sweeps", sweep_id, "extend")
        return int(self._server.create(path, body)["total"])


class ServerSweepDesk(SweepDesk):
    """The sweep of a job that a worker elsewhere holds. A server that is away for a while is waited for."""

    def __init__(self, server: Server, jobs: Jobs, lease: Lease) -> None:
        super().__init__(jobs, lease)
        self._server = server

    def get_definition(self) -> Sweep:
        """What the sweep is to do."""
        return Sweep.model_validate(self._read("sweep"))

    def plan(self, *, is_inline: bool) -> int:
        """Let the server make the trials that this job is to plan; gives their number."""
        planned = self._tell("POST", "sweep", "plan", timeout_seconds=_PLANNING_SECONDS, is_inline=is_inline)
        return int(planned["count"])

    def find_earlier_runs(self) -> EarlierRuns:
        """What this trial has come to, when others ran it."""
        return EarlierRuns.model_validate(self._read("trial"))

    def keep_rung(self, rung: int, value: float, *, epoch: int, is_stopped: bool) -> None:
        """Record what the trial has at a rung, and whether it ends there; LeaseLostError if another worker has it."""
        self._tell("PUT", "trial", "rungs", str(rung), value=value, training_epoch=epoch, is_stopped=is_stopped)

    def keep_stop(self, value: float, *, epoch: int | None) -> None:
        """Record what the trial had when it stopped itself; LeaseLostError if another worker has it."""
        self._tell("PUT", "trial", "stop", value=value, training_epoch=epoch)

    def list_others_at(self, rung: int) -> list[float]:
        """What the other trials of the sweep have had at a rung so far."""
        return [float(value) for value in self._read("trial", "rungs", str(rung))]

    def adapt(self) -> int:
        """Let the server put the trials that wait in order; gives how many have changed."""
        return int(self._tell("POST", "sweep", "adapt")["count"])

    def _read(self, *parts: str) -> Any:
        return self._server.read("GET", path_of("jobs", self._lease.job.job_id, *parts), query=lease_of(self._lease))

    def _tell(self, method: str, *parts: str, timeout_seconds: float = TIMEOUT_SECONDS, **more: Any) -> Any:
        path = path_of("jobs", self._lease.job.job_id, *parts)
        body = {**lease_of(self._lease), **more}
        return self._server.write(method, path, body, timeout_seconds=timeout_seconds)
