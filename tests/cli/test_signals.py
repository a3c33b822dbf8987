"""How commands that run on learn that they are to end."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import signal, threading, time
from jobtable.cli.background import signalled
stop = signalled()
assert not stop.wait(0.01)
def receive():
    time.sleep(0.5)
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
    time.sleep(600)
threading.Thread(target=receive, daemon=True).start()
assert stop.wait()
assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
print("told")
"""


def test_a_signal_that_another_thread_gets_is_told_too() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=240, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "told\n", "")
