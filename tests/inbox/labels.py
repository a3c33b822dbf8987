"""What the proposals of the tests change: jobs, by their description and priority, in ways that can be counted."""

from __future__ import annotations

from jobtable.inbox import FieldChange, InboxTask, Proposal, accepts, applies
from jobtable.jobs.engine import Jobs
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.stored.entities import Queue
from jobtable.jobs.tasks import task
from jobtable.store.transactions import Transaction

HERE = __name__
DELIVERED: list[tuple[InboxTask, str]] = []


@applies
def rename(tx: Transaction, proposal: InboxTask, jobs: Jobs) -> None:
    """Set the description of a queue and count how often, if the description is as it was."""
    (change,) = proposal.changes
    name = proposal.payload["queue"]
    queue = jobs.queries.get_queue(name)
    tx.update(
        Queue.key(queue_name=name),
        Queue.description.set(change.after),
        Queue.priority.set(queue.priority + 1),
        when=(Queue.description == change.before) & (Queue.priority == queue.priority),
    )


@applies
def count(tx: Transaction, proposal: InboxTask, jobs: Jobs) -> None:
    """Count an application: nothing but the inbox keeps a second one from counting too."""
    name = proposal.payload["queue"]
    tx.update(Queue.key(queue_name=name), Queue.priority.increment(), when=Queue.description == "A")


@applies
def break_down(tx: Transaction, proposal: InboxTask, jobs: Jobs) -> None:
    raise KeyError("no such label")


@applies
def write_twice(tx: Transaction, proposal: InboxTask, jobs: Jobs) -> None:
    """No transaction writes an item twice."""
    for description in ("B", "C"):
        tx.update(Queue.key(queue_name=proposal.payload["queue"]), Queue.description.set(description))


def unmarked(tx: Transaction, proposal: InboxTask, jobs: Jobs) -> None:
    raise AssertionError("nobody calls a function that is not marked")


@accepts
def is_polite(proposal: InboxTask) -> bool:
    return "please" in proposal.title


@accepts
def cannot_say(proposal: InboxTask) -> bool:
    raise RuntimeError("what?")


def deliver(asked: InboxTask, token: str) -> None:
    DELIVERED.append((asked, token))


def fail_to_deliver(asked: InboxTask, token: str) -> None:
    raise RuntimeError("the mail server is down")


def renaming(queue: str, after: str = "B", before: str = "A", **more: object) -> Proposal:
    """A proposal to describe a queue in another way."""
    given = {"title": f"Describe {queue}", "apply": f"{HERE}:rename", "payload": {"queue": queue}, **more}
    return Proposal(changes=[FieldChange(field="description", before=before, after=after)], **given)  # type: ignore[arg-type]


@task
def propose_twice(job: JobContext, queue: str) -> list[str]:
    """Propose the same as a retry would, and something else; then fail in the first run."""
    made = [job.propose(renaming(queue)), job.propose(renaming(queue)), job.propose(renaming(queue, "C"))]
    if job.epoch == 1:
        raise RuntimeError([each.task_id for each in made])
    return [each.task_id for each in made]
