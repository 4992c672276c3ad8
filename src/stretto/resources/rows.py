"""Footprints as row words: one 64-bit word a cycle, bit `slot id - 1` set where a slot is held.

    smem_write: tp_smem_wr (id 16), 7 cycles        TMA load: tma (12) and tp_smem_wr (16), 8 cycles
    k = 0   1000 0000 0000 0000   0x8000            k = 0   1000 1000 0000 0000   0x8800
    ...                                             ...
    k = 6   1000 0000 0000 0000   0x8000            k = 7   1000 1000 0000 0000   0x8800

A word knows held or not held: occupancy and pool demands are not in it, so decoding gives uses of
occupancy 1. Machines with a slot id above 64 have no row words and are refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from stretto.errors import StrettoError
from stretto.loop import ResourceVector, Use
from stretto.machine import Machine
from stretto.machine.model import WORD_BITS


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


def encode_rows(vector: ResourceVector, machine: Machine) -> tuple[int, ...]:
    """The words of every cycle from the start to the last hold; none where nothing is held."""
    require_row_words(machine)
    held = [use for use in vector.uses if use.duration and use.occupancy]
    words = [0] * max((use.end for use in held), default=0)
    for use in held:
        if not machine.has_slot(use.slot):
            raise StrettoError(f"machine `{machine.name}` has no slot `{use.slot}`")
        bit = 1 << (machine.slot(use.slot).id - 1)
        for k in range(use.offset, use.end):
            words[k] |= bit
    return tuple(words)


def decode_rows(rows: Sequence[int], machine: Machine) -> tuple[Use, ...]:
    """The maximal runs of every slot, by slot id and then by offset."""
    require_row_words(machine)
    _require_known_bits(rows, machine)
    uses: list[Use] = []
    for slot in sorted(machine.slots, key=lambda slot: slot.id):
        bit = 1 << (slot.id - 1)
        begin: int | None = None
        for k, word in enumerate((*rows, 0)):
            if word & bit:
                begin = k if begin is None else begin
            elif begin is not None:
                uses.append(Use(slot.name, duration=k - begin, offset=begin))
                begin = None
    return tuple(uses)


def _require_known_bits(rows: Sequence[int], machine: Machine) -> None:
    known = sum(1 << (slot.id - 1) for slot in machine.slots)
    for k, word in enumerate(rows):
        if not 0 <= word < 1 << WORD_BITS:
            raise StrettoError(f"row {k} is {word:#x}, not a word of {WORD_BITS} bits")
        if word & ~known:
            slot_id = (word & ~known).bit_length()
            raise StrettoError(
                f"row {k} is {word:#x}: machine `{machine.name}` has no slot of id {slot_id}"
            )
