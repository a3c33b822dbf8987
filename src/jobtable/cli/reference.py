"""The reference of the command line, as a page: every command with its help, as the command itself gives it."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import cleandoc
from typing import Any

from jobtable.cli.main import HELP, commands, load

_WIDTH = 100

_INTRODUCTION = """
# The command line

Below is what `jobtable COMMAND --help` says; `make reference` puts it here.

- `--json` prints JSON instead of tables, on every command that prints data. Only data goes to stdout: messages,
  progress bars and errors go to stderr.
- A command that lists things shows as many as its `--limit` says. Where there are more, a line on stderr says so.
- The store is the one that `--store` names, or `JOBTABLE_STORE`, or `jobtable.toml`, or `file:.jobtable/jobtable.db`
  (see [settings](settings.md)). The tables of an embedded store are created when they are first needed; those in the
  cloud with `jobtable tables create`.
- `jobtable --server URL COMMAND` works through a server instead, with the token in `JOBTABLE_TOKEN` (or `--token`
  before the command; `--server` may follow it). Jobs, queues, tokens and what the systems store are read and changed
  there as on a store. The server's workers run what a command starts: the command waits for them with the same
  progress, or not at all with `--submit-only`. Files are read here, unless the help of a command says otherwise.
  `jobtable --server URL worker` runs jobs here ([workers](../guides/workers.md#through-a-server)).
  Tables, exports of tables, the listing of objects and migrations need the store itself.
- `jobtable jobs submit --config FILE` takes a definition in YAML or JSON, and options change what it says:

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

- What deletes something for good asks first. `--yes` says yes beforehand; where there is no terminal, it must.
- `jobtable --install-completion` lets your shell complete commands, options and ids.
- An error is one line on stderr, and an exit code that scripts can use:
"""


def render_page() -> str:
    """The whole page."""
    parts = [cleandoc(_INTRODUCTION), _exit_codes()]
    for name in commands():
        parts += _sections(f"jobtable {name}", load(name), level=2)
    return "\n\n".join(parts) + "\n"


def _exit_codes() -> str:
    lines = HELP.partition("Exit codes:")[2].strip().splitlines()
    rows = [line.split(maxsplit=1) for line in lines]
    return "\n".join(["| code | meaning |", "| --- | --- |", *(f"| {code} | {meaning} |" for code, meaning in rows)])


def _sections(path: str, command: Any, level: int) -> Iterator[str]:
    """The section of a command, then those of the commands under it."""
    yield f"{'#' * level} {path}"
    under = getattr(command, "commands", None)
    if under is None:
        context = command.context_class(command, info_name=path, terminal_width=_WIDTH, max_content_width=_WIDTH)
        yield f"```text\n{command.get_help(context).strip()}\n```"
        return
    yield cleandoc(command.help or "")
    for name, each in under.items():
        yield from _sections(f"{path} {name}", each, level + 1)
