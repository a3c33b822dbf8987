"""The layered layout of a directed graph: where boxes lie, and through which points the lines between them go."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Generic, TypeVar

from grandalf.graphs import Edge, Graph, Vertex
from grandalf.layouts import SugiyamaLayout, VertexViewer

N = TypeVar("N", bound=Hashable)
Point = tuple[float, float]

_BESIDE = 26.0
_BELOW = 30.0
_ROUNDS = 4
"""How often crossings are reduced; more change hardly anything."""


@dataclass(frozen=True)
class Arrangement(Generic[N]):
    """The middle of each box, the points of each line from its source to its target, and the size of the whole.

    A line changes its column only between two rows, so it never crosses a box of the rows that it passes.
    """

    middles: dict[N, Point]
    lines: list[list[Point]]
    width: float
    height: float


class _Line:
    """What the layout tells about an edge."""

    points: list[Point]

    def setpath(self, points: list[Point]) -> None:
        self.points = points


def arrange(sizes: Mapping[N, Point], edges: Sequence[tuple[N, N]], first: N) -> Arrangement[N]:
    """Lay out boxes of these sizes, from the first one down. Edges that close a loop lead up."""
    if not sizes:
        return Arrangement({}, [], 0, 0)
    vertices: dict[N, Any] = {name: Vertex(name) for name in sizes}
    for name, vertex in vertices.items():
        width, height = sizes[name]
        vertex.view = VertexViewer(width, height)  # pyright: ignore[reportArgumentType] - its defaults are whole numbers
    back = find_back_edges(sizes, edges, first)
    drawn = [_edge(vertices, (b, a) if (a, b) in back else (a, b)) for a, b in edges]
    _place(vertices, drawn, vertices[first])
    middles = {name: vertex.view.xy for name, vertex in vertices.items()}
    rows = _rows(sizes, middles)
    lines = [_in_columns(each.view.points, rows) for each in drawn]
    lines = [line[::-1] if edge in back else line for line, edge in zip(lines, edges, strict=True)]
    return _moved_to_origin(sizes, middles, lines)


def _rows(sizes: Mapping[N, Point], middles: Mapping[N, Point]) -> dict[int, float]:
    """Return half the height of each row, by its middle."""
    rows: dict[int, float] = defaultdict(float)
    for name, (_, y) in middles.items():
        rows[round(y)] = max(rows[round(y)], sizes[name][1] / 2)
    return rows


def _in_columns(points: Sequence[Point], rows: Mapping[int, float]) -> list[Point]:
    """Return a line that goes straight through each row."""
    line = [points[0]]
    for (x, y), (next_x, next_y) in pairwise(points):
        line += [(x, y + rows.get(round(y), 0)), (next_x, next_y - rows.get(round(next_y), 0)), (next_x, next_y)]
    return line


def _edge(vertices: Mapping[N, Any], ends: tuple[N, N]) -> Any:
    edge: Any = Edge(vertices[ends[0]], vertices[ends[1]])
    edge.view = _Line()
    return edge


def _place(vertices: Mapping[N, Any], edges: list[Any], first: Any) -> None:
    right = 0.0
    parts = Graph(list(vertices.values()), edges).C
    for part in sorted(parts, key=lambda each: first not in each.sV):
        members = list(part.sV)
        layout: Any = SugiyamaLayout(part)
        layout.xspace, layout.yspace = _BESIDE, _BELOW
        layout.init_all(roots=[first] if first in members else None, optimize=True)
        layout.draw(_ROUNDS)
        layout.draw_edges()
        left = min(each.view.xy[0] - each.view.w / 2 for each in members)
        _move(members, part.sE, right - left)
        right = max(each.view.xy[0] + each.view.w / 2 for each in members) + _BESIDE


def _move(members: Iterable[Any], edges: Iterable[Any], by: float) -> None:
    for vertex in members:
        vertex.view.xy = (vertex.view.xy[0] + by, vertex.view.xy[1])
    for edge in edges:
        edge.view.points = [(x + by, y) for x, y in edge.view.points]


def find_back_edges(nodes: Iterable[N], edges: Sequence[tuple[N, N]], first: N) -> set[tuple[N, N]]:
    """Return the edges that lead to a box from which one has come, walking down from the first."""
    after: dict[N, list[N]] = {node: [] for node in nodes}
    for source, target in edges:
        after[source].append(target)
    back: set[tuple[N, N]] = set()
    seen: set[N] = set()
    for root in (first, *after):
        path: dict[N, Any] = {}
        stack = [(root, iter(after[root]))] if root not in seen else []
        while stack:
            node, rest = stack[-1]
            seen.add(node)
            path[node] = None
            for target in rest:
                if target in path:
                    back.add((node, target))
                elif target not in seen:
                    stack.append((target, iter(after[target])))
                    break
            else:
                stack.pop()
                del path[node]
    return back


def _moved_to_origin(sizes: Mapping[N, Point], middles: dict[N, Point], lines: list[list[Point]]) -> Arrangement[N]:
    xs = [x for line in lines for x, _ in line]
    left = min(*xs, *(x - sizes[name][0] / 2 for name, (x, _) in middles.items()), float("inf"))
    top = min(y - sizes[name][1] / 2 for name, (_, y) in middles.items())
    right = max(*xs, *(x + sizes[name][0] / 2 for name, (x, _) in middles.items()), float("-inf"))
    bottom = max(y + sizes[name][1] / 2 for name, (_, y) in middles.items())
    return Arrangement(
        {name: (x - left, y - top) for name, (x, y) in middles.items()},
        [[(x - left, y - top) for x, y in line] for line in lines],
        right - left,
        bottom - top,
    )
