"""Which of the workers that jobs name have a page: who claims by the API may do so without having registered."""

from __future__ import annotations

from collections.abc import Iterable

from jobtable.jobs.stored.entities import Instance, Job
from jobtable.store import Store


def known_workers(store: Store, jobs: Iterable[Job]) -> frozenset[str]:
    """The ids of those that are there; one batch of reads for all."""
    named = dict.fromkeys(job.instance_id for job in jobs if job.instance_id)
    found = store.batch_get([Instance.key(instance_id=each) for each in named], consistent=False)
    return frozenset(worker.instance_id for worker in found if worker is not None)
