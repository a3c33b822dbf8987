"""Items that other programs wrote: what they leave out or write in another form can be worked with all the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import pytest
from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import ConditionFailedError, ItemShapeError, NotFoundError, ValueRefusedError
from jobtable.model import Attr, Entity, Index, Key, Part, Table, Timestamp, default, unchanged
from jobtable.model.conditions import Condition
from jobtable.model.expressions import Update
from jobtable.store.collections import Undeclared
from jobtable.store.store import Store

things = Table(
    "things",
    pk="PK",
    sk="SK",
    type_attribute="TYPE",
    indexes=[Index("GSI1", "GSI1PK", "GSI1SK"), Index("GSI2", "GSI2PK", "GSI2SK", projection=("mode",))],
)


class Note(Part):
    lines: list[str] = []


class Thing(Entity, table=things, type="THING"):
    key = Key("THING#{name}", "NUMBER#{number:05d}")
    by_state = Key("STATE#{state}", "{changed_at}", index="GSI1")

    name: str
    number: int
    state: Attr[str] = default("new")
    changed_at: Attr[Timestamp | None] = default(None)
    count: Attr[int] = default(0)
    owner: Attr[str | None] = default(None)
    note: Note = Note()
    secret: Attr[Annotated[str, BeforeValidator(str.lower)]] = default("none")
    tags: Attr[set[str]] = default({"unset"})
    history: Attr[list[str]] = default(["made"])


class Kept(Entity, table=things, type="KEPT"):
    key = Key("KEPT#{name}", "KEPT")
    by_mode = Key("MODE#{mode}", "{name}", index="GSI2")

    name: str
    mode: Attr[Literal["u", "v"]] = default("u")
    numbers: Attr[list[int]] = default([])
    by_name: Attr[dict[str, Annotated[int, Field(ge=0)]]] = default({})
    notes: Attr[list[Note]] = default([])


KEY = Thing.key(name="a", number=1)
NOON = datetime(2025, 11, 1, 12, tzinfo=UTC)


class User(Entity, table=things, type="USER"):
    """An entity whose validators stand in its class."""

    key = Key("USER#{name}", "USER")

    name: str
    mail: Attr[str]
    since: Attr[Timestamp | None] = default(None)

    @field_validator("name", "mail", mode="before")
    @classmethod
    def _fold(cls, text: str) -> str:
        return text.lower()

    @field_validator("mail")
    @classmethod
    def _has_a_host(cls, mail: str) -> str:
        if "@" not in mail:
            raise ValueError("a mail address has an @")
        return mail

    @field_validator("since")
    @classmethod
    def _after_the_name(cls, since: datetime | None, info: ValidationInfo) -> datetime | None:
        return since if info.data["name"] else None


@pytest.fixture
def store() -> Iterator[Store]:
    opened = Store(EmbeddedBackend(None))
    opened.tables.create(things)
    yield opened
    opened.close()


def put_raw(store: Store, sort: str = "NUMBER#00001", **attributes: Any) -> None:
    item = {"PK": {"S": "THING#a"}, "SK": {"S": sort}, "TYPE": {"S": "THING"}, **attributes}
    store.backend.execute("PutItem", {"TableName": "things", "Item": item})


def raw(store: Store) -> dict[str, Any]:
    key = {"PK": {"S": "THING#a"}, "SK": {"S": "NUMBER#00001"}}
    item: dict[str, Any] = store.backend.execute("GetItem", {"TableName": "things", "Key": key})["Item"]
    return item


def test_a_missing_attribute_is_the_default_in_conditions_too(store: Store) -> None:
    put_raw(store)
    for condition in (
        Thing.state == "new",
        Thing.count < 5,
        Thing.count <= 0,
        Thing.count.between(0, 3),
        Thing.state.is_in("new", "old"),
        Thing.state != "old",
        Thing.owner == None,  # noqa: E711 - it makes a condition
        Thing.owner.is_in(None),
        Thing.owner.is_in("x", None),
        Thing.state.begins_with("ne"),
        Thing.state.contains("ew"),
        Thing.state.size() == 3,
        Thing.state.size() != 4,
        Thing.history.contains("made"),
        Thing.history.size() > 0,
        Thing.tags == set(),
        Thing.tags.size() == 0,
        Thing.tags.size() < 3,
    ):
        assert store.query(KEY, where=condition).count() == 1
        store.update(KEY, Thing.owner.set("x"), when=condition)
        put_raw(store)
    for condition in (
        Thing.state != "new",
        Thing.count > 0,
        Thing.state == "old",
        Thing.owner == "x",
        Thing.owner.is_in("x", "y"),
        Thing.state.begins_with("ol"),
        Thing.state.contains("ol"),
        Thing.state.size() != 3,
        Thing.history.contains("sold"),
        Thing.tags != set(),
        Thing.tags.size() > 0,
    ):
        assert store.query(KEY, where=condition).count() == 0


def test_a_default_does_not_make_up_for_an_item_that_is_not_there(store: Store) -> None:
    with pytest.raises(NotFoundError):
        store.put(Thing(name="a", number=1), when=Thing.state == "new")
    with pytest.raises(NotFoundError):
        store.delete(KEY, when=Thing.count == 0)


def test_a_counter_that_is_missing_counts_from_its_default(store: Store) -> None:
    put_raw(store)
    assert store.update(KEY, Thing.count.increment(2)).count == 2


def test_a_list_that_is_missing_goes_on_behind_its_default(store: Store) -> None:
    put_raw(store)
    assert store.update(KEY, Thing.history.append("sold")).history == ["made", "sold"]


def test_an_empty_set_is_found_by_conditions(store: Store) -> None:
    store.batch_put(
        [Thing(name="a", number=number, tags=tags) for number, tags in enumerate([set(), {"x"}, {"x", "y"}])]
    )

    def found(condition: Condition) -> list[int]:
        return [thing.number for thing in store.query(Thing.key(name="a"), where=condition)]

    assert found(Thing.tags == set()) == found(Thing.tags.size() == 0) == found(~Thing.tags.contains("x")) == [0]
    assert found(Thing.tags != set()) == found(Thing.tags.size() > 0) == [1, 2]
    assert found(Thing.tags.is_in(set(), {"x"})) == [0, 1]
    assert found(Thing.tags != {"x"}) == found(Thing.tags.size() != 1) == [0, 2]


def test_a_validator_of_a_class_judges_updates_conditions_and_keys_too(store: Store) -> None:
    store.put(User(name="Ann", mail="Ann@x"))
    ann = User.key(name="ANN")
    assert store.update(ann, User.mail.set("ANN@Y"), User.since.set(NOON), when=User.mail == "ANN@X").mail == "ann@y"
    assert store.get(ann).since == NOON
    with pytest.raises(ValueRefusedError, match=r"User\.mail: 'ann': Value error, a mail address has an @"):
        User.mail.set("ann")


def test_a_validator_of_a_class_sees_what_others_wrote(store: Store) -> None:
    item = {"PK": {"S": "USER#ann"}, "SK": {"S": "USER"}, "TYPE": {"S": "USER"}, "mail": {"S": "Ann@X"}}
    store.backend.execute("PutItem", {"TableName": "things", "Item": item})
    ann = store.get(User.key(name="ann"))
    assert ann.mail == "ann@x"
    store.update(ann, User.since.set(NOON), when=unchanged(ann, User.mail))


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"changed_at": {"S": "2025-01-01T00:00:00Z"}},
        {"changed_at": {"NULL": True}, "owner": {"NULL": True}},
        {"state": {"NULL": True}, "count": {"NULL": True}},
        {"secret": {"S": "LOUD"}},
    ],
)
def test_what_was_read_is_unchanged_in_whatever_form_it_stands(store: Store, attributes: dict[str, Any]) -> None:
    put_raw(store, **attributes)
    thing = [store.get(KEY) for _ in range(4)][-1]  # what is read often is kept, and copied
    everything = unchanged(thing, Thing.state, Thing.changed_at, Thing.count, Thing.owner, Thing.secret)
    store.update(KEY, Thing.owner.set("me"), when=everything)
    with pytest.raises(ConditionFailedError):
        store.update(KEY, Thing.owner.set("you"), when=everything)


def test_an_index_key_follows_a_time_that_was_written_in_another_form(store: Store) -> None:
    put_raw(store, changed_at={"S": "2025-01-01T00:00:00Z"}, state={"S": "old"})
    store.update(store.get(KEY), Thing.state.set("done"))
    assert raw(store)["GSI1PK"] == {"S": "STATE#done"}
    assert raw(store)["GSI1SK"] == {"S": "2025-01-01T00:00:00.000000Z"}


def test_null_means_the_default(store: Store) -> None:
    put_raw(store, state={"NULL": True}, count={"NULL": True}, note={"NULL": True})
    thing = store.get(KEY)
    assert (thing.state, thing.count, thing.note) == ("new", 0, Note())


def test_a_validator_sees_what_is_read(store: Store) -> None:
    put_raw(store, secret={"S": "LOUD"})
    assert store.get(KEY).secret == "loud"
    assert [thing.secret for thing in store.query(KEY)] == ["loud"]


def test_an_empty_set_is_empty_however_the_item_is_read(store: Store) -> None:
    put_raw(store)
    assert store.get(KEY).tags == set()
    put_raw(store, changed_at={"S": "2025-01-01T00:00:00Z"})
    assert store.get(KEY).tags == set()


def test_a_default_is_never_shared(store: Store) -> None:
    put_raw(store)
    store.get(KEY).note.lines.append("leak")
    assert store.get(KEY).note.lines == []
    assert Thing(name="b", number=2).note.lines == []


@pytest.mark.parametrize("sort", ["NUMBER#7", "NUMBER#+0007", "NUMBER# 0007", "NUMBER#0_007", "NUMBER#٣٣٣٣٣"])
def test_a_number_in_a_key_has_its_width(store: Store, sort: str) -> None:
    put_raw(store, sort)
    with pytest.raises(ItemShapeError, match="NUMBER#"):
        list(store.query(Thing.key(name="a")))


def test_a_time_that_utc_cannot_tell_is_refused() -> None:
    for text in ("0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00"):
        with pytest.raises(ValueError, match="years 1 and 9999"):
            Thing(name="a", number=1, changed_at=text)  # type: ignore[arg-type]
    assert Thing(name="a", number=1, changed_at=datetime(1, 1, 1, tzinfo=UTC)).changed_at is not None


@pytest.mark.parametrize(
    "change",
    [
        lambda: Thing.count.increment(0.5),
        lambda: Kept.mode.set("z"),  # type: ignore[arg-type]
        lambda: Kept.numbers.append(1.5),
        lambda: Kept.numbers.append("x"),
        lambda: Kept.by_name["k"].set(-1),
        lambda: Kept.notes.append({"unknown": 1}),
    ],
)
def test_an_update_takes_only_what_can_be_read_again(change: Callable[[], Update]) -> None:
    with pytest.raises(ValueRefusedError):
        change().values()


def test_elements_are_taken_in_any_form_that_pydantic_takes(store: Store) -> None:
    store.put(Kept(name="a"))
    key = Kept.key(name="a")
    store.update(key, Kept.notes.append({"lines": ["x"]}), Kept.numbers.append("7"), Kept.by_name.set({"k": 1}))
    kept = store.update(key, Kept.by_name["k"].set("2"), Kept.notes[0]["lines"].append("y"))
    assert (kept.notes, kept.numbers, kept.by_name) == ([Note(lines=["x", "y"])], [7], {"k": 2})


def test_no_entity_is_read_through_an_index_that_holds_a_part_of_it(store: Store) -> None:
    store.put(Kept(name="a", mode="v", numbers=[1]))
    by_mode = Kept.by_mode(mode="v")
    with pytest.raises(ValueRefusedError, match="index GSI2 does not contain whole items"):
        list(store.query(by_mode))
    assert store.query(by_mode).count() == 1
    assert list(store.values(by_mode, Kept.mode)) == ["v"]


def test_items_without_a_type_are_read_by_their_keys_and_get_one_when_they_are_put(store: Store) -> None:
    item = {"PK": {"S": "THING#a"}, "SK": {"S": "NUMBER#00001"}, "more": {"S": "kept"}}
    store.backend.execute("PutItem", {"TableName": "things", "Item": item})
    (thing,) = store.query(Thing.key(name="a"))
    assert (thing, list(store.scan(Thing))) == (store.get(KEY), [])
    (unknown,) = store.collection(KEY)
    assert isinstance(unknown, Undeclared)
    assert unknown.item == item
    assert "SK={'S': 'NUMBER#00001'}" in repr(unknown)
    store.put(thing, when=unchanged(thing, Thing.state, Thing.count))
    assert list(store.scan(Thing)) == list(store.collection(KEY)) == [thing]
    request = {"TableName": "things", "Key": {name: item[name] for name in ("PK", "SK")}}
    assert store.backend.execute("GetItem", request)["Item"]["more"] == {"S": "kept"}
