"""The interpreter of the States Language: it moves a run from state to state, and does nothing else.

No I/O, no clock and no randomness of its own: `jobtable.workflows.asl.run` describes what a runner does around it.

- `begin` records the start and makes the frame of the machine ready.
- `advance` moves one ready frame: it leaves its state and enters the next one, which is what a runner stores at once.
- `receive` takes a signal for the current visit of a frame, `fire` the instant that a frame waits for.
- `time_out`, `abort`, `crash`, `stop_all` and `redrive` act on the whole execution.
"""

from jobtable.workflows.asl.interpreter.arrivals import fire, receive
from jobtable.workflows.asl.interpreter.execution_end import abort, crash, stop_all, time_out
from jobtable.workflows.asl.interpreter.resuming import redrive
from jobtable.workflows.asl.interpreter.steps import advance, begin

__all__ = ["abort", "advance", "begin", "crash", "fire", "receive", "redrive", "stop_all", "time_out"]
