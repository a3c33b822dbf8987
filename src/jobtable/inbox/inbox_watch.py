"""The watch over the inbox: expires tasks, and tells workflows what a crash kept from them."""

from __future__ import annotations

import logging
from collections.abc import Callable

from jobtable.clock import wall_time
from jobtable.errors import ConflictError
from jobtable.inbox.entities import InboxTask
from jobtable.inbox.questions import Questions
from jobtable.inbox.watching import described, keep_looking
from jobtable.jobs.engine import Jobs

_LOG = logging.getLogger(__name__)


class InboxWatch:
    """Looks after tasks that are due. Any number of processes may do so at once; others cost nothing."""

    def __init__(self, jobs: Jobs) -> None:
        self._store = jobs.store
        self._questions = Questions(jobs)

    def look(self) -> dict[str, str]:
        """Do what is due; return the problems by the id of their task, which stays due."""
        problems: dict[str, str] = {}
        now = wall_time(self._store.clock)
        for listed in self._store.query(InboxTask.due(), before=now):
            task = self._store.find(InboxTask.key(task_id=listed.task_id))  # the index may be out of date
            if task is None or task.due_at is None or task.due_at >= now:
                continue
            try:
                self._questions.look_at(task)
            except ConflictError:  # it moved at this moment; the next look sees how
                continue
            except Exception as error:  # one task must not stop the watch over the others
                _LOG.debug("task %s", task.task_id, exc_info=True)
                problems[task.task_id] = described(error)
        return problems

    def keep(self, is_over_within: Callable[[float], bool], on_problem: Callable[[str], None]) -> None:
        """Look after tasks until `is_over_within(seconds)` returns true; servers run this in a thread."""
        keep_looking(self.look, is_over_within, on_problem, "inbox task")
