"""What to change so that the highest bound gives way, and what each change is worth.

    MII 15, slot tp_smem_wr: load 8 + write 7
      ├─ a second unit of tp_smem_wr (capacity 1 -> 2)                ──►  MII 8
      └─ `load` holds tp_smem_wr 7 cycles less (8 -> 1)               ──►  MII 8

Nothing is estimated: every remedy is applied to the problem and the four bounds computed again.
One that leaves the MII where it is (because another bound is as high) is not a remedy; `ties` then
tells what stands in the way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

from stretto.bounds import compute_bounds
from stretto.loop import Dependence, Loop
from stretto.machine import Machine
from stretto.solution import BOUND_NAMES, BoundName, Bounds, Part, Witness


@dataclass(frozen=True, slots=True)
class Remedy:
    """One change, and the MII after it."""

    text: str
    mii: int


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
    """Single changes that lower the MII; none where no single one does."""
    problem = _Problem(loop, machine.with_slots(loop.slots), fuse, max_stages)
    propose = {"slot": _slot, "cycle": _cycle, "pool": _pool, "depth": _depth}
    kind = bounds.witness.kind
    if kind == "none" or bounds.mii == 1:
        return ()
    found = propose[kind](problem, bounds.witness)
    return tuple(remedy for remedy in found if remedy.mii < bounds.mii)


# Ties -----------------------------------------------------------------------------------------

MOST: dict[BoundName, int | None] = {
    "resource": None,
    "recurrence": 2,  # that there is another says enough; finding them all takes long
    "fine": None,
    "dependence": 1,  # a limit on the stages gives every operation behind it the same bound
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
        case "depth" | "none":  # no room helps
            return problem


# Slots and pools ------------------------------------------------------------------------------


def _slot(problem: _Problem, witness: Witness) -> Iterator[Remedy]:
    slot, capacity = witness.limit, witness.capacity
    widened = replace(problem, machine=problem.machine.with_capacity(slot, capacity + 1))
    unit = "a second unit" if capacity == 1 else "one more unit"
    yield Remedy(f"{unit} of {slot} (capacity {capacity} -> {capacity + 1})", widened.mii)
    part = max(witness.parts, key=lambda part: part.amount)
    alone = list(_shorter(problem, part, (slot,), slot))
    yield from alone
    held = [u.slot for name in part.ops for u in problem.loop.op(name).vector.uses if u.duration]
    slots = tuple(dict.fromkeys(held))
    if len(slots) > 1 and not any(remedy.mii < witness.bound for remedy in alone):
        whose = "its" if len(part.ops) == 1 else "their"
        yield from _shorter(problem, part, slots, f"all {whose} slots ({', '.join(slots)})")


def _shorter(problem: _Problem, part: Part, slots: tuple[str, ...], what: str) -> Iterator[Remedy]:
    """The operations of a part hold some slots for a shorter time."""
    longest = max(_durations(problem.loop, part, slots))
    if longest > 1:
        less, mii = _least(longest - 1, lambda k: _held_less(problem, part, slots, longest - k))
        who = " and ".join(f"`{name}`" for name in part.ops)
        holds = "holds" if len(part.ops) == 1 else "together hold"
        text = f"{who} {holds} {what} {_cycles(less)} less ({longest} -> {longest - less})"
        yield Remedy(text, mii)


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
    widened = replace(problem, machine=problem.machine.with_cap(pool, cap + 1))
    yield Remedy(f"one more unit of pool {pool} (cap {cap} -> {cap + 1})", widened.mii)


def _least(most: int, change: Callable[[int], _Problem]) -> tuple[int, int]:
    """The smallest k up to `most` that is worth as much as `most`, and the MII it gives.

    Less latency or a shorter hold never raises a bound, so the worth is monotone in k.
    """
    target = change(most).mii
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        if change(middle).mii == target:
            high = middle
        else:
            low = middle + 1
    return high, target


def _cycles(count: int) -> str:
    return f"{count} cycle" if count == 1 else f"{count} cycles"


# Recurrences ----------------------------------------------------------------------------------


def _cycle(problem: _Problem, witness: Witness) -> Iterator[Remedy]:
    steps = _steps(witness)
    longest, src, dst = max(steps, key=lambda step: step[0].amount)
    latency = longest.amount

    def sooner(k: int) -> _Problem:
        return _changed(
            problem, {(src, dst, longest.distance)}, lambda d: min(d.latency, latency - k), 0
        )

    less, mii = _least(latency, sooner)
    way = f"`{src}` -> `{dst}`"
    yield Remedy(f"{_cycles(less)} less latency of {way} ({latency} -> {latency - less})", mii)
    carried = [(part.distance, a, b) for part, a, b in steps if part.distance]
    options = [
        (_changed(problem, {(a, b, n)}, lambda d: d.latency, 1).mii, n, a, b) for n, a, b in carried
    ]
    mii, distance, src, dst = min(options, key=lambda option: option[0])
    way = f"`{src}` -> `{dst}`"
    text = f"{way} carried over one more iteration (distance {distance} -> {distance + 1})"
    yield Remedy(text, mii)


def _steps(witness: Witness) -> list[tuple[Part, str, str]]:
    """The steps of a recurrence, each with its source and destination."""
    names = [part.ops[0] for part in witness.parts]
    return list(zip(witness.parts, names, names[1:] + names[:1], strict=True))


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
    changed, texts = problem, list[str]()
    op = problem.loop.op(witness.limit)
    if op.constraint.max_depth == depth:
        deeper = replace(op, constraint=replace(op.constraint, max_depth=depth + 1))
        ops = tuple(deeper if other is op else other for other in problem.loop.ops)
        changed = replace(changed, loop=replace(problem.loop, ops=ops))
        texts.append(f"max_depth of `{op.name}` {depth} -> {depth + 1}")
    if op.constraint.stage == depth:
        later = replace(op, constraint=replace(op.constraint, stage=depth + 1))
        ops = tuple(later if other is op else other for other in problem.loop.ops)
        changed = replace(changed, loop=replace(problem.loop, ops=ops))
        texts.append(f"`{op.name}` pinned to stage {depth + 1} instead of {depth}")
    if problem.max_stages == depth + 1:
        changed = replace(changed, max_stages=depth + 2)
        texts.append(f"at most {depth + 2} stages instead of {depth + 1}")
    yield Remedy("one stage more: " + " and ".join(texts), changed.mii)
