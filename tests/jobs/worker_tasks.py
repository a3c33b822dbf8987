"""Tasks that the tests of workers run: good ones, and those that do everything wrong."""

from __future__ import annotations

import ctypes
import logging
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy

from jobtable.errors import TaskError
from jobtable.jobs.report.context import JobContext
from jobtable.jobs.tasks import task


@task(inline=True)
def add(a: int, b: int) -> int:
    """A small one."""
    return a + b


@task(inline=True)
def fail_inline(message: str) -> None:
    """A small one that raises."""
    raise ValueError(message)


@task(inline=True)
def note(job: JobContext, text: str) -> str:
    """A small one that logs."""
    job.log(text)
    return text


@task
def say(job: JobContext, text: str) -> dict[str, Any]:
    """Speaks in every way that is captured."""
    print(f"printed {text}")
    print(f"complained {text}", file=sys.stderr)
    subprocess.run([sys.executable, "-c", f"print('child {text}')"], check=True)
    logging.getLogger("some.library").info("logged %s", text)
    job.log(f"told {text}")
    return {"text": text, "attempt": job.attempt, "pid": os.getpid()}


@task
def give(value: Any) -> Any:
    """Returns what it gets."""
    return value


@task
def give_large(size: int) -> str:
    """Returns more than an item holds."""
    return "x" * size


@task
def give_object() -> Any:
    """Returns what JSON cannot say."""
    return object()


@task
def fail(message: str) -> None:
    """Raises."""
    raise RuntimeError(message)


@task
def print_and_fail(job: JobContext, lines: int) -> None:
    """Raises after it has logged and printed, the last of it without an end."""
    job.log("told")
    for number in range(lines):
        print(number)
    print("last words", end="")
    raise RuntimeError("no")


@task
def say_in_turns(job: JobContext, rounds: int) -> None:
    """Says everything in every way, for longer than lines are collected, and is then killed without warning."""
    for number in range(rounds):
        print(f"{number} printed")
        job.log(f"{number} logged")
        print(f"{number} complained", file=sys.stderr)
        logging.getLogger("some.library").info("%d heard", number)
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)


@task
def log_in_fork(job: JobContext) -> None:
    """Logs in a process that it has forked, as a loader of data does."""

    def log() -> None:
        job.log("from the fork")
        job.flush()
        job.log("x" * 300_000)

    job.log("before")
    child = multiprocessing.get_context("fork").Process(target=log)
    child.start()
    child.join()
    job.log("behind")


@task
def refuse() -> None:
    """Raises what no retry would change."""
    raise TaskError("nothing to be done")


@task
def leave(code: int) -> None:
    """Ends the process."""
    os._exit(code)


@task
def leave_politely(code: int) -> None:
    """Ends as scripts do."""
    sys.exit(code)


@task
def crash() -> None:
    """Reads where nothing is."""
    ctypes.string_at(0)


@task
def kill_itself(signum: int) -> None:
    """Ends by a signal."""
    os.kill(os.getpid(), signum)
    time.sleep(600)


@task
def eat(most_mb: int, step_mb: int = 20) -> None:
    """Takes memory, and keeps it until it is stopped."""
    eaten = []
    for _ in range(0, most_mb, step_mb):
        eaten.append(b"x" * (step_mb << 20))
        time.sleep(0.02)
    time.sleep(600)


@task
def eat_at_once(size_mb: int) -> int:
    """Takes a lot of memory in one go."""
    return len(bytearray(size_mb << 20))


@task
def hang(marks: str | None = None) -> None:
    """Never ends, and takes no hint; starts a process that would outlive it."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    if marks is not None:
        Path(marks).write_text(f"{os.getpid()} {child.pid}")
    time.sleep(600)


@task
def hang_once(marks: str) -> str:
    """Hangs in its first run."""
    if not Path(marks).exists():
        hang(marks)
    return "ran again"


@task
def wait_for_file(path: str) -> None:
    """Ends when the file is there, and takes no hint before."""
    while not Path(path).exists():
        time.sleep(0.02)


@task
def sleep(seconds: float) -> str:
    """Takes its time, and ends when it is interrupted."""
    time.sleep(seconds)
    return "slept"


@task
def work_until_stopped(job: JobContext, most_seconds: float = 600.0) -> dict[str, Any]:
    """Ends when it is asked to."""
    until = time.monotonic() + most_seconds
    while time.monotonic() < until:
        if job.should_stop():
            job.log("saving")
            return {"stopped": True}
        time.sleep(0.02)
    return {"stopped": False}


@task
def print_much(size_mb: int) -> str:
    """Prints without end."""
    line = "y" * 1023 + "\n"
    for _ in range(size_mb):
        sys.stdout.write(line * 1024)
    return "printed"


@task
def mark(path: str, seconds: float = 0.0) -> None:
    """Leaves a line behind each time it runs."""
    with Path(path).open("a") as file:
        file.write(f"{os.getpid()}\n")
    time.sleep(seconds)


@task
def draw() -> list[float]:
    """Numbers that no other job draws."""
    return [random.random(), float(numpy.random.random())]  # as old training code does it


@task
def kill_parent() -> None:
    """Kills the process that started it."""
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(600)
