"""The tutorial works: its files are written, its servers started and its commands run, as its reader does it."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from jobtable.testing.servers import free_ports

PAGE = Path(__file__).parent.parent / "docs" / "start" / "tutorial.md"
_START_SECONDS = 240
_SCRIPT_SECONDS = 800


@dataclass(frozen=True)
class Block:
    """A block of code, and the text between it and the one before."""

    before: str
    language: str
    text: str

    @property
    def commands(self) -> list[str]:
        return [line.removeprefix("$ ") for line in self.text.splitlines()]


def blocks() -> list[Block]:
    found = re.split(r"^```(\w+)\n(.*?)^```\n", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    return [Block(before, *code) for before, *code in zip(found[::3], found[1::3], found[2::3], strict=False)]


def write_files(folder: Path) -> None:
    for block in blocks():
        named = re.search(r"Write `([\w.]+)`:\s*$", block.before)
        if block.language in ("python", "yaml"):
            assert named, block.text
            (folder / named[1]).write_text(block.text)


def script(dynamodb_port: int) -> str:
    """What is typed into the first terminal. A command ends with the code that its comment tells, or with 0."""
    lines = ["set -u"]
    for block in blocks():
        if block.language == "console" and "terminal" not in block.before:
            for command in block.commands:
                expected = re.search(r"# exit code (\d)$", command)
                lines += [f"echo {shlex.quote(command)}", command.replace(":8000", f":{dynamodb_port}")]
                lines += [f"[ $? = {expected[1] if expected else 0} ] || exit 99"]
    return "\n".join(lines)


def servers(dynamodb_port: int) -> list[str]:
    """What is typed into the other terminals."""
    told = [block for block in blocks() if block.language == "console" and "terminal" in block.before]
    return [command.replace("8000", str(dynamodb_port)) for block in told for command in block.commands]


@contextmanager
def running(command: str, folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """A server in a terminal of its own, until Ctrl-C."""
    output = folder / f"terminal-{command.split()[1]}.txt"
    with output.open("w") as terminal:
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"], cwd=folder, env=environment, stderr=terminal, stdout=terminal
        )
    try:
        deadline = time.monotonic() + _START_SECONDS
        while "http://" not in output.read_text():
            assert process.poll() is None, output.read_text()
            assert time.monotonic() < deadline, output.read_text()
            time.sleep(0.1)
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=240)


def test_a_reader_gets_to_the_end(tmp_path: Path) -> None:
    port, dynamodb_port = free_ports(2)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("JOBTABLE_", "AWS_"))}
    environment |= {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "JOBTABLE_PORT": str(port)}
    write_files(tmp_path)
    server, dynamodb = servers(dynamodb_port)
    with running(server, tmp_path, environment), running(dynamodb, tmp_path, environment):
        typed = subprocess.run(
            ["bash", "-c", script(dynamodb_port)],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=_SCRIPT_SECONDS,
        )
        assert typed.returncode == 0, f"{typed.stdout}\n{typed.stderr}"
        pages = [page.replace("8765", str(port)) for page in re.findall(r"<(http://[^>]+)>", PAGE.read_text())]
        for page in pages:
            with urllib.request.urlopen(page, timeout=120) as answer:
                assert answer.status == 200
    assert len(pages) == 3
    best = re.findall(r"^best +(val_loss = .*\))", typed.stdout, re.MULTILINE)
    assert len(best) >= 2  # here, and on DynamoDB
    assert len(set(best)) == 1
    assert "train {'learning_rate': 0.01} 0.131" in typed.stdout
    assert re.search(r"^best: \{.*\} 0\.0", typed.stdout, re.MULTILINE)
