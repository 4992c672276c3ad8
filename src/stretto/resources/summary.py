"""A block in short: which tags and slots it uses, how hard, and what is worth pipelining.

    load, write, mma, read   ──►   slots tma, tp_smem_wr, tc_and_mma, ...   pressure 8, 15, 8, ...

First-seen order, so that the same block always reads the same. The generator selector asks this
summary instead of walking the block again.
"""

from __future__ import annotations

from dataclasses import dataclass

from stretto.loop import Loop
from stretto.machine import Machine


@dataclass(frozen=True, slots=True)
class BlockSummary:
    """What a block uses."""

    ops: int
    tags: tuple[int, ...]
    """Operation tags of the latency table, each once, first seen first."""
    slots: tuple[str, ...]
    """Slots held, each once, first seen first."""
    pressure: tuple[tuple[str, int], ...]
    """Slot and the cycles × occupancy held of it in an iteration, in the order of `slots`."""
    pools: tuple[tuple[str, int], ...]
    """Pool and the units × cycles drawn from it in an iteration."""
    pipelining: tuple[str, ...]
    """The slots among them that make the block worth pipelining."""

    @property
    def worth_pipelining(self) -> bool:
        """Whether any slot it holds is one that pipelining can overlap."""
        return bool(self.pipelining)


def summarize(loop: Loop, machine: Machine) -> BlockSummary:
    """The summary of a resolved loop's body."""
    machine = machine.with_slots(loop.slots)
    encodings = {encoding.name: encoding for encoding in machine.encodings}
    tags: dict[int, None] = {}
    pressure: dict[str, int] = {}
    pools: dict[str, int] = {}
    for op in loop.ops:
        row = encodings.get(op.encoding) if op.encoding is not None else None
        tag = op.facts.tag if row is None else row.tag
        if tag is not None:
            tags[tag] = None
        for use in op.vector.uses:
            if use.duration:
                held = use.duration * use.occupancy
                pressure[use.slot] = pressure.get(use.slot, 0) + held
        for demand in op.demands:
            drawn = demand.units * op.vector.duration
            pools[demand.pool] = pools.get(demand.pool, 0) + drawn
    if machine.pipelining is None:
        worth = tuple(s for s in pressure if machine.slot(s).capacity is not None)
    else:
        worth = tuple(s for s in pressure if s in machine.pipelining)
    return BlockSummary(
        ops=len(loop.ops),
        tags=tuple(tags),
        slots=tuple(pressure),
        pressure=tuple(pressure.items()),
        pools=tuple(pools.items()),
        pipelining=worth,
    )
