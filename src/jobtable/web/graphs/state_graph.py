"""The graph of a state machine, laid out: nested machines are boxes inside boxes, and may be folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from jobtable.web.graphs.fitting import fit, width_of
from jobtable.web.graphs.layout import Arrangement, Point, arrange, find_back_edges
from jobtable.web.graphs.lines import Line, Placed, line_between, loop_beside
from jobtable.workflows.asl.machine import Machine, State, StateType
from jobtable.workflows.asl.machine_definition import read_definition
from jobtable.workflows.asl.machine_transitions import Transition, TransitionKind, describe_retry, transitions_of
from jobtable.workflows.asl.resources import Pattern, ResourceKind, parse_resource

WIDTH: Final = 184.0
HEIGHT: Final = 54.0
_NAME_LINES = 2
_PADDING = 14.0
_HEADER = 50.0
_DOT = 26.0
_LABEL_WIDTH = 168.0
_LABEL_SIZE = 11.5
_LABEL_LINE = 15.0
_LOOP = 30.0
"""The room at both sides of a state for the loop of its retries: so lines still meet its middle."""
_MOST_DRAWN = 400
_MOST_UNFOLDED = 60
"""In a machine with more states, the nested machines are folded at first."""
_DEEPEST_UNFOLDED = 4

_START, _END, _ON_IT = "\N{SYMBOL FOR START OF HEADING}", "\N{SYMBOL FOR END OF TEXT}", "\N{SYMBOL FOR NULL}"
"""The ends of a machine and what lies on its lines, among the names of its states."""


@dataclass(frozen=True)
class Box:
    """A state as it is drawn, with its place in the whole picture."""

    state: State
    x: float
    y: float
    width: float
    height: float
    name: tuple[str, ...]
    detail: str
    """Its type and what it calls, in one line."""
    is_unfolded: bool
    """Whether it contains the boxes of its own states."""
    retries: str = ""
    """What its Retry says, if it has one."""

    @property
    def can_fold(self) -> bool:
        """Whether it has states of its own."""
        return bool(self.state.branches)


@dataclass(frozen=True)
class Label:
    """The words on a line."""

    x: float
    y: float
    width: float
    height: float
    lines: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Arrow:
    """A transition as it is drawn."""

    line: Line
    kind: TransitionKind
    source: str | None = None
    """The path of its state; None at the start."""
    target: str | None = None
    label: Label | None = None


@dataclass(frozen=True)
class Picture:
    """A machine as it is drawn."""

    width: float
    height: float
    boxes: tuple[Box, ...] = ()
    arrows: tuple[Arrow, ...] = ()
    dots: tuple[tuple[str, float, float], ...] = ()
    """`start` and `end` with their middles."""

    def at(self, x: float, y: float) -> Picture:
        """Return the picture moved by so much."""
        return replace(
            self,
            boxes=tuple(replace(each, x=each.x + x, y=each.y + y) for each in self.boxes),
            arrows=tuple(_moved(each, x, y) for each in self.arrows),
            dots=tuple((kind, a + x, b + y) for kind, a, b in self.dots),
        )


@lru_cache(maxsize=64)
def draw_machine(definition: str, toggled: frozenset[str] = frozenset(), inside: str = "") -> Picture | None:
    """Return the picture of a definition; None if it has too many states to be drawn.

    `toggled` are the paths of states whose boxes are not as they are at first: folded, or unfolded. With `inside`, the
    path of a Map, its item processor is drawn, not the whole machine.
    """
    machine = machine_inside(read_definition(definition), inside)
    folding = Folding(toggled, folds_all=_count(machine) > _MOST_UNFOLDED)
    if _count(machine, folding) > _MOST_DRAWN:
        return None
    return _draw(machine, folding, is_whole=True)


def machine_inside(machine: Machine, path: str) -> Machine:
    """Return the item processor of the Map state at a path, or the whole machine without one."""
    if not path:
        return machine
    found = next(state for state in all_states(machine) if state.path == path)
    return found.branches[0]


def all_states(machine: Machine) -> Iterator[State]:
    """Yield the states of a machine, with those inside its states."""
    for state in machine.states.values():
        yield state
        for branch in state.branches:
            yield from all_states(branch)


@dataclass(frozen=True)
class Folding:
    """Which nested machines are drawn as one box."""

    toggled: frozenset[str] = frozenset()
    folds_all: bool = False

    def folds(self, state: State, depth: int) -> bool:
        """Return whether the machines inside a state are hidden."""
        is_folded = self.folds_all or depth >= _DEEPEST_UNFOLDED
        return is_folded != (state.path in self.toggled)


def _count(machine: Machine, folding: Folding | None = None, depth: int = 0) -> int:
    inner = (
        _count(branch, folding, depth + 1)
        for state in machine.states.values()
        if folding is None or not folding.folds(state, depth)
        for branch in state.branches
    )
    return len(machine.states) + sum(inner)


# --- boxes ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Routed:
    """A transition with the name of what lies on it: its label, or room for a line that leads up."""

    transition: Transition
    on_it: str | None
    leads_up: bool

    @property
    def edges(self) -> list[tuple[str, str]]:
        """What the layout arranges, from above to below."""
        source, target = self.transition.source, self.transition.target or _END
        ends = (target, source) if self.leads_up else (source, target)
        return [ends] if self.on_it is None else [(ends[0], self.on_it), (self.on_it, ends[1])]


@dataclass
class _Plan:
    """What the layout arranges: the boxes of one machine, its dots, and the labels of its transitions."""

    sizes: dict[str, Point] = field(default_factory=dict)
    edges: list[tuple[str, str]] = field(default_factory=list)
    transitions: list[Routed] = field(default_factory=list)


def _draw(machine: Machine, folding: Folding, depth: int = 0, *, is_whole: bool = False) -> Picture:
    pictures = {state.name: _picture_of(state, folding, depth) for state in machine.states.values()}
    plan = _plan(machine, {name: (each.width, each.height) for name, each in pictures.items()}, is_whole=is_whole)
    arranged = arrange(plan.sizes, plan.edges, _START if is_whole else machine.start_at)
    boxes: list[Box] = []
    arrows: list[Arrow] = []
    for name, picture in pictures.items():
        placed = picture.at(*_corner(arranged, plan, name))
        boxes += placed.boxes
        arrows += placed.arrows
    ends = (("start", _START), ("end", _END))
    dots = tuple((kind, *arranged.middles[name]) for kind, name in ends if name in plan.sizes)
    own = [*_arrows(machine, plan, arranged), *_loops(machine, boxes)]
    return Picture(arranged.width, arranged.height, tuple(boxes), (*own, *arrows), dots)


def _corner(arranged: Arrangement[str], plan: _Plan, name: str) -> Point:
    (x, y), (width, height) = arranged.middles[name], plan.sizes[name]
    return x - width / 2, y - height / 2


def _picture_of(state: State, folding: Folding, depth: int) -> Picture:
    retries = "\n".join(describe_retry(each) for each in state.fields.get("Retry", ()))
    margin = _LOOP if retries else 0.0
    name = tuple(fit(state.name, WIDTH - 24, lines=_NAME_LINES))
    if not state.branches or folding.folds(state, depth):
        height = HEIGHT + 16 * (len(name) - 1)
        box = Box(state, margin, 0, WIDTH, height, name, _detail(state), is_unfolded=False, retries=retries)
        return Picture(WIDTH + 2 * margin, height, (box,))
    inner = [_draw(branch, folding, depth + 1) for branch in state.branches]
    width = max(sum(each.width for each in inner) + _PADDING * (len(inner) + 1), WIDTH + 40)
    height = max(each.height for each in inner) + _HEADER + _PADDING
    name = tuple(fit(state.name, width - 64))
    box = Box(state, margin, 0, width, height, name, _detail(state), is_unfolded=True, retries=retries)
    x = margin + (width - sum(each.width for each in inner) - _PADDING * (len(inner) - 1)) / 2
    boxes: list[Box] = [box]
    arrows: list[Arrow] = []
    for each in inner:
        placed = each.at(x, _HEADER)
        boxes += placed.boxes
        arrows += placed.arrows
        x += each.width + _PADDING
    return Picture(width + 2 * margin, height, tuple(boxes), tuple(arrows))


def _detail(state: State) -> str:
    """Return the type of a state and what it calls, shortened."""
    parts = [each for each in (state.type.value, what_it_does(state)) if each]
    return fit(" \N{MIDDLE DOT} ".join(parts), WIDTH - 24, size=_LABEL_SIZE)[0]


def what_it_does(state: State) -> str:
    """Return in a few words what a state calls, waits for or contains."""
    fields = state.fields
    match state.type:
        case StateType.TASK:
            resource = parse_resource(str(fields.get("Resource", "")))
            if resource is None:
                return str(fields.get("Resource", ""))
            arguments = fields.get("Arguments", fields.get("Parameters"))
            arguments = arguments if isinstance(arguments, dict) else {}
            named = arguments.get("FunctionName") or arguments.get("StateMachineArn") or resource.action
            words = (
                "asks: "
                if resource.pattern is Pattern.TOKEN
                else "starts "
                if resource.service == "states" and resource.kind is ResourceKind.SERVICE
                else ""
            )
            return f"{words}{str(named).rpartition(':')[2]}"
        case StateType.WAIT:
            given = next((each for each in fields.items() if each[0].startswith(("Seconds", "Timestamp"))), ("", ""))
            return f"{given[1]} s" if given[0] == "Seconds" else str(given[1])
        case StateType.PARALLEL:
            return f"{len(state.branches)} branch{'' if len(state.branches) == 1 else 'es'}"
        case StateType.MAP:
            return "in executions of its own" if is_distributed(state) else "for each item"
        case StateType.FAIL:
            return str(fields.get("Error", ""))
    return ""


def is_distributed(state: State) -> bool:
    """Return whether the items of a Map are processed in executions of their own."""
    return state.type is StateType.MAP and state.branches[0].processor_config.get("Mode") == "DISTRIBUTED"


# --- lines ------------------------------------------------------------------------------------------------------------


def _plan(machine: Machine, boxes: dict[str, Point], *, is_whole: bool) -> _Plan:
    plan = _Plan(dict(boxes))
    if is_whole:
        plan.sizes[_START] = (_DOT, _DOT)
        plan.edges.append((_START, machine.start_at))
    up = _transitions_up(machine)
    for number, transition in enumerate(dict.fromkeys(transitions_of(machine))):
        if transition.target is None:
            if not is_whole:
                continue  # inside a box, a line that ends is an end
            plan.sizes[_END] = (_DOT, _DOT)
        leads_up = (transition.source, transition.target) in up
        size = _label_size(transition) if transition.label else (_DOT, _DOT) if leads_up else None
        routed = Routed(transition, None if size is None else f"{_ON_IT}{number}", leads_up)
        if size is not None and routed.on_it is not None:
            plan.sizes[routed.on_it] = size
        plan.edges += routed.edges
        plan.transitions.append(routed)
    return plan


def _transitions_up(machine: Machine) -> set[tuple[str, str]]:
    edges = [(each.source, each.target) for each in transitions_of(machine) if each.target is not None]
    return find_back_edges(machine.states, edges, machine.start_at)


def _label_size(transition: Transition) -> Point:
    lines = fit(transition.label, _LABEL_WIDTH - 16, lines=2, size=_LABEL_SIZE)
    width = min(max(width_of(each, _LABEL_SIZE) for each in lines) + 16, _LABEL_WIDTH)
    return width, _LABEL_LINE * len(lines) + 6


def _arrows(machine: Machine, plan: _Plan, arranged: Arrangement[str]) -> Iterator[Arrow]:
    lines = iter(arranged.lines)
    if _START in plan.sizes:
        line = _line(machine, plan, arranged, _START, machine.start_at, next(lines))
        yield Arrow(line, TransitionKind.NEXT, None, machine.states[machine.start_at].path)
    for routed in plan.transitions:
        points = next(lines)
        if routed.on_it is not None:
            points = [*points, *next(lines)[1:]]
        transition = routed.transition
        yield Arrow(
            _line(
                machine,
                plan,
                arranged,
                transition.source,
                transition.target or _END,
                points[:: -1 if routed.leads_up else 1],
            ),
            transition.kind,
            machine.states[transition.source].path,
            None if transition.target is None else machine.states[transition.target].path,
            _label(plan, arranged, transition, routed.on_it),
        )


def _line(
    machine: Machine, plan: _Plan, arranged: Arrangement[str], source: str, target: str, points: Sequence[Point]
) -> Line:
    return line_between(
        _placed(machine, plan, arranged, source), _placed(machine, plan, arranged, target), points[1:-1]
    )


def _placed(machine: Machine, plan: _Plan, arranged: Arrangement[str], name: str) -> Placed:
    """Return the box of a state, without the room for the loop of its retries."""
    width, height = plan.sizes[name]
    has_loop = name in machine.states and machine.states[name].fields.get("Retry")
    return arranged.middles[name], (width - 2 * _LOOP if has_loop else width, height)


def _label(plan: _Plan, arranged: Arrangement[str], transition: Transition, name: str | None) -> Label | None:
    if name is None or not transition.label:
        return None
    (x, y), (width, height) = arranged.middles[name], plan.sizes[name]
    lines = tuple(fit(transition.label, _LABEL_WIDTH - 16, lines=2, size=_LABEL_SIZE))
    return Label(x - width / 2, y - height / 2, width, height, lines, transition.label)


def _loops(machine: Machine, boxes: Sequence[Box]) -> Iterator[Arrow]:
    """Yield the loops of the states of this machine that are retried."""
    own = {state.path for state in machine.states.values()}
    for box in boxes:
        if box.retries and box.state.path in own:
            line = loop_beside(box.x + box.width, box.y + 14)
            yield Arrow(line, TransitionKind.CATCH, box.state.path, box.state.path)


def _moved(arrow: Arrow, x: float, y: float) -> Arrow:
    label = arrow.label
    moved = None if label is None else replace(label, x=label.x + x, y=label.y + y)
    return replace(arrow, line=arrow.line.at(x, y), label=moved)
