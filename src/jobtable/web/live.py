"""Live views: one reader of the store's changes for the whole server, fanned out to all viewers.

A viewer subscribes to topics. Changes are collected for a moment and encoded once for each topic, and all of its
viewers get the same bytes, so a hundred viewers cost hardly more than one. Without viewers, nothing is read.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from jobtable.errors import StreamExpired, TableNotFound
from jobtable.model import Table
from jobtable.store import Store
from jobtable.store.changes import Change, Feed
from jobtable.web.events import encode, encode_changes, topics_of
from jobtable.web.problems import Refusal

_LOG = logging.getLogger(__name__)

_PAUSE_SECONDS = 0.25
_SUMMARY_SECONDS = 1.0
_IDLE_SECONDS = 10.0
_LONGEST_PAUSE_SECONDS = 10.0
_MOST_WAITING = 64
_MOST_VIEWERS = 1000

RELOAD = encode("reload", {})
"""Sent to a viewer that missed changes and must read its data again."""
READY = encode("ready", {})
"""Sent when every later change will reach the viewer."""

Summary = Callable[[], Any]
"""Makes the event that the viewers of a topic get after any change."""


class Viewer:
    """One stream to one browser."""

    def __init__(self, loop: asyncio.AbstractEventLoop, topics: frozenset[str]) -> None:
        self.topics = topics
        self._loop = loop
        self._waiting: asyncio.Queue[bytes | None] = asyncio.Queue(_MOST_WAITING)

    def send(self, event: bytes | None) -> None:
        """Queue an event, from any thread; None ends the stream. A viewer that is too slow gets RELOAD instead."""
        try:
            self._loop.call_soon_threadsafe(self._put, event)
        except RuntimeError:
            return  # the loop is closed, and the viewer with it

    def _put(self, event: bytes | None) -> None:
        if self._waiting.full():
            while not self._waiting.empty():
                self._waiting.get_nowait()
            self._waiting.put_nowait(RELOAD)
        self._waiting.put_nowait(event)

    async def next(self, timeout_seconds: float) -> bytes | None:
        """Return the next event, or a comment that keeps the connection open, or None at the end."""
        try:
            return await asyncio.wait_for(self._waiting.get(), timeout_seconds)
        except TimeoutError:
            return b": still here\n\n"


class LiveFeed:
    """Reads the changes of some tables in one thread while there are viewers, and sends each its topics."""

    def __init__(self, store: Store, tables: Sequence[Table], summaries: Mapping[str, Summary]) -> None:
        self._store = store
        self._tables = [table for table in tables if table.stream]
        self._summaries = summaries
        self._lock = threading.Lock()
        self._viewers: set[Viewer] = set()
        self._thread: threading.Thread | None = None
        self._is_reading = False
        self._stopped = threading.Event()

    @property
    def viewers(self) -> int:
        """The number of viewers."""
        return len(self._viewers)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Accept viewers while the block runs."""
        self._stopped.clear()
        try:
            yield
        finally:
            self.end()
            if self._thread is not None:
                await asyncio.to_thread(self._thread.join)

    def end(self) -> None:
        """End all streams, so that the server can shut down."""
        self._stopped.set()
        with self._lock:
            for viewer in self._viewers:
                viewer.send(None)

    @asynccontextmanager
    async def viewer(self, topics: frozenset[str]) -> AsyncIterator[Viewer]:
        """Yield a viewer of these topics, or raise Refusal with 503 if there are too many."""
        viewer = Viewer(asyncio.get_running_loop(), topics)
        with self._lock:
            if len(self._viewers) >= _MOST_VIEWERS:
                raise Refusal(503, "too many live views; try again later", {"Retry-After": "10"})
            self._viewers.add(viewer)
            if self._is_reading:
                viewer.send(READY)
            elif self._thread is None:
                self._thread = threading.Thread(target=self._run, name="live feed", daemon=True)
                self._thread.start()
        if self._stopped.is_set():
            viewer.send(None)
        try:
            yield viewer
        finally:
            with self._lock:
                self._viewers.discard(viewer)

    # --- the reader -------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        pause = _PAUSE_SECONDS
        while not self._is_over():
            try:
                self._read_while_watched()
                pause = _PAUSE_SECONDS
            except StreamExpired:
                self._send_all(RELOAD)
            except Exception:  # whatever it is, open pages must not look live while they are not
                _LOG.exception("cannot read the changes of the store; live pages wait; will retry")
                self._stopped.wait(pause)
                pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
                self._send_all(RELOAD)

    def _is_over(self) -> bool:
        """Decide under the lock whether the thread ends, so that no new viewer relies on it."""
        with self._lock:
            self._is_reading = False
            if self._viewers and not self._stopped.is_set():
                return False
            self._thread = None
            return True

    def _read_while_watched(self) -> None:
        feeds = self._open_feeds()
        with self._lock:
            self._is_reading = True
        self._send_all(READY)
        clock = self._store.clock
        watched_at = sent_at = clock.monotonic()
        is_changed = False
        while not self._stopped.is_set():
            changes = [change for feed in feeds for change in feed.read()]
            self._send_changes(changes)
            is_changed = is_changed or bool(changes)
            now = clock.monotonic()
            if is_changed and now - sent_at >= _SUMMARY_SECONDS:
                self._send_summaries()
                sent_at, is_changed = now, False
            if self._viewers:
                watched_at = now
            elif now - watched_at > _IDLE_SECONDS:
                return
            self._stopped.wait(_PAUSE_SECONDS)

    def _open_feeds(self) -> list[Feed]:
        feeds = []
        for table in self._tables:
            try:
                feeds.append(self._store.changes(table))
            except TableNotFound:
                continue  # its system is not deployed
        return feeds

    def _send_changes(self, changes: list[Change]) -> None:
        if not changes:
            return
        by_topic = self._by_topic()
        wanted: dict[str, list[Change]] = defaultdict(list)
        for change in changes:
            for topic in topics_of(change):
                if topic in by_topic:
                    wanted[topic].append(change)
        for topic, of_topic in wanted.items():
            _send(encode_changes(topic, of_topic), by_topic[topic])

    def _send_summaries(self) -> None:
        by_topic = self._by_topic()
        for topic, summary in self._summaries.items():
            if topic in by_topic:
                _send(encode(topic, summary()), by_topic[topic])

    def _send_all(self, event: bytes) -> None:
        with self._lock:
            viewers = list(self._viewers)
        _send(event, viewers)

    def _by_topic(self) -> dict[str, list[Viewer]]:
        with self._lock:
            viewers = list(self._viewers)
        found: dict[str, list[Viewer]] = defaultdict(list)
        for viewer in viewers:
            for topic in viewer.topics:
                found[topic].append(viewer)
        return found


def _send(event: bytes, viewers: Iterable[Viewer]) -> None:
    for viewer in viewers:
        viewer.send(event)
