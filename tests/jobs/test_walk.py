"""Who follows one inline job through the code, from its claim to its end, reads few files."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from jobtable import jobs
from jobtable.app import open_jobs
from jobtable.jobs.submit.definition import NewJob
from jobtable.jobs.worker.worker import Worker

JOBS = str(Path(str(jobs.__file__)).parent)
MOST_FILES = 15


class Walk:
    """The files of `jobs` in which functions are called for a job: in `Worker._claim`, and in every other thread."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self._is_claiming = False

    def follow(self, frame: FrameType, event: str, arg: Any) -> None:
        """Note a call; what the worker's own thread does between two claims is not for the job."""
        code = frame.f_code
        if code is Worker._claim.__code__:
            self._is_claiming = event == "call"
        is_other = threading.current_thread() is not threading.main_thread()
        if event == "call" and (self._is_claiming or is_other) and code.co_filename.startswith(JOBS):
            self.files.add(code.co_filename.removeprefix(JOBS))

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Follow all threads that start from now on, and this one."""
        threading.setprofile(self.follow)
        sys.setprofile(self.follow)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)


def test_the_walk_of_one_inline_job_opens_few_files(tmp_path: Path) -> None:
    open_them = partial(open_jobs, f"file:{tmp_path}/jobs.db")
    with open_them() as engine:
        job = engine.submit(NewJob(name="noted", task="tests.jobs.worker_tasks:note", params={"text": "hello"}))
    walk = Walk()
    with walk.followed():
        done = Worker(open_them, ["default"], mode="inline", until_empty=True).run()
    assert done.completed == 1
    with open_them() as engine:
        assert [line.message for line in engine.queries.list_logs(job.job_id)] == ["hello"]
    assert {"/worker/inline.py", "/lifecycle/claims.py", "/lifecycle/runs.py", "/report/context.py"} <= walk.files
    assert len(walk.files) <= MOST_FILES, sorted(walk.files)
