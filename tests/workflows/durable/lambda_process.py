"""A process that calls a handler as Lambda's runtime does: the SDK makes its own client from the environment.

The payload is read from stdin, and what the handler returns is printed as JSON.
"""

from __future__ import annotations

import json
import logging
import sys

from tests.workflows.durable.handlers import HANDLERS, TARGETS

from jobtable.workflows.function_calls import FunctionContext

if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    name = sys.argv[1]
    context = FunctionContext(name, "128", f"arn:aws:lambda:us-east-1:000000000000:function:{name}", lambda: 900_000)
    print(json.dumps({**HANDLERS, **TARGETS}[name](json.load(sys.stdin), context)))
