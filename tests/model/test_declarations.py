"""A declaration that cannot work fails when its class is made, and says which field of which entity."""

from __future__ import annotations

import re
import types
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from http import HTTPMethod
from typing import Annotated, Any, Generic, Literal, NewType, TypeVar, cast

import pytest
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, PrivateAttr, ValidationError
from typing_extensions import TypeAliasType

from jobtable.errors import DefinitionError, ValueRefusedError
from jobtable.model import Attr, Beside, Entity, Index, Key, Name, OrNull, Part, Stored, Table, Timestamp, default
from jobtable.store import requests

V = TypeVar("V")


def make_table() -> Table:
    return Table("declared", pk="PK", sk="SK", type_attribute="TYPE", indexes=[Index("GSI1", "GSI1PK", "GSI1SK")])


class Plain(BaseModel):
    x: int


class Mixed(Enum):
    WORD = "word"
    NUMBER = 1


def declare(fields: dict[str, Any], table: Table | None = None, name: str = "Thing", **members: Any) -> object:
    """A class with these fields and keys."""

    def fill(namespace: dict[str, Any]) -> None:
        namespace.update({"__annotations__": fields, "__module__": __name__, **members})

    return types.new_class(name, (Entity,), {"table": table or make_table(), "type": name.upper()}, fill)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: declare({"a": str}, key=Key("T#{b}", "T")), r"Thing\.key: 'T#\{b\}' names 'b', which is not a field"),
        (lambda: declare({"a": str}), r"Thing\.key: key attribute 'PK' is not a field"),
        (lambda: declare({"a": str}, key=Key("T#{a", "T")), "unmatched brace"),
        (lambda: declare({"a": str, "b": str}, key=Key("{a}{b}", "T")), "ambiguous"),
        (lambda: declare({"a": str, "b": str}, key=Key("{a}-{b}", "T")), "ambiguous"),
        (lambda: declare({"a": int}, key=Key("{a:d}0", "T")), "ambiguous"),
        (lambda: declare({"a": str}, key=Key("{a}#{a}", "T")), "names a field twice"),
        (lambda: declare({"a": int}, key=Key("T#{a}", "T")), r"Thing\.a: an integer in a key needs a width"),
        (
            lambda: declare({"a": float}, key=Key("T#{a}", "T")),
            r"Thing\.a: a real number in a key needs a sortable format",
        ),
        (lambda: declare({"a": str}, key=Key("T#{a:05d}", "T")), "only numbers can have a format"),
        (lambda: declare({"a": bool}, key=Key("T#{a}", "T")), "cannot be used in a key"),
        (lambda: declare({"a": str}, key=Key("50%#{a}", "T")), "cannot contain %"),
        (
            lambda: declare({"a": str | None}, key=Key("T#{a}", "T")),
            r"Thing\.a: a field of the primary key cannot be None",
        ),
        (lambda: declare({"a": str}, key=Key("T#{a}", "T"), by_x=Key("X", "Y", index="GSI9")), "no index GSI9"),
        (
            lambda: declare({"a": str}, key=Key("T#{a}", "T"), by_x=Key("X", "Y")),
            r"Thing\.by_x: only the primary key is called key",
        ),
        (
            lambda: declare({"a": str}, key=Key("T#{a}", "T", index="GSI1")),
            r"Thing\.key: only the primary key is called key",
        ),
        (lambda: declare({"a": str}, key=Key(("T", "#{a}"), "T")), "it has 2 templates for PK"),
        (
            lambda: declare(
                {"a": str}, key=Key("T#{a}", "T"), x=Key("X", "Y", index="GSI1"), y=Key("Z", "Y", index="GSI1")
            ),
            "two keys use the same index",
        ),
        (lambda: declare({"a": str, "b": datetime}, key=Key("T#{a}", "T")), r"Thing\.b: declare a time as Timestamp"),
        (lambda: declare({"a": str, "b": Plain}, key=Key("T#{a}", "T")), r"Thing\.b: .* derive it from Part"),
        (lambda: declare({"a": str, "b": tuple[int, int]}, key=Key("T#{a}", "T")), r"Thing\.b: .* as a list"),
        (lambda: declare({"a": str, "b": set}, key=Key("T#{a}", "T")), r"Thing\.b: .* declare its elements"),
        (lambda: declare({"a": str, "b": timedelta}, key=Key("T#{a}", "T")), r"Thing\.b: .* a number of seconds"),
        (lambda: declare({"a": str, "b": complex}, key=Key("T#{a}", "T")), r"Thing\.b: .* as a string, a number or"),
        (lambda: declare({"a": str, "b": set[str | None]}, key=Key("T#{a}", "T")), r"Thing\.b: a set must contain"),
        (lambda: declare({"a": str, "b": set[str] | None}, key=Key("T#{a}", "T")), r"Thing\.b: .* without None"),
        (
            lambda: declare({"a": str, "b": str | int}, key=Key("T#{a}", "T")),
            r"Thing\.b: .*cannot be stored in DynamoDB",
        ),
        (
            lambda: declare({"a": str, "b": dict[int, str]}, key=Key("T#{a}", "T")),
            r"Thing\.b: map keys must be str",
        ),
        (lambda: declare({"a": str, "b": set[bool]}, key=Key("T#{a}", "T")), r"Thing\.b: a set must contain"),
        (lambda: declare({"a": str, "b": set[list[str]]}, key=Key("T#{a}", "T")), r"Thing\.b: a set must contain"),
        (
            lambda: declare({"a": list[str]}, Table("natural", pk="a")),
            r"Thing\.a: a key attribute must be a string, a number",
        ),
        (lambda: declare({"a": str, "PK": str}, key=Key("T#{a}", "T")), r"Thing\.PK cannot be the attribute 'PK'"),
        (lambda: declare({"a": str, "TYPE": str}, key=Key("T#{a}", "T")), r"Thing\.TYPE cannot be the attribute"),
        (
            lambda: declare({"a": str, "ends": Timestamp}, Table("ttl", pk="PK", ttl="ends"), key=Key("T#{a}")),
            r"Thing\.ends: items expire by ends, .* declare it as int",
        ),
        (lambda: Table("x", pk="PK"), "3 to 255"),
        (lambda: Table("same", pk="PK", sk="PK"), "'PK' is both the partition attribute and the sort attribute"),
        (lambda: Table("nameless", pk=""), "table nameless: an attribute name must have 1 to 255 bytes, not ''"),
        (lambda: Table("nameless", pk="PK", ttl=""), "table nameless: an attribute name must have 1 to 255 bytes"),
        (lambda: Table("nameless", pk="PK", type_attribute="x" * 256), "table nameless: an attribute name must have"),
        (lambda: Table("lone", pk="PK", indexes=cast("Any", Index("one", "a"))), r"write indexes=\[Index\(...\)\]"),
        (lambda: Index("empty", "a", ""), "index empty: an attribute name must have 1 to 255 bytes, not ''"),
        (lambda: Index("same", "a", "a"), "index same: it has the attribute 'a' twice"),
        (lambda: Index("part", "a", projection=cast("Any", "b")), r"index part: .* \('b',\)"),
        (lambda: Index("many", ("a", "b", "c", "d", "e")), "1 to 4 partition"),
        (lambda: Index("no", ()), "3 to 255"),
        (lambda: Table("twice", pk="PK", indexes=[Index("one", "a"), Index("one", "b")]), "two indexes"),
        (lambda: Table("told", pk="PK", type_attribute="PK"), "both the type attribute and part of the primary key"),
        (lambda: types.new_class("Thing", (Entity,), {"tabel": make_table()}), "Thing: unknown class arguments: tabel"),
        (lambda: types.new_class("Wheel", (Part,), {"alis": str.upper}), "Wheel: unknown class arguments: alis"),
        (lambda: declare({"a": str, "b": Mixed}, key=Key("T#{a}", "T")), "Mixed: .* all strings or all integers"),
        (lambda: declare({"a": str, "b": uuid.UUID}, key=Key("T#{a}", "T")), r"Thing\.b: .*declare it as Uuid"),
        (
            lambda: declare({"a": str, "b": Literal[1, 2]}, key=Key("T#{a}", "T")),
            r"Thing\.b: .*only strings in a Literal",
        ),
        (
            lambda: declare({"a": str, "b": Annotated[str, Field(alias="c")]}, key=Key("T#{a}", "T")),
            r"Thing\.b: use Name, not an alias",
        ),
        (
            lambda: declare({"a": str}, key=Key("T#{a}", "T"), model_config=ConfigDict(extra="allow")),
            r"Thing: extra='allow' is not supported; .* would not be stored",
        ),
        (
            lambda: declare({"a": str}, Table("alone", pk="PK", type_attribute="TYPE"), key=Key("T#{a}", "T")),
            "1 templates for no sort attribute",
        ),
    ],
)
def test_it_says_what_is_wrong(make: Callable[[], object], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        make()


class Color(Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("annotation", "value"),
    [(str, None), (bool, None), (bool, 0), (int, True), (str, 5), (Decimal, 0), (Color, "red"), (list[str], [1])],
)
def test_a_default_that_could_not_be_stored_is_refused(annotation: Any, value: object) -> None:
    with pytest.raises(DefinitionError, match=rf"Thing\.b rejects its default, {re.escape(repr(value))}; "):
        declare({"a": str, "b": annotation}, key=Key("T#{a}", "T"), b=value)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (str | None, None),
        (float, 0),
        (PositiveInt, 0),
        (str, HTTPMethod.GET),
        (Timestamp, datetime(2025, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_default_that_can_be_stored_is_taken(annotation: Any, value: object) -> None:
    thing = declare({"a": str, "b": annotation}, key=Key("T#{a}", "T"), b=value)
    assert isinstance(thing, type)
    assert issubclass(thing, Entity)
    codec = thing.__schema__.codec
    made = thing.model_validate({"a": "1"})
    assert codec.decode(codec.encode(made)) == made


def test_a_type_is_needed_where_items_are_told_apart_by_it() -> None:
    with pytest.raises(DefinitionError, match="distinguishes its items by TYPE; set type="):

        class Thing(Entity, table=make_table()):
            key = Key("T#{a}", "T")
            a: str


def test_a_null_cannot_be_a_key() -> None:
    table = Table("natural", pk="a", indexes=[Index("ByB", "b")])
    with pytest.raises(DefinitionError, match=r"Thing\.b: a key attribute cannot be written as NULL"):

        class Thing(Entity, table=table):
            by_b = Key(index="ByB")
            a: str
            b: OrNull[str] = None


def test_a_key_attribute_has_one_type() -> None:
    table = Table("typed", pk="PK", sk="SK", type_attribute="TYPE", indexes=[Index("ByB", "b")])

    class One(Entity, table=table, type="ONE"):
        key = Key("ONE#{a}", "ONE")
        by_b = Key(index="ByB")
        a: str
        b: str

    with pytest.raises(DefinitionError, match=r"Two: b of table typed would hold N, but One puts S there"):

        class Two(Entity, table=table, type="TWO"):
            key = Key("TWO#{a}", "TWO")
            by_b = Key(index="ByB")
            a: str
            b: int


@pytest.mark.filterwarnings("ignore:Field name .replace. in .Thing. shadows")
def test_a_field_does_not_have_the_name_of_a_method() -> None:
    with pytest.raises(
        DefinitionError, match=r"Thing\.replace clashes with a method of Entity; .* Name\(\"replace\"\)"
    ):
        declare({"a": str, "replace": str}, key=Key("T#{a}", "T"))


@pytest.mark.filterwarnings("ignore:Field name .key. in .Thing. shadows")
def test_a_field_does_not_have_the_name_of_a_key() -> None:
    with pytest.raises(DefinitionError, match=r"Thing\.key is both a field and a key; .* Name\(\"key\"\)"):
        declare({"key": str}, Table("natural", pk="key"))


def test_a_base_class_may_leave_the_type_of_a_field_open() -> None:
    class Measured(Entity, Generic[V]):
        key = Key("T#{a}", "T")
        a: str
        value: V

    class Thing(Measured[int], table=make_table(), type="THING"):
        """A thing with a whole number."""

    assert Thing.__schema__.codec.encode(Thing(a="1", value=3))["value"] == {"N": "3"}
    with pytest.raises(ValidationError, match="valid integer"):
        Thing.model_validate({"a": "1", "value": "many"})


@pytest.mark.parametrize(
    ("first", "second", "collide"),
    [
        (("A#{a}", "X"), ("A#{b}", "X"), True),
        (("A#{a}", "X"), ("A#{b}", "Y"), False),
        (("A#{a}", "X"), ("B#{b}", "X"), False),
        (("{a}", "X"), ("A#{b}", "X"), False),
        (("{a}", "X"), ("{b}", "X"), True),
        (("{a}", "X"), ("fixed", "X"), True),
        (("A#{n:05d}", "X"), ("A#IMAGE", "X"), False),
        (("A#{n:05d}", "X"), ("A#00001", "X"), True),
        (("A#{n:05d}", "X"), ("A#001", "X"), False),
        (("A#{a}#X", "X"), ("A#{b}", "X"), False),
        (("A#{t}", "X"), ("A#{a}", "X"), True),
        (("album-{n:d}", "X"), ("metadata", "X"), False),
        (("album-{n:d}", "X"), ("album-{a}", "X"), True),
    ],
)
def test_two_entities_whose_keys_can_meet_are_refused(
    first: tuple[str, str], second: tuple[str, str], collide: bool
) -> None:
    table = make_table()
    fields = {"a": str, "b": str, "n": int, "t": Timestamp}
    declare(fields, table, key=Key(*first))
    if collide:
        with pytest.raises(DefinitionError, match=r"Other and Thing can have the same primary key.*shares_keys_with"):
            declare(fields, table, "Other", key=Key(*second))
    else:
        declare(fields, table, "Other", key=Key(*second))


def test_keys_that_meet_on_purpose_are_declared_so() -> None:
    table = make_table()

    class One(Entity, table=table, type="ONE"):
        key = Key("BATCH#{a}", "R")
        a: str

    class Two(Entity, table=table, type="TWO", shares_keys_with=(One,)):
        key = Key("BATCH#{a}", "R")
        a: str

    assert set(table.entities) == {"ONE", "TWO"}
    assert One.__schema__.shares_keys_with == (Two,), "the one declared first knows as well"


def test_the_same_type_twice_is_refused() -> None:
    table = make_table()
    declare({"a": str}, table, key=Key("T#{a}", "T"))
    with pytest.raises(DefinitionError, match="Thing already has the type 'THING'"):
        declare({"a": str}, table, key=Key("U#{a}", "U"))


CELL = compile(
    """
class Run(Entity, table=runs, type=type_name):
    key = Key("RUN#{run_id}", "RUN")
    run_id: str
class Note(Entity, table=runs, type="NOTE", shares_keys_with=(Run,)):
    key = Key("RUN#{run_id}", "{run_id}")
    run_id: str
""",
    "a cell",
    "exec",
    dont_inherit=True,
)


def test_a_cell_of_a_notebook_can_be_run_again() -> None:
    runs = make_table()
    cell = {"__name__": "__main__", "Entity": Entity, "Key": Key, "runs": runs, "type_name": "RUN"}
    exec(CELL, cell)
    first = cell["Run"]
    exec(CELL, cell | {"type_name": "TRAINING_RUN"})
    exec(CELL, cell)
    assert [schema.cls for schema in runs.entities.values()] == [cell["Run"], cell["Note"]]
    assert cell["Run"] is not first
    elsewhere = cell | {"__name__": "another_module"}
    with pytest.raises(DefinitionError, match=r"Run: Run already has the type 'RUN' in "):
        exec(CELL, elsewhere)


def test_a_base_class_gives_its_fields_and_keys() -> None:
    class Dated(Entity):
        by_date = Key("DATES", "{at}", index="GSI1")
        at: Timestamp

    class Thing(Dated, table=make_table(), type="THING"):
        key = Key("T#{a}", "T")
        a: str

    assert [key.name for key in Thing.__schema__.keys] == ["key", "by_date"]
    assert list(Thing.__schema__.fields) == ["at", "a"]


def test_an_entity_can_be_the_base_of_another_one() -> None:
    class Thing(Entity, table=make_table(), type="THING"):
        key = Key("T#{a}", "T")
        a: str
        b: Attr[int] = default(3)

    class More(Thing, table=make_table(), type="MORE"):
        c: str

    assert More(a="1", c="2").model_dump() == {"a": "1", "b": 3, "c": "2"}
    assert (repr(Thing.b), repr(More.b)) == ("Thing.b", "More.b")
    with pytest.raises(ValidationError, match="a\n  Field required"):
        More.model_validate({"c": "2"})


def test_a_field_may_be_declared_anew() -> None:
    class Thing(Entity, table=make_table(), type="THING"):
        key = Key("T#{a}", "T")
        a: str
        status: str = "new"
        size: int | None = None

    class More(Thing, table=make_table(), type="MORE"):
        status: Literal["new", "old"] = "old"

    class Most(More, table=make_table(), type="MOST"):
        size: int = 9

    assert Thing(a="1").model_dump() == {"a": "1", "status": "new", "size": None}
    assert Most(a="1").model_dump() == {"a": "1", "status": "old", "size": 9}
    classes: list[Any] = [Thing, More, Most]
    assert [repr(each.size) for each in classes] == ["Thing.size", "More.size", "Most.size"]
    with pytest.raises(ValidationError, match="Input should be 'new' or 'old'"):
        Most.model_validate({"a": "1", "status": "lost"})


def test_of_a_field_that_hides_a_method_pydantic_warns() -> None:
    class Thing(Entity, table=make_table(), type="THING"):
        key = Key("T#{a}", "T")
        a: str

    with pytest.warns(UserWarning, match='"json" in "More" shadows an attribute in parent .*Thing') as warned:
        types.new_class(
            "More",
            (Thing,),
            {"table": make_table(), "type": "MORE"},
            lambda namespace: namespace.update({"__annotations__": {"a": str, "json": str}, "__module__": __name__}),
        )
    assert len(warned) == 1


def test_a_class_without_a_table_cannot_be_stored_in_place_of_its_base() -> None:
    class Thing(Entity, table=make_table(), type="THING"):
        key = Key("T#{a}", "T")
        a: str

    with pytest.raises(DefinitionError, match=r"More derives from Thing and would be stored as one.*add table="):

        class More(Thing):
            b: str


def test_a_class_without_a_table_says_so_when_it_is_used() -> None:
    class Dated(Entity):
        key = Key("T#{a}", "T")
        a: str

    with pytest.raises(DefinitionError, match="add table= to its class statement"):
        Dated.key(a="1")
    with pytest.raises(DefinitionError, match="Dated has no table; add table= to its class statement"):
        requests.put(Dated(a="1"), None)


def test_an_entity_may_have_private_attributes_and_a_beginning_of_its_own() -> None:
    class Thing(Entity, table=make_table(), type="THING"):
        key = Key("T#{a}", "T")
        a: str
        _seen: list[str] = PrivateAttr(default_factory=list)

    class Counted(Entity, table=make_table(), type="COUNTED"):
        key = Key("T#{a}", "T")
        a: str

        def model_post_init(self, _: object) -> None:
            begun.append(self.a)

    begun: list[str] = []
    thing, counted = Thing(a="1"), Counted(a="2")
    thing._seen.append("x")
    assert (thing._seen, thing._undeclared, Thing(a="1")._seen) == (["x"], None, [])
    assert (begun, counted._undeclared) == (["2"], None)


def test_an_entity_that_was_read_has_its_private_attributes_and_beginning_too() -> None:
    class Wheel(Part):
        size: int
        _turns: int = PrivateAttr(default=0)

    class Thing(Entity, table=make_table(), type="THING"):
        key = Key("T#{a}", "T")
        a: str
        wheel: Wheel
        _seen: list[str] = PrivateAttr(default_factory=list)

        def model_post_init(self, _: object) -> None:
            self._seen.append(self.a)

    codec = Thing.__schema__.codec
    item = codec.encode(Thing(a="1", wheel=Wheel(size=3)))
    more = {"S": "kept"}
    first, second = codec.decode_all([item, {**item, "more": more}])
    first._seen.append("x")
    first.wheel._turns = 7
    assert (first._seen, second._seen, second.wheel._turns) == (["1", "x"], ["1"], 0)
    assert (first._undeclared, second._undeclared) == (None, {"more": more})
    assert codec.copy(second)._seen == ["1"]
    assert second.with_undeclared(None)._seen == ["1"]
    assert second.replace(a="2")._seen == ["2"]


def test_a_field_of_the_key_is_stored_only_if_it_says_so() -> None:
    class Thing(Entity, table=make_table(), type="THING"):
        key = Key("T#{a}", "T#{b}")
        a: str
        b: Stored[str]

    assert Thing.__schema__.codec.encode(Thing(a="1", b="2")) == {
        "PK": {"S": "T#1"},
        "SK": {"S": "T#2"},
        "TYPE": {"S": "THING"},
        "b": {"S": "2"},
    }


def test_a_field_of_the_key_is_stored_where_an_index_has_it_as_its_attribute() -> None:
    indexes = [Index("by-kind", ("kind", "a"), ("b", "c"))]
    table = Table("things", pk="PK", sk="SK", type_attribute="TYPE", indexes=indexes)

    class Thing(Entity, table=table, type="THING"):
        key = Key("T#{a}", "T#{b}#{d}")
        by_kind = Key(index="by-kind")
        a: str
        b: str
        c: str
        d: str
        kind: str

    class Other(Entity, table=table, type="OTHER"):
        key = Key("O#{a}", "O")
        a: str

    assert Thing.__schema__.codec.encode(Thing(a="1", b="2", c="3", d="4", kind="x")).keys() == {
        *("PK", "SK", "TYPE", "kind", "a", "b", "c")
    }
    assert Other.__schema__.codec.encode(Other(a="1")).keys() == {"PK", "SK", "TYPE"}


def test_a_part_is_checked_as_well() -> None:
    with pytest.raises(DefinitionError, match=r"Wheel\.size: .*cannot be stored in DynamoDB"):

        class Wheel(Part):
            size: int | str


def test_a_part_cannot_be_inside_itself() -> None:
    with pytest.raises(DefinitionError, match=r"Node\.children: .* recursive part as Json"):

        class Node(Part):
            children: list[Node]


Label = NewType("Label", str)
Counts = TypeAliasType("Counts", dict[Label, int])


def test_names_of_types_are_the_types_that_they_are_names_of() -> None:
    class Thing(Entity, table=make_table(), type="THING"):
        key = Key("T#{a}", "T")
        a: Label
        counts: Attr[Counts] = default({})
        colors: Attr[set[Color]] = default(set())
        names: list[Label | None] = []

    thing = Thing(a=Label("1"), counts={Label("x"): 2}, colors={Color.RED}, names=[Label("y"), None])
    codec = Thing.__schema__.codec
    item = codec.encode(thing)
    assert (item["counts"], item["colors"]) == ({"M": {"x": {"N": "2"}}}, {"SS": ["red"]})
    assert codec.decode(item) == codec.decode_loosely(item) == thing
    with pytest.raises(ValueRefusedError, match=r"Thing\.counts: 'many': Input should be a valid integer"):
        Thing.counts["x"].set("many")


def test_two_fields_cannot_be_one_attribute() -> None:
    with pytest.raises(DefinitionError, match=r"Wheel\.width cannot be the attribute 'size': height is already size"):

        class Wheel(Part):
            height: Annotated[int, Name("size")]
            width: Annotated[int, Name("size")]

    with pytest.raises(DefinitionError, match=r"Thing\.b cannot be the attribute 'b': data is already Data"):

        class Thing(Entity, table=make_table(), type="THING", envelope="Data"):
            key = Key("T#{a}", "T")
            a: str
            b: str
            data: Annotated[str, Beside("Data")]


def test_the_name_of_an_attribute_is_not_empty() -> None:
    with pytest.raises(DefinitionError, match=r"Wheel\.size: the name of an attribute cannot be empty"):

        class Wheel(Part):
            size: Annotated[int, Name("")]


def test_a_table_without_an_index_keeps_everything_else() -> None:
    table = make_table()
    smaller = table.without_index("GSI1")
    assert smaller.indexes == {}
    assert set(smaller.key_types()) == {"PK", "SK"}
    assert "GSI1" in table.indexes
    with pytest.raises(DefinitionError, match="has no index GSI9; its indexes are: GSI1"):
        table.without_index("GSI9")
