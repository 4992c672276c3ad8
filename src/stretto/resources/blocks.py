"""The constraint builder: two modes over one record of a block.

    build   loop ──► record      each operation's vector and row words, staged; the summary
    apply   record + starts ──► table      accepted starts committed, probe before commit

Build never looks at starts; apply never looks at the loop. The record between them is all they
share, so a placement can be applied at any II without classifying again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stretto.loop import Loop, ResourceVector
from stretto.machine import Machine
from stretto.resources.footprint import BlockSummary, encode_rows, has_row_words, summarize
from stretto.resources.table import ReservationTable


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
