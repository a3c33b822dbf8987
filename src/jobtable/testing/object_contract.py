"""The contract of an ObjectStore as a test class. Subclass it and add a fixture `objects`."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from jobtable.errors import ObjectNotFoundError, ValueRefusedError
from jobtable.objects.keys import key_parts, object_key
from jobtable.objects.object_store import ObjectStore, Source

MEGABYTE = 1 << 20

_PATHS = ["", "/", "/etc/passwd", "a//b", "a/", "..", "../a", "a/../b", "a/./b", ".incoming/x", "a\\b"]
_ESCAPES = ["a\0b", "a\nb", "a b", "ä", "a%2fb", "%41", "%", "%FF"]
FOREIGN_KEYS = [*_PATHS, *_ESCAPES, "x" * 256, "a/" * 500 + "a"]
_UNICODE = ["e\u0301", "\u00e9", "🗂"]
HOSTILE_PARTS = ["..", ".", "/", "\\", "../../etc/passwd", "\0", "\n", "a/b", "%2e%2e", "~root", *_UNICODE]


class ObjectContract:
    """The tests that every ObjectStore passes. Each needs a store of its own, or one whose keys no other test uses."""

    def test_an_object_comes_back_as_it_was_put(self, objects: ObjectStore) -> None:
        key = object_key("whole", "a.json")
        data = bytes(range(256)) * 5000
        info = objects.put(key, data)
        assert (info.key, info.size, info.sha256) == (key, len(data), hashlib.sha256(data).hexdigest())
        assert info.content_type == "application/json"
        assert objects.get(key) == data
        assert objects.head(key) == info

    def test_an_object_is_described_as_it_is_listed(self, objects: ObjectStore) -> None:
        key = object_key("described", "a")
        objects.put(key, b"12345")
        (listed,) = objects.list("described")
        assert objects.describe(key) == listed
        assert listed.size == 5

    def test_records_can_name_the_store(self, objects: ObjectStore) -> None:
        assert objects.bucket
        assert objects.bucket == objects.bucket.strip()

    @pytest.mark.parametrize("size", [0, 1, MEGABYTE, MEGABYTE + 1])
    def test_bytes_files_and_streams_can_be_put(self, objects: ObjectStore, tmp_path: Path, size: int) -> None:
        data = b"x" * size
        path = tmp_path / "source"
        path.write_bytes(data)
        sources: list[Source] = [data, path, io.BytesIO(data), Unseekable(data)]
        for number, source in enumerate(sources):
            key = object_key("sources", size, number)
            assert objects.put(key, source).size == size
            assert objects.get(key) == data

    def test_a_stream_is_put_from_where_it_stands(self, objects: ObjectStore) -> None:
        stream = io.BytesIO(b"headbody")
        stream.seek(4)
        objects.put("standing", stream)
        assert objects.get("standing") == b"body"

    def test_put_replaces(self, objects: ObjectStore) -> None:
        key = object_key("replaced", 1)
        objects.put(key, b"old, and longer")
        info = objects.put(key, b"new")
        assert objects.get(key) == b"new"
        assert objects.head(key) == info

    @pytest.mark.parametrize(
        ("start", "length", "expected"),
        [
            (0, 4, b"0123"),
            (3, 3, b"345"),
            (8, 10, b"89"),
            (10, 1, b""),
            (50, 1, b""),
            (2, 0, b""),
            (0, 100, b"0123456789"),
            (2, 2**70, b"23456789"),
            (2**62, 1, b""),
            (2**70, 1, b""),
        ],
    )
    def test_a_range_ends_at_the_object_s_end(
        self, objects: ObjectStore, start: int, length: int, expected: bytes
    ) -> None:
        objects.put("range", b"0123456789")
        assert objects.get_range("range", start, length) == expected

    @pytest.mark.parametrize(("start", "length"), [(-1, 1), (0, -1)])
    def test_a_range_is_not_negative(self, objects: ObjectStore, start: int, length: int) -> None:
        objects.put("range", b"0123456789")
        with pytest.raises(ValueRefusedError):
            objects.get_range("range", start, length)

    def test_a_stream_is_read_in_pieces(self, objects: ObjectStore) -> None:
        data = bytes(range(256)) * 8192
        objects.put("stream", data)
        with objects.open("stream") as stream:
            assert stream.read(1000) == data[:1000]
            assert stream.read(3_000_000) == data[1000:]
            assert stream.read(1) == b""

    def test_a_missing_object_is_an_error_that_names_its_key(self, objects: ObjectStore) -> None:
        key = object_key("missing", "object")
        for read in (
            lambda: objects.get(key),
            lambda: objects.get_range(key, 0, 1),
            lambda: objects.get_range(key, 0, 0),
            lambda: objects.open(key),
            lambda: objects.head(key),
            lambda: objects.describe(key),
        ):
            with pytest.raises(ObjectNotFoundError, match=key):
                read()

    def test_delete_removes_and_may_be_repeated(self, objects: ObjectStore) -> None:
        key, neighbour = object_key("deleted", "a"), object_key("deleted", "b")
        objects.put(key, b"a")
        objects.put(neighbour, b"b")
        objects.delete(key)
        objects.delete(key)
        with pytest.raises(ObjectNotFoundError):
            objects.get(key)
        assert [found.key for found in objects.list("deleted")] == [neighbour]

    def test_an_open_stream_survives_replacement_and_deletion(self, objects: ObjectStore) -> None:
        objects.put("held", b"old")
        with objects.open("held") as stream:
            objects.put("held", b"new")
            objects.delete("held")
            assert stream.read() == b"old"

    def test_list_goes_by_whole_parts(self, objects: ObjectStore) -> None:
        keys = [
            object_key("listed", *parts)
            for parts in [("1", "a"), ("1", "b", "c"), ("1-2",), ("10", "a"), ("1.5",), ("2",), ("Z",), ("a",), ("ä",)]
        ]
        for key in keys:
            objects.put(key, key.encode())
        listed = [(found.key, found.size) for found in objects.list("listed")]
        assert sorted(listed) == sorted((key, len(key)) for key in keys)
        assert sorted(found.key for found in objects.list("listed/1")) == ["listed/1/a", "listed/1/b/c"]
        assert list(objects.list("listed/2")) == []
        assert list(objects.list("listed/nothing")) == []
        assert set(keys) <= {found.key for found in objects.list()}

    def test_list_goes_on_over_many_objects(self, objects: ObjectStore) -> None:
        keys = [object_key("many", f"{number:04}") for number in range(1100)]
        for key in keys:
            objects.put(key, b"")
        assert sorted(found.key for found in objects.list("many")) == keys

    def test_objects_can_be_deleted_while_they_are_listed(self, objects: ObjectStore) -> None:
        for number in range(50):
            objects.put(object_key("emptied", number % 5, number), b"")
        for found in objects.list("emptied"):
            objects.delete(found.key)
        assert list(objects.list("emptied")) == []

    def test_a_key_that_object_key_does_not_make_is_refused(self, objects: ObjectStore) -> None:
        uses: list[Callable[[str], object]] = [
            lambda key: objects.put(key, b""),
            objects.get,
            lambda key: objects.get_range(key, 0, 1),
            objects.open,
            objects.head,
            objects.describe,
            objects.delete,
            objects.url,
        ]
        assert [key for key in FOREIGN_KEYS if not all(_refuses(use, key) for use in uses)] == []

    def test_hostile_parts_are_ordinary_objects(self, objects: ObjectStore) -> None:
        for part in HOSTILE_PARTS:
            objects.put(object_key("hostile", part, "x"), part.encode())
        found = {key_parts(found.key)[1]: objects.get(found.key) for found in objects.list("hostile")}
        assert found == {part: part.encode() for part in HOSTILE_PARTS}

    def test_keys_that_differ_in_case_or_form_are_different(self, objects: ObjectStore) -> None:
        parts = ["readme", "README", "ReadMe", "\u00e9", "e\u0301", "%C3%A9"]
        for part in parts:
            objects.put(object_key("case", part), part.encode())
        assert [objects.get(object_key("case", part)).decode() for part in parts] == parts

    def test_a_put_whose_source_fails_changes_nothing(self, objects: ObjectStore) -> None:
        objects.put("kept", b"old")
        with pytest.raises(SourceBroke):
            objects.put("kept", Unseekable(b"x" * (3 * MEGABYTE), fails=True))
        with pytest.raises(SourceBroke):
            objects.put(object_key("never", "there"), Unseekable(b"x" * (3 * MEGABYTE), fails=True))
        assert objects.get("kept") == b"old"
        assert list(objects.list("never")) == []

    def test_readers_see_one_whole_object_while_it_is_replaced(self, objects: ObjectStore) -> None:
        versions = [bytes([version]) * (64 * 1024) for version in range(4)]
        objects.put("busy", versions[0])

        def write() -> None:
            for number in range(60):
                objects.put("busy", versions[number % 4])

        with ThreadPoolExecutor(1) as writer:
            written = writer.submit(write)
            while not written.done():
                assert objects.get("busy") in versions
        written.result()

    def test_writers_and_deleters_of_one_folder_do_not_disturb_each_other(self, objects: ObjectStore) -> None:
        def work(name: str) -> None:
            for _ in range(40):
                objects.put(object_key("shared", "deep", name), name.encode())
                objects.delete(object_key("shared", "deep", name))
            objects.put(object_key("shared", "deep", name), name.encode())

        with ThreadPoolExecutor(4) as writers:
            list(writers.map(work, "abcd"))
        assert sorted(found.key for found in objects.list("shared")) == [f"shared/deep/{name}" for name in "abcd"]

    def test_a_url_is_text_or_none(self, objects: ObjectStore) -> None:
        objects.put("addressed", b"here")
        url = objects.url("addressed", expires_in=timedelta(minutes=5))
        assert url is None or url.startswith("http")

    def test_close_may_be_called_twice(self, objects: ObjectStore) -> None:
        objects.close()
        objects.close()


def _refuses(use: Callable[[str], object], key: str) -> bool:
    try:
        use(key)
    except ValueRefusedError:
        return True
    return False


class SourceBroke(Exception):
    """The source of a put cannot be read completely."""


class Unseekable:
    """A stream that can be read only once, from its start, and may fail at its end."""

    def __init__(self, data: bytes, *, fails: bool = False) -> None:
        self._stream = io.BytesIO(data)
        self._fails = fails

    def read(self, size: int, /) -> bytes:
        data = self._stream.read(size)
        if not data and self._fails:
            raise SourceBroke
        return data
