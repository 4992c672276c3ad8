"""What operations hold: classified (`prepare`), and in a reservation table (`table`).

Here is a footprint in two forms, row words and wound around the II, and a block in short:

    smem_write: tp_smem_wr (id 16), 7 cycles        TMA load: tma (12) and tp_smem_wr (16), 8 cycles
    k = 0   1000 0000 0000 0000   0x8000            k = 0   1000 1000 0000 0000   0x8800
    ...                                             ...
    k = 6   1000 0000 0000 0000   0x8000            k = 7   1000 1000 0000 0000   0x8800

Row words: one of 64 bits a cycle, bit `slot id - 1` set where a slot is held. A word knows held or
not held: occupancy and pool demands are not in it. Machines with a slot id above 64 have no row
words and are refused.

    II 5, one use of 7 cycles from offset 1:    k       1 2 3 4 5 6 7
                                                cycle   1 2 3 4 0 1 2
    amount by cycle    1 2 2 1 1                segments (offset 1, length 2, amount 2)
                                                         (offset 3, length 3, amount 1)

Wound around the II, a hold of q * II + r cycles counts q in every cycle and one more in r of them.
Several uses of one slot add up, wherever they meet modulo II. Segments of one slot or pool never
overlap, so each can be compared, claimed and released on its own. Offsets are modulo II, relative
to the start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from stretto.errors import StrettoError
from stretto.loop import Loop, ResourceVector
from stretto.machine import Machine
from stretto.machine.machine import WORD_BITS
from stretto.ops.opcodes import opcode
from stretto.solution.views import profile


def has_row_words(machine: Machine) -> bool:
    """Whether every slot of the machine has a bit in a row word."""
    return all(slot.id <= WORD_BITS for slot in machine.slots)


def require_row_words(machine: Machine) -> None:
    """Refuse a machine whose slots do not fit a row word."""
    if not has_row_words(machine):
        last = max(machine.slots, key=lambda slot: slot.id)
        beyond = sum(slot.id > WORD_BITS for slot in machine.slots)
        raise StrettoError(
            f"machine `{machine.name}` has no row words: slot `{last.name}` has id {last.id}, a "
            f"word has {WORD_BITS} bits ({beyond} of {len(machine.slots)} slots do not fit)"
        )


# Around the II ----------------------------------------------------------------------------


class Segment(NamedTuple):
    """Modulo cycles in which an operation takes the same amount of one slot or pool."""

    column: int
    """Index of the slot or pool in the table's columns."""
    offset: int
    length: int
    amount: int


class Guard(NamedTuple):
    """A segment of a limited column, with the most that others may hold beside it.

    Slack below 0 is more than the machine has: every count is above it, so no start is legal.
    """

    column: int
    offset: int
    length: int
    slack: int


class Fold(NamedTuple):
    """A vector at one II."""

    segments: tuple[Segment, ...]
    guards: tuple[Guard, ...]
    """The segments that can be refused."""


class Columns(NamedTuple):
    """The slots and pools of a machine, numbered: slots first, each in machine order."""

    slots: Mapping[str, int]
    pools: Mapping[str, int]
    limits: Sequence[int | None]
    """By column; None is unlimited."""


def columns_of(machine: Machine) -> Columns:
    """The columns of a reservation table for this machine."""
    first_pool = len(machine.slots)
    return Columns(
        {slot.name: i for i, slot in enumerate(machine.slots)},
        {pool.name: first_pool + i for i, pool in enumerate(machine.pools)},
        (*(slot.capacity for slot in machine.slots), *(pool.cap for pool in machine.pools)),
    )


def fold(vector: ResourceVector, ii: int, columns: Columns, machine: str) -> Fold:
    """Wind a vector around the II."""
    holds: dict[int, list[tuple[int, int, int]]] = {}
    for use in vector.uses:
        if use.slot not in columns.slots:
            raise StrettoError(f"machine `{machine}` has no slot `{use.slot}`")
        hold = (use.offset, use.duration, use.occupancy)
        holds.setdefault(columns.slots[use.slot], []).append(hold)
    for demand, cycles in vector.draws:
        if demand.pool not in columns.pools:
            raise StrettoError(f"machine `{machine}` has no pool `{demand.pool}`")
        hold = (0, cycles, demand.units)
        holds.setdefault(columns.pools[demand.pool], []).append(hold)
    segments: list[Segment] = []
    guards: list[Guard] = []
    for column, of_column in holds.items():
        limit = columns.limits[column]
        for offset, length, amount in wind(of_column, ii):
            segments.append(Segment(column, offset, length, amount))
            if limit is not None:
                guards.append(Guard(column, offset, length, limit - amount))
    return Fold(tuple(segments), tuple(guards))


def wind(holds: Sequence[tuple[int, int, int]], ii: int) -> Sequence[tuple[int, int, int]]:
    """Disjoint (offset, length, amount) of holds given as (offset, duration, amount)."""
    if len(holds) == 1 and holds[0][1] < ii:  # as it is
        offset, duration, amount = holds[0]
        return ((offset % ii, duration, amount),) if duration and amount else ()
    spans = ((amount, offset, offset + duration) for offset, duration, amount in holds)
    cycles, amounts = profile(spans, ii)
    pieces: list[tuple[int, int, int]] = []
    for first, last, amount in zip(cycles, [*cycles[1:], ii], amounts, strict=True):
        if pieces and pieces[-1][2] == amount:  # nothing changes here
            begin, length, _ = pieces.pop()
            pieces.append((begin, length + last - first, amount))
        else:
            pieces.append((first, last - first, amount))
    if len(pieces) > 1 and pieces[0][2] == pieces[-1][2]:
        first, length, amount = pieces.pop()
        pieces[0] = (first, length + pieces[0][1], amount)
    return [piece for piece in pieces if piece[2]]


# Of a whole block -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BlockSummary:
    """What a block uses, in short.

        load, write, mma, read   ──►   slots tma, tp_smem_wr, ...   pressure 8, 15, 8, ...

    First-seen order, so that the same block always reads the same. The generator selector asks this
    summary instead of walking the block again.
    """

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
    pipelines: int
    """Operations that work an asynchronous pipeline, which make it so whatever they hold."""

    @property
    def worth_pipelining(self) -> bool:
        """Whether anything in it is what pipelining can overlap."""
        return bool(self.pipelining) or self.pipelines > 0


def summarize(loop: Loop, machine: Machine) -> BlockSummary:
    """The summary of a resolved loop's body."""
    machine = machine.with_slots(loop.slots)
    encodings = {encoding.name: encoding for encoding in machine.encodings}
    tags: dict[int, None] = {}
    pressure: dict[str, int] = {}
    pools: dict[str, int] = {}
    for op in loop.ops:
        row = encodings.get(op.encoding) if op.encoding is not None else None
        if row is not None:
            tags.update(dict.fromkeys(row.tags))
        elif op.facts.tag is not None:
            tags[op.facts.tag] = None
        for use in op.uses or ():
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
        pipelines=sum([opcode(op.kind).pipelines for op in loop.ops]),
    )
