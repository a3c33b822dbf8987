"""The frames that move next, found without a look at all the others."""

from __future__ import annotations

from jobtable.workflows.asl.run import Frame, Run

_READY, _TIMED = "frames that are ready", "frames that wait for an instant"


def ready_frames(run: Run) -> list[Frame]:
    """Return the frames that `advance` can move."""
    return [run.frames[each] for each in _noted(run, _READY)]


def timed_frames(run: Run) -> list[Frame]:
    """Return the frames that become ready by themselves."""
    return [run.frames[each] for each in _noted(run, _TIMED)]


def note_change(run: Run, frame: Frame, *, is_gone: bool = False) -> None:
    """Note whether a frame is ready or waits for an instant."""
    for name, holds in ((_READY, frame.is_ready), (_TIMED, frame.due_at is not None)):
        if (noted := run.notes.get(name)) is not None:
            (noted.add if holds and not is_gone else noted.discard)(frame.frame_id)


def _noted(run: Run, name: str) -> set[str]:
    noted: set[str] | None = run.notes.get(name)
    if noted is None:
        frames = run.frames.values()
        noted = {each.frame_id for each in frames if (each.is_ready if name == _READY else each.due_at is not None)}
        run.notes[name] = noted
    return noted
