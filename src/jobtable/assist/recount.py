"""Totals compared with the calls that they count."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date as Date  # noqa: N812 - a field is called date
from types import MappingProxyType

from jobtable.assist.costs import AssistReads, Used, used_by
from jobtable.assist.entities import AssistCall, AssistCost, AssistTotal, CallStatus
from jobtable.jobs.read.job_queries import JobQueries
from jobtable.jobs.read.job_reads import JobReads


@dataclass(frozen=True)
class Difference:
    """A total that is not the sum of its calls."""

    of: str
    """The total: a job, its tree, or a day with system, purpose, provider and model."""
    measure: str
    """What differs, as in `tokens_in`."""
    total: int
    counted: int


class Recount:
    """Compares totals with the calls. It reads them all, and is exact only while no call begins or ends."""

    def __init__(self, reads: AssistReads) -> None:
        self._reads = reads
        self._store = reads.store

    def of_job(self, job_id: str) -> list[Difference]:
        """Compare the total of a job, and that of its tree if it has one, with their calls.

        That of a tree is larger than its calls once jobs below were deleted: what they cost counts in its budget.
        """
        job = JobQueries(self._store).get_job(job_id)
        found = list(_differences(f"job {job_id}", self._reads.find_total(job_id), self._calls(job_id)))
        of_tree = self._reads.find_total(job_id, "tree")
        if of_tree is not None or job.root_job_id in (None, job_id):
            found += _differences(f"tree of job {job_id}", of_tree, self._calls_of_tree(job_id))
        return found

    def of_days(self, first: Date, last: Date) -> list[Difference]:
        """Compare what days cost with the calls of those days.

        A total is larger than its calls once jobs were deleted: their calls are gone, their costs stay.
        """
        totals = {_group(cost): cost for cost in self._reads.list_costs(first, last)}
        calls: dict[str, list[AssistCall]] = defaultdict(list)
        for number in range((last - first).days + 1):
            for call in self._reads.list_calls_of_day(Date.fromordinal(first.toordinal() + number)):
                calls[_group(call)].append(call)
        groups = dict.fromkeys([*totals, *calls])
        return [each for group in groups for each in _differences(group, totals.get(group), calls[group], {})]

    def _calls(self, job_id: str) -> Iterable[AssistCall]:
        return self._store.query(AssistCall.key(job_id=job_id), consistent=True)

    def _calls_of_tree(self, job_id: str) -> Iterator[AssistCall]:
        for job in JobReads(self._store, self._reads.objects).list_tree(job_id):
            yield from self._calls(job.job_id)


def _group(of: AssistCost | AssistCall) -> str:
    return " ".join([of.date.isoformat(), of.system, of.purpose, of.provider, of.model])


def _differences(
    what: str,
    total: AssistTotal | AssistCost | None,
    calls: Iterable[AssistCall],
    nothing: Mapping[str, int] = MappingProxyType({"reserved_tokens": 0, "reserved_nanodollars": 0}),
) -> Iterator[Difference]:
    """Yield what differs. `nothing` names what is compared besides the usage: the costs of days reserve nothing."""
    counted, reserved = Used(), dict(nothing)
    for call in calls:
        counted.add(used_by(call))
        if call.status is CallStatus.STARTED:
            for name in reserved:
                reserved[name] += getattr(call, name)
    for name, count in (dict(counted) | reserved).items():
        if (known := 0 if total is None else getattr(total, name)) != count:
            yield Difference(what, name, known, count)
