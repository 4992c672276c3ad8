"""A count for every cycle of the II, held in bit planes and changed many cycles at a time.

    cycle       0 1 2 3 4 5 6 7
    count       0 0 1 3 3 2 2 0        use of a slot of capacity 3
    plane 0     · · █ █ █ · · ·        bit 0 of every count: one integer of II bits
    plane 1     · · · █ █ █ █ ·        bit 1 of every count
    above(1)    · · · █ █ █ █ ·        cycles with no room for 2 more

Binary planes, not thermometer code (plane j = cycles with count >= j): a capacity of 1 is one plane
either way, but a pool of 2048 units takes 12 planes instead of 2048, and a capacity of a million
takes 20. The price is a ripple of carries when a claim is made and a comparison when a limit is
asked for, both a few integer operations a plane; the comparison is kept until the counts change.

No function here walks over cycles. Cycles are circular: cycle II is cycle 0.
"""

from __future__ import annotations


def arc(first: int, length: int, cycles: int) -> int:
    """The mask of `length` cycles from `first` on, around the end; both below or at `cycles`."""
    mask = ((1 << length) - 1) << first
    return (mask | mask >> cycles) & ((1 << cycles) - 1)


def rotate(mask: int, by: int, cycles: int) -> int:
    """Bit t of the result is bit (t + by) mod `cycles` of the mask, 0 <= by < `cycles`."""
    return (mask >> by | mask << (cycles - by)) & ((1 << cycles) - 1) if by else mask


def touching(mask: int, length: int, cycles: int) -> int:
    """Starts whose next `length` cycles touch the mask, 1 <= length <= `cycles`.

    A dilation: doubling the reach takes log2(length) steps. Two turns laid side by side make
    every step a plain shift.
    """
    mask |= mask << cycles
    reach = 1
    while 2 * reach <= length:
        mask |= mask >> reach
        reach *= 2
    if reach < length:
        mask |= mask >> (length - reach)
    return mask & ((1 << cycles) - 1)


def lowest(mask: int) -> int:
    """The place of the lowest bit of a mask that is not empty."""
    return (mask & -mask).bit_length() - 1


class Counters:
    """One count per modulo cycle, starting at zero."""

    __slots__ = ("_above", "_planes", "cycles", "full")

    def __init__(self, cycles: int) -> None:
        self.cycles = cycles
        self.full = (1 << cycles) - 1
        """The mask of all cycles."""
        self._planes: list[int] = []
        self._above: dict[int, int] = {}

    def add(self, mask: int, amount: int) -> None:
        """Count `amount` more in every cycle of the mask."""
        if not mask:
            return
        self._above.clear()
        planes = self._planes
        carry, k = 0, 0
        while carry or amount >> k:
            if k == len(planes):
                planes.append(0)
            plane = planes[k]
            addend = mask if amount >> k & 1 else 0
            half = plane ^ addend
            planes[k] = half ^ carry
            carry = plane & addend | half & carry
            k += 1

    def subtract(self, mask: int, amount: int) -> None:
        """Count `amount` less in every cycle of the mask; exactly undoes `add`."""
        if not mask:
            return
        self._above.clear()
        planes = self._planes
        borrow, k = 0, 0
        while borrow or amount >> k:
            plane = planes[k]
            taken = mask if amount >> k & 1 else 0
            half = plane ^ taken
            planes[k] = half ^ borrow
            borrow = ~plane & taken | ~half & borrow
            k += 1
        while planes and not planes[-1]:
            planes.pop()

    def above(self, limit: int) -> int:
        """The cycles whose count is greater than `limit`."""
        known = self._above.get(limit)
        if known is None:
            known = self._above[limit] = self._compare(limit)
        return known

    def _compare(self, limit: int) -> int:
        """Compare from the top plane down: greater at the first bit where the two differ.

        `level` holds the cycles that are not less so far; those already greater may stay in it.
        """
        if limit < 0:
            return self.full
        if limit >> len(self._planes):
            return 0
        greater, level = 0, self.full
        for k in range(len(self._planes) - 1, -1, -1):
            plane = self._planes[k]
            if limit >> k & 1:
                level &= plane
            else:
                greater |= level & plane
        return greater

    def count(self, cycle: int) -> int:
        """The count of one cycle."""
        return sum((plane >> cycle & 1) << k for k, plane in enumerate(self._planes))

    @property
    def planes(self) -> int:
        """How many planes the counts take now."""
        return len(self._planes)
