"""The progress of executions that pages have shown lately: a history only grows, so each event is read once."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict

from jobtable.app import Services
from jobtable.store import Store
from jobtable.web.graphs.state_graph import machine_inside
from jobtable.workflows.asl.entities import Execution
from jobtable.workflows.asl.execution.event_packs import History
from jobtable.workflows.asl.machine_definition import read_definition
from jobtable.workflows.asl.state_progress.following import Progress

_MOST_KNOWN = 8
"""A history has up to 25,000 events."""


class KnownProgress:
    """How far the executions of one store are. Any thread may use it."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[Progress, threading.Lock]] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, store: Store, execution: Execution, definition: str) -> Progress:
        """Return how far an execution is, after reading what happened since."""
        with self._lock:
            found = self._known.pop(execution.job_id, None)
            if found is None:
                machine = machine_inside(read_definition(definition), execution.processor_path or "")
                found = Progress(machine), threading.Lock()
            self._known[execution.job_id] = found
            while len(self._known) > _MOST_KNOWN:
                self._known.popitem(last=False)
        progress, lock = found
        with lock:
            if progress.last_event_id < execution.last_event_id:
                last = execution.last_event_id
                history = History(store, execution.machine, execution.name, last)
                progress.follow(history.between(progress.last_event_id + 1, last))
            return progress


_OF_SERVICES: weakref.WeakKeyDictionary[Services, KnownProgress] = weakref.WeakKeyDictionary()


def read_progress(services: Services, execution: Execution, definition: str) -> Progress:
    """Return how far an execution is."""
    known = _OF_SERVICES.setdefault(services, KnownProgress())
    return known.read(services.store, execution, definition)
