"""Runs the server: `python -m jobtable.testing.assist --port 0 --script FILE` prints its address, and serves."""

from __future__ import annotations

import argparse
import json
import runpy
import sys
import threading
from pathlib import Path
from typing import Any

from jobtable.testing.assist.assist_server import AssistServer
from jobtable.testing.assist.replies import Reply


def _script(file: Path | None) -> Any:
    """Return the replies in a JSON file, or the function `reply` of a Python file."""
    if file is None:
        return ()
    if file.suffix == ".json":
        return [Reply(**each) for each in json.loads(file.read_text(encoding="utf-8"))]
    return runpy.run_path(str(file))["reply"]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m jobtable.testing.assist", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 selects a free one")
    parser.add_argument("--script", type=Path, help="a JSON list of replies, or a Python file with reply(question)")
    parser.add_argument("--options", type=json.loads, default={}, help="what kind of service it is, as JSON")
    parser.add_argument("--end-with-stdin", action="store_true", help="end when the standard input does")
    given = parser.parse_args()
    with AssistServer(_script(given.script), port=given.port, **given.options) as server:
        print(server.url, flush=True)
        if given.end_with_stdin:
            sys.stdin.read()
        else:
            threading.Event().wait()


if __name__ == "__main__":
    main()
