"""Helpers for your own tests: the backend contract, a faulty backend, strategies, a fake clock, servers.

Import the rest from its module; the contracts and the strategies need pytest and Hypothesis.
"""

from jobtable.testing.clock import FakeClock, let_expire
from jobtable.testing.faults import Faults, FaultyBackend

__all__ = ["FakeClock", "Faults", "FaultyBackend", "let_expire"]
