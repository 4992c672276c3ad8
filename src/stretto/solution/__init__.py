"""Results, and only results: what was found, how it is limited, and what was proved.

    ScheduleAnalysis(ii=15, placements=(load @0, write @8, ...), bounds=Bounds(...), ...)

A schedule is an II and a start for every operation, however it was found. Stage, cycle and order
follow from those (`views.py` computes them for whoever makes an analysis; `verify` computes them
again, its own way).

What several reports say of a result stands here too, each phrase once:

    limit        slot tp_smem_wr                        the recurrence through acc
    cause        slot tp_smem_wr                        latency 12 over distance 1
    limited      , limited by slot tp_smem_wr           (nothing where nothing limits it)
    at_the_mii   II 15 is the MII, limited by slot tp_smem_wr
    the_mii      the MII is 15, limited by slot tp_smem_wr
    no_schedule  no schedule exists up to II 14
    spilling     513 of 512 registers: it spills 1      (nothing where it does not)

Whole sentences are their reports' own; these are the parts they share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args, overload

from stretto.loop import Note, Use
from stretto.loop.parts import quickly

SCHEMA = "stretto.schedule/1"
"""Of documents of schedules."""

WitnessKind = Literal["slot", "cycle", "pool", "depth", "group", "none"]
WITNESS_KINDS: tuple[WitnessKind, ...] = get_args(WitnessKind)

BoundName = Literal["resource", "recurrence", "fine", "dependence", "group"]
BOUND_NAMES: tuple[BoundName, ...] = get_args(BoundName)


@quickly
@dataclass(frozen=True, slots=True)
class Part:
    """What one operation (or one fused group) contributes to a bound.

    Of a group bound, two names are a step between members of one group.
    """

    ops: tuple[str, ...]
    amount: int
    """Cycles held, units drawn, or latency passed on."""
    distance: int = 0
    """For a step of a recurrence: iterations crossed to the next operation; between members of a
    group, stages."""


@quickly
@dataclass(frozen=True, slots=True)
class Witness:
    """Why a bound holds: ``bound = ceil(total / capacity)``, part by part.

    ======  ======================  ================================  ====================
    kind    limit                   total                             capacity
    ======  ======================  ================================  ====================
    slot    the slot                cycles held in an iteration       its capacity
    cycle   --                      latency around the recurrence     distance around it
    pool    the pool                units drawn in an iteration       its cap
    depth   the limited operation   longest path to it, plus 1        its max depth, plus 1
    group   a member of the group   longest path to it from another   distance of the path, plus
                                    member, plus 1                    1 and the stages between
    none    --                      1                                 1
    ======  ======================  ================================  ====================
    """

    kind: WitnessKind
    limit: str = ""
    total: int = 1
    capacity: int = 1
    parts: tuple[Part, ...] = ()
    slot_id: int | None = None

    @property
    def bound(self) -> int:
        """The II this witness forces, at least 1."""
        return max(1, -(-self.total // self.capacity))


@quickly
@dataclass(frozen=True, slots=True)
class Bounds:
    """Five lower bounds on the II, each with its witness."""

    resource: Witness
    recurrence: Witness
    fine: Witness
    dependence: Witness
    group: Witness = Witness("none")

    def __getitem__(self, name: BoundName) -> Witness:
        return {
            "resource": self.resource,
            "recurrence": self.recurrence,
            "fine": self.fine,
            "dependence": self.dependence,
            "group": self.group,
        }[name]

    @property
    def mii(self) -> int:
        """The largest of them: no schedule has a smaller II."""
        return max(self.ungrouped, self.group.bound)

    @property
    def ungrouped(self) -> int:
        """The largest but for leader groups: where a search that leaves `ties` out begins."""
        four = (self.resource, self.recurrence, self.fine, self.dependence)
        return max([witness.bound for witness in four])

    @property
    def limiter(self) -> BoundName:
        """The bound that is the MII; the first in order when several are."""
        mii = self.mii
        return next(name for name in BOUND_NAMES if self[name].bound == mii)

    @property
    def witness(self) -> Witness:
        """The witness of the limiter."""
        return self[self.limiter]


@dataclass(frozen=True, slots=True)
class Schedule:
    """The bare schedule, however it was found: what solvers hand over and analyses are made of."""

    ii: int
    starts: Mapping[str, int]
    """Start of each operation, by name."""
    fused: tuple[tuple[str, ...], ...] = ()
    """Groups that share one hold."""


@quickly
@dataclass(frozen=True, slots=True)
class Placement:
    """Where one operation stands."""

    op: str
    start: int
    stage: int
    order: int
    rung: str = ""
    """The rung of the strategy ladder that seated it."""
    arm: str = ""
    """The placement arm that seated it."""
    cycle: int | None = None
    """start mod II as published; None: not stated."""


@quickly
@dataclass(frozen=True, slots=True)
class StorageUse:
    """What a schedule makes of one storage."""

    name: str
    space: str
    bytes: int
    lifetime: int
    """Cycles one instance lives; a fixed or live-in storage lives always, which counts as II."""
    ring_depth: int


@quickly
@dataclass(frozen=True, slots=True)
class SpaceUse:
    """Bytes of a memory space that a schedule needs."""

    space: str
    used: int
    budget: int | None
    """None: unlimited, or not stated by the machine."""


@quickly
@dataclass(frozen=True, slots=True)
class TableRow:
    """Some cycles in a row of the populated reservation table, in which the same is held."""

    cycle: int
    """The first of them, modulo II."""
    cycles: int
    word: int | None
    """Bit `slot id - 1` of every slot that is held; None where a machine's slots fit no word."""
    held: tuple[tuple[str, int], ...] = ()
    """Slot and how much of it is held, all iterations in flight together."""
    drawn: tuple[tuple[str, int], ...] = ()
    """Pool and the units drawn from it."""


class LateTable(Sequence[TableRow]):
    """Rows of a table that are made when somebody first looks at them; equal to a tuple of them.

    Pickled, it is that tuple.
    """

    __slots__ = ("_make", "_rows")

    def __init__(self, make: Callable[[], tuple[TableRow, ...]]) -> None:
        self._make: Callable[[], tuple[TableRow, ...]] | None = make
        self._rows: tuple[TableRow, ...] = ()

    @property
    def rows(self) -> tuple[TableRow, ...]:
        """All of them; who made them is forgotten."""
        if self._make is not None:
            self._rows = self._make()
            self._make = None
        return self._rows

    @overload
    def __getitem__(self, index: int) -> TableRow: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[TableRow, ...]: ...
    def __getitem__(self, index: int | slice) -> TableRow | tuple[TableRow, ...]:
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def __eq__(self, other: object) -> bool:
        return self.rows == (other.rows if isinstance(other, LateTable) else other)

    def __hash__(self) -> int:
        return hash(self.rows)

    def __repr__(self) -> str:
        return repr(self.rows)

    def __reduce__(self) -> tuple[type[tuple[TableRow, ...]], tuple[tuple[TableRow, ...]]]:
        return tuple, (self.rows,)


@dataclass(frozen=True, slots=True)
class Pressure:
    """Peak register pressure in the steady state."""

    peak: int
    budget: int | None
    cycle: int
    """A modulo cycle at which the peak is reached."""


@dataclass(frozen=True, slots=True)
class Objective:
    """One objective of the exact solver and what is known of it."""

    name: str
    value: int
    lower_bound: int
    optimal: bool


@dataclass(frozen=True, slots=True)
class Proof:
    """What is proved about the II: optimal only where bound and value meet."""

    optimal: bool
    lower_bound: int
    method: str
    """``bound`` (the MII is met), ``memory`` or ``conflict`` (no smaller II is possible),
    ``solver``, or ``none``."""
    objectives: tuple[Objective, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an II was not reached, so that a reader can tell an impossible loop from a bad guess."""

    ii: int
    reason: str
    """One sentence with its numbers."""
    through: int | None = None
    """The last II of a run refused for the same reason; None: this II alone."""
    proved: bool = False
    """Whether no schedule exists at this II, rather than none being found."""
    rung: str = ""
    """The rung that came furthest."""
    op: str = ""
    """The operation that found no seat."""
    uses: tuple[Use, ...] = ()
    """What that operation holds."""
    window: tuple[int, int] | None = None
    """First and last start its seated neighbours allowed."""
    rows: tuple[tuple[int, int], ...] = ()
    """Modulo cycle and row word where it collided."""
    limit: str = ""
    """The pool, slot, memory space or rule that refused; or what ended the search (``work``)."""
    group: tuple[str, ...] = ()
    """The operations it must share a stage with."""
    stage: int | None = None
    """The stage in which it was sought: that of its group, or of the first start of its window."""
    order: int | None = None
    """How many seated operations of that stage come before it there."""

    @property
    def last(self) -> int:
        """The last II it refuses."""
        return self.through or self.ii


@quickly
@dataclass(frozen=True, slots=True)
class ScheduleAnalysis:
    """A schedule, or the reasons there is none."""

    loop: str
    machine: str
    success: bool
    ii: int | None = None
    """None when there is no schedule."""
    placements: tuple[Placement, ...] = ()
    """In program order."""
    fused: tuple[tuple[str, ...], ...] = ()
    """Groups that share one hold."""
    stage_count: int = 0
    pipeline_depth: int = 0
    storages: tuple[StorageUse, ...] = ()
    memory: tuple[SpaceUse, ...] = ()
    pressure: Pressure | None = None
    table: Sequence[TableRow] = ()
    """The populated reservation table, cycle by cycle; empty where it is not stated."""
    bounds: Bounds | None = None
    proof: Proof | None = None
    generator: str = ""
    rule: str = ""
    """The selection rule that chose the generator."""
    refused: tuple[Refusal, ...] = ()
    warnings: tuple[Note, ...] = ()
    """What is to be known of it: notes of the machine and of the loop, then those of the search."""
    spilled: int = 0
    """Registers of a thread beyond what its agent has, where no schedule keeps to those."""
    overdue: bool = False
    """Whether the time limit ended the search; no part of a document."""
    seconds: float = 0.0

    @property
    def starts(self) -> dict[str, int]:
        """Start of each operation."""
        return {p.op: p.start for p in self.placements}

    @property
    def schedule(self) -> Schedule:
        """The bare schedule; a ValueError where there is none."""
        if self.ii is None:
            raise ValueError(f"{self.loop}: there is no schedule")
        return Schedule(self.ii, self.starts, self.fused)


# Words ----------------------------------------------------------------------------------


def counted(count: int, one: str, many: str | None = None) -> str:
    """``1 stage``, ``2 stages``."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def limit(witness: Witness) -> str:
    """What a witness is about, in a few words; "" where it is about nothing."""
    match witness.kind:
        case "slot" | "pool":
            return cause(witness)
        case "cycle":
            return f"the recurrence through {witness.parts[0].ops[0]}"
        case "depth":
            return f"the depth limit of {witness.limit}"
        case "group":
            return f"the group of {witness.limit}"
        case "none":
            return ""


def cause(witness: Witness) -> str:
    """What a witness adds up: where that has no name, its numbers."""
    if witness.kind == "cycle":
        return f"latency {witness.total} over distance {witness.capacity}"
    if witness.kind == "group":
        return f"the group of {witness.limit}"
    return f"{witness.kind} {witness.limit}"


def limited(bounds: Bounds) -> str:
    """What limits the II, to follow a number."""
    by = limit(bounds.witness)
    return f", limited by {by}" if by else ""


def at_the_mii(bounds: Bounds) -> str:
    """Of a schedule that is as fast as its bounds allow."""
    return f"II {bounds.mii} is the MII{limited(bounds)}"


def the_mii(bounds: Bounds) -> str:
    """Of any other, and where there is none."""
    return f"the MII is {bounds.mii}{limited(bounds)}"


def footprint(uses: Iterable[Use]) -> str:
    """What an operation holds, as (slot, offset, duration) of each use."""
    held = [f"({use.slot}, {use.offset}, {use.duration})" for use in uses if use.duration]
    return " ".join(held) or "holds no slot"


def sought(refusal: Refusal) -> tuple[tuple[str, str], ...]:
    """What a refusal knows of the operation that found no seat, by name, in words."""
    if not refusal.op:
        return (("limit", refusal.limit),) if refusal.limit else ()
    found = [("operation", refusal.op), ("footprint", footprint(refusal.uses))]
    if refusal.window is not None:
        first, last = refusal.window
        found.append(("window", f"{first} to {last}" if first <= last else "empty"))
    if refusal.rows:
        found.append(("rows", " ".join(f"{cycle}:{word:#x}" for cycle, word in refusal.rows)))
    if refusal.limit:
        found.append(("limit", refusal.limit))
    if refusal.group:
        found.append(("group", " ".join(refusal.group)))
    for name, number in (("stage", refusal.stage), ("order", refusal.order)):
        if number is not None:
            found.append((name, str(number)))
    return tuple(found)


def no_schedule(refused: Iterable[Refusal] = (), found: str = "was found") -> str:
    """That there is none, and up to where; `found`: the verb where that is not proved."""
    tried = tuple(refused)
    if not tried:
        return f"no schedule {found}"
    exists = "exists" if all(refusal.proved for refusal in tried) else found
    return f"no schedule {exists} up to II {max(refusal.last for refusal in tried)}"


def spilling(analysis: ScheduleAnalysis) -> str:
    """That a schedule needs more registers than there are; "" where it does not."""
    if analysis.spilled:
        more = counted(analysis.spilled, "register")
        return f"spills: {more} of a thread more than its agent has"
    pressure = analysis.pressure
    if pressure is None or pressure.budget is None or pressure.peak <= pressure.budget:
        return ""
    over = pressure.peak - pressure.budget
    return f"{pressure.peak} of {pressure.budget} registers: it spills {over}"
