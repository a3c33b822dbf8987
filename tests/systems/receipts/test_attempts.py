"""Changes that others get in between of."""

from __future__ import annotations

import pytest

from jobtable.errors import TransactionFailedError
from jobtable.systems.receipts.attempts import until_undisturbed
from jobtable.testing import FakeClock


@pytest.mark.parametrize("disturbances", [0, 1, 19])
def test_a_change_is_made_again_after_a_pause(disturbances: int) -> None:
    clock = FakeClock()
    begun, tries = clock.monotonic(), list[float]()

    def change() -> str:
        tries.append(clock.monotonic() - begun)
        if len(tries) <= disturbances:
            raise TransactionFailedError("somebody else was faster")
        return "done"

    assert until_undisturbed(change, clock) == "done"
    assert tries == sorted(set(tries))
    assert len(tries) == disturbances + 1


def test_a_change_that_is_always_disturbed_fails() -> None:
    tries = list[int]()

    def change() -> None:
        tries.append(1)
        raise TransactionFailedError(f"somebody else was faster {len(tries)} times")

    with pytest.raises(TransactionFailedError, match="20 times"):
        until_undisturbed(change, FakeClock())
