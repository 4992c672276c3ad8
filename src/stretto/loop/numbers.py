"""Numbers that no loop has: below zero, or so large that tables and programs outgrow the memory.

    $.ops[0].uses[0].duration  1000000000  ──►  (path, code, message), for `check()`

Each number is held against a limit of its own. Their sum is as well: a reservation table has one
bit for each cycle of the II, and the II is at most what the operations take one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator

from stretto.limits import CYCLES, DISTANCE, ITERATION_CYCLES, UNITS
from stretto.loop.loop import Loop
from stretto.machine.formula import told_number

_MOST = {
    "latency": CYCLES,
    "duration": CYCLES,
    "offset": CYCLES,
    "distance": DISTANCE,
    "occupancy": UNITS,
    "units": UNITS,
}

Row = tuple[str, str, str]
"""Path, code and message of a fault."""


def wrong_numbers(loop: Loop) -> Iterator[Row]:
    """Every number that is out of its range."""
    for path, owner, what, number in _all_numbers(loop):
        if number is None:
            continue
        most = _MOST.get(what)
        if number < 0:
            told = f"{owner} has {what} {told_number(number)}; it must be 0 or more"
            yield path, f"negative-{what.replace(' ', '-')}", told
        elif most is not None and number > most:
            told = f"{owner} has {what} {told_number(number)}; at most {most:,} is allowed"
            yield path, f"large-{what}", told


def long_iteration(loop: Loop) -> Iterator[Row]:
    """Operations that take too long one after the other, each until all it starts is ready."""
    longest = {op.name: op.completion for op in loop.ops}
    for dependence in loop.dependences:
        longest[dependence.src] = max(longest[dependence.src], dependence.latency)
    total = sum(longest.values())
    if total > ITERATION_CYCLES:
        told = f"one after the other, the operations take {total:,} cycles"
        limit = f"at most {ITERATION_CYCLES:,} are allowed"
        yield "$.ops", "long-iteration", f"{told}; {limit}"


def _all_numbers(loop: Loop) -> Iterator[tuple[str, str, str, int | None]]:
    for i, op in enumerate(loop.ops):
        path, owner = f"$.ops[{i}]", f"`{op.name}`"
        yield f"{path}.latency", owner, "latency", op.latency
        yield f"{path}.constraint.max_depth", owner, "max_depth", op.constraint.max_depth
        for j, operand in enumerate(op.operands):
            named = f"{owner} operand `{operand.value}`"
            yield f"{path}.operands[{j}].latency", named, "latency", operand.latency
            yield f"{path}.operands[{j}].distance", named, "distance", operand.distance
        for j, read in enumerate(op.reads):
            named = f"{owner} read of `{read.storage}`"
            yield f"{path}.reads[{j}].distance", named, "distance", read.distance
        for j, use in enumerate(op.uses or ()):
            named = f"{owner} use of `{use.slot}`"
            yield f"{path}.uses[{j}].duration", named, "duration", use.duration
            yield f"{path}.uses[{j}].offset", named, "offset", use.offset
            yield f"{path}.uses[{j}].occupancy", named, "occupancy", use.occupancy
        for j, demand in enumerate(op.demands):
            named = f"{owner} demand on `{demand.pool}`"
            yield f"{path}.demands[{j}].units", named, "units", demand.units
    for i, dependence in enumerate(loop.stated):
        path, owner = f"$.dependences[{i}]", f"dependence {dependence.src} -> {dependence.dst}"
        yield f"{path}.latency", owner, "latency", dependence.latency
        yield f"{path}.distance", owner, "distance", dependence.distance
