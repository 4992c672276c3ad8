"""What a run shows.

    Finding("unwritten", "`mma` of iteration 3 reads `a_tile` at 900; `load_a` is ready at 912")

========== =========================================================================
name       meaning
========== =========================================================================
unwritten  something is read before it is there, or nothing makes the reader wait
overwritten something is replaced while it is needed, or nothing makes the writer wait
unordered  a stated order holds by luck, or not at all; an agent goes by another's iterator
stall      an operation issues later than the schedule says
early      an operation issues before the schedule says, or in the wrong step
overbooked a slot or pool is held beyond its capacity in some cycle, or a ring or a memory space is
           larger than it may be
deadlock   agents wait for one another, for ever
value      an operation made another value than in sequential execution, or none, or two
pace       neighbouring iterations are not II cycles apart in the steady state
prologue   the pipeline is not full after (stage count - 1) × II cycles
epilogue   the last completion is not where the schedule puts it
========== =========================================================================
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from stretto.materialization.program import Mode
from stretto.simulation.domains import Trace
from stretto.simulation.needs import Known
from stretto.simulation.space import SpaceTaken

ViolationName = Literal[
    "unwritten",
    "overwritten",
    "unordered",
    "stall",
    "early",
    "overbooked",
    "deadlock",
    "value",
    "pace",
    "prologue",
    "epilogue",
]
VIOLATION_NAMES: tuple[ViolationName, ...] = get_args(ViolationName)


@dataclass(frozen=True, slots=True)
class Finding:
    """One way in which a run is not as it should be; told of its first time."""

    name: ViolationName
    message: str
    ops: tuple[str, ...] = ()
    cycle: int | None = None
    times: int = 1


@dataclass(frozen=True, slots=True)
class Blocked:
    """An agent that waits for ever, for what, and for whom."""

    agent: str
    op: str
    iteration: int
    what: str
    agents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Issued:
    """One operation of one iteration in absolute time."""

    op: str
    iteration: int
    cycle: int
    agent: str


@dataclass(frozen=True, slots=True)
class Simulation:
    """A pipelined program against sequential execution."""

    loop: str
    machine: str
    mode: Mode
    iterations: int
    ii: int
    stage_count: int
    equal: bool
    """Same values in the same places as sequential execution."""
    cycles_per_iteration: int | None
    """Distance of neighbouring iterations in the steady state; None: it never got there."""
    prologue_cycles: int | None
    epilogue_cycles: int
    memory: tuple[SpaceTaken, ...]
    """What its rings and barriers take of each space."""
    violations: tuple[Finding, ...]
    blocked: tuple[Blocked, ...]
    issued: tuple[Issued, ...]
    """In order of time."""
    trace: Trace = field(default_factory=Trace, repr=False, compare=False)
    """What the pipelined program made."""

    @property
    def deadlock(self) -> bool:
        """Whether agents wait for one another for ever."""
        return bool(self.blocked)

    @property
    def success(self) -> bool:
        """Whether everything is as it should be."""
        return self.equal and not self.violations


# As they are found ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Act:
    """Who does something, and when."""

    op: str
    iteration: int
    cycle: int
    known: Known
    """What its agent can be sure of."""
    trip_count: int


@dataclass(slots=True)
class Findings:
    """Collects what is wrong; the same thing in another iteration is the same thing."""

    _found: dict[tuple[object, ...], Finding] = field(
        default_factory=dict[tuple[object, ...], Finding]
    )

    def add(
        self,
        name: ViolationName,
        message: str,
        ops: tuple[str, ...],
        cycle: int | None = None,
        about: object = None,
    ) -> None:
        """Something is wrong; `about` tells apart what the operations alone do not."""
        key = (name, ops, about)
        known = self._found.get(key)
        if known is None:
            self._found[key] = Finding(name, message, ops, cycle)
        else:
            self._found[key] = replace(known, times=known.times + 1)

    def at(
        self,
        act: Act,
        name: ViolationName,
        what: str,
        why: str,
        others: tuple[str, ...] = (),
        about: object = None,
    ) -> None:
        """Something is wrong with what an operation does."""
        message = f"`{act.op}` of iteration {act.iteration} {what} at {act.cycle}{why}"
        self.add(name, message, (act.op, *others), act.cycle, about)

    def all(self) -> tuple[Finding, ...]:
        """In the order in which they first came up."""
        return tuple(self._found.values())
