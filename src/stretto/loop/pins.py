"""Pins: where an operation must stand, asked for in a word.

qk=stage:0    qk=start:12    qk=cycle:3    qk=before:pv

A pin is part of an operation's constraint, in loops, modules and documents alike; this reads the
short form of the command line.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from stretto.errors import StrettoError
from stretto.loop.loop import Loop
from stretto.loop.parts import Constraint

NUMBERS = ("start", "stage", "cycle")
FORM = "NAME=start:N, NAME=stage:N, NAME=cycle:N or NAME=before:NAME"


def with_pins(loop: Loop, pins: Iterable[str]) -> Loop:
    """The loop with these pins, each beside what is asked of its operation already."""
    ops = {op.name: op for op in loop.ops}
    for pin in pins:
        name, kind, value = parse_pin(pin)
        if name not in ops:
            raise StrettoError(f"pin `{pin}`: there is no operation `{name}`", loop.name)
        constraint = ops[name].constraint
        if kind == "before":
            if value not in ops:
                raise StrettoError(f"pin `{pin}`: there is no operation `{value}`", loop.name)
            constraint = replace(constraint, before=(*constraint.before, value))
        else:
            constraint = _numbered(constraint, kind, int(value))
        ops[name] = replace(ops[name], constraint=constraint)
    return replace(loop, ops=tuple(ops[op.name] for op in loop.ops))


def parse_pin(pin: str) -> tuple[str, str, str]:
    """(operation, what is pinned, value); StrettoError where it is no pin."""
    name, _, asked = pin.rpartition("=")
    kind, _, value = asked.partition(":")
    number = value.isascii() and value.isdigit()
    if not name or not value or (kind != "before" and not (kind in NUMBERS and number)):
        raise StrettoError(f"`{pin}` is no pin; it should be {FORM}")
    return name, kind, value


def _numbered(constraint: Constraint, kind: str, number: int) -> Constraint:
    match kind:
        case "start":
            return replace(constraint, start=number)
        case "stage":
            return replace(constraint, stage=number)
        case _:
            return replace(constraint, cycle=number)
