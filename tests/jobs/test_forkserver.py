"""The process that starts jobs: what it forks, and what is left when it or its worker is gone."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jobtable.errors import TaskError
from jobtable.jobs.worker.forkserver import _START, ForkServer, ServerLostError
from jobtable.jobs.worker.processes import group_memory_bytes


@pytest.fixture
def server() -> Iterator[ForkServer]:
    server = ForkServer()
    yield server
    server.close()


def wait_for(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.01)


def is_running(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_a_child_is_alone_in_its_group_and_ends_when_it_is_let_go(server: ForkServer) -> None:
    child = server.fork()
    assert os.getpgid(child.pid) == child.pid
    assert os.getsid(child.pid) != os.getsid(0)
    child.close()
    wait_for(lambda: not is_running(child.pid))


def test_the_exit_tells_the_signal_and_the_memory(server: ForkServer) -> None:
    child = server.fork()
    server.kill(child, signal.SIGKILL)
    ended = child.read_exit()
    assert ended.code == -signal.SIGKILL
    assert 1 << 20 < ended.most_memory_bytes < 1 << 30
    server.kill(child, signal.SIGKILL)  # nobody is there any more, and nobody else is hit
    child.close()


def test_a_child_that_gets_no_request_says_why(server: ForkServer) -> None:
    child = server.fork()
    child.control.send_bytes(b"no pickle")
    report = child.control.recv()
    assert report.kind == "raised"
    assert "UnpicklingError" in report.message
    assert child.read_exit().code == 0
    child.close()


def test_children_end_with_their_server() -> None:
    server = ForkServer()
    children = [server.fork() for _ in range(3)]
    assert all(is_running(child.pid) for child in children)
    server.close()
    for child in children:
        wait_for(lambda pid=child.pid: not is_running(pid))  # type: ignore[misc]  # bound now
        child.close()


def test_a_server_that_was_killed_is_noticed(server: ForkServer) -> None:
    child = server.fork()
    os.kill(parent_of(child.pid), signal.SIGKILL)
    with pytest.raises(ServerLostError):
        child.read_exit()
    wait_for(lambda: not server.is_alive())
    with pytest.raises(ServerLostError):
        server.fork()
    child.close()
    wait_for(lambda: not is_running(child.pid))


def test_a_server_whose_worker_dies_before_it_hears_of_it_ends_quietly() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        command = [sys.executable, "-c", _START, json.dumps(sys.path), str(theirs.fileno()), "[]"]
        process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stderr=subprocess.PIPE)
    ours.recv(1, socket.MSG_PEEK)
    ours.close()
    _, told = process.communicate()
    assert told == b""
    assert process.returncode == 0


def test_what_cannot_be_imported_is_told() -> None:
    with pytest.raises(TaskError, match="nowhere_at_all cannot be imported: ModuleNotFoundError"):
        ForkServer(["nowhere_at_all"])


def test_the_memory_of_a_group_is_known() -> None:
    assert 1 << 20 < group_memory_bytes(os.getpgid(0)) < 1 << 36
    assert group_memory_bytes(1 << 30) == 0


_FEW_PROCESSES = """
import errno, os
fork, left = os.fork, [1, 0, 1]

def few():
    if left.pop(0):
        return fork()
    raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

os.fork = few
"""


def test_a_server_that_cannot_fork_for_a_moment_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "few_processes.py").write_text(_FEW_PROCESSES)
    monkeypatch.syspath_prepend(str(tmp_path))
    server = ForkServer(["few_processes"])
    first = server.fork()
    with pytest.raises(ServerLostError, match="a process could not be started"):
        server.fork()
    assert server.is_alive()
    second = server.fork()
    assert is_running(first.pid)
    assert is_running(second.pid)
    server.close()
    wait_for(lambda: not is_running(first.pid) and not is_running(second.pid))
