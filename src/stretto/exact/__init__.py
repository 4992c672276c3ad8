"""The exact solver: CP-SAT finds the smallest II, or proves that there is none.

Here is what a proof is asked for, what it may cost, and what it tells while it runs: apart from the
solver and the objectives, so that naming an option does not load them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from stretto.errors import StrettoError

if TYPE_CHECKING:
    from stretto.exact.goal import Goal

II = "ii"
"""The first objective."""
OBJECTIVE = "stages"
"""The last objective that is minimized unless another is asked for."""
WORK = 60.0
"""Units of work that one loop is worth; a unit takes in the order of a second."""
PATIENCE = 60.0
"""Seconds that an explanation may take unless somebody says otherwise."""
WORKERS = 1000
"""Threads, of which the solver takes so many at most."""
SEED = (1 << 31) - 1
"""The largest seed that the solver takes."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a proof may cost."""

    work: float = WORK
    """Deterministic units: the same loop gets the same answer on any machine. The clock is no part
    of it: a deadline goes with the case."""
    workers: int = 1
    """Threads of the solver. Each number gives its own answer, always the same."""
    seed: int = 0
    runs: bool = True
    """Whether many IIs are refuted at once before any is sought: for who asks for one, it costs
    most of the time."""


def limits_of(work_limit: float, workers: int, seed: int) -> Limits:
    """What the solver may cost; StrettoError where it takes no such number."""
    if not 0 < work_limit < inf:
        raise StrettoError(f"work_limit is {work_limit}; a number above 0 is needed")
    if not 1 <= workers <= WORKERS:
        raise StrettoError(f"workers is {workers}; 1 to {WORKERS} are possible")
    if not 0 <= seed <= SEED:
        raise StrettoError(f"seed is {seed}; 0 to {SEED} are possible")
    return Limits(work_limit, workers, seed)


@dataclass(frozen=True, slots=True)
class ProofOptions:
    """How far to go, and at what cost."""

    objective: str = OBJECTIVE
    """The last objective that is minimized."""
    limits: Limits = field(default_factory=Limits)

    @property
    def goals(self) -> tuple[Goal, ...]:
        """Those to minimize, in order; StrettoError where there is no such objective."""
        from stretto.exact.objectives import up_to  # noqa: PLC0415 - where something is proved

        return up_to(self.objective)


@dataclass(frozen=True, slots=True)
class Event:
    """What happened while the solver worked, for whoever watches."""

    what: str
    """The objective."""
    value: int
    """The II being tried, or the best value of an objective so far."""
    bound: int
    """What no schedule is below."""
    best: int | None = None
    """The best II so far."""


Progress = Callable[[Event], None]
