"""What is held in every absolute cycle of a run.

    slot TC, capacity 1     mma(0) ████████  mma(1) ████████      never two at once

Fused operations that issue together hold each of their slots once. Everything is counted from the
cycles at which operations really issued.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stretto.loop import Op
from stretto.machine import Machine
from stretto.materialize.pipelined import Program
from stretto.simulate.findings import Findings
from stretto.simulate.outcome import Issued
from stretto.vocabulary.spaces import SPACES


@dataclass(frozen=True, slots=True)
class _Hold:
    begin: int
    end: int
    amount: int
    op: str
    iteration: int


def check_holds(
    program: Program, machine: Machine, issued: Sequence[Issued], findings: Findings
) -> None:
    """Find every slot and pool that is overbooked."""
    slots: dict[str, list[_Hold]] = {}
    pools: dict[str, list[_Hold]] = {}
    for (cycle, iteration), ops in _together(program, issued):
        for op in ops:
            end = cycle + op.vector.duration
            for demand in op.demands:
                hold = _Hold(cycle, end, demand.units, op.name, iteration)
                pools.setdefault(demand.pool, []).append(hold)
        for slot, hold in _held(ops, cycle, iteration):
            slots.setdefault(slot, []).append(hold)
    for name, holds in slots.items():
        capacity = machine.slot(name).capacity
        if capacity is not None:
            _sweep("slot", name, capacity, holds, findings)
    for name, holds in pools.items():
        _sweep("pool", name, machine.pool(name).cap, holds, findings)


def check_rings(program: Program, machine: Machine, findings: Findings) -> None:
    """Find every ring that is deeper than its storage may be, and every space that is too full."""
    for storage in program.loop.storages:
        depth = program.ring_of[storage.name].depth
        most = 1 if storage.fixed else storage.depth
        if most is not None and depth > most:
            told = f"the ring of `{storage.name}` has {depth} slots; it may have {most}"
            findings.add("overbooked", told, (), None, storage.name)
    for budget in machine.budgets:
        rings = [r for r in program.rings if r.space == budget.space and r.storage is not None]
        used = sum(ring.bytes * ring.depth for ring in rings)
        if budget.bytes is not None and SPACES[budget.space].budgeted and used > budget.bytes:
            told = f"{budget.space} holds {budget.bytes:,} bytes; the rings take {used:,}"
            findings.add("overbooked", told, (), None, budget.space)


def _together(program: Program, issued: Iterable[Issued]) -> list[tuple[tuple[int, int], list[Op]]]:
    """Operations that hold as one: members of a fused group that issued in the same cycle."""
    group = {op: n for n, members in enumerate(program.fused) for op in members}
    found: dict[tuple[int, int, int | str], list[Op]] = {}
    for one in issued:
        key = (one.cycle, one.iteration, group.get(one.op, one.op))
        found.setdefault(key, []).append(program.loop.op(one.op))
    return [((cycle, iteration), ops) for (cycle, iteration, _), ops in found.items()]


def _held(ops: Sequence[Op], cycle: int, iteration: int) -> list[tuple[str, _Hold]]:
    """The holds of operations that act as one: their first use of a slot is one hold, and so on."""
    joined: dict[tuple[str, int], _Hold] = {}
    for op in ops:
        seen: dict[str, int] = {}
        for use in sorted(op.vector.uses, key=lambda use: use.offset):
            if use.duration == 0:
                continue
            number = seen.get(use.slot, 0)
            seen[use.slot] = number + 1
            begin = cycle + use.offset
            hold = _Hold(begin, begin + use.duration, use.occupancy, op.name, iteration)
            known = joined.get((use.slot, number))
            if known is not None:
                hold = _Hold(
                    min(known.begin, hold.begin),
                    max(known.end, hold.end),
                    max(known.amount, hold.amount),
                    known.op,
                    iteration,
                )
            joined[use.slot, number] = hold
    return [(slot, hold) for (slot, _), hold in joined.items()]


def _sweep(what: str, name: str, most: int, holds: list[_Hold], findings: Findings) -> None:
    """Go through time; whenever something begins, look at the sum."""
    events = [(h.begin, 1, h.amount, h) for h in holds if h.end > h.begin]
    events += [(h.end, 0, -h.amount, h) for h in holds if h.end > h.begin]
    events.sort(key=lambda event: event[:2])
    load = 0
    active: dict[tuple[str, int, int], _Hold] = {}
    for cycle, begins, amount, hold in events:
        load += amount
        key = (hold.op, hold.iteration, hold.begin)
        if not begins:
            active.pop(key, None)
            continue
        active[key] = hold
        if load > most:
            told = ", ".join(f"`{h.op}` of iteration {h.iteration}" for h in active.values())
            findings.add(
                "overbooked",
                f"{what} `{name}` has {most}; at cycle {cycle}, {load} is held by {told}",
                tuple(sorted({h.op for h in active.values()})),
                cycle,
                name,
            )
