"""Numbers that no loop has: below zero, or so large that tables and programs outgrow the memory.

    $.ops[0].uses[0].duration  1000000000  ──►  Fault("large-duration"), for `check()`

Each number is held against a limit of its own. Their sum is as well: a reservation table has one
bit for each cycle of the II, and the II is at most what the operations take one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator

from stretto.limits import CYCLES, DISTANCE, ITERATION_CYCLES, UNITS
from stretto.loop.loop import Loop
from stretto.loop.places import Fault, Place
from stretto.machine.formula import told_number

_MOST = {
    "latency": CYCLES,
    "duration": CYCLES,
    "offset": CYCLES,
    "distance": DISTANCE,
    "occupancy": UNITS,
    "units": UNITS,
}


def wrong_numbers(loop: Loop) -> Iterator[Fault]:
    """Every number that is out of its range."""
    for place, owner, what, number in _all_numbers(loop):
        if number is None:
            continue
        most = _MOST.get(what)
        if number < 0:
            told = f"{owner} has {what} {told_number(number)}; it must be 0 or more"
            yield Fault(place, f"negative-{what}", told)
        elif most is not None and number > most:
            told = f"{owner} has {what} {told_number(number)}; at most {most:,} is allowed"
            yield Fault(place, f"large-{what}", told)


def long_iteration(loop: Loop) -> Iterator[Fault]:
    """Operations that take too long one after the other, each until all it starts is ready."""
    longest = {op.name: op.completion for op in loop.ops}
    for dependence in loop.dependences:
        longest[dependence.src] = max(longest[dependence.src], dependence.latency)
    total = sum(longest.values())
    if total > ITERATION_CYCLES:
        told = f"one after the other, the operations take {total:,} cycles"
        limit = f"at most {ITERATION_CYCLES:,} are allowed"
        yield Fault(loop.at("ops"), "long-iteration", f"{told}; {limit}")


def _all_numbers(loop: Loop) -> Iterator[tuple[Place, str, str, int | None]]:
    for i, op in enumerate(loop.ops):
        owner = f"`{op.name}`"
        yield loop.at("latency", op=i), owner, "latency", op.latency
        yield loop.at("constraint", "max_depth", op=i), owner, "max_depth", op.constraint.max_depth
        for j, operand in enumerate(op.operands):
            named = f"{owner} operand `{operand.value}`"
            yield loop.at("operands", j, "latency", op=i), named, "latency", operand.latency
            yield loop.at("operands", j, "distance", op=i), named, "distance", operand.distance
        for j, read in enumerate(op.reads):
            named = f"{owner} read of `{read.storage}`"
            yield loop.at("reads", j, "distance", op=i), named, "distance", read.distance
        for j, use in enumerate(op.uses or ()):
            named = f"{owner} use of `{use.slot}`"
            yield loop.at("uses", j, "duration", op=i), named, "duration", use.duration
            yield loop.at("uses", j, "offset", op=i), named, "offset", use.offset
            yield loop.at("uses", j, "occupancy", op=i), named, "occupancy", use.occupancy
        for j, demand in enumerate(op.demands):
            named = f"{owner} demand on `{demand.pool}`"
            yield loop.at("demands", j, "units", op=i), named, "units", demand.units
    for i, dependence in enumerate(loop.stated):
        owner = f"dependence {dependence.src} -> {dependence.dst}"
        yield loop.at("dependences", i, "latency"), owner, "latency", dependence.latency
        yield loop.at("dependences", i, "distance"), owner, "distance", dependence.distance
