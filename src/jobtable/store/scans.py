"""Scans of a whole table in parallel segments."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator

from jobtable.errors import ValueRefusedError
from jobtable.store.backend import Item, Request, Response

_MOST_SEGMENTS = 1_000_000


def pages(ask: Callable[[str, Request], Response], operation: str, request: Request) -> Iterator[Response]:
    """Yield the responses to a Scan or Query, page by page."""
    request = dict(request)
    while True:
        response = ask(operation, request)
        yield response
        if "LastEvaluatedKey" not in response:
            return
        request["ExclusiveStartKey"] = response["LastEvaluatedKey"]


class Scan:
    """Every item that a scan finds, in no order; each iteration scans anew and holds a few pages at most."""

    def __init__(self, ask: Callable[[str, Request], Response], request: Request, segments: int) -> None:
        if not 1 <= segments <= _MOST_SEGMENTS:
            raise ValueRefusedError(f"segments must be from 1 to {_MOST_SEGMENTS:,}, not {segments}")
        self._ask = ask
        self._request = request
        self._segments = segments

    def __iter__(self) -> Iterator[Item]:
        if self._segments == 1:
            for page in pages(self._ask, "Scan", self._request):
                yield from page["Items"]
        else:
            yield from self._in_parallel()

    def _in_parallel(self) -> Iterator[Item]:
        handed = _Pages(self._segments)

        def read(segment: int) -> None:
            request = {**self._request, "Segment": segment, "TotalSegments": self._segments}
            try:
                for page in pages(self._ask, "Scan", request):
                    if not handed.hand_over(page["Items"]):
                        return
                handed.hand_over(None)
            except BaseException as error:
                handed.hand_over(error)

        threads = [threading.Thread(target=read, args=(n,), daemon=True) for n in range(self._segments)]
        for thread in threads:
            thread.start()
        try:
            for page in handed:
                yield from page
        finally:
            handed.stop()
            for thread in threads:
                thread.join()


class _Pages:
    """Carries pages from the threads that read to the one that iterates, and holds few of them."""

    def __init__(self, readers: int) -> None:
        self._readers = readers
        self._waiting: queue.Queue[list[Item] | BaseException | None] = queue.Queue(maxsize=readers)
        self._stopped = threading.Event()

    def hand_over(self, result: list[Item] | BaseException | None) -> bool:
        """Wait for room; False once nobody iterates any more."""
        while not self._stopped.is_set():
            try:
                self._waiting.put(result, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def stop(self) -> None:
        """Nobody takes pages any more."""
        self._stopped.set()

    def __iter__(self) -> Iterator[list[Item]]:
        left = self._readers
        while left:
            result = self._waiting.get()
            if isinstance(result, BaseException):
                raise result
            if result is None:
                left -= 1
            else:
                yield result
