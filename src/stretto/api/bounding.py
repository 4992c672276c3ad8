"""`stretto.bounds`: what the II cannot be below, and why.

stretto.bounds(loop, "blackwell")   ──►  .mii 15, .witness slot tp_smem_wr, .remedies, .report()
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from stretto.api import Result, fields_of, for_each, made_ready
from stretto.kinds import checked
from stretto.loop import Loop
from stretto.lower_bounds import compute_bounds
from stretto.lower_bounds.remedies import Remedy, remedies, ties
from stretto.machine import Machine
from stretto.report.bounds import SCHEMA, BoundsReport
from stretto.resources.prepare import Prepared
from stretto.solution import Bounds, Witness, limited


@dataclass(frozen=True, repr=False)
class BoundsResult(Result, Bounds):
    """Four lower bounds on the II of a loop, each with its witness; `mii` is the largest."""

    SCHEMA: ClassVar[str] = SCHEMA

    fuse: bool = field(default=True, kw_only=True)
    max_stages: int | None = field(default=None, kw_only=True)

    @cached_property
    def remedies(self) -> tuple[Remedy, ...]:
        """Single changes that lower the bound, each with what it would be."""
        loop, machine = self.problem.loop, self.problem.machine
        return remedies(loop, machine, self, fuse=self.fuse, max_stages=self.max_stages)

    @cached_property
    def ties(self) -> tuple[Witness, ...]:
        """Where no remedy helps: everything that asks for this II on its own."""
        if self.remedies:
            return ()
        loop, machine = self.problem.loop, self.problem.machine
        return ties(loop, machine, self, fuse=self.fuse, max_stages=self.max_stages)

    def view(self) -> BoundsReport:
        """What text and JSON are made by."""
        of, told = self.problem, (self.remedies, self.noted, self.ties)
        return BoundsReport(of.loop.name, of.machine, of.machine_why, self, *told)

    def line(self) -> str:
        """The MII and what limits it."""
        on = f"{self.problem.loop.name} on {self.problem.machine.name}"
        return f"Bounds {on}: II >= {self.mii}{limited(self)}"


@for_each
@checked
def bounds(
    loop: Loop | Prepared,
    machine: Machine | str | None = None,
    *,
    fuse: bool = True,
    max_stages: int | None = None,
) -> BoundsResult:
    """Lower bounds on the II of a loop: no schedule starts iterations more often.

    Of what `read` gives, or of a list of loops: a tuple with those of each. The machine is the one
    given, else the one the loop names, else `blackwell`. `max_stages` allows at most so many
    stages, and `fuse=False` no operations that share a hold.
    """
    ready = made_ready(loop, machine)
    found = compute_bounds(ready.loop, ready.machine, fuse=fuse, max_stages=max_stages)
    return BoundsResult(**fields_of(found), problem=ready, fuse=fuse, max_stages=max_stages)
