"""What a program did, in the order in which it was run, and who heard of whom through a barrier.

    consume   wait full[0] ◄─────────┐          read a_ring[0] ─── arrive free[0]
    load                   copy ─────┘ full[0]                              copy a_ring[0]

A finding keeps the part around its two accesses: what a picture of it is drawn from.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from stretto.sanitizer.finding import Access, Excerpt, Order, Step

AROUND = 5
"""Steps before and after an access that an excerpt has."""
MOST = 40
"""Steps of an excerpt."""


class Heard(NamedTuple):
    """A wait that passed, on what, and whose arrivals and copies had brought that about."""

    wait: Access
    barrier: str
    by: tuple[Access, ...]
    at: int
    """Steps that the program had begun when it passed."""


@dataclass(eq=False, slots=True)
class History:
    """All of one program."""

    steps: list[Access] = field(default_factory=list[Access])
    slots: dict[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])
    """Of a step: the slots or the barrier that it is about."""
    heard: list[Heard] = field(default_factory=list[Heard])

    def add(self, access: Access) -> None:
        """One step more."""
        self.steps.append(access)

    def touches(self, access: Access, name: str) -> None:
        """A slot or a barrier, if that is the last step's."""
        last = len(self.steps) - 1
        known = self.slots.get(last, ())
        if last >= 0 and self.steps[last] is access and name not in known:
            self.slots[last] = (*known, name)

    def passed(self, wait: Access, barrier: str, by: tuple[Access, ...]) -> None:
        """A wait is over."""
        self.heard.append(Heard(wait, barrier, by, len(self.steps)))

    def _in_order(self) -> list[tuple[str, Access]]:
        """Every step with what it touches; a wait stands where it passed, not where it began."""
        passed = {self._key(heard.wait): heard.at - 0.5 for heard in self.heard}
        ranked = sorted(
            (passed.get(self._key(step), float(n)), n) for n, step in enumerate(self.steps)
        )
        return [(", ".join(self.slots.get(n, ())), self.steps[n]) for _, n in ranked]

    def excerpt(self, accesses: Iterable[Access | None], agents: tuple[str, ...]) -> Excerpt:
        """The part around some accesses; where there are none, the last steps of some agents."""
        asked = [a for a in accesses if a is not None]
        ordered = self._in_order()
        at = [n for n, (_, step) in enumerate(ordered) if step in asked]
        chosen = {m for n in at for m in range(n - AROUND, n + AROUND + 1)}
        if at and at[-1] - at[0] < MOST:
            chosen |= set(range(at[0], at[-1]))
        if not at:
            for agent in agents:
                own = [n for n, (_, step) in enumerate(ordered) if step.agent == agent]
                chosen |= set(own[-AROUND:])
        kept = sorted(n for n in chosen if 0 <= n < len(ordered))[:MOST]
        numbers = {self._key(ordered[n][1]): place for place, n in enumerate(kept)}
        steps = tuple(
            Step(step, slot, n, step in asked) for n in kept for slot, step in (ordered[n],)
        )
        orders = [
            Order(numbers[self._key(by)], numbers[self._key(heard.wait)], heard.barrier)
            for heard in self.heard
            if self._key(heard.wait) in numbers
            for by in heard.by
            if self._key(by) in numbers
        ]
        return Excerpt(steps, tuple(dict.fromkeys(orders)), len(self.steps))

    @staticmethod
    def _key(access: Access) -> tuple[Any, ...]:
        return access.agent, access.what, access.site, access.turn
