"""A process that forks others: its children start in milliseconds, with all imports done.

It has one thread and opens no store, so forking is safe. When the worker that started it is gone, it ends its children
and itself.
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
"""How much a process may print before its worker reads it; the usual default is a quarter of it."""
_MESSAGE = struct.Struct("!cii")
_FORK, _KILL = b"f", b"k"
_STATUS = struct.Struct("!iq")
_MAXRSS_BYTES = 1 if sys.platform == "darwin" else 1024
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from jobtable.jobs.worker import forkserver; forkserver.serve(int(sys.argv[2]), json.loads(sys.argv[3]))"
)


class ServerLostError(Exception):
    """The fork server has died, and the fate of its children is unknown; or it could not fork."""


@dataclass(frozen=True)
class Exit:
    """How a child ended: `code` from os.waitstatus_to_exitcode, and the peak of its memory."""

    code: int
    most_memory_bytes: int


@dataclass(frozen=True)
class Child:
    """A forked process: a connection to it, its output, and its end."""

    pid: int
    control: Connection
    output: int
    """The file descriptor from which its standard output and error are read."""
    status: int
    """The file descriptor that becomes readable when it ends."""

    def read_exit(self) -> Exit:
        """Wait for its end; ServerLostError if that can no longer be known."""
        said = _read_exactly(self.status, _STATUS.size)
        code, memory = _STATUS.unpack(said)
        return Exit(code, memory)

    def close(self) -> None:
        """Close its descriptors; a running child ends when its connection closes."""
        self.control.close()
        _close(self.output, self.status)


class ForkServer:
    """The worker's end: starts the process, and makes it fork and kill. Any thread may use it."""

    def __init__(self, preload: Sequence[str] = ()) -> None:
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair()
        paths, modules = json.dumps(sys.path), json.dumps(["jobtable.jobs.worker.job_process", *preload])
        with theirs:
            command = [sys.executable, "-c", _START, paths, str(theirs.fileno()), modules]
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True
            )
        with self._socket.makefile() as lines:
            problem = lines.readline().rstrip("\n")
        if problem != "ready":
            self.close()
            raise TaskError(problem or "the process that starts jobs exited at once; its error output says why")

    def fork(self) -> Child:
        """Return a new process, which waits for its request; ServerLostError if the server is gone or cannot fork."""
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
        """Send a signal to a child and its process group, unless it has ended."""
        self._send(_KILL, child.pid, signum)

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        """End the server and all its children."""
        self._socket.close()
        self._process.wait()

    def _send(self, kind: bytes, pid: int = 0, signum: int = 0, fds: Sequence[int] = ()) -> None:
        """Send a message to the server, which takes over the descriptors."""
        message = _MESSAGE.pack(kind, pid, signum)
        with self._lock:
            try:
                socket.send_fds(self._socket, [message], list(fds))
            except OSError as error:
                raise ServerLostError("the process that starts jobs has exited") from error
            finally:
                _close(*fds)


def serve(fd: int, modules: Sequence[str]) -> NoReturn:
    """The other end: import the modules, then fork and kill on request, until the worker is gone."""
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
        told = select.poll()  # select() takes no descriptor above 1,023
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
        """Serve one request; return whether the worker is still there."""
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
        except OSError as error:  # no more processes now; the running ones must go on
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
            from jobtable.jobs.worker import job_process  # noqa: PLC0415 - imported already, where it was preloaded

            code = job_process.main(Connection(control))
        finally:
            os._exit(code)

    def _reap(self) -> None:
        for pid in list(self._children):
            ended, status, usage = os.wait4(pid, os.WNOHANG)
            if ended:
                # Nobody waits for processes that the child left behind.
                _kill_group(pid, signal.SIGKILL)
                fd = self._children.pop(pid)
                _write_if_read(fd, _STATUS.pack(os.waitstatus_to_exitcode(status), usage.ru_maxrss * _MAXRSS_BYTES))
                os.close(fd)


def _widen(pipe: int) -> None:
    """Let a pipe hold more, if the system can, so that its writer waits less often."""
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
    """Return the id of the new process, or raise ServerLostError with the reason."""
    (pid,) = struct.unpack("!i", _read_exactly(fd, 4))
    if pid < 0:
        raise ServerLostError(f"a process could not be started ({os.strerror(-pid)})")
    return int(pid)


def _read_exactly(fd: int, size: int) -> bytes:
    said = b""
    while len(said) < size:
        more = os.read(fd, size - len(said))
        if not more:
            raise ServerLostError("the process that starts jobs has exited")
        said += more
    return said
