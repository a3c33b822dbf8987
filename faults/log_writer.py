"""A process that logs and reports metrics of a job that is claimed already, with a clock that stands still.

python -m faults.log_writer URL JOB_ID NAME COUNT

It logs the lines `NAME 0` to `NAME COUNT-1` and as many values of the metric `shared`. A count of -1 means: until it is
killed, with the machine's clock, and with the time on standard output of each line that it logs.
"""

from __future__ import annotations

import sys
import time
from itertools import count

from jobtable.clock import SYSTEM_CLOCK
from jobtable.connection import connect
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.jobs.report.context import JobContext
from jobtable.objects.memory import MemoryObjectStore
from jobtable.testing import FakeClock

FLUSH_SECONDS = 0.1


def main(url: str, job_id: str, name: str, times: int) -> None:
    """Log, and report."""
    clock = SYSTEM_CLOCK if times < 0 else FakeClock()
    with connect(url, clock=clock) as store:
        jobs = Jobs(store, MemoryObjectStore(clock), clock=clock)
        lease = Lease(jobs.queries.get_job(job_id), "writer")
        with JobContext(jobs, lease, flush_seconds=FLUSH_SECONDS) as context:
            for number in count() if times < 0 else range(times):
                if times < 0:
                    print(time.monotonic(), flush=True)
                context.log(f"{name} {number}")
                context.metric("shared", number, unit=name)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
