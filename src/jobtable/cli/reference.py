"""The page that documents the command line: the help of every command."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import cleandoc
from typing import Any

from jobtable.cli.framework import help_of
from jobtable.cli.main import HELP, commands, load

_WIDTH = 100

_INTRODUCTION = """
# The command line

This page shows what `jobtable COMMAND --help` prints; `make reference` generates it.

- Every command that prints data prints JSON with `--json`. Only data goes to stdout: messages, progress bars and
  errors go to stderr.
- A list shows at most `--limit` entries, and says on stderr if there are more.
- The store is `--store`, or `JOBTABLE_STORE`, or `jobtable.toml`, or `file:.jobtable/jobtable.db` (see
  [settings](settings.md)). An embedded store creates its tables when they are first used; in the cloud,
  `jobtable tables create` does.
- `jobtable --server URL COMMAND` works through a server, with the token in `JOBTABLE_TOKEN` (or `--token` before the
  command; `--server` may also follow it). Jobs, queues, tokens and what the systems store are read and changed as on a
  store. The server's workers run what a command starts: the command waits for them and shows the same progress, or
  returns at once with `--submit-only`. Files are read here, unless the help of a command says otherwise.
  `jobtable --server URL worker` runs jobs here ([workers](../guides/workers.md#through-a-server)). Tables, exports of
  tables, lists of objects and migrations need the store itself.
- `jobtable jobs submit --config FILE` takes a definition in YAML or JSON; other options override it:

  ```yaml
  name: nightly training
  task: training:train
  params: {learning_rate: 0.01, layers: [64, 32]}
  queue: gpu
  priority: 800
  max_attempts: 3
  retry: {first_delay_seconds: 5, factor: 2}
  timeout_seconds: 3600
  memory_mb: 4096
  tags: [nightly]
  depends_on: [5f3c0d0e-2f63-4d4f-9d5d-0c6b1c1f6b11]
  ```

- A command that deletes data asks first. Without a terminal, confirm with `--yes`.
- `jobtable --install-completion` lets your shell complete commands, options and ids.
- An error is one line on stderr, with an exit code for scripts:
"""


def render_page() -> str:
    """Return the page as Markdown."""
    parts = [cleandoc(_INTRODUCTION), _exit_codes()]
    for name in commands():
        parts += _sections(f"jobtable {name}", load(name), level=2)
    return "\n\n".join(parts) + "\n"


def _exit_codes() -> str:
    lines = HELP.partition("Exit codes:")[2].strip().splitlines()
    rows = [line.split(maxsplit=1) for line in lines]
    return "\n".join(["| code | meaning |", "| --- | --- |", *(f"| {code} | {meaning} |" for code, meaning in rows)])


def _sections(path: str, command: Any, level: int) -> Iterator[str]:
    """Yield the section of a command, then those of its subcommands."""
    yield f"{'#' * level} {path}"
    under = getattr(command, "commands", None)
    if under is None:
        yield f"```text\n{help_of(command, path, _WIDTH)}\n```"
        return
    yield cleandoc(command.help or "")
    for name, each in under.items():
        yield from _sections(f"{path} {name}", each, level + 1)
