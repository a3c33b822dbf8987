"""Finding a text in a whole log: in texts of any size, while they grow, page by page, and in the lines of the table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.jobs.runs import Run, run_in_memory, run_on

from jobtable.embedded import EmbeddedBackend
from jobtable.errors import CursorError, NotFoundError, ValueRefusedError
from jobtable.jobs.read import log_search
from jobtable.jobs.read.log_search import FoundLine, LogSearch
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.report.log_text import PART_BYTES, UPLOAD_SECONDS
from jobtable.jobs.stored.entities import JobLogText
from jobtable.store import Store

NEVER = 3600.0


def write(run: Run, data: bytes) -> None:
    """The whole output of a run."""
    with closing(run.jobs.recording.log_text(run.lease)) as text:
        text.append(data)
        text.finish()


def pages(search: LogSearch, limit: int) -> list[list[FoundLine]]:
    found, cursor = [], None
    while True:
        page = search.page(cursor, limit)
        found.append(page.items)
        cursor = page.cursor
        if cursor is None:
            return found


def test_the_texts_of_all_runs_are_searched(each_store: Store) -> None:
    run = run_on(each_store)
    write(run, b"a\nneedle \xff 1\n")
    write(Run(run.jobs, run.lose(), run.clock), b"x" * (3 << 20) + b"\r progress needle 2")
    found = list(run.logs.search(run.job_id, "needle"))
    assert found[0] == FoundLine(1, 2, "needle \ufffd 1")
    assert [(each.epoch, each.number) for each in found] == [(1, 2), (2, 1)]
    assert list(run.logs.search(run.job_id, "needle", epoch=1)) == found[:1]
    assert list(run.logs.search(run.job_id, "needle", epoch=3)) == []
    assert pages(run.logs.search(run.job_id, "needle"), 1)[:2] == [[found[0]], [found[1]]]


@pytest.fixture(scope="module")
def store_of_examples() -> Iterator[Store]:
    """One for all examples of a property: to make one takes longer than what they do with it."""
    with Store(EmbeddedBackend(None)) as store:
        yield store


@settings(deadline=None)
@given(st.lists(st.text("aN\r\u00e9", max_size=6), max_size=40), st.integers(1, 5), st.integers(16, 50))
def test_pages_of_any_size_give_every_line_once(
    store_of_examples: Store, lines: list[str], limit: int, most_bytes: int
) -> None:
    run = run_on(store_of_examples)
    write(run, "\n".join(lines).encode())
    expected = [FoundLine(1, number, line) for number, line in enumerate(lines, start=1) if "N" in line]
    with pytest.MonkeyPatch.context() as small:
        small.setattr(log_search, "CHUNK_SIZE", 16)
        small.setattr(log_search, "MOST_BYTES", most_bytes)
        found = pages(run.logs.search(run.job_id, "N"), limit)
    assert [line for page in found for line in page] == expected
    assert all(len(page) <= limit for page in found)


@settings(deadline=None)
@example(["a" * 12 + "N\u00e9\u00df"], 1, 16)
@given(st.lists(st.text("aN\u00e9\u00df", max_size=60), max_size=5), st.integers(1, 5), st.integers(16, 50))
def test_a_match_is_found_wherever_a_long_line_is_cut(lines: list[str], limit: int, most_bytes: int) -> None:
    run = run_in_memory()
    write(run, "\n".join(lines).encode())
    expected = {number for number, line in enumerate(lines, start=1) if "n\u00e9s" in line.casefold()}
    with pytest.MonkeyPatch.context() as small:
        small.setattr(log_search, "CHUNK_SIZE", 16)
        small.setattr(log_search, "MOST_BYTES", most_bytes)
        found = pages(run.logs.search(run.job_id, "n\u00e9s", ignore_case=True), limit)
    assert {line.number for page in found for line in page} == expected
    run.jobs.store.close()


def test_a_text_is_searched_while_it_grows_and_becomes_one_object() -> None:
    run = run_in_memory()
    line = b"a line of the log, 32 bytes long\n"
    count = PART_BYTES // len(line)
    with closing(run.jobs.recording.log_text(run.lease)) as text:
        text.append(line * count + b"needle across the boundary of parts\n" + line + b"needle 2\n")
        run.clock.advance(UPLOAD_SECONDS)
        text.upload()
        search = run.logs.search(run.job_id, "needle")
        first = search.page(limit=1)
        assert first.items == [FoundLine(1, count + 1, "needle across the boundary of parts")]
        text.append(b"needle 3\n")
        text.finish()
    rest = search.page(first.cursor, limit=10)
    assert rest.items == [FoundLine(1, count + 3, "needle 2"), FoundLine(1, count + 4, "needle 3")]


def test_a_page_looks_through_a_bounded_part_and_leads_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_search, "MOST_BYTES", 2 << 20)
    run = run_in_memory()
    write(run, b"nothing\n" * (5 << 17) + b"needle\n")
    found = pages(run.logs.search(run.job_id, "needle"), 10)
    assert [len(page) for page in found] == [0, 0, 1]


def test_a_page_ends_behind_many_runs_that_printed_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_in_memory()
    empty = JobLogText(job_id=run.job_id, lease_epoch=1, s3_bucket="b", s3_key="k", created_at=run.clock.now())
    run.jobs.store.batch_put(empty.replace(lease_epoch=epoch) for epoch in range(1, 10))
    monkeypatch.setattr(log_search, "MOST_BYTES", 4 * log_search._BYTES_OF_A_RUN)
    assert pages(run.logs.search(run.job_id, "needle"), 100) == [[], [], []]
    assert pages(run.logs.search(run.job_id, "needle", epoch=4), 100) == [[]]


def test_of_a_job_without_texts_the_lines_of_the_table_are_searched(
    each_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_on(each_store)
    with JobContext(run.jobs, run.lease, flush_seconds=NEVER) as context:
        for number in range(10):
            context.log(f"Line {number}", "ERROR" if number == 7 else "INFO")
    monkeypatch.setattr(log_search, "MOST_LINES", 4)
    found = pages(run.logs.search(run.job_id, "line 7", ignore_case=True), 10)
    assert [[each.text for each in page] for page in found] == [[], ["Line 7"], []]
    (line,) = found[1]
    assert (line.epoch, line.number, line.log_level) == (None, None, "ERROR")
    assert line.timestamp is not None
    assert len(list(run.logs.search(run.job_id, "Line"))) == 10
    assert list(run.logs.search(run.job_id, "line")) == []
    assert list(run.logs.search(run.job_id, "Line", epoch=1)) == []


def test_case_is_ignored_where_that_is_asked_for() -> None:
    run = run_in_memory()
    write(run, "Straße\nSTRASSE\n".encode())
    assert [each.number for each in run.logs.search(run.job_id, "strasse", ignore_case=True)] == [1, 2]
    assert [each.number for each in run.logs.search(run.job_id, "Stra")] == [1]


def test_what_cannot_be_looked_for_is_refused() -> None:
    run = run_in_memory()
    with pytest.raises(NotFoundError):
        run.logs.search("nobody", "x")
    with pytest.raises(ValueRefusedError, match="for an empty text"):
        run.logs.search(run.job_id, "")
    with pytest.raises(ValueRefusedError, match="a search text has at most 1000 characters, not 1001"):
        run.logs.search(run.job_id, "x" * 1001)
    with pytest.raises(CursorError):
        run.logs.search(run.job_id, "x").page("bm9uZQ")
