"""Java's generator of random numbers, from which Step Functions draws where a definition names a seed."""

from __future__ import annotations

_MULTIPLIER = 0x5DEECE66D
_MASK = (1 << 48) - 1


class JavaRandom:
    """Draws the numbers of `java.util.Random` with the same seed."""

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ _MULTIPLIER) & _MASK

    def next_float(self) -> float:
        """Draw a number from 0 up to but not including 1, as `nextDouble` does."""
        return float((self._bits(26) << 27) + self._bits(27)) * 2.0**-53

    def next_below(self, bound: int) -> int:
        """Draw an integer from 0 up to but not including a bound, as `nextInt` does where it can."""
        if bound > 1 << 31:
            return int(self.next_float() * bound)
        if bound & (bound - 1) == 0:
            return (bound * self._bits(31)) >> 31
        while True:
            bits = self._bits(31)
            value = bits % bound
            if bits - value + (bound - 1) < 1 << 31:
                return value

    def _bits(self, count: int) -> int:
        self._state = (self._state * _MULTIPLIER + 0xB) & _MASK
        return self._state >> (48 - count)
