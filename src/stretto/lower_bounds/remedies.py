"""What to change so that the highest bound gives way, and what each change is worth.

    MII 15, slot tp_smem_wr: load 8 + write 7
      ├─ `load` holds tp_smem_wr 7 cycles less (8 -> 1)     ──►  MII 8, then slot tma
      └─ a second unit of tp_smem_wr, on other hardware     ──►  MII 8, then slot tma

Nothing is estimated: every remedy is applied to the problem and the bounds computed again. It
reaches as far as it is worth anything, to whatever limits the II next, and no farther.
One that leaves the MII where it is (because another bound is as high) is not a remedy; `ties` then
tells what stands in the way. They are ranked by what they ask of a person:

    1  to look longer, or to ask why: another option of the command
    2  a limit that the user set: a depth, a stage, the number of stages or of consumers
    3  an operation that is shorter or sooner: another tile, another instruction
    4  a recurrence carried farther: the loop computes in another order
    5  other hardware, with more units
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from stretto.loop import Dependence, Loop
from stretto.lower_bounds import compute_bounds
from stretto.machine import Machine
from stretto.solution import (
    BOUND_NAMES,
    BoundName,
    Bounds,
    Part,
    ScheduleAnalysis,
    Witness,
    counted,
    limit,
)

RemedyUnit = Literal["cycles", "weights", "units", "iterations", "stages", "groups"]
"""What its numbers count."""
RemedyKind = Literal[
    "search", "depth", "group", "duration", "latency", "distance", "capacity", "cap"
]

EFFORT: dict[RemedyKind, int] = {
    "search": 1,
    "depth": 2,
    "group": 2,
    "duration": 3,
    "latency": 3,
    "distance": 4,
    "capacity": 5,
    "cap": 5,
}
"""What each kind of change asks of a person; less comes first."""

REACH = 4
"""A change to more than so many times a capacity or a distance is no advice."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """One change, and the MII after it."""

    kind: RemedyKind
    target: str
    """The option, the slot, the pool, the operations or the dependence that changes."""
    before: int
    after: int
    unit: RemedyUnit
    """What the two numbers count."""
    text: str
    mii: int
    next: str
    """What limits the II then; "": nothing does, or nobody knows."""
    ops: tuple[str, ...] = ()
    """The operations it is about."""
    hardware: bool = False
    """Whether it asks for another GPU; everything else is for the user to change."""

    @property
    def effort(self) -> int:
        """Its rank, from 1."""
        return EFFORT["depth" if self.kind == "capacity" and not self.hardware else self.kind]

    @property
    def sentence(self) -> str:
        """What to change, and what stands in the way then."""
        return f"{self.text}; then {self.next}" if self.next else self.text


@dataclass(frozen=True, slots=True)
class _Problem:
    """Everything the bounds depend on; a change makes another one."""

    loop: Loop
    machine: Machine
    fuse: bool
    max_stages: int | None

    @property
    def bounds(self) -> Bounds:
        return compute_bounds(self.loop, self.machine, fuse=self.fuse, max_stages=self.max_stages)

    @property
    def mii(self) -> int:
        return self.bounds.mii


def remedies(
    loop: Loop,
    machine: Machine,
    bounds: Bounds,
    *,
    fuse: bool = True,
    max_stages: int | None = None,
) -> tuple[Remedy, ...]:
    """Single changes that lower the MII, the easiest first; none where no single one does."""
    problem = _Problem(loop, machine.with_slots(loop.slots), fuse, max_stages)
    propose = {"slot": _slot, "cycle": _cycle, "pool": _pool, "depth": _depth, "group": _group}
    kind = bounds.witness.kind
    if kind == "none" or bounds.mii == 1:
        return ()
    found = propose[kind](problem, bounds.witness)
    worth = [remedy for remedy in found if remedy.mii < bounds.mii]
    return tuple(sorted(worth, key=lambda remedy: (remedy.effort, remedy.mii)))


def advice(
    loop: Loop, machine: Machine, analysis: ScheduleAnalysis, options: Mapping[str, Any]
) -> tuple[Remedy, ...]:
    """What would make a schedule faster, the easiest first; the options are those it was made with.

    Between its II and the MII it is the search that has to go on; where that is proved to be in
    vain, no change of a bound is worth anything on its own, and `explain` tells what is.
    """
    ii, bounds, proof = analysis.ii, analysis.bounds, analysis.proof
    if ii is None or bounds is None:
        return ()
    if ii > bounds.mii:
        if proof is not None and proof.optimal:
            text = f"`stretto explain` tells what forbids II {ii - 1}, and what would change that"
            return (Remedy("search", "explain", ii, ii - 1, "cycles", text, bounds.mii, ""),)
        option = "--prove"
        text = f"`--prove` looks for a schedule below II {ii}, or proves there is none"
        if options.get("generator") == "serial":
            option, text = "--generator auto", "`--generator auto` lets iterations overlap"
        elif options.get("prove") or options.get("generator") == "exact":
            option = "--work-limit"
            text = f"a larger `--work-limit` lets the solver go on below II {ii}"
        lower = bounds.mii if proof is None else max(bounds.mii, proof.lower_bound)
        return (Remedy("search", option, ii, lower, "cycles", text, lower, ""),)
    fuse, stages = bool(options.get("fuse", True)), options.get("max_stages")
    return remedies(loop, machine, bounds, fuse=fuse, max_stages=stages)


# Ties -----------------------------------------------------------------------------------------

MOST: dict[BoundName, int | None] = {
    "resource": None,
    "recurrence": 2,  # that there is another says enough; finding them all takes long
    "fine": None,
    "dependence": 1,  # a limit on the stages gives every operation behind it the same bound
    "group": 1,
}


def ties(
    loop: Loop,
    machine: Machine,
    bounds: Bounds,
    *,
    fuse: bool = True,
    max_stages: int | None = None,
) -> tuple[Witness, ...]:
    """Everything that asks for the MII on its own: each is found with those before it taken away.

    Several recurrences are told apart as far as they share no dependence.
    """
    problem = _Problem(loop, machine.with_slots(loop.slots), fuse, max_stages)
    found: list[Witness] = []
    for name in BOUND_NAMES:
        changed, alone = problem, list[Witness]()
        witness = bounds[name]
        while witness.bound == bounds.mii > 1 and len(alone) != MOST[name]:
            alone.append(witness)
            changed = _without(changed, witness)
            witness = changed.bounds[name]
        found += alone
    return tuple(found)


def _without(problem: _Problem, witness: Witness) -> _Problem:
    """The problem with room enough for all that a witness adds up."""
    machine = problem.machine
    match witness.kind:
        case "slot":
            return replace(problem, machine=machine.with_capacity(witness.limit, witness.total))
        case "pool":
            return replace(problem, machine=machine.with_cap(witness.limit, witness.total))
        case "cycle":
            steps = {(a, b, part.distance) for part, a, b in _steps(witness)}
            return _changed(problem, steps, lambda _: 0, 0)
        case "depth" | "group" | "none":  # no room helps
            return problem


# Slots and pools ------------------------------------------------------------------------------


def _slot(problem: _Problem, witness: Witness) -> Iterator[Remedy]:
    slot, capacity = witness.limit, witness.capacity

    def widened(more: int) -> _Problem:
        return replace(problem, machine=problem.machine.with_capacity(slot, capacity + more))

    more, after = _reached(capacity, witness.total, widened)
    unit = "a second unit" if capacity == more == 1 else counted(more, "more unit")
    asks, hardware = "on other hardware", True
    if problem.machine.agents:  # some of it is a matter of warps
        from stretto.machine.replicas import more_of  # noqa: PLC0415 - few loops have agents

        asks, hardware = more_of(problem.machine, slot, capacity, capacity + more)
    text = f"{unit} of {slot} (capacity {capacity} -> {capacity + more}), {asks}"
    numbers = (capacity, capacity + more)
    yield replace(_remedy("capacity", slot, numbers, "units", text, after), hardware=hardware)
    part = max(witness.parts, key=lambda part: part.amount)
    alone = list(_shorter(problem, part, (slot,), slot))
    yield from alone
    held = [u.slot for name in part.ops for u in problem.loop.op(name).vector.uses if u.duration]
    slots = tuple(dict.fromkeys(held))
    if len(slots) > 1 and not any(remedy.mii < witness.bound for remedy in alone):
        whose = "its" if len(part.ops) == 1 else "their"
        yield from _shorter(problem, part, slots, f"all {whose} slots ({', '.join(slots)})")


def _remedy(
    kind: RemedyKind,
    target: str,
    numbers: tuple[int, int],
    unit: RemedyUnit,
    text: str,
    after: Bounds,
    ops: tuple[str, ...] = (),
) -> Remedy:
    return Remedy(kind, target, *numbers, unit, text, after.mii, limit(after.witness), ops)


def _shorter(problem: _Problem, part: Part, slots: tuple[str, ...], what: str) -> Iterator[Remedy]:
    """The operations of a part hold some slots for a shorter time."""
    longest = max(_durations(problem.loop, part, slots))
    if longest > 1:
        less, after = _least(longest - 1, lambda k: _held_less(problem, part, slots, longest - k))
        who = " and ".join(f"`{name}`" for name in part.ops)
        holds = "holds" if len(part.ops) == 1 else "together hold"
        text = f"{who} {holds} {what} {_figure(problem, less)} less ({longest} -> {longest - less})"
        numbers = (longest, longest - less)
        target = ", ".join(slots)
        unit = problem.machine.unit
        yield _remedy("duration", target, numbers, unit, text, after, part.ops)


def _figure(problem: _Problem, amount: int) -> str:
    return counted(amount, problem.machine.unit.removesuffix("s"))


def _durations(loop: Loop, part: Part, slots: Collection[str]) -> list[int]:
    return [
        use.duration for name in part.ops for use in loop.op(name).vector.uses if use.slot in slots
    ]


def _held_less(problem: _Problem, part: Part, slots: Collection[str], most: int) -> _Problem:
    """The operations of a part hold some slots for `most` cycles at a time, no longer."""
    ops = tuple(
        replace(
            op,
            uses=tuple(
                replace(use, duration=min(use.duration, most)) if use.slot in slots else use
                for use in op.vector.uses
            ),
        )
        if op.name in part.ops
        else op
        for op in problem.loop.ops
    )
    return replace(problem, loop=replace(problem.loop, ops=ops))


def _pool(problem: _Problem, witness: Witness) -> Iterator[Remedy]:
    pool, cap = witness.limit, witness.capacity

    def widened(more: int) -> _Problem:
        return replace(problem, machine=problem.machine.with_cap(pool, cap + more))

    more, after = _reached(cap, witness.total, widened)
    unit = "one more unit" if more == 1 else f"{more} more units"
    text = f"{unit} of pool {pool} (cap {cap} -> {cap + more}), on other hardware"
    yield replace(_remedy("cap", pool, (cap, cap + more), "units", text, after), hardware=True)


def _reached(now: int, enough: int, change: Callable[[int], _Problem]) -> tuple[int, Bounds]:
    """How many more it takes until something else limits the II; where that is far, until it falls.

    `enough` takes the bound out of the way.
    """
    most = now * (REACH - 1)
    if change(most).mii == change(max(enough, most)).mii:
        return _least(most, change)
    before, more = change(0).mii, 1
    while more < most and change(more).mii == before:
        more += 1
    return more, change(more).bounds


def _least(most: int, change: Callable[[int], _Problem]) -> tuple[int, Bounds]:
    """The smallest k up to `most` that is worth as much as `most`, and the bounds it gives.

    Less latency, a shorter hold or another unit never raises a bound: the worth is monotone in k.
    """
    found = change(most).bounds
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        bounds = change(middle).bounds
        if bounds.mii == found.mii:
            high, found = middle, bounds
        else:
            low = middle + 1
    return high, found


# Recurrences ----------------------------------------------------------------------------------


def _cycle(problem: _Problem, witness: Witness) -> Iterator[Remedy]:
    yield _sooner(problem, witness)
    carried = [(part.distance, a, b) for part, a, b in _steps(witness) if part.distance]
    options = [(*_farther(problem, witness.total, n, a, b), n, a, b) for n, a, b in carried]
    more, after, distance, src, dst = min(options, key=lambda option: option[1].mii)
    over = "one more iteration" if more == 1 else f"{more} more iterations"
    numbers = (distance, distance + more)
    text = f"`{src}` -> `{dst}` carried over {over} (distance {numbers[0]} -> {numbers[1]})"
    yield _remedy("distance", f"{src} -> {dst}", numbers, "iterations", text, after, (src, dst))


def _sooner(problem: _Problem, witness: Witness) -> Remedy:
    """The longest latency of a cycle, shorter."""
    longest, src, dst = max(_steps(witness), key=lambda step: step[0].amount)
    latency = longest.amount

    def sooner(k: int) -> _Problem:
        return _changed(
            problem, {(src, dst, longest.distance)}, lambda d: min(d.latency, latency - k), 0
        )

    less, after = _least(latency, sooner)
    way = f"`{src}` -> `{dst}`"
    text = f"{_figure(problem, less)} less latency of {way} ({latency} -> {latency - less})"
    numbers = (latency, latency - less)
    unit = problem.machine.unit
    return _remedy("latency", f"{src} -> {dst}", numbers, unit, text, after, (src, dst))


def _farther(
    problem: _Problem, total: int, distance: int, src: str, dst: str
) -> tuple[int, Bounds]:
    """By how many iterations more a dependence is worth being carried."""

    def change(more: int) -> _Problem:
        return _changed(problem, {(src, dst, distance)}, lambda d: d.latency, more)

    return _reached(distance, total, change)


def _steps(witness: Witness) -> list[tuple[Part, str, str]]:
    """The dependences around a cycle, each with its source and destination."""
    names = [part.ops[0] for part in witness.parts]
    steps = zip(witness.parts, names, names[1:] + names[:1], strict=True)
    return [step for step in steps if len(step[0].ops) == 1]


def _changed(
    problem: _Problem,
    steps: Collection[tuple[str, str, int]],
    latency: Callable[[Dependence], int],
    farther: int,
) -> _Problem:
    """The problem with the dependences of some steps (source, destination, distance) changed.

    All dependences become stated ones, and what they were derived from is left out: the bounds
    read dependences, slots, pools and depths, nothing else.
    """
    stated = tuple(
        replace(d, latency=latency(d), distance=d.distance + farther)
        if (d.src, d.dst, d.distance) in steps
        else d
        for d in problem.loop.dependences
    )
    ops = tuple(replace(op, operands=(), reads=(), writes=()) for op in problem.loop.ops)
    return replace(problem, loop=replace(problem.loop, ops=ops, storages=(), stated=stated))


# Depth ----------------------------------------------------------------------------------------


def _depth(problem: _Problem, witness: Witness) -> Iterator[Remedy]:
    """Raise whatever limits the operation: its own max_depth, the stage count, or both."""
    depth = witness.capacity - 1
    more, after = _reached(depth + 1, witness.total, lambda k: _deeper(problem, witness, k)[0])
    texts = _deeper(problem, witness, more)[1]
    stages = "one stage more" if more == 1 else f"{more} stages more"
    text = f"{stages}: " + " and ".join(texts)
    numbers = (depth + 1, depth + 1 + more)
    yield _remedy("depth", witness.limit, numbers, "stages", text, after, (witness.limit,))


def _deeper(problem: _Problem, witness: Witness, more: int) -> tuple[_Problem, list[str]]:
    """The problem with an operation allowed so many stages deeper, and what changed."""
    depth = witness.capacity - 1
    changed, texts = problem, list[str]()
    op = problem.loop.op(witness.limit)
    constraint = op.constraint
    if constraint.max_depth == depth:
        constraint = replace(constraint, max_depth=depth + more)
        texts.append(f"max_depth of `{op.name}` {depth} -> {depth + more}")
    if constraint.stage == depth:
        constraint = replace(constraint, stage=depth + more)
        texts.append(f"`{op.name}` pinned to stage {depth + more} instead of {depth}")
    ops = tuple(
        replace(op, constraint=constraint) if other is op else other for other in problem.loop.ops
    )
    changed = replace(problem, loop=replace(problem.loop, ops=ops))
    if problem.max_stages == depth + 1:
        changed = replace(changed, max_stages=depth + 1 + more)
        texts.append(f"at most {depth + 1 + more} stages instead of {depth + 1}")
    return changed, texts


# Groups ---------------------------------------------------------------------------------------


def _group(problem: _Problem, witness: Witness) -> Iterator[Remedy]:
    """Take a member out of its group, or shorten what lies between members."""
    freed: list[Remedy] = []
    for name in dict.fromkeys(name for part in witness.parts[::-1] for name in part.ops[:2]):
        constraint = problem.loop.op(name).constraint
        if constraint.gid is None and constraint.leader_gid is None:
            continue
        alone = replace(constraint, gid=None, leader_gid=None, stage_offset=0)
        ops = tuple(
            replace(op, constraint=alone) if op.name == name else op for op in problem.loop.ops
        )
        after = replace(problem, loop=replace(problem.loop, ops=ops)).bounds
        text = f"`{name}` out of its group, in a stage of its own"
        freed.append(_remedy("group", name, (1, 0), "groups", text, after, (name,)))
    yield min(freed, key=lambda remedy: remedy.mii)
    yield _sooner(problem, witness)
