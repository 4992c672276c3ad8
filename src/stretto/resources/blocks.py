"""The constraint builder: two modes over one record of a block, and the block in short.

    build   loop ──► record      each operation's vector and row words, staged; the summary
    apply   record + starts ──► table      accepted starts committed, probe before commit

    load, write, mma, read   ──►   slots tma, tp_smem_wr, tc_and_mma, ...   pressure 8, 15, 8, ...

Build never looks at starts; apply never looks at the loop. The record between them is all they
share, so a placement can be applied at any II without classifying again. The summary is in
first-seen order, so that the same block always reads the same; the generator selector asks it
instead of walking the block again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stretto.loop import Loop, ResourceVector
from stretto.machine import Machine
from stretto.resources.footprint import encode_rows, has_row_words
from stretto.resources.table import ReservationTable


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


@dataclass(frozen=True, slots=True)
class Staged:
    """One operation's footprint, ready to be committed."""

    op: str
    vector: ResourceVector
    rows: tuple[int, ...] | None
    """Its row words; None on machines whose slots do not fit one word."""


@dataclass(frozen=True, slots=True)
class BlockRecord:
    """What build leaves and apply takes."""

    machine: Machine
    staged: tuple[Staged, ...]
    summary: BlockSummary


def build(loop: Loop, machine: Machine) -> BlockRecord:
    """Stage the footprint of every operation of a resolved loop."""
    machine = machine.with_slots(loop.slots)
    words = has_row_words(machine)
    staged = tuple(
        Staged(op.name, op.vector, encode_rows(op.vector, machine) if words else None)
        for op in loop.ops
    )
    return BlockRecord(machine, staged, summarize(loop, machine))


def apply(record: BlockRecord, ii: int, starts: Mapping[str, int]) -> ReservationTable:
    """Commit the staged footprints of all operations that have a start, in program order."""
    table = ReservationTable(record.machine, ii)
    for staged in record.staged:
        if staged.op in starts:
            table.commit(staged.op, staged.vector, starts[staged.op])
    return table
