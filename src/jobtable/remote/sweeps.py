"""Sweeps of a server: read as here, changed by its REST API."""

from __future__ import annotations

import uuid

from jobtable.jobs.engine import Jobs
from jobtable.jobs.entities import Job
from jobtable.remote.server import Server, path_of
from jobtable.sweeps.service import Sweeps
from jobtable.sweeps.sweep import Sweep


class ServerSweeps(Sweeps):
    """Sweeps that a server's workers run. In whose name they are, the token says."""

    def __init__(self, server: Server, jobs: Jobs) -> None:
        super().__init__(jobs)
        self._server = server

    def submit(self, sweep: Sweep, *, sweep_id: str | None = None, user: str = "local") -> Job:
        """Submit a sweep; gives its parent job."""
        body = {**sweep.job_config(), "sweep_id": sweep_id}
        return Job.model_validate(self._server.write("POST", "/sweeps", body, key=str(uuid.uuid4())))

    def stop(self, sweep_id: str, *, by: str = "local") -> Job:
        """Make no more trials, let those that run end in order, and keep what there is."""
        return Job.model_validate(self._server.write("POST", path_of("sweeps", sweep_id, "stop")))

    def resume(self, sweep_id: str, *, by: str = "local") -> int:
        """Put every trial back into the queue that has ended but is not COMPLETED; gives their number."""
        return int(self._server.write("POST", path_of("sweeps", sweep_id, "resume"))["count"])
