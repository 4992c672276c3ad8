"""A loop made ready: its costs on its machine, checked."""

from __future__ import annotations

from dataclasses import dataclass

from stretto.errors import LoopError
from stretto.loop import Loop, check
from stretto.machine import Machine, load_machine
from stretto.resources.classify import resolve

DEFAULT_MACHINE = "blackwell"
"""The machine of a loop that names none."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A loop that is ready to be bounded, scheduled or verified."""

    loop: Loop
    machine: Machine
    """With the loop's own slots."""
    notes: tuple[str, ...]
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
        raise LoopError(loop.name, [(fault.path, fault.message) for fault in faults])
    full = machine.with_slots(loop.slots)
    return Prepared(resolved.loop, full, machine.notes + resolved.notes)
