"""A loop as far as a problem of high-level synthesis can say it, and what is lost on the way.

    Prepared  ──►  FlatLoop: rows (name, kind, what it holds, latency), edges, limits, losses

Both formats that are written, HatScheT's and CIRCT's, know operations with a latency, units of
resources that are held for some cycles, and dependences with a distance. Orders that storages imply
become dependences. Where they cannot say something exactly, the stricter thing is written, so that
a schedule found there is legal here; what cannot be written at all is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stretto.errors import listed
from stretto.loop import Constraint, Dependence, Op
from stretto.machine import Machine
from stretto.resources.prepare import Prepared


@dataclass(frozen=True, slots=True)
class FlatOp:
    """An operation."""

    name: str
    kind: str
    holds: tuple[tuple[str, int], ...]
    """Slots and for how many cycles."""
    latency: int


@dataclass(frozen=True, slots=True)
class FlatLoop:
    """A loop of operations, holds and dependences, and nothing else."""

    name: str
    ops: tuple[FlatOp, ...]
    edges: tuple[Dependence, ...]
    limits: dict[str, int | None]
    """Units of each slot that is held; None: any number."""
    held: dict[str, int]
    """Cycles that each slot is held, the longest that any operation asks for."""
    losses: tuple[str, ...]

    def earliest(self) -> dict[str, int]:
        """The smallest latency that anybody sees of each operation."""
        found = {op.name: op.latency for op in self.ops}
        for edge in self.edges:
            found[edge.src] = min(found[edge.src], edge.latency)
        return found


def flatten(ready: Prepared) -> FlatLoop:
    """The loop with its costs on its machine, and what the formats cannot say of it."""
    loop, machine = ready.loop, ready.machine
    ops = tuple(FlatOp(op.name, op.kind, _holds(op), op.ready) for op in loop.ops)
    held: dict[str, int] = {}
    uneven: dict[str, None] = {}
    for op in ops:
        for slot, cycles in op.holds:
            if held.setdefault(slot, cycles) != cycles:
                uneven[slot] = None
            held[slot] = max(held[slot], cycles)
    losses = [
        f"slot {slot} is held for different times; all hold it for {held[slot]} cycles, the longest"
        for slot in uneven
        if machine.slot(slot).capacity is not None
    ]
    limits = {slot: machine.slot(slot).capacity for slot in held}
    return FlatLoop(
        loop.name, ops, loop.dependences, limits, held, (*losses, *_losses(ready, machine))
    )


def _holds(op: Op) -> tuple[tuple[str, int], ...]:
    """Each slot once, from the start of the operation to the end of its last use."""
    found: dict[str, int] = {}
    for use in op.vector.uses:
        if use.duration:
            found[use.slot] = max(found.get(use.slot, 0), use.end)
    return tuple(found.items())


def _losses(ready: Prepared, machine: Machine) -> Iterator[str]:
    loop = ready.loop
    uses = [(op.name, use) for op in loop.ops for use in op.vector.uses if use.duration]
    later = [name for name, use in uses if use.offset]
    if later:
        yield f"holds that begin later than their operation begin with it: {listed(later)}"
    wide = [name for name, use in uses if use.occupancy > 1]
    if wide:
        yield f"holds of several units are holds of one: {listed(wide)}"
    drawing = [op.name for op in loop.ops if op.demands]
    if drawing:
        yield f"what is drawn from pools is left out: {listed(drawing)}"
    if loop.storages:
        yield (
            f"storages ({listed(s.name for s in loop.storages)}): their orders are dependences, "
            "their bytes and budgets are left out"
        )
    if any(value.register_bytes for value in loop.values):
        yield "values in registers take none"
    placed = [op.name for op in loop.ops if op.constraint != Constraint()]
    if placed:
        yield f"constraints on the place of operations are left out: {listed(placed)}"
    fusing = [s for s in dict.fromkeys(u.slot for _, u in uses) if machine.slot(s).fusion_cap > 1]
    if fusing:
        yield f"operations do not fuse: {listed(fusing)}"
    if loop.force_serial:
        yield "that the loop is to be executed serially is left out"
