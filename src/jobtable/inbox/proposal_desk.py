"""What a task proposes, on behalf of the job that it runs."""

from __future__ import annotations

from jobtable.inbox.proposals import Proposals
from jobtable.jobs.engine import Jobs
from jobtable.jobs.lifecycle.leases import Lease
from jobtable.jobs.report.proposing import Proposal, Proposed, Proposing


class ProposalDesk(Proposing):
    """The proposals of one run of a job, on its store."""

    def __init__(self, jobs: Jobs, lease: Lease) -> None:
        self._proposals = Proposals(jobs)
        self._lease = lease

    def propose(self, proposal: Proposal) -> Proposed:
        task = self._proposals.propose(proposal, by=self._lease.job.created_by, lease=self._lease)
        return Proposed(task.task_id, task.status)
