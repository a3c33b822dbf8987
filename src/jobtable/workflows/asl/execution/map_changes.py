"""Changes of map runs from outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobtable.errors import ConflictError, ValueRefusedError
from jobtable.workflows.asl.entities import Execution, MapRun, MapRunStatus
from jobtable.workflows.asl.execution.execution_core import ExecutionCore
from jobtable.workflows.asl.execution.links import link_to
from jobtable.workflows.asl.execution.map_running import frame_of_map_run
from jobtable.workflows.asl.execution.signals import leave
from jobtable.workflows.asl.interpreter.map_states import MOST_DISTRIBUTED
from jobtable.workflows.asl.interpreter.strand import ROOT, Phase, Strand
from jobtable.workflows.asl.run import Run

CHANGE_MAP_RUN = "ChangeMapRun"
"""The signal with new limits of a map run."""


def change_map_run(core: ExecutionCore, map_run_id: str, limits: Mapping[str, float | None]) -> MapRun:
    """Change those limits of a running map run that are not None, and wake its execution."""
    given = {name: value for name, value in limits.items() if value is not None}
    if any(value < 0 for value in given.values()) or given.get("tolerated_failure_percentage", 0) > 100:
        raise ValueRefusedError(f"these limits of a map run are out of range: {given}")

    def act(run: MapRun) -> MapRun:
        if run.status is not MapRunStatus.RUNNING:
            raise ConflictError(f"the map run {map_run_id} is {run.status}")
        execution = core.get(run.machine, run.name)
        with core.store.transaction() as tx:
            tx.put(run.model_copy(update=given), when=MapRun.status == MapRunStatus.RUNNING)
            link = link_to(execution, ROOT, 0)
            leave(core.store, tx, core.now(), link, CHANGE_MAP_RUN, key=map_run_id, map_run_id=map_run_id, limits=given)
        return run.model_copy(update=given)

    return core.store.retrying(lambda: core.reads.get_map_run(map_run_id), act, f"change map run {map_run_id}")


def change_fan(run: Run, members: Mapping[str, Any]) -> None:
    """Let a Map state go on with other limits."""
    frame = frame_of_map_run(run, members["map_run_id"])
    if frame is None:
        return
    strand, limits = Strand(run, frame), members["limits"]
    fan = strand.fan
    if "max_concurrency" in limits:
        fan["limit"] = int(limits["max_concurrency"]) or MOST_DISTRIBUTED
    fan["tolerated_count"] = limits.get("tolerated_failure_count", fan["tolerated_count"])
    fan["tolerated_percentage"] = limits.get("tolerated_failure_percentage", fan["tolerated_percentage"])
    if strand.phase is Phase.FORKED:
        strand.make_ready(Phase.FORKED)


def abort_map_runs(core: ExecutionCore, ended: Execution) -> None:
    """End the map runs of an ended execution that still run."""
    for run in list(core.store.query(MapRun.by_execution(machine=ended.machine, name=ended.name))):
        if run.status is MapRunStatus.RUNNING:
            changes = MapRun.status.set(MapRunStatus.ABORTED), MapRun.stopped_at.set(core.now())
            core.store.update(MapRun.key(map_run_id=run.map_run_id), *changes)
