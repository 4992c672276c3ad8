"""Two counting bounds: nobody can hold more than there is.

    tp_smem_wr   load ████████  write ███████        (8 + 7) / 1  ──►  II >= 15
    bank pool    a 2 × 4 cycles, b 1 × 4 cycles      12 / 2       ──►  II >= 6

Each slot offers capacity × II cells an iteration and each pool cap × II units; what the operations
of one iteration fill must fit, wherever they are placed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stretto.loop import Loop, Op
from stretto.machine import Machine
from stretto.solution import Part, Witness

FusionClass = tuple[str, tuple[str, ...], int]
"""Kind, slots held (sorted) and bank: operations that agree in all three may fuse."""


def resource_bound(loop: Loop, machine: Machine, *, fuse: bool) -> Witness:
    """Largest ``ceil(Σ occupancy × duration / capacity)`` over the slots; ties by slot id."""
    classes: dict[str, FusionClass] = {}
    if fuse:
        for op in loop.ops:
            key = fusion_class(op, machine)
            if key is not None:
                classes[op.name] = key
    best = Witness("none")
    for slot, held in _held(loop).items():
        capacity = machine.slot(slot).capacity
        if capacity is None:
            continue
        parts = _fused_parts(held, classes, machine, loop) if classes else _parts(held)
        total = sum(part.amount for part in parts)
        slot_id = machine.slot(slot).id
        found = Witness("slot", slot, total, capacity, parts, slot_id)
        if _beats(found, best, slot_id):
            best = found
    return best


def _beats(found: Witness, best: Witness, slot_id: int) -> bool:
    if best.slot_id is None or found.bound > best.bound:
        return True
    return found.bound == best.bound and slot_id < best.slot_id


def fusion_class(op: Op, machine: Machine) -> FusionClass | None:
    """What an operation must share with others to fuse with them; None: it never fuses.

    It holds something, every slot it holds lets several fused operations share one hold, and
    its bank is stated.
    """
    slots = tuple(sorted(use.slot for use in op.vector.uses if use.duration > 0))
    if not slots or op.facts.bank is None:
        return None
    if any(machine.slot(slot).fusion_cap < 2 for slot in slots):
        return None
    return op.kind, slots, op.facts.bank


def _held(loop: Loop) -> dict[str, dict[str, int]]:
    """Slot to operation to cells held in an iteration, in program order."""
    held: dict[str, dict[str, int]] = {}
    for op in loop.ops:
        for use in op.vector.uses:
            amount = use.occupancy * use.duration
            if amount:
                on_slot = held.setdefault(use.slot, {})
                on_slot[op.name] = on_slot.get(op.name, 0) + amount
    return held


def _parts(held: dict[str, int]) -> tuple[Part, ...]:
    return tuple(Part((name,), amount) for name, amount in held.items())


def _fused_parts(
    held: dict[str, int], classes: dict[str, FusionClass], machine: Machine, loop: Loop
) -> tuple[Part, ...]:
    """The cheapest fusion of each class, as if no dependence stood against it.

    A group of at most k members fills at least what its largest member fills alone; so with the
    members sorted from the largest down, any grouping costs at least the 1st + (k+1)th + ....
    """
    members: dict[FusionClass, list[str]] = {}
    parts: list[Part] = []
    for name, amount in held.items():
        if name in classes:
            members.setdefault(classes[name], []).append(name)
        else:
            parts.append(Part((name,), amount))
    for (_, slots, _), names in members.items():
        size = min(machine.slot(slot).fusion_cap for slot in slots)
        names.sort(key=lambda name: -held[name])
        for group in _chunks(names, size):
            in_order = sorted(group, key=loop.index.__getitem__)
            parts.append(Part(tuple(in_order), held[group[0]]))
    return tuple(sorted(parts, key=lambda part: loop.index[part.ops[0]]))


def _chunks(names: Sequence[str], size: int) -> Iterable[Sequence[str]]:
    return (names[i : i + size] for i in range(0, len(names), size))


def fine_bound(loop: Loop, machine: Machine) -> Witness:
    """Largest ``ceil(Σ units × duration / cap)`` over the pools; ties in machine order."""
    drawn: dict[str, dict[str, int]] = {}
    for op in loop.ops:
        for demand in op.demands:
            amount = demand.units * op.vector.duration
            if amount:
                from_pool = drawn.setdefault(demand.pool, {})
                from_pool[op.name] = from_pool.get(op.name, 0) + amount
    best = Witness("none")
    for pool in machine.pools:
        parts = _parts(drawn.get(pool.name, {}))
        total = sum(part.amount for part in parts)
        found = Witness("pool", pool.name, total, pool.cap, parts)
        if total and (best.kind == "none" or found.bound > best.bound):
            best = found
    return best
