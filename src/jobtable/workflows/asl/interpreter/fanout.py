"""The children of Parallel and Map states: how they start, end and are counted."""

from __future__ import annotations

from dataclasses import dataclass

from jobtable.workflows.asl.interpreter.history import append, follow, record_aside
from jobtable.workflows.asl.interpreter.strand import ENDED_PHASES, Fan, Phase, Strand, new_strand
from jobtable.workflows.asl.machine import State, StateType
from jobtable.workflows.asl.run import Json

EXCEEDED = "States.ExceedToleratedFailureThreshold"
EXCEEDED_CAUSE = "The specified tolerated failure threshold was exceeded"


@dataclass(frozen=True)
class Exceeded:
    """The failure of a child that its state does not tolerate."""

    error: str | None = None
    """None if the state fails with the error of the child."""
    cause: str | None = None


def is_fan_out(state: State) -> bool:
    """Return whether a state has children."""
    return state.type in {StateType.PARALLEL, StateType.MAP}


def open_fan(strand: Strand, limit: int) -> Fan:
    """Prepare a frame for children, of which so many run at the same time."""
    memory = strand.memory
    memory["fan"] = Fan(first=memory["born"], total=0, weight=0, limit=limit, tolerated_count=0, tolerated_percentage=0)
    strand.suspend(Phase.FORKED)
    return memory["fan"]


def size_fan(strand: Strand, total: int, weight: int) -> None:
    """Set how many children there will be, and how many items they have together."""
    strand.fan["total"] = total
    strand.fan["weight"] = weight
    strand.memory["born"] += total
    strand.run.notes.pop(strand.frame.frame_id, None)


def add_child(strand: Strand, index: int, branch: int, value: Json, last: int) -> Strand:
    """Start the child with an index, which runs a branch."""
    state = strand.state
    child = new_strand(
        strand.run,
        f"{strand.frame.frame_id}.{strand.fan['first'] + index}",
        [*strand.memory["path"], [state.name, branch]],
        state.branches[branch],
        value,
        last,
    )
    child.memory["index"] = index
    tally_of(strand).started = index + 1
    return child


def finish_child(child: Strand, output: Json) -> None:
    """Keep the output of a child that ended."""
    strand = child.parent
    assert strand is not None
    tally = tally_of(strand)
    memory = child.memory
    memory["before"] = memory["last"]
    if strand.state.type is StateType.MAP and child.phase is not Phase.CHILD:
        details = {"name": strand.memory["state"], "index": child.index}
        follow(child, append(child.run, memory["last"], "MapIterationSucceeded", details))
    memory["result"] = output
    memory["input"] = None
    child.suspend(Phase.FINISHED)
    tally.ended += 1


def fail_child(strand: Strand, child: Strand) -> Exceeded | None:
    """Count a child that failed; None if the state tolerates it."""
    fan = strand.fan
    tally = tally_of(strand)
    failed = tally.failed + child.memory.get("weight", 1)
    if not _tolerates(fan):
        return Exceeded(EXCEEDED, EXCEEDED_CAUSE) if "map_run" in fan else Exceeded()
    if _exceeds(fan, failed):
        return Exceeded(EXCEEDED, EXCEEDED_CAUSE)
    child.memory["before"] = child.memory["last"]
    if child.phase is not Phase.CHILD:
        record_aside(child, "MapIterationFailed", {"name": strand.memory["state"], "index": child.index})
    child.forget_attempt()
    child.suspend(Phase.DROPPED)
    tally.failed = failed
    tally.ended += 1
    return None


def gather(strand: Strand) -> list[Json]:
    """Return the outputs of the children in order, and let the frame continue after their last event."""
    children = list(strand.children())
    if children:
        follow(strand, max(strand.memory["last"], *(each.memory["last"] for each in children)))
    return [each.result for each in children if each.phase is Phase.FINISHED]


@dataclass
class Tally:
    """How far the children of a frame are."""

    first: int
    started: int = 0
    ended: int = 0
    failed: int = 0
    """Of a distributed Map: items, not batches."""

    def is_settled(self, fan: Fan) -> bool:
        """Return whether all children have ended."""
        return self.ended == fan["total"]

    def may_start(self, fan: Fan) -> bool:
        """Return whether another child may start."""
        return self.started < fan["total"] and self.started - self.ended < fan["limit"]


def tally_of(strand: Strand) -> Tally:
    """Return how far the children of a frame are, counted once and then kept with the run."""
    frame_id = strand.frame.frame_id
    tally: Tally | None = strand.run.notes.get(frame_id)
    if tally is not None and tally.first == strand.fan["first"]:
        return tally
    tally = Tally(strand.fan["first"])
    for child in strand.children():
        tally.started += 1
        tally.ended += child.phase in ENDED_PHASES
        tally.failed += child.memory.get("weight", 1) if child.phase is Phase.DROPPED else 0
    strand.run.notes[frame_id] = tally
    return tally


def _tolerates(fan: Fan) -> bool:
    return fan["tolerated_count"] > 0 or fan["tolerated_percentage"] > 0


def _exceeds(fan: Fan, failed: int) -> bool:
    if 0 < fan["tolerated_count"] < failed:
        return True
    return 0 < fan["tolerated_percentage"] < failed * 100 / fan["weight"]
