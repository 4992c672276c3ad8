"""Two counting bounds: nobody can hold more than there is.

    tp_smem_wr   load ████████  write ███████        (8 + 7) / 1  ──►  II >= 15
    bank pool    a 2 × 4 cycles, b 1 × 4 cycles      12 / 2       ──►  II >= 6

Each slot offers capacity × II cells an iteration and each pool cap × II units; what the operations
of one iteration fill must fit, wherever they are placed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from stretto.problem import Compiled, FusionClass, Hold
from stretto.solution import Part, Witness

_Groups = list[tuple[Sequence[int], int]]
"""Operations that share a hold, and the cells they fill together."""


def resource_bound(problem: Compiled) -> Witness:
    """Largest ``ceil(Σ occupancy × duration / capacity)`` over the slots; ties by slot id."""
    fusing = any(key is not None for key in problem.fusion.keys)
    groups_of = _fused_groups if fusing else _single_groups
    best, witness, chosen = (0, 0), Witness("none"), _Groups()
    for slot, (capacity, holds) in problem.holds.on("slot").items():
        groups = groups_of(problem, _filled(holds))
        total, number = sum([amount for _, amount in groups]), problem.machine.slot(slot).id
        found = (-(-total // capacity), -number)
        if found > best:
            best, chosen = found, groups
            witness = Witness("slot", slot, total, capacity, slot_id=number)
    return replace(witness, parts=_parts(problem, chosen))


def _filled(holds: Iterable[Hold]) -> dict[int, int]:
    """Operation to the cells it fills in an iteration, in program order."""
    filled: dict[int, int] = {}
    for op, _, duration, amount in holds:
        filled[op] = filled.get(op, 0) + amount * duration
    return filled


def _parts(problem: Compiled, groups: _Groups) -> tuple[Part, ...]:
    names = problem.names
    return tuple([Part(tuple([names[i] for i in ops]), amount) for ops, amount in groups])


def _single_groups(_: Compiled, filled: dict[int, int]) -> _Groups:
    return [((i,), amount) for i, amount in filled.items()]


def _fused_groups(problem: Compiled, filled: dict[int, int]) -> _Groups:
    """The cheapest fusion of each class, as if no dependence stood against it.

    A group of at most k members fills at least what its largest member fills alone; so with the
    members sorted from the largest down, any grouping costs at least the 1st + (k+1)th + ....
    """
    members: dict[FusionClass, list[int]] = {}
    groups = _Groups()
    for i, amount in filled.items():
        key = problem.fusion.keys[i]
        if key is not None:
            members.setdefault(key, []).append(i)
        else:
            groups.append(([i], amount))
    for key, ops in members.items():
        ops.sort(key=lambda i: -filled[i])
        for group in _chunks(ops, problem.fusion.cap(key)):
            groups.append((sorted(group), filled[group[0]]))
    groups.sort(key=lambda group: group[0][0])
    return groups


def _chunks(ops: Sequence[int], size: int) -> Iterable[Sequence[int]]:
    return (ops[i : i + size] for i in range(0, len(ops), size))


def fine_bound(problem: Compiled) -> Witness:
    """Largest ``ceil(Σ units × duration / cap)`` over the pools; ties in machine order."""
    drawn = problem.holds.on("pool")
    best = Witness("none")
    for pool in problem.machine.pools:
        if pool.name not in drawn:
            continue
        filled = _filled(drawn[pool.name][1])
        parts = _parts(problem, _single_groups(problem, filled))
        found = Witness("pool", pool.name, sum(filled.values()), pool.cap, parts)
        if best.kind == "none" or found.bound > best.bound:
            best = found
    return best
