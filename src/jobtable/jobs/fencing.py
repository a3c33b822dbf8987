"""Writes in the name of a lease: refused as lost when another worker may have the job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from jobtable.errors import TransactionFailedError
from jobtable.jobs.entities import Job
from jobtable.jobs.leases import Lease


@contextmanager
def lost_if_refused(lease: Lease) -> Iterator[None]:
    """Raise LeaseLostError where a transaction with `check_lease` did not happen because the lease is not held."""
    try:
        yield
    except TransactionFailedError as error:
        about_job = [failure for failure in error.failures if failure.action.startswith(f"check {Job.__name__} ")]
        if any(failure.code == "ConditionalCheckFailed" for failure in about_job):
            raise lease.lost() from error
        raise
