"""A process that forks others: its children start in milliseconds, with everything imported that they need.

It has one thread and opens no store, so a fork finds nothing that it could break. When the worker that started it
is gone, it ends its children and itself.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import gc
import importlib
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import NoReturn

from jobtable.errors import TaskError, kind_and_text

PIPE_BYTES = 1 << 18
"""What a process may have printed before its worker reads it; most systems begin with a quarter of it."""
_MESSAGE = struct.Struct("!cii")
_FORK, _KILL = b"f", b"k"
_STATUS = struct.Struct("!iq")
_MAXRSS_BYTES = 1 if sys.platform == "darwin" else 1024
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from jobtable.jobs.worker import forkserver; forkserver.serve(int(sys.argv[2]), json.loads(sys.argv[3]))"
)


class ServerLostError(Exception):
    """The fork server is gone, and what became of its children is not known; or it could not start one."""


@dataclass(frozen=True)
class Exit:
    """How a child ended: `code` as os.waitstatus_to_exitcode gives it, and the most memory that it used."""

    code: int
    most_memory_bytes: int


@dataclass(frozen=True)
class Child:
    """A process that was forked: a connection to it, what it prints, and how it ends."""

    pid: int
    control: Connection
    output: int
    """The file descriptor from which its standard output and error are read."""
    status: int
    """The file descriptor that becomes readable when it has ended."""

    def read_exit(self) -> Exit:
        """How it ended; waits for it. ServerLostError if that cannot be known any more."""
        said = _read_exactly(self.status, _STATUS.size)
        code, memory = _STATUS.unpack(said)
        return Exit(code, memory)

    def close(self) -> None:
        """Let go of it; a child that still runs ends when it sees its connection closed."""
        self.control.close()
        _close(self.output, self.status)


class ForkServer:
    """The worker's end: starts the process, and asks it to fork and to kill. Any thread may use it."""

    def __init__(self, preload: Sequence[str] = ()) -> None:
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair()
        paths, modules = json.dumps(sys.path), json.dumps(["jobtable.jobs.worker.runner", *preload])
        with theirs:
            command = [sys.executable, "-c", _START, paths, str(theirs.fileno()), modules]
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True
            )
        with self._socket.makefile() as lines:
            problem = lines.readline().rstrip("\n")
        if problem != "ready":
            self.close()
            raise TaskError(problem or "the process that starts jobs ended at once; its error output says why")

    def fork(self) -> Child:
        """A new process, which waits for what it is to run; ServerLostError if no server, or no room, is there."""
        control, their_control = (end.detach() for end in socket.socketpair())
        output, their_output = os.pipe()
        _widen(output)
        status, their_status = os.pipe()
        try:
            self._send(_FORK, fds=[their_control, their_output, their_status])
            pid = _read_pid(status)
        except ServerLostError:
            _close(control, output, status)
            raise
        return Child(pid, Connection(control), output, status)

    def kill(self, child: Child, signum: signal.Signals) -> None:
        """Send a signal to a child and to all processes of its group, unless it has ended."""
        self._send(_KILL, child.pid, signum)

    def is_alive(self) -> bool:
        """Whether the server can still fork."""
        return self._process.poll() is None

    def close(self) -> None:
        """End the server and all its children."""
        self._socket.close()
        self._process.wait()

    def _send(self, kind: bytes, pid: int = 0, signum: int = 0, fds: Sequence[int] = ()) -> None:
        """Tell the server; the descriptors are its own from then on."""
        message = _MESSAGE.pack(kind, pid, signum)
        with self._lock:
            try:
                socket.send_fds(self._socket, [message], list(fds))
            except OSError as error:
                raise ServerLostError("the process that starts jobs is gone") from error
            finally:
                _close(*fds)


def serve(fd: int, modules: Sequence[str]) -> NoReturn:
    """The other end: import, then fork and kill as asked, until the worker is gone."""
    connection = socket.socket(fileno=fd)
    for module in modules:
        try:
            importlib.import_module(module)
        except Exception as error:  # whatever a module raises while it is imported
            problem = f"{module} cannot be imported: {kind_and_text(error)}"
            _say(connection, problem.replace("\n", " "))
            sys.exit(1)
    _say(connection, "ready")
    gc.freeze()  # what is imported stays shared with the children
    _Server(connection).run()
    sys.exit(0)


def _say(connection: socket.socket, line: str) -> None:
    try:
        connection.sendall(line.encode() + b"\n")
    except BrokenPipeError:
        sys.exit(0)  # the worker has ended in the meantime


class _Server:
    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._children: dict[int, int] = {}
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._wake, False)

    def run(self) -> None:
        signal.signal(signal.SIGCHLD, lambda signum, frame: None)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        asked = self._connection.fileno()
        told = select.poll()  # select() takes no file number above 1,023, and that of the worker's socket may be
        told.register(asked, select.POLLIN)
        told.register(self._woken, select.POLLIN)
        while True:
            ready = [file for file, _ in told.poll()]
            if self._woken in ready:
                with contextlib.suppress(BlockingIOError):  # another wake-up has read it all
                    os.read(self._woken, 4096)
                self._reap()
            if asked in ready and not self._answer():
                break
        for pid in self._children:
            _kill_group(pid, signal.SIGKILL)

    def _answer(self) -> bool:
        """Do what the worker asks; says whether it is still there."""
        try:
            message, fds, _, _ = socket.recv_fds(self._connection, _MESSAGE.size, 3)
        except ConnectionResetError:  # it died before it had read that this is ready
            return False
        if not message:
            return False
        kind, pid, signum = _MESSAGE.unpack(message)
        if kind == _FORK:
            self._fork(*fds)
        elif pid in self._children:
            _kill_group(pid, signum)
        return True

    def _fork(self, control: int, output: int, status: int) -> None:
        try:
            pid = os.fork()
        except OSError as error:  # the system has no room for more processes now; those that run must go on
            _write_if_read(status, struct.pack("!i", -(error.errno or errno.EAGAIN)))
            _close(control, output, status)
            return
        if pid == 0:
            self._become_child(control, output, status)
        with contextlib.suppress(PermissionError, ProcessLookupError):  # the child was faster, or has ended
            os.setpgid(pid, pid)
        os.close(control)
        os.close(output)
        self._children[pid] = status
        _write_if_read(status, struct.pack("!i", pid))

    def _become_child(self, control: int, output: int, status: int) -> NoReturn:
        code = 1
        try:
            os.setpgid(0, 0)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._connection.close()
            _close(self._woken, self._wake, status, *self._children.values())
            for standard in (1, 2):
                os.dup2(output, standard)
            os.close(output)
            from jobtable.jobs.worker import runner  # noqa: PLC0415 - imported already, where it was preloaded

            code = runner.main(Connection(control))
        finally:
            os._exit(code)

    def _reap(self) -> None:
        for pid in list(self._children):
            ended, status, usage = os.wait4(pid, os.WNOHANG)
            if ended:
                # Nobody waits for processes that the child has started and left behind.
                _kill_group(pid, signal.SIGKILL)
                fd = self._children.pop(pid)
                _write_if_read(fd, _STATUS.pack(os.waitstatus_to_exitcode(status), usage.ru_maxrss * _MAXRSS_BYTES))
                os.close(fd)


def _widen(pipe: int) -> None:
    """Let a pipe hold more, where the system can: who writes much waits less often for its reader."""
    with contextlib.suppress(AttributeError, OSError):
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)


def _kill_group(pid: int, signum: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # nobody of the group is left
        os.killpg(pid, signum)


def _write_if_read(fd: int, message: bytes) -> None:
    with contextlib.suppress(BrokenPipeError):  # the worker has let go of this child
        os.write(fd, message)


def _close(*fds: int) -> None:
    for fd in fds:
        os.close(fd)


def _read_pid(fd: int) -> int:
    """The process that was started; ServerLostError, which says why, if none was."""
    (pid,) = struct.unpack("!i", _read_exactly(fd, 4))
    if pid < 0:
        raise ServerLostError(f"a process could not be started ({os.strerror(-pid)})")
    return int(pid)


def _read_exactly(fd: int, size: int) -> bytes:
    said = b""
    while len(said) < size:
        more = os.read(fd, size - len(said))
        if not more:
            raise ServerLostError("the process that starts jobs is gone")
        said += more
    return said
