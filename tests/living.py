"""What lives in the registers of agents, counted naively: cycle by cycle, tile by tile.

    alive(loop, machine, ii, starts)  ──►  {("compute", 17): 1536, ...}    bytes in a late cycle

Written from the sentences of docs/model.md, over iterations laid out one after the other; what has
no start yet is left out, so that the count only grows as more is placed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from stretto.loop import Loop, Op, Value
from stretto.machine import Machine
from stretto.ops.opcodes import OPCODES, UNKNOWN, Opcode


def row(op: Op) -> Opcode:
    return OPCODES.get(op.kind, UNKNOWN)


def owner(machine: Machine, op: Op) -> str | None:
    """The replica that issues an operation."""
    every = {a.replica(n) for a in machine.agents for n in range(a.replicas)}
    if op.agent in every:
        return op.agent
    return next((a.name for a in machine.agents if row(op).issuer in a.issues), None)


def room(loop: Loop, machine: Machine, name: str) -> int | None:
    """Bytes that a replica has for tiles."""
    (agent,) = [a for a in machine.agents if name in {a.replica(n) for n in range(a.replicas)}]
    there = {owner(machine, op) for op in loop.ops}
    alike = [n for n in range(agent.replicas) if agent.replica(n) in there]
    if agent.registers is None:
        return None
    warps = agent.warps * (agent.replicas // len(alike))
    return 4 * 32 * warps * (agent.registers - agent.addresses)


def over(
    loop: Loop, machine: Machine, ii: int, starts: Mapping[str, int], spilled: int = 0
) -> list[str]:
    """Every cycle and replica in which more lives than there is room for; with more registers."""
    agents = tuple(
        replace(a, registers=a.registers + spilled) if a.registers is not None else a
        for a in machine.agents
    )
    machine = replace(machine, agents=agents) if spilled else machine
    told: list[str] = []
    for (name, cycle), load in sorted(alive(loop, machine, ii, starts).items()):
        most = room(loop, machine, name)
        if most is not None and load > most:
            told.append(f"registers of {name}: {load} of {most} in cycle {cycle}")
    return told


def alive(
    loop: Loop, machine: Machine, ii: int, starts: Mapping[str, int]
) -> Counter[tuple[str, int]]:
    """Bytes by replica, in each cycle of an II so late that all that ever meets has met."""
    found: Counter[tuple[str, int]] = Counter()
    if not machine.agents:
        return found
    lives = list(_lives(loop, machine, ii, starts))
    last = max([0, *(end for *_, end in lives if end is not None)])
    late = (last // ii + 1) * ii
    for who, size, begin, end in lives:
        if end is None:
            found.update({(who, cycle): size for cycle in range(late, late + ii)})
            continue
        for iteration in range(late // ii + 2):
            for cycle in range(begin + iteration * ii, end + iteration * ii):
                if late <= cycle < late + ii:
                    found[who, cycle] += size
    return found


Lived = tuple[str, int, int, int | None]
"""Who, bytes, begin, end; no end: always."""


def _lives(loop: Loop, machine: Machine, ii: int, starts: Mapping[str, int]) -> Iterator[Lived]:
    for value in loop.values:
        if value.register_bytes:
            yield from _of_value(loop, machine, ii, starts, value)
    for op in loop.ops:
        who = owner(machine, op)
        if op.facts.scratch and who is not None and op.name in starts:
            begin = starts[op.name]
            yield who, op.facts.scratch, begin, begin + op.completion
    for storage in loop.storages:
        if storage.space != "register":
            continue
        writers = [op for op in loop.ops if storage.name in op.writes]
        readers = [
            (op, r.distance)
            for op in loop.ops
            for r in loop.reads[op.name]
            if r.storage == storage.name
        ]
        touching = [*writers, *(op for op, _ in readers)]
        who = owner(machine, touching[0]) if touching else None
        if who is None:
            continue
        if storage.fixed or not writers:
            yield who, storage.bytes, 0, None
            continue
        here = [(op, 0) for op in writers] + readers
        here = [(op, d) for op, d in here if op.name in starts]
        begins = [starts[op.name] for op in writers if op.name in starts]
        if begins:
            end = max(starts[op.name] + op.completion + ii * d for op, d in here)
            yield who, storage.bytes, min(begins), max(end, min(begins))


def _of_value(
    loop: Loop, machine: Machine, ii: int, starts: Mapping[str, int], value: Value
) -> Iterator[Lived]:
    maker = next((op for op in loop.ops if value.name in op.results), None)
    taken = list(_taken(loop, value.name))
    if maker is None:
        there = {owner(machine, op) for op, _, _ in taken} - {None}
        for who in sorted(name for name in there if name is not None):
            yield who, value.register_bytes, 0, None
        return
    who = owner(machine, maker)
    if who is None or maker.name not in starts:
        return
    done = starts[maker.name] + maker.completion
    # Arithmetic takes registers when it is done; what hardware fills by itself, when it is issued.
    begin = starts[maker.name] if row(maker).memory else done
    end = done
    for op, number, distance in taken:
        if op.name not in starts:
            continue
        at = starts[op.name] + ii * distance
        product = row(op).accumulator is not None
        sizes = {v.register_bytes for v in loop.values if v.name in op.results}
        if product and number == row(op).accumulator and value.register_bytes in sizes:
            end = max(end, at)
            continue
        end = max(end, at + op.completion)
        for waiter in loop.ops if product else ():
            first = waiter.operands[:1]
            waits = row(waiter).awaits and first and first[0].value in op.results
            if waits and waiter.name in starts:
                later = starts[waiter.name] + waiter.completion
                end = max(end, later + ii * (distance + first[0].distance))
    yield who, value.register_bytes, begin, max(begin, end)


def _taken(loop: Loop, name: str, back: int = 0, depth: int = 0) -> Iterator[tuple[Op, int, int]]:
    """Who reads a value by any name, with which operand, how many iterations later."""
    if depth > len(loop.values):
        return
    values = {v.name: v for v in loop.values}
    for op in loop.ops:
        made = [values[result] for result in op.results if result in values]
        names = bool(made) and all(v.view_of is not None for v in made) and op.completion == 0
        for number, operand in enumerate(op.operands):
            if operand.value != name:
                continue
            if not names:
                yield op, number, back + operand.distance
        for v in made:
            if v.view_of == name:
                seen = [o.distance for o in op.operands if o.value == name]
                yield from _taken(loop, v.name, back + (seen or [0])[0], depth + 1)
