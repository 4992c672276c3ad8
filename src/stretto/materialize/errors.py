"""Why an analysis cannot become a program.

MaterializeError          the analysis is no finished, legal schedule, or a limit is met
  ├── ShapeError          problem, tile and cluster shapes do not agree: nothing is solved
  ├── BarrierError        more barriers between agents than the machine has names for
  └── RegionError         what was built breaks its own contract: a bug of Stretto
"""

from __future__ import annotations

from collections.abc import Sequence

from stretto.errors import StrettoError


class MaterializeError(StrettoError):
    """The analysis cannot be turned into a program."""


class ShapeError(MaterializeError):
    """A persistent loop whose shapes do not agree; the schedule is invalid before solve runs."""


class BarrierError(MaterializeError):
    """The agents need more named barriers than there are."""

    def __init__(self, loop: str, needed: int, cap: int, takers: Sequence[str]) -> None:
        self.needed = needed
        self.cap = cap
        self.takers = tuple(takers)
        super().__init__(
            f"{needed} named barriers are needed, the machine has {cap}; "
            f"they are taken by {', '.join(self.takers)}",
            loop,
        )

    def __reduce__(self) -> tuple[type[BarrierError], tuple[str, int, int, tuple[str, ...]]]:
        return BarrierError, (self.loop, self.needed, self.cap, self.takers)


class RegionError(MaterializeError):
    """The program that was built does not keep the rules of its own region."""

    def __init__(self, loop: str, faults: Sequence[str]) -> None:
        self.faults = tuple(faults)
        told = "".join(f"\n  {fault}" for fault in self.faults)
        super().__init__(
            "the program that was built is not sound; this is a bug of Stretto, please "
            f"report it with the loop{told}",
            loop,
        )

    def __reduce__(self) -> tuple[type[RegionError], tuple[str, tuple[str, ...]]]:
        return RegionError, (self.loop, self.faults)
