"""The full text of a run: bounded, readable while it grows, whole at the end, merged after a crash."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.jobs.runs import Run, run_in_memory, run_on

from jobtable.errors import ObjectStoreError
from jobtable.jobs.lifecycle.leases import Outcome
from jobtable.jobs.report.log_text import PART_BYTES, UPLOAD_SECONDS, ChunkReader, LogText, TextSpool
from jobtable.jobs.stored.locations import JobObjects, log_part_key, log_parts_prefix
from jobtable.objects import Source
from jobtable.objects.object_store import ObjectInfo
from jobtable.objects.orphans import sweep
from jobtable.store import Store

Writer = Callable[[Run], LogText]


def text_of(run: Run, epoch: int | None = None) -> bytes:
    return b"".join(run.logs.full_text(run.job_id, epoch))


@pytest.fixture
def writer() -> Iterator[Writer]:
    """What makes the writer of a run's text."""
    with contextlib.ExitStack() as stack:

        def make(run: Run) -> LogText:
            text = run.jobs.recording.log_text(run.lease)
            stack.callback(text.close)
            return text

        yield make


def upload(run: Run, text: LogText) -> None:
    run.clock.advance(UPLOAD_SECONDS)
    text.upload()


def parts(run: Run) -> list[str]:
    return sorted(found.key for found in run.jobs.objects.list(log_parts_prefix(run.job_id, run.lease.epoch)))


@given(st.lists(st.binary(max_size=30)), st.integers(1, 40), st.integers(1, 40))
def test_the_first_and_the_last_bytes_are_kept(pieces: list[bytes], most_head: int, most_tail: int) -> None:
    spool = TextSpool(most_head, most_tail)
    for piece in pieces:
        spool.append(piece)
    data = b"".join(pieces)
    left_out = len(data) - most_head - most_tail
    note = f"\n[{left_out:,} bytes of output were left out here]\n".encode() if left_out > 0 else b""
    expected = data[:most_head] + note + data[most_head:][-most_tail:]
    assert b"".join(spool.chunks()) == expected
    assert spool.line_count == data.count(b"\n")
    spool.close()


@given(st.lists(st.binary(max_size=10)), st.integers(1, 7))
def test_chunks_are_read_as_a_stream(chunks: list[bytes], size: int) -> None:
    reader = ChunkReader(iter(chunks))
    read = list(iter(lambda: reader.read(size), b""))
    assert b"".join(read) == b"".join(chunks)
    assert all(len(piece) <= size for piece in read)


def test_a_short_text_becomes_one_object_at_once(each_store: Store, writer: Writer) -> None:
    run = run_on(each_store)
    text = writer(run)
    text.append(b"one\ntwo\n")
    text.upload()
    assert parts(run) == []
    record = text.finish()
    assert record is not None
    assert (record.size_bytes, record.line_count, record.part_count) == (8, 2, 0)
    assert record.s3_key == f"jobs/{run.job_id}/log/1.txt"
    assert list(run.logs.texts(run.job_id)) == [record]
    assert text_of(run) == b"one\ntwo\n"


def test_no_output_leaves_no_text(writer: Writer) -> None:
    run = run_in_memory()
    text = writer(run)
    upload(run, text)
    assert text.finish() is None
    assert text_of(run) == b""
    assert list(run.jobs.objects.list()) == []


def test_a_text_can_be_read_while_it_grows_and_its_parts_go_when_it_is_whole(writer: Writer) -> None:
    run = run_in_memory()
    text = writer(run)
    data = b"".join(b"line %07d\n" % number for number in range(200_000))
    half = len(data) // 2
    text.append(data[:half])
    upload(run, text)
    assert len(parts(run)) == -(-half // PART_BYTES)
    assert text_of(run) == data[:half]
    assert run.logs.finish_text(run.job_id, 1) is None
    (growing,) = run.logs.texts(run.job_id)
    assert growing.sha256 is None
    text.append(data[half:])
    upload(run, text)
    assert text_of(run) == data
    text.finish()
    assert parts(run) == []
    assert text_of(run) == data
    assert [found.key for found in run.jobs.objects.list()] == [f"jobs/{run.job_id}/log/1.txt"]


def test_what_a_lost_worker_had_uploaded_is_merged_by_who_reads_it(each_store: Store, writer: Writer) -> None:
    run = run_on(each_store)
    text = writer(run)
    data = b"x" * (PART_BYTES + 5) + b"\n"
    text.append(data)
    upload(run, text)
    text.append(b"never uploaded")
    run.lose()
    objects = JobObjects(run.jobs.store)
    assert all(objects.is_referenced(key) for key in parts(run))
    assert text_of(run, 1) == data
    assert parts(run) == []
    (record,) = run.logs.texts(run.job_id)
    assert (record.size_bytes, record.line_count) == (len(data), 1)
    assert run.logs.finish_text(run.job_id, 1) == record
    assert text_of(run) == b""

    late = text.finish()  # the worker was only slow
    assert late is not None
    assert text_of(run, 1) == data + b"never uploaded"
    assert objects.is_referenced(late.s3_key)
    assert not objects.is_referenced(record.s3_key)


def test_a_reader_goes_on_in_the_whole_text_when_the_parts_are_removed(writer: Writer) -> None:
    run = run_in_memory()
    text = writer(run)
    data = b"".join(b"%07d\n" % number for number in range(3 * PART_BYTES // 8))
    text.append(data)
    upload(run, text)
    reading = run.logs.full_text(run.job_id)
    first = next(reading)
    text.append(b"the end")
    text.finish()
    assert first + b"".join(reading) == data + b"the end"


def test_two_processes_may_merge_at_once(writer: Writer) -> None:
    run = run_in_memory()
    text = writer(run)
    text.append(b"a" * (2 * PART_BYTES))
    upload(run, text)
    run.jobs.finish(run.lease, Outcome.failed("gone"))
    put = run.jobs.objects.put
    others: list[object] = []

    def interrupted(key: str, source: Source) -> ObjectInfo:
        """Another process merges while this one is about to."""
        if not others:
            others.append(None)
            others[0] = run.logs.finish_text(run.job_id, 1)
        return put(key, source)

    run.jobs.objects.put = interrupted  # type: ignore[method-assign]  # to come in between
    assert run.logs.finish_text(run.job_id, 1) == others[0]
    assert text_of(run) == b"a" * (2 * PART_BYTES)


def test_a_failed_end_can_be_tried_again(monkeypatch: pytest.MonkeyPatch, writer: Writer) -> None:
    run = run_in_memory()
    text = writer(run)
    text.append(b"kept")

    def fail(key: str, source: Source) -> ObjectInfo:
        raise ObjectStoreError("away")

    with monkeypatch.context() as broken:
        broken.setattr(run.jobs.objects, "put", fail)
        with pytest.raises(ObjectStoreError):
            text.finish()
    text.finish()
    assert text_of(run) == b"kept"


def test_a_text_is_whole_though_its_parts_cannot_be_removed(monkeypatch: pytest.MonkeyPatch, writer: Writer) -> None:
    run = run_in_memory()
    text = writer(run)
    text.append(b"kept")
    upload(run, text)

    def fail(key: str) -> None:
        raise ObjectStoreError("away")

    with monkeypatch.context() as broken:
        broken.setattr(run.jobs.objects, "delete", fail)
        assert text.finish() is not None
    assert text_of(run) == b"kept"
    run.clock.advance(7 * 24 * 3600)
    assert sweep(run.jobs.objects, JobObjects(run.jobs.store).is_referenced, clock=run.clock).orphans == 1


def test_the_sweep_takes_leftovers_and_nothing_else(writer: Writer) -> None:
    run = run_in_memory()
    text = writer(run)
    text.append(b"kept")
    text.finish()
    run.jobs.objects.put(log_part_key(run.job_id, 1, 3), b"a part that a crash has left")
    run.clock.advance(7 * 24 * 3600)
    report = sweep(run.jobs.objects, JobObjects(run.jobs.store).is_referenced, clock=run.clock)
    assert (report.objects, report.orphans) == (2, 1)
    assert text_of(run) == b"kept"
