"""Runs all handlers in the SDK's own test runner, and prints what became of each as JSON.

A program of its own, because the runner leaves its event loops open.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

from aws_durable_execution_sdk_python_testing.runner import DurableFunctionTestRunner
from tests.workflows.durable.driving import answer
from tests.workflows.durable.handlers import HANDLERS, TARGETS

ANSWERED = {"callback": "approval create callback id", "failed_callback": "external"}


def run(handler: str, effects: Path) -> dict[str, Any]:
    """Return the outcome of one handler."""
    with DurableFunctionTestRunner(HANDLERS[handler], poll_interval=0.02) as runner:
        for name, target in TARGETS.items():
            if name == "child_order":
                runner.register_durable_function(name, target)
            else:
                runner.register_function(name, lambda event, _, target=target: target(event))
        arn = runner.run_async(json.dumps({"effects": str(effects)}))
        if handler in ANSWERED:
            callback_id = runner.wait_for_callback(arn, ANSWERED[handler])
            while f"callback {callback_id}" not in (effects.read_text() if effects.exists() else ""):
                pass
            answer(runner, handler, callback_id)
        result = runner.wait_for_result(arn)
    error = result.error
    return {
        "status": result.status.value,
        "output": result.result,
        "error": None if error is None else f"{error.type}: {error.message}",
    }


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    folder = Path(sys.argv[1])
    print(json.dumps({handler: run(handler, folder / handler) for handler in HANDLERS}))
