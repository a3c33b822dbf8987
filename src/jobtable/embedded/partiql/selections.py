"""SELECT: which part of a table or index is read, what is kept of it in which order, and reading it page by page."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from jobtable.embedded.expressions import Projection
from jobtable.embedded.expressions.grammar import ConditionNode, Junction
from jobtable.embedded.expressions.key_conditions import OneKey, matched
from jobtable.embedded.expressions.paths import InvalidExpression, Path, check_length, tree_of, value_at
from jobtable.embedded.key_checks import refuse_nested_keys
from jobtable.embedded.partiql import where_clauses as where
from jobtable.embedded.partiql.statement_writes import key_type_mismatch, table_of
from jobtable.embedded.partiql.syntax import Node, Reference, SelectStatement, shown
from jobtable.embedded.partiql.terms import Terms
from jobtable.embedded.queries import PAGE_BYTES, Page, bounds_of, cursor_of, from_start, read_page
from jobtable.embedded.read_targets import (
    ReadTarget,
    check_projected,
    find_target,
    not_projected_filter,
    start_position,
)
from jobtable.embedded.storage import Storage, View
from jobtable.embedded.table_schema import ENCODERS, IndexSchema, KeyAttribute, Range, TableSchema
from jobtable.embedded.units import TableUnits, read_rate, wanted_capacity
from jobtable.embedded.values import validate_item
from jobtable.errors import CursorError, RequestRefused
from jobtable.store.backend import AttributeValue, Item, Request, Response
from jobtable.store.cursors import read_cursor, write_cursor

_MOST_ALTERNATIVES = 50
_WHOLE: Range = (b"", None)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a SELECT reads: ranges of a table or index, one after the other, and the paths that it wants."""

    source: ReadTarget
    ranges: list[Range]
    is_reverse: bool
    has_whole_keys: bool  # whether each range is the position of one item
    paths: tuple[Path, ...]

    def row(self, item: Item) -> Item:
        """Return the wanted part of an item: each path under its last name, or all of it."""
        if not self.paths:
            return item
        found = ((_name_of(path), value_at(item, path)) for path in self.paths)
        return {name: value for name, value in found if value is not None}


def plan_of(storage: Storage, select: SelectStatement, terms: Terms, request: Request) -> Plan:
    """Plan how to answer a SELECT, or raise RequestRefused."""
    projection = projection_of(select.paths)
    tree = None if select.where is None else where.condition_tree(select.where, terms)
    source = _target_of(storage, select, projection, request)
    (partition, *_), sorts = source.key_attributes()
    sort = sorts[0] if sorts else None
    keys: _Keys | None = None
    if tree is not None:
        source = replace(source, filter=where.compiled(tree, terms, source.table))
        keys = _Keys.of(tree, terms, partition, sorts)
        where.check_key_types(tree, terms, (*source.table.key, partition, *sorts))
    directions = _directions(select, keys, (partition, *sorts))
    if tree is not None and keys is not None:
        if (sort is not None or source.index is not None) and not where.negates(
            tree, terms, {one.name for one in sorts}
        ):
            keys.refuse_overlaps(source)
        keys.check_projected_filters(source)
    check_projected(source, [str(path[0]) for path in select.paths])
    if projection is not None:
        refuse_nested_keys(source.table, projection.nested_names)
    ranges = [_WHOLE] if keys is None else keys.ranges(source)
    if directions.get(partition.name):
        ranges.reverse()
    is_reverse = sort is not None and directions.get(sort.name, False)
    has_whole_keys = keys is not None and source.index is None and keys.are_whole
    return Plan(source, ranges, is_reverse, has_whole_keys, select.paths)


def _target_of(
    storage: Storage, select: SelectStatement, projection: Projection | None, request: Request
) -> ReadTarget:
    table = table_of(storage, select.source)
    index = index_of(table, select)
    if index is not None and not index.is_local and request.get("ConsistentRead"):
        raise RequestRefused("Strongly consistent read is not supported on Global Secondary Indexes")
    return find_target(storage, {"TableName": table.name, "IndexName": select.source.index}, None, projection)


def index_of(table: TableSchema, select: SelectStatement) -> IndexSchema | None:
    """Return the index that a SELECT names; RequestRefused if it does not exist or cannot be read so."""
    if select.source.index is None:
        index = None
    elif select.source.index in table.indexes:
        index = table.indexes[select.source.index]
    else:
        raise RequestRefused("The table does not have the specified index")
    if index is not None and (len(index.partition) > 1 or len(index.sort) > 1):
        raise RequestRefused(
            "PartiQL statements cannot be executed on tables with multi-attribute HASH keys or multi-attribute RANGE"
            " keys."
        )
    if select.fault is not None:
        raise RequestRefused(select.fault)
    return index


def projection_of(paths: tuple[Path, ...]) -> Projection | None:
    """Return the attributes to read for these paths; None for all. RequestRefused if two of them overlap."""
    if not paths:
        return None
    names = [_name_of(path) for path in paths]
    twice = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if twice is not None:
        raise RequestRefused(f"Duplicate identifiers in select clause: {twice}")
    try:
        for path in paths:
            check_length(path)
        return Projection(tree_of(paths), frozenset())
    except InvalidExpression as error:
        raise RequestRefused(str(error)) from error


def _name_of(path: Path) -> str:
    """Return the name of the value at a path in answers: its last name with the indexes after it."""
    last = max(number for number, part in enumerate(path) if isinstance(part, str))
    return str(path[last]) + "".join(f"[{index}]" for index in path[last + 1 :])


def _directions(select: SelectStatement, keys: _Keys | None, attributes: tuple[KeyAttribute, ...]) -> dict[str, bool]:
    """Return, for each attribute that ORDER BY names, whether its order is descending."""
    if not select.order:
        return {}
    if select.where is None:
        raise RequestRefused("Must have WHERE clause in the statement when using ORDER BY clause.")
    names = {attribute.name for attribute in attributes}
    directions: dict[str, bool] = {}
    for node, is_descending in select.order:
        directions.setdefault(_ordered(node, names), is_descending)
    if keys is None:
        raise RequestRefused(
            "Must have at least one non-optional hash key condition in WHERE clause when using ORDER BY clause."
        )
    return directions


def _ordered(node: Node, names: set[str]) -> str:
    if not isinstance(node, Reference) or len(node.path) != 1:
        raise RequestRefused(f"Argument to ORDER BY must be of type VariableReference. Type: {shown(node)}")
    name = str(node.path[0])
    if name not in names:
        raise RequestRefused(f"Variable reference {name} in ORDER BY clause must be part of the primary key")
    return name


class _Keys:
    """The partitions that a condition names, and the part of each that is read.

    The whole condition is checked for every item that is read, so more may be read than is wanted.
    """

    def __init__(
        self, terms: Terms, names: list[str], sort: OneKey | None, branches: list[where.Branch], *, are_whole: bool
    ) -> None:
        self._terms = terms
        self._names = names
        self._sort = sort
        self._branches = branches
        self.are_whole = are_whole  # whether each is the key of one item

    @classmethod
    def of(
        cls, tree: ConditionNode, terms: Terms, partition: KeyAttribute, sorts: tuple[KeyAttribute, ...]
    ) -> _Keys | None:
        """Return those of a condition; None if it allows items of any partition."""
        names = _values_of(tree, partition, terms)
        if names is None:
            return None
        branches = where.branches_of(tree, terms, partition, sorts)
        if branches is None or len(branches) > _MOST_ALTERNATIVES:
            raise RequestRefused("Too many decomposed read operations for a given query.")
        _check_types(partition, names, terms)
        said = _sort_condition(tree, sorts[0], terms) if sorts else None
        return cls(terms, names, said, branches, are_whole=not sorts or (said is not None and said.operator == "="))

    def ranges(self, source: ReadTarget) -> list[Range]:
        """Return the ranges to read, each partition once, in the order of their keys."""
        (partition, *_), _ = source.key_attributes()
        values = self._terms.values
        found: dict[bytes, Range] = {}
        for name in self._names:
            said = [OneKey(partition.name, "=", (name,)), *([] if self._sort is None else [self._sort])]
            found[ENCODERS[partition.type](values[name][partition.type])] = self._place(said, source)
        return [found[place] for place in sorted(found)]

    def refuse_overlaps(self, source: ReadTarget) -> None:
        """Raise RequestRefused if alternatives of the condition read the same part of a partition."""
        ends = b""
        for start, end in sorted(self._places(source)):
            if start < ends:
                raise RequestRefused("Overlapping conditions with range keys are not supported in where clause")
            ends = max(end, ends)

    def _places(self, source: ReadTarget) -> Iterator[tuple[bytes, bytes]]:
        for branch in self._branches:
            if branch.partitions:
                starts, ends = zip(*(self._place(said, source) for said in branch.alone()), strict=True)
                if max(starts) < min(ends):
                    yield max(starts), min(ends)

    def check_projected_filters(self, source: ReadTarget) -> None:
        """Raise RequestRefused if every alternative filters by attributes that an index lacks: the last is reported."""
        held = source.projected_names()
        if held is None or source.index is None:
            return
        (partition, *_), _ = source.key_attributes()
        missing: dict[bytes, list[str]] = {}
        for branch in self._branches:
            value = self._only_partition(branch)
            names = [
                name for tree in branch.filters for name in where.attributes_in(tree, self._terms) if name not in held
            ]
            if value is None or not names:
                return
            missing[ENCODERS[partition.type](value[partition.type])] = names
        raise not_projected_filter(source.index, _in_hash_order(missing[max(missing)]))

    def _only_partition(self, branch: where.Branch) -> AttributeValue | None:
        """Return the value of the partition key in an alternative; None without one, or with two."""
        values = [self._terms.values[one.operands[0]] for one in branch.partitions]
        return values[0] if values and all(value == values[0] for value in values) else None

    def _place(self, said: list[OneKey], source: ReadTarget) -> tuple[bytes, bytes]:
        (partition, *_), sorts = source.key_attributes()
        given = {one.attribute: one for one in said}
        index_name = source.index.name if source.index else None
        return bounds_of(source, matched(given, self._terms.values, (partition,), sorts, index_name))


def _in_hash_order(names: Iterable[str]) -> list[str]:
    """Return the names in the service's order: that of a Java set."""
    found = dict.fromkeys(names)
    places = 16
    while len(found) > places * 3 // 4:
        places *= 2
    return sorted(found, key=lambda name: _java_hash(name) % places)


def _java_hash(text: str) -> int:
    units = text.encode("utf-16-be", "surrogatepass")
    code = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) & 0xFFFFFFFF
    return code ^ code >> 16


def _check_types(attribute: KeyAttribute, names: Iterable[str], terms: Terms) -> None:
    if any(attribute.type not in terms.values[name] for name in names):
        raise key_type_mismatch(attribute.name)


def _values_of(tree: ConditionNode, attribute: KeyAttribute, terms: Terms) -> list[str] | None:
    """Return the names of the values that an attribute can have if a condition holds; None if any."""
    if isinstance(tree, Junction):
        if tree.operator == "NOT":
            return None
        left, right = (_values_of(part, attribute, terms) for part in tree.conditions)
        if tree.operator == "OR":
            return None if left is None or right is None else left + right
        if left is None or right is None:
            return right if left is None else left
        wanted = [terms.values[name] for name in right]
        return [name for name in left if terms.values[name] in wanted]
    one = where.one_key(tree, terms)
    if one is not None and one.operator == "=" and one.attribute == attribute.name:
        return list(one.operands)
    return where.choices(tree, attribute.name, terms)


def _sort_condition(tree: ConditionNode, sort: KeyAttribute, terms: Terms) -> OneKey | None:
    """Return the condition on the sort attribute: an equality, or else the first of the ranges."""
    said = [one for part in where.conjuncts(tree) if (one := where.one_key(part, terms)) and one.attribute == sort.name]
    chosen = next((one for one in said if one.operator == "="), next(iter(said), None))
    if chosen is not None:
        _check_types(sort, chosen.operands, terms)
    return chosen


_MOST_OF_PARTITIONS = 10  # most items on a page that reads several partitions
_INVALID = "Invalid NextToken"


@dataclass(slots=True)
class _Progress:
    """The progress of a SELECT, and what it has read on this page."""

    at: int  # the number of the next range
    after: Item | None  # the key in it after which reading continues
    items: list[Any] = field(default_factory=list)
    units: TableUnits = field(default_factory=TableUnits)
    scanned: int = 0
    read_bytes: int = 0


def read(storage: Storage, request: Request, plan: Plan) -> Response:
    """Return the next page of a SELECT: at most Limit items and 1 MB are read."""
    progress = _start(request, plan)
    limit: int | None = request.get("Limit")
    if len(plan.ranges) > 1:
        limit = min(limit or _MOST_OF_PARTITIONS, _MOST_OF_PARTITIONS)
    last: Item | None = None
    with storage.read() as view:
        while progress.at < len(plan.ranges):
            page = _page(view, plan, progress, limit)
            progress.items += page.items
            progress.units.add(page.units(plan.source.index, read_rate(request)))
            progress.scanned += page.scanned
            progress.read_bytes += page.read_bytes
            last = page.last
            if last is not None and not plan.has_whole_keys:
                progress.after = cursor_of(plan.source, last)
                break
            progress.at, progress.after = progress.at + 1, None
            if progress.scanned == limit or progress.read_bytes >= PAGE_BYTES:
                break
    return _answer(request, plan, progress, last)


def _page(view: View, plan: Plan, progress: _Progress, limit: int | None) -> Page:
    source = plan.source
    start = None if progress.after is None else start_position(source, progress.after)
    bounds = from_start(plan.ranges[progress.at], start, forward=not plan.is_reverse)
    left = None if limit is None else limit - progress.scanned
    return read_page(view, source, bounds, reverse=plan.is_reverse, limit=left)


def _answer(request: Request, plan: Plan, progress: _Progress, last: Item | None) -> Response:
    source = plan.source
    kept = progress.items if source.filter is None else filter(source.filter.holds, progress.items)
    response: Response = {"Items": [plan.row(item) for item in kept]}
    if progress.at < len(plan.ranges):
        place = {"range": progress.at, "after": progress.after}
        response["NextToken"] = write_cursor(place, _fingerprint(request))
        if last is not None:
            response["LastEvaluatedKey"] = cursor_of(source, last)
    capacity = wanted_capacity(request)
    if capacity:
        response["ConsumedCapacity"] = progress.units.report(source.table.name, capacity)
    return response


def _start(request: Request, plan: Plan) -> _Progress:
    """Return the start that the token of the last page names; RequestRefused if no such page can have ended there."""
    token = request.get("NextToken")
    if token is None:
        return _Progress(0, None)
    try:
        place = read_cursor(token, _fingerprint(request))
    except CursorError as error:
        raise RequestRefused(_INVALID) from error
    at, after = place.get("range"), place.get("after")
    if type(at) is not int or not 0 <= at < len(plan.ranges):
        raise RequestRefused(_INVALID)
    if after is not None:
        _check_start(plan, at, after)
    return _Progress(at, after)


def _check_start(plan: Plan, at: int, after: object) -> None:
    if not isinstance(after, dict) or set(after) != set(plan.source.cursor_names()):
        raise RequestRefused(_INVALID)
    try:
        position = start_position(plan.source, validate_item(after))
    except RequestRefused as error:
        raise RequestRefused(_INVALID) from error
    low, high = plan.ranges[at]
    if position < low or (high is not None and position >= high):
        raise RequestRefused(_INVALID)


def _fingerprint(request: Request) -> bytes:
    """Hash the statement and its parameters, to which a token is bound."""
    bound = [request["Statement"], request.get("Parameters")]
    return hashlib.sha256(json.dumps(bound, sort_keys=True).encode("utf-8", "surrogatepass")).digest()
