"""A loop made ready: its costs on its machine, checked.

Loop, Machine | name  ──►  classify ──►  check ──►  Prepared, or LoopError with every fault
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from stretto.loop import Loop, LoopError, Note, Place, check
from stretto.machine import Machine, load_machine
from stretto.resources.classify import resolve
from stretto.vocabulary.spaces import SPACES

DEFAULT_MACHINE = "blackwell"
"""The machine of a loop that names none."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A loop that is ready to be bounded, scheduled or verified."""

    loop: Loop
    machine: Machine
    """With the loop's own slots."""
    notes: tuple[Note, ...]
    """Lifted budgets, operations that fell to another encoding, and the like."""


def prepare(loop: Loop, machine: Machine | str | None = None) -> Prepared:
    """Classify and check a loop; LoopError with every fault.

    The machine is the one given, else the one the loop names, else `blackwell`.
    """
    if not isinstance(machine, Machine):
        machine = load_machine(machine or loop.machine or DEFAULT_MACHINE)
    resolved = resolve(loop, machine)
    faults = check(resolved.loop, machine)
    if faults:
        raise LoopError(loop.name, faults)
    full = machine.with_slots(loop.slots)
    lifted = [Note(Place(), text) for text in machine.notes]
    more = [*_partly_filled(resolved.loop), *_unlimited(resolved.loop, machine)]
    notes = (*lifted, *resolved.notes, *(Note(loop.at(), text) for text in more))
    return Prepared(resolved.loop, full, notes)


def _partly_filled(loop: Loop) -> Iterator[str]:
    """Buffers of which a part is never written: legal, for padding say, but seldom meant."""
    writers = Counter(name for op in loop.ops for name in set(op.writes))
    storages = {s.name: s for s in loop.storages}
    values = {value.name: value for value in loop.values}
    for op in loop.ops:
        for value in (values[name] for name in op.results):
            home = storages.get(value.storage or "")
            if home is None or value.type is None or home.name not in op.writes:
                continue
            if value.type.bytes < home.bytes and writers[home.name] == 1:
                yield (
                    f"`{op.name}` fills `{home.name}`, {home.bytes:,} bytes, with {value.type}, "
                    f"{value.type.bytes:,} bytes, and nothing else writes it"
                )


def _unlimited(loop: Loop, machine: Machine) -> Iterator[str]:
    """Spaces that are used and left out among the budgets: legal, but perhaps forgotten."""
    for space in dict.fromkeys(s.space for s in loop.storages if SPACES[s.space].budgeted):
        if machine.budgets and machine.budget(space) is None:
            words = SPACES[space].words
            yield f"{machine.name} gives no bytes of {words}: nothing limits `{space}`"
