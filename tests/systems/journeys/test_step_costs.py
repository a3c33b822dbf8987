"""What makes a step durable: one commit, and an object for its log and for each report, whatever the step was."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from tests.systems.journeys.stages import script
from tests.systems.journeys.worlds import World

from jobtable.systems.journeys.parts import JourneyStatus
from jobtable.systems.journeys.stage import Stage


class Costs:
    """Counts the writes that the thread of the stage makes: requests to the store, and objects."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.requests: list[str] = []
        self.objects: list[str] = []
        self._seen = (0, 0)
        store, objects = world.jobs.store, world.jobs.objects
        ask, put, here = store.ask, objects.put, threading.get_ident()

        def counted_ask(operation: str, request: Any, pattern: str, **options: Any) -> Any:
            if options.get("writes") and threading.get_ident() == here:
                self.requests.append(operation)
            return ask(operation, request, pattern, **options)

        def counted_put(key: str, source: Any) -> Any:
            self.objects.append(key)
            return put(key, source)

        monkeypatch.setattr(store, "ask", counted_ask)
        monkeypatch.setattr(objects, "put", counted_put)

    def since(self, _: object = None) -> tuple[list[str], int]:
        """The requests and the number of objects since it was asked last."""
        requests, objects = self._seen
        self._seen = (len(self.requests), len(self.objects))
        return self.requests[requests:], len(self.objects) - objects


def test_a_step_costs_one_commit(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    costs = Costs(world, monkeypatch)
    told: list[tuple[list[str], int]] = []

    def first(stage: Stage) -> None:
        costs.since()
        stage.results["a"] = 1

    def second(stage: Stage) -> None:
        told.append(costs.since())
        for number in range(50):
            stage.log_info(f"line {number}")
        stage.log_warning("and a warning")
        stage.report("R", results={"a": 1})
        stage.metrics["found"] = 7

    script(one__first=first, one__second=second, one__third=lambda stage: told.append(costs.since()))
    world.runner.run("J1")
    world.work()
    assert world.journey().status is JourneyStatus.COMPLETED
    silent, talking = told
    assert silent == (["TransactWriteItems"], 0)
    assert talking == (["TransactWriteItems"], 2)
    world.check_sums()
