"""The servers to compare with over HTTP, each on a free port of loopback."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from jobtable.testing.servers import ServerUnavailable, cache_folder, dynamodb_local, free_port

DYNALITE_PACKAGE = "dynalite@4.0.0"
_SECONDS_TO_START = 30
_JOBTABLE = str(Path(sys.executable).parent / "jobtable")


def jobtable_in_memory() -> AbstractContextManager[str]:
    """`jobtable dynamodb serve` on a database in memory."""
    return _served(lambda port: [_JOBTABLE, "dynamodb", "serve", "--port", str(port), "--memory"])


@contextlib.contextmanager
def jobtable_on_disk() -> Iterator[str]:
    """`jobtable dynamodb serve` on a file, with every write durable."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-", dir=cache_folder()))
        command = [_JOBTABLE, "dynamodb", "serve", "--data", folder, "--port"]
        yield stack.enter_context(_served(lambda port: [*command, str(port)]))


def moto_server() -> AbstractContextManager[str]:
    """moto's server, which keeps everything in memory."""
    return _served(lambda port: [sys.executable, "-m", "moto.server", "--port", str(port)])


def dynalite_server() -> AbstractContextManager[str]:
    """dynalite, in memory; fetched by npm when it is first needed."""
    folder = cache_folder() / "dynalite"
    program = folder / "node_modules" / ".bin" / "dynalite"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        install = ["npm", "install", "--silent", "--prefix", str(folder), DYNALITE_PACKAGE]
        try:
            subprocess.run(install, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise ServerUnavailable(f"npm could not install {DYNALITE_PACKAGE}: {error}") from error
    return _served(lambda port: [str(program), "--port", str(port), "--createTableMs", "0"])


@contextlib.contextmanager
def redis_server(folder: Path) -> Iterator[int]:
    """The port of a Redis that syncs every write to disk."""
    program = shutil.which("redis-server")
    if program is None:
        raise ServerUnavailable("redis-server is not installed; it comes with Debian's package redis-server")
    command = [program, "--bind", "127.0.0.1", "--dir", str(folder), "--appendonly", "yes", "--appendfsync", "always"]
    with _served(lambda port: [*command, "--port", str(port)]) as url:
        yield int(url.rpartition(":")[2])


OURS = "jobtable"
SERVERS: dict[str, Callable[[], AbstractContextManager[str]]] = {
    OURS: jobtable_in_memory,
    "jobtable on disk": jobtable_on_disk,
    "DynamoDB Local": dynamodb_local,
    "moto": moto_server,
    "dynalite": dynalite_server,
}


@contextlib.contextmanager
def _served(command: Callable[[int], list[str]]) -> Iterator[str]:
    port = free_port()
    process = subprocess.Popen(command(port), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_until_it_listens(process, port)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def _wait_until_it_listens(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + _SECONDS_TO_START
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None or time.monotonic() > deadline:
            raise ServerUnavailable(f"{process.args!r} does not listen on port {port}")
        time.sleep(0.1)
