"""What every command that writes a file refuses."""

from __future__ import annotations

import os
from pathlib import Path

from tests.cli.conftest import CommandLine

from jobtable.cli.output import ExitCode


def check_that_a_missing_folder_is_refused(cli: CommandLine, *command: str) -> None:
    """The error is one line."""
    nowhere = cli.run(*command, "no/folder/file", code=ExitCode.FAILED)
    assert nowhere.stderr.startswith("Error: cannot write no/folder/file: the folder ")
    assert len(nowhere.stderr.splitlines()) == 1


def check_that_only_files_are_replaced(cli: CommandLine, *command: str) -> None:
    """Pipes, links to them and the standard output stay as they are."""
    os.mkfifo("pipe")
    Path("link").symlink_to("pipe")
    for name in ("pipe", "link"):
        assert "a device or a pipe; name a regular file" in cli.run(*command, name, code=ExitCode.FAILED).stderr
    assert Path("pipe").is_fifo()
    assert Path("link").is_symlink()
    assert "to the standard output; name a file" in cli.run(*command, "-", code=ExitCode.FAILED).stderr
    assert not Path("-").exists()
