"""What users need in their own tests: the backend contract, a faulty backend, strategies, a fake clock, servers.

Import what is needed from its module; the contract and the strategies need pytest and Hypothesis.
"""

from jobtable.testing.clock import FakeClock
from jobtable.testing.expiry import let_expire
from jobtable.testing.faults import Faults, FaultyBackend

__all__ = ["FakeClock", "Faults", "FaultyBackend", "let_expire"]
