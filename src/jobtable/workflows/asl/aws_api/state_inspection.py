"""One state on its own: what it makes of an input, step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jobtable.workflows.asl.aws_api.state_test_requests import Mock, StateTest
from jobtable.workflows.asl.interpreter.choice_states import leave_choice
from jobtable.workflows.asl.interpreter.dataflow import (
    Leaving,
    check_size,
    effective_input,
    evaluate,
    is_jsonata,
    leave_with_input,
    leave_with_result,
    payload,
    read_number,
)
from jobtable.workflows.asl.interpreter.map_runs import batch_items, read_source
from jobtable.workflows.asl.interpreter.map_states import keyed_items, select_item
from jobtable.workflows.asl.interpreter.plain_states import leave_fail, leave_pass
from jobtable.workflows.asl.interpreter.strand import Strand, dump
from jobtable.workflows.asl.interpreter.wait_states import start_wait
from jobtable.workflows.asl.machine import StateFault, StateType
from jobtable.workflows.asl.query_languages import place, read_path

THRESHOLD = "States.ExceedToleratedFailureThreshold"
_EXCEEDED = "The specified tolerated failure threshold was exceeded"

Perform = Callable[[Strand, Any], Any]
"""Does what a Task state asks for, with its arguments; raises StateFault if it fails."""


class MockedFailure(StateFault):
    """The task, the branches or the iterations failed as the mock says."""


@dataclass(frozen=True)
class TestedStrand(Strand):
    """The only frame of a run whose context object may be given as a whole."""

    __test__ = False  # no class of tests
    given_context: dict[str, Any] | None = None

    def context(self) -> dict[str, Any]:
        """The context object."""
        return super().context() if self.given_context is None else self.given_context


@dataclass
class Inspection:
    """What TestState shows of the way of the data through a state."""

    test: StateTest
    strand: TestedStrand
    shown: dict[str, Any] = field(default_factory=dict)

    def leave(self, perform: Perform) -> Leaving:
        """Return how the state is left, or raise StateFault."""
        self.note("input", self.test.input)
        if not is_jsonata(self.strand):
            value = effective_input(self.strand)
            if not (self.test.state.type is StateType.PASS and "Result" in self.strand.fields):
                self.note("afterInputPath", value)
        match self.test.state.type:
            case StateType.TASK:
                leaving = self._leave_task(perform)
            case StateType.MAP:
                leaving = self._leave_map()
            case StateType.PARALLEL:
                self._note_payload()
                leaving = self._leave_mocked()
            case StateType.PASS:
                leaving = self._leave_pass()
            case StateType.CHOICE:
                leaving = leave_choice(self.strand)
            case StateType.FAIL:
                leaving = leave_fail(self.strand)
            case StateType.WAIT:
                start_wait(self.strand)  # reads its time; TestState does not wait
                leaving = leave_with_input(self.strand)
            case _:
                leaving = leave_with_input(self.strand)
        check_size(leaving.output, self.test.state.name)
        return leaving

    def note(self, name: str, value: Any) -> None:
        """Keep a value to be shown, as JSON text."""
        self.shown[name] = self.text_of(value)

    def text_of(self, value: Any) -> str:
        """Return a value as JSON text: the input and a mocked result as they were written."""
        mock = self.test.mock
        if mock is not None and not mock.has_failed and value is mock.result:
            return mock.result_text
        return self.test.input_text if value is self.test.input else dump(value)

    def _leave_pass(self) -> Leaving:
        strand = self.strand
        if is_jsonata(strand):
            return leave_pass(strand)
        if "Result" in strand.fields:
            result = strand.fields["Result"]
            self.note("result", result)
        else:
            result = payload(strand, effective_input(strand))
            self.note("afterParameters", result)
        return self._leave_with(result)

    def _leave_task(self, perform: Perform) -> Leaving:
        handed = self._note_payload()
        if self.test.mock is not None:
            return self._leave_mocked()
        result = perform(self.strand, handed)
        self.note("result", result)
        return self._leave_with(result)

    def _leave_map(self) -> Leaving:
        strand = self.strand
        value = effective_input(strand)
        items = self._items(value)
        if items is not None:
            self._note_iterations(items, value)
        self.shown["maxConcurrency"] = int(read_number(strand, "MaxConcurrency", value) or 0)
        count = read_number(strand, "ToleratedFailureCount", value)
        percentage = read_number(strand, "ToleratedFailurePercentage", value, whole=False)
        if count is not None:
            self.shown["toleratedFailureCount"] = int(count)
        if percentage is not None:
            self.shown["toleratedFailurePercentage"] = float(percentage)
        failed = self.test.failed_iterations or 0
        total = len(items) if items else 0
        if (count is not None and failed > count) or (
            percentage is not None and total and 100 * failed / total > percentage
        ):
            raise StateFault(THRESHOLD, _EXCEEDED)
        return self._leave_mocked()

    def _items(self, value: Any) -> Any:
        """Return the items of a Map; None if they would be read from elsewhere, and the test does not have them."""
        strand, fields = self.strand, self.strand.fields
        if "ItemReader" in fields:
            return None if strand.run.read_items is None else self._read(value)
        if is_jsonata(strand):
            items = evaluate(strand, "Items", fields["Items"], value) if "Items" in fields else value
            problem = StateFault("States.QueryEvaluationError", "The items of the Map state are not an array.", "Items")
        else:
            path = fields.get("ItemsPath", "$")
            items = read_path(path, strand.scope(value), field="ItemsPath")
            problem = StateFault("States.Runtime", f'Reference path "{path}" must point to array.')
        if not isinstance(items, list | dict):
            raise problem
        if not is_jsonata(strand):
            self.note("afterItemsPath", items)
        return items

    def _read(self, value: Any) -> Any:
        items, _ = read_source(self.strand, value)
        if "ItemsPointer" in self.strand.fields["ItemReader"].get("ReaderConfig", {}):
            self.note("afterItemsPointer", items)
        return items

    def _note_iterations(self, items: Any, value: Any) -> None:
        """Keep what the iterations would get."""
        strand, fields = self.strand, self.strand.fields
        selected = [select_item(strand, item, value) for item in keyed_items(items)]
        if "ItemSelector" in fields or "Parameters" in fields:
            self.note("afterItemSelector", selected)
        if "ItemBatcher" in fields:
            self.note("afterItemBatcher", [batch for batch, _ in batch_items(strand, selected, value)])

    def _note_payload(self) -> Any:
        handed = payload(self.strand, effective_input(self.strand))
        self.note("afterArguments" if is_jsonata(self.strand) else "afterParameters", handed)
        return handed

    def _leave_mocked(self) -> Leaving:
        mock = self.test.mock or Mock()
        if mock.has_failed:
            raise MockedFailure(mock.error or "", mock.cause or "")
        if self.test.state.type is StateType.TASK:
            self.note("result", mock.result)
        return self._leave_with(mock.result)

    def _leave_with(self, result: Any) -> Leaving:
        """Leave with a result, and note what ResultSelector and ResultPath make of it."""
        strand = self.strand
        leaving = leave_with_result(strand, result)
        if not is_jsonata(strand):
            selected = self._selected(strand.fields, result)
            self.note("afterResultSelector", selected)
            self.note("afterResultPath", self._placed(strand.fields, selected))
        return leaving

    def _selected(self, fields: Mapping[str, Any], result: Any) -> Any:
        if "ResultSelector" not in fields:
            return result
        return evaluate(self.strand, "ResultSelector", fields["ResultSelector"], result)

    def _placed(self, fields: Mapping[str, Any], selected: Any) -> Any:
        path = fields.get("ResultPath", "$")
        if path is None:
            return self.test.input
        return selected if path == "$" else place(path, self.test.input, selected)
