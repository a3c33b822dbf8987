"""Whole tables as files: what comes back is what was there, and nothing of a file that is not whole."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtable import connect
from jobtable.embedded import EmbeddedBackend
from jobtable.errors import ArchiveError, ConflictError, RequestRefused
from jobtable.model import Attr, Entity, Json, Key, Table, default
from jobtable.store import AttributeValue, Item, Store
from jobtable.store.exports import check_export, export_table, import_table

notes = Table("exports-notes", pk="PK", sk="SK", type_attribute="TYPE")
others = Table("exports-others", pk="PK", sk="SK", type_attribute="TYPE")


class Note(Entity, table=notes, type="NOTE"):
    """Something to keep."""

    key = Key("NOTE#{name}", "NOTE")

    name: str
    content: Attr[Json] = default(None)


class Other(Entity, table=others, type="OTHER"):
    """Something in another table."""

    key = Key("OTHER#{name}", "OTHER")

    name: str


def items_of(store: Store) -> list[Item]:
    items = store.backend.execute("Scan", {"TableName": store.table_name(notes)})["Items"]
    return sorted(items, key=lambda item: str(item["PK"]))


@pytest.fixture
def store(each_store: Store) -> Store:
    each_store.tables.create(notes)
    return each_store


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "notes.jsonl"


def fill(store: Store, count: int) -> None:
    undeclared = {"TYPE": {"S": "FOREIGN"}, "SK": {"S": "x"}, "items": {"B": "AAE="}, "set": {"NS": ["1", "2"]}}
    store.batch_put(
        Note(name=f"{number}", content={"n": number, "text": "line\nbreak \u2028"}) for number in range(count)
    )
    store.backend.execute(
        "PutItem", {"TableName": store.table_name(notes), "Item": {"PK": {"S": "foreign"}, **undeclared}}
    )


def test_a_table_comes_back_as_it_was(store: Store, file: Path) -> None:
    fill(store, 60)
    before = items_of(store)
    made = export_table(store, notes, file)
    assert (made.table, made.items) == ("exports-notes", 61)
    assert check_export(file) == made
    store.tables.delete(notes)
    assert import_table(store, notes, file) == made
    assert items_of(store) == before


def test_what_is_there_is_refused_merged_or_replaced(store: Store, file: Path) -> None:
    store.batch_put([Note(name="a", content=1), Note(name="b", content=1)])
    export_table(store, notes, file)
    store.put(Note(name="a", content=2))
    store.put(Note(name="c", content=2))
    before = items_of(store)
    with pytest.raises(ConflictError, match="is not empty"):
        import_table(store, notes, file)
    assert items_of(store) == before
    import_table(store, notes, file, "merge")
    assert {note.name: note.content for note in store.scan(Note)} == {"a": 1, "b": 1, "c": 2}
    import_table(store, notes, file, "replace")
    assert {note.name: note.content for note in store.scan(Note)} == {"a": 1, "b": 1}


def test_a_file_of_another_table_is_refused(file: Path) -> None:
    with connect("memory:") as store:
        store.tables.create(others)
        store.add(Other(name="a"))
        export_table(store, others, file)
        with pytest.raises(ArchiveError, match="holds table exports-others, not exports-notes"):
            import_table(store, notes, file)
        assert store.tables.names() == ["exports-others"]


@pytest.mark.parametrize("line", ["[]", "3", "{", '{"PK":{"S":"a"}}', '{"PK":{"S":"a"},"SK":"b"}'])
def test_a_file_with_something_that_is_no_item_is_refused(file: Path, line: str) -> None:
    forge(file, line)
    with connect("memory:") as store, pytest.raises(ArchiveError, match="line 2 is not an item"):
        import_table(store, notes, file)


def forge(file: Path, *lines: str) -> None:
    """Make a file whose digest fits."""
    content = '{"format":"jobtable table 1","table":"exports-notes"}\n' + "".join(f"{line}\n" for line in lines)
    digest = hashlib.sha256(content.encode()).hexdigest()
    file.write_text(content + json.dumps({"items": len(lines), "sha256": digest}) + "\n")


def deep(levels: int) -> AttributeValue:
    return {"S": "x"} if levels == 0 else {"L": [deep(levels - 1)]}


UNSTORABLE: dict[str, Item] = {
    "a type that there is not": {"x": {"T": "x"}},
    "a text that is none": {"x": {"S": 1}},
    "a number that is none": {"x": {"N": "1e"}},
    "a number that is too long": {"x": {"N": "1" * 39}},
    "a number with something else around it": {"x": {"N": " 1"}},
    "a number with something else in it": {"x": {"N": "1_0"}},
    "a zero that is out of range": {"x": {"N": "0e200"}},
    "no base64": {"x": {"B": "a"}},
    "base64 that is not the one of its bytes": {"x": {"B": "AB=="}},
    "a flag that is none": {"x": {"BOOL": 7}},
    "null that is false": {"x": {"NULL": False}},
    "an empty set": {"x": {"SS": []}},
    "a set with a member twice": {"x": {"NS": ["1", "1"]}},
    "a set with a number twice": {"x": {"NS": ["1", "1.0"]}},
    "a set of something else": {"x": {"BS": ["AA==", 1]}},
    "a list that is none": {"x": {"L": {}}},
    "a map that is none": {"x": {"M": []}},
    "a value deep inside": {"x": {"M": {"y": {"L": [{"S": None}]}}}},
    "lists that are too deep": {"x": deep(32)},
    "no name": {"": {"S": "x"}},
    "a name that is too long": {"x": {"M": {"y" * 65_536: {"S": "x"}}}},
    "a key of another type": {"PK": {"N": "1"}},
    "an empty key": {"SK": {"S": ""}},
    "a key that is too long": {"SK": {"S": "x" * 1025}},
    "too much": {"x": {"S": "x" * (400 << 10)}},
}


@pytest.mark.parametrize("name", UNSTORABLE)
def test_a_table_is_not_emptied_for_a_file_that_it_cannot_hold(file: Path, name: str) -> None:
    item = {"PK": {"S": "a"}, "SK": {"S": "b"}, **UNSTORABLE[name]}
    forge(file, json.dumps(item))
    with connect("memory:") as store:
        store.tables.create(notes)
        store.put(Note(name="kept"))
        before = items_of(store)
        with pytest.raises(RequestRefused):
            store.backend.execute("PutItem", {"TableName": store.table_name(notes), "Item": item})
        with pytest.raises(ArchiveError, match="line 2 is not an item of table exports-notes: "):
            import_table(store, notes, file, "replace")
        assert items_of(store) == before


def test_what_the_backends_take_can_be_imported(store: Store, file: Path) -> None:
    values: Item = {
        "n": {"N": "-1.5E-7"},
        "m": {"M": {"y": {"L": []}, "z": {"M": {}}}},
        "ss": {"SS": ["a", ""]},
        "ns": {"NS": ["0.1", "2"]},
        "bs": {"BS": ["AA==", ""]},
        "flags": {"L": [{"BOOL": False}, {"NULL": True}, {"B": ""}]},
        "deep": deep(31),
    }
    item = {"PK": {"S": "a"}, "SK": {"S": "b"}, **values}
    store.backend.execute("PutItem", {"TableName": store.table_name(notes), "Item": item})
    before = items_of(store)
    export_table(store, notes, file)
    import_table(store, notes, file, "replace")
    assert items_of(store) == before


@pytest.mark.parametrize(
    "header", ['{"format":"jobtable table 1"}', '{"format":"jobtable table 1","table":3}', "[" * 100_000]
)
def test_a_file_with_another_header_is_refused(file: Path, header: str) -> None:
    """Also where whoever made it has made the digest fit."""
    digest = hashlib.sha256(f"{header}\n".encode()).hexdigest()
    file.write_text(f"{header}\n" + json.dumps({"items": 0, "sha256": digest}) + "\n")
    with pytest.raises(ArchiveError, match="is not the export of a table, or its beginning is altered"):
        check_export(file)


@given(st.data())
def test_a_file_that_is_cut_or_altered_anywhere_is_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    file = tmp_path_factory.mktemp("exports") / "notes.jsonl"
    with Store(EmbeddedBackend(None)) as store:
        store.tables.create(notes)
        fill(store, 3)
        export_table(store, notes, file)
        whole = file.read_bytes()
        place = data.draw(st.integers(0, len(whole) - 1))
        byte = data.draw(st.integers(0, 255))
        spoilt = data.draw(
            st.sampled_from(
                [
                    whole[:place],
                    whole[:place] + bytes([byte]) + whole[place + 1 :],
                    whole[:place] + bytes([byte]) + whole[place:],
                    whole[:place] + whole[place + 1 :],
                    whole + bytes([byte]),
                ]
            ).filter(lambda content: content != whole)
        )
        file.write_bytes(spoilt)
        store.tables.delete(notes)
        with pytest.raises(ArchiveError):
            import_table(store, notes, file)
        assert store.tables.names() == []


def test_an_export_that_fails_leaves_the_old_file_and_nothing_else(file: Path) -> None:
    file.write_text("old")

    def fail(_count: int) -> None:
        raise KeyboardInterrupt

    with connect("memory:") as store:
        store.tables.create(notes)
        store.add(Note(name="a"))
        with pytest.raises(KeyboardInterrupt):
            export_table(store, notes, file, fail)
    assert [path.name for path in file.parent.iterdir()] == ["notes.jsonl"]
    assert file.read_text() == "old"
