"""The modulo profile: what overlapping spans add up to in each cycle of the II.

    II 5, one span of 7 cycles from cycle 1     cycle    0 1 2 3 4
                                                amount   1 2 2 1 1      steps at 0, 1 and 3

A span of q × II + r cycles counts q in every cycle and once more in r of them.
"""

from __future__ import annotations

from collections.abc import Iterable


def profile(
    spans: Iterable[tuple[int, int, int]], ii: int, always: int = 0
) -> tuple[list[int], list[int]]:
    """Sum of (amount, begin, end), as steps: from cycles[k] on, amounts[k]; cycles[0] is 0."""
    base, change = always, {0: 0}
    for amount, begin, end in spans:
        turns, rest = divmod(end - begin, ii)
        base += amount * turns
        if rest:
            first, last = begin % ii, (begin + rest) % ii
            change[first] = change.get(first, 0) + amount
            change[last] = change.get(last, 0) - amount
            if last < first:  # around the end: there at cycle 0 as well (last == 0 cancels out)
                change[0] += amount
    cycles = sorted(change)
    amounts: list[int] = []
    for cycle in cycles:
        base += change[cycle]
        amounts.append(base)
    return cycles, amounts
