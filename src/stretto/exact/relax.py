"""What would have to change, and what II each change would give.

    slot, pool  the fewest units more
    depth       one stage more
    dependence  the least k by which its latency must fall; or the pin that asks for it
    ring        one copy more, where it is capped
    storage     the least b bytes by which one storage must shrink
    registers   the fewest more for each thread
    group       its members need not share a stage

Only a change to one of the conflicting reasons can help. Each is applied to the problem, and the
problem is solved again: whether it opens the II, and then the smallest II it gives. Less latency or
fewer bytes never make a schedule impossible, so the least amount is found by halving.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from stretto.exact.case import Case, Solution
from stretto.exact.explanation import Relaxation
from stretto.exact.horizon import last_stages
from stretto.exact.model import Model
from stretto.exact.reasons import Reason
from stretto.exact.solving import Clock, solve
from stretto.loop import Constraint, Op, Storage
from stretto.machine.machine import REGISTER_BYTES
from stretto.machine.replicas import more_of
from stretto.solution import counted

SHARE = 0.1
"""Of the work that is left, what one question may take."""


@dataclass(frozen=True, slots=True)
class Change:
    """A problem changed by some amount, and how to say it."""

    reason: Reason
    most: int
    """The largest amount."""
    apply: Callable[[int], Case]
    tell: Callable[[int], str]
    hardware: Callable[[int], bool] = lambda _: False
    """Whether an amount asks for another GPU."""


@dataclass(frozen=True, slots=True)
class Relaxed:
    """A relaxation, with the changed problem and its schedule: for whoever verifies it."""

    relaxation: Relaxation
    case: Case
    solution: Solution


def relax(case: Case, ii: int, reasons: tuple[Reason, ...], clock: Clock) -> Iterator[Relaxed]:
    """Single changes that make an II possible, each with the smallest II it gives."""
    for reason in reasons:
        for change in _changes(case, reason, ii):
            amount = _least(change, ii, clock)
            if amount is not None:
                found = _smallest(change.apply(amount), ii, clock)
                if found is not None:
                    solution, optimal = found
                    text, hardware = change.tell(amount), change.hardware(amount)
                    told = Relaxation(reason, text, solution.ii, optimal, hardware)
                    yield Relaxed(told, change.apply(amount), solution)


def _least(change: Change, ii: int, clock: Clock) -> int | None:
    """The least amount at which the II is possible; None: no amount, or not known."""

    def opens(amount: int) -> bool:
        return solve(Model(change.apply(amount), ii), clock, SHARE).solution is not None

    if change.most < 1 or not opens(change.most):
        return None
    low, high = 1, change.most
    while low < high:
        middle = (low + high) // 2
        if opens(middle):
            high = middle
        else:
            low = middle + 1
    return high


def _smallest(case: Case, last: int, clock: Clock) -> tuple[Solution, bool] | None:
    """The smallest II from the bound to one that is possible, and whether that is proved."""
    optimal = True
    for ii in range(case.mii, last + 1):
        outcome = solve(Model(case, ii), clock, SHARE)
        if outcome.solution is not None:
            return outcome.solution, optimal
        optimal = optimal and outcome.status == "refuted"
    return None


# One kind of reason after the other ---------------------------------------------------------------


def _changes(case: Case, reason: Reason, ii: int) -> Iterator[Change]:
    match reason.kind:
        case "slot" | "pool":
            yield _more(case, reason, ii)
        case "depth" | "stages":
            yield _deeper(case, reason)
        case "group":
            yield _apart(case, reason)
        case "pin":
            yield _freed(case, reason)
        case "dependence":
            yield _sooner(case, reason)
            if _pins_order(case, reason):
                yield _unordered(case, reason)
        case "registers":
            yield _wider(case, reason)
        case "ring":
            yield _roomier(case, reason)
        case "storage":
            yield from _smaller(case, reason)


def _more(case: Case, reason: Reason, ii: int) -> Change:
    name, machine = reason.name, case.machine
    if reason.kind == "slot":
        what, has, word = name, machine.slot(name).capacity or 0, "capacity"
        uses = [use for op in case.loop.ops for use in op.vector.uses if use.slot == name]
        held = [(use.duration, use.occupancy) for use in uses]
    else:
        what, has, word = f"pool {name}", machine.pool(name).cap, "cap"
        held = [(hold.duration, hold.amount) for hold in case.pools[name][1]]
    # All at once, each as often as it comes round before it ends, is as much as can be in use.
    most = sum(taken * -(-lasts // ii) for lasts, taken in held) - has

    def apply(k: int) -> Case:
        widen = machine.with_capacity if reason.kind == "slot" else machine.with_cap
        return case.changed(machine=widen(name, has + k))

    def asks(k: int) -> tuple[str, bool]:
        if reason.kind == "pool" or not has:
            return "on other hardware", True
        return more_of(machine, name, has, has + k)

    def tell(k: int) -> str:
        more = "a second unit" if has == k == 1 else f"{k} more unit{'' if k == 1 else 's'}"
        return f"{more} of {what} ({word} {has} -> {has + k}), {asks(k)[0]}"

    return Change(reason, most, apply, tell, lambda k: asks(k)[1])


def _deeper(case: Case, reason: Reason) -> Change:
    if reason.kind == "stages":
        most = case.max_stages or 0
        changed = case.changed(max_stages=most + 1)
        text = f"at most {most + 1} stages instead of {most}"
    else:
        op = case.loop.op(reason.name)
        depth = op.constraint.max_depth or 0
        changed = _with_op(case, op, replace(op.constraint, max_depth=depth + 1))
        text = f"max_depth of `{op.name}` {depth} -> {depth + 1}"
    return Change(reason, 1, lambda _: changed, lambda _: text)


def _apart(case: Case, reason: Reason) -> Change:
    names = case.loop.groups[reason.number]
    changed = case
    for name in names:
        op = changed.loop.op(name)
        alone = replace(op.constraint, gid=None, leader_gid=None, stage_offset=0)
        changed = _with_op(changed, op, alone)
    told = ", ".join(f"`{name}`" for name in names)
    offset = any(case.loop.op(name).constraint.stage_offset for name in names)
    what = "stand in stages of their own choice" if offset else "need not share a stage"
    return Change(reason, 1, lambda _: changed, lambda _: f"{told} {what}")


def _freed(case: Case, reason: Reason) -> Change:
    op = case.loop.op(reason.name)
    free = _with_op(case, op, replace(op.constraint, start=None, stage=None, cycle=None))
    return Change(reason, 1, lambda _: free, lambda _: f"`{op.name}` not pinned")


def _with_op(case: Case, op: Op, constraint: Constraint) -> Case:
    changed = replace(op, constraint=constraint)
    ops = tuple(changed if other.name == op.name else other for other in case.loop.ops)
    return case.changed(loop=replace(case.loop, ops=ops))


def _pins_order(case: Case, reason: Reason) -> bool:
    """Whether a pin asks for the order of a dependence, which then cannot fall below a cycle."""
    _, _, d = case.edges[reason.number]
    return d.distance == 0 and d.dst in case.loop.op(d.src).constraint.before


def _unordered(case: Case, reason: Reason) -> Change:
    _, _, d = case.edges[reason.number]
    op = case.loop.op(d.src)
    left = tuple(name for name in op.constraint.before if name != d.dst)
    free = _with_op(case, op, replace(op.constraint, before=left))
    return Change(
        reason, 1, lambda _: free, lambda _: f"`{d.src}` not pinned to start before `{d.dst}`"
    )


def _sooner(case: Case, reason: Reason) -> Change:
    _, _, d = case.edges[reason.number]
    most = d.latency - 1 if _pins_order(case, reason) else d.latency
    together = [k for k, stands in enumerate(case.bundles) if stands == reason.number]

    def apply(k: int) -> Case:
        sooner = [(n, min(case.edges[n][2].latency, d.latency - k)) for n in together]
        return replace(case, latencies=tuple(sooner))

    def tell(k: int) -> str:
        figure = counted(k, case.machine.unit.removesuffix("s"))
        way = f"`{d.src}` -> `{d.dst}`"
        return f"{figure} less latency of {way} ({d.latency} -> {d.latency - k})"

    return Change(reason, most, apply, tell)


def _wider(case: Case, reason: Reason) -> Change:
    """More registers for each thread of an agent."""
    registers, machine = case.problem.registers, case.machine
    agent, together = next(a for a in registers.owners.values() if a[0].name == reason.name)
    has = agent.registers or 0
    far = 2 + max(last_stages(case, case.mii))
    lives = sum(
        life.bytes * (far + max(distance for _, _, distance in life.ends))
        for life in registers.lives
    )
    bytes = lives + sum(registers.always.values())
    most = agent.addresses + -(-bytes // (agent.threads(together) * REGISTER_BYTES)) - has

    def apply(k: int) -> Case:
        return case.changed(machine=machine.with_registers(agent.name, has + k))

    def tell(k: int) -> str:
        return f"{counted(k, 'register')} more for each thread of {agent.name} ({has} -> {has + k})"

    return Change(reason, most, apply, tell)


def _roomier(case: Case, reason: Reason) -> Change:
    """One copy more in a capped ring."""
    ring = case.loop.storage(reason.name)
    deeper = (ring.depth or 0) + 1
    changed = _with_depth(case, ring, deeper)
    text = f"a ring of {deeper} for `{ring.name}` instead of {ring.depth}"
    return Change(reason, 1, lambda _: changed, lambda _: text)


def _with_depth(case: Case, ring: Storage, depth: int | None) -> Case:
    storages = tuple(replace(s, depth=depth) if s is ring else s for s in case.loop.storages)
    return case.changed(loop=replace(case.loop, storages=storages))


def _smaller(case: Case, reason: Reason) -> Iterator[Change]:
    for storage in case.loop.storages:
        if storage.space != reason.name:
            continue

        def apply(b: int, name: str = storage.name) -> Case:
            storages = tuple(
                replace(s, bytes=s.bytes - b) if s.name == name else s for s in case.loop.storages
            )
            return case.changed(loop=replace(case.loop, storages=storages))

        def tell(b: int, name: str = storage.name, size: int = storage.bytes) -> str:
            return f"`{name}` smaller by {b:,} bytes ({size:,} -> {size - b:,})"

        yield Change(reason, storage.bytes - 1, apply, tell)
