"""Eight processes claim jobs of one queue: no job is claimed twice in one epoch, none is left over, counts are exact.

`python -m faults.claims URL SEED MOST` claims, finishes and sometimes releases, and prints a line for every claim.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterator

from faults.jobs import end, jobs_in_folder, problems_in, start, unfinished, url_of

from jobtable.app import open_jobs
from jobtable.jobs.lifecycle.leases import Outcome
from jobtable.jobs.submit.definition import NewJob


def run(trials: int = 10_000, seed: int = 1, claimers: int = 8) -> Iterator[dict[str, object]]:
    """Let claimers share so many jobs: half of them first, then, after a recount, the rest."""
    with jobs_in_folder("claims") as (jobs, folder):
        jobs.create_queue("default", max_concurrent_jobs=trials)
        jobs.submit_many(NewJob(name="some", task="some:task") for _ in range(trials))
        claims: Counter[str] = Counter()
        problems = []
        for most in (trials // (2 * claimers), trials):
            for claimer in [start("faults.claims", url_of(folder), seed + n, most) for n in range(claimers)]:
                claims.update(end(claimer))
                if claimer.returncode:
                    problems.append(f"a claimer ended with {claimer.returncode}")
            problems += problems_in(jobs)
        problems += unfinished(jobs)
        problems += [f"{claim} was claimed {count} times" for claim, count in claims.items() if count > 1]
        left = jobs.queries.get_queue("default").job_count
        if left:
            problems.append(f"{left} jobs are left over")
    for problem in problems:
        print(problem, file=sys.stderr)
    yield {"fault": "claims", "trials": trials, "violations": len(problems), "claims": len(claims), "seed": seed}


def main(url: str, seed: str, most: str) -> None:
    """Claim until nothing is left, or until so many jobs are finished."""
    chance = random.Random(int(seed))
    jobs = open_jobs(url)
    finished = 0
    while finished < int(most):
        leases = jobs.claim("default", limit=chance.randint(1, 40), instance_id=f"claimer-{seed}", lease_seconds=600)
        if not leases:
            break
        for lease in leases:
            print(lease.job.job_id, lease.epoch)
        released = [lease for lease in leases if chance.random() < 0.05]
        for lease in released:
            jobs.release(lease, "by chance")
        kept = [(lease, Outcome.completed()) for lease in leases if lease not in released]
        if jobs.finish_many(kept):
            raise RuntimeError("a lease was lost that nobody took")
        finished += len(kept)
    jobs.store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
