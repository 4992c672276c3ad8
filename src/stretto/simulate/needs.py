"""What each operation needs of others, worked out anew from the parts of the loop.

    flow, stated     from its producer, at the latency the operand or the writer says
    storage          of every two that touch one instance or one copy, one of which writes: the
                     first complete before the second; a read of what was just written, when ready

The derived dependences of the loop are not looked at: a program is built from those, and this is
what its run is held against. Rings hand their slots on while a program runs; `memory.py` watches
that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from stretto.loop import DependenceKind, Loop, Op, Storage
from stretto.materialize.origins import Origins

Lack = Literal["unwritten", "overwritten", "unordered"]

_LACKS: dict[DependenceKind, Lack] = {
    "flow": "unwritten",
    "memory": "unwritten",
    "anti": "overwritten",
    "output": "overwritten",
    "order": "unordered",
}


@dataclass(frozen=True, slots=True)
class Requirement:
    """`dst` must come after `src` of `distance` iterations before has come `latency` far."""

    src: str
    latency: int
    distance: int
    lack: Lack
    """What it is called when that is not so."""
    via: str


def requirements(loop: Loop) -> dict[str, tuple[Requirement, ...]]:
    """What each operation needs, from the loop alone."""
    origins = Origins(loop)
    found: dict[str, list[Requirement]] = {op.name: [] for op in loop.ops}
    for d in loop.stated:
        found[d.dst].append(Requirement(d.src, d.latency, d.distance, _LACKS[d.kind], d.via))
    for op in loop.ops:
        found[op.name] += _flows(loop, origins, op)
    flows = storage_flows(loop)
    for storage in loop.storages:
        for dst, need in _of_storage(loop, storage, flows):
            found[dst].append(need)
    return {op: tuple(dict.fromkeys(needs)) for op, needs in found.items()}


# Values -----------------------------------------------------------------------------------


def _flows(loop: Loop, origins: Origins, op: Op) -> Iterator[Requirement]:
    """Operands; a view is a name, so whoever reads it needs what is behind it."""
    view = origins.views.get(op.name)
    for operand, seen in zip(op.operands, origins.seen(op), strict=True):
        maker = loop.producers.get(operand.value)
        named = maker in origins.views or (view is not None and view.kind == "storage")
        if maker is not None and not named:
            ready = loop.op(maker).ready if operand.latency is None else operand.latency
            yield Requirement(maker, ready, operand.distance, "unwritten", operand.value)
        behind = loop.producers.get(seen.path.origin)
        if seen.kind == "value" and seen.path.views and behind is not None:
            (last,) = loop.op(seen.path.views[-1]).operands
            ready = loop.op(behind).ready if last.latency is None else last.latency
            yield Requirement(behind, ready, seen.path.distance, "unwritten", seen.path.origin)


def storage_flows(loop: Loop) -> dict[tuple[str, str, str, int], int]:
    """(storage, maker, reader, distance) to the latency of a value that lives there.

    Under another name it is there when the first that names it may take it.
    """
    origins = Origins(loop)
    found: dict[tuple[str, str, str, int], int] = {}
    for op in loop.ops:
        for operand in op.operands:
            home = loop.homes.get(operand.value)
            if home is None:
                continue
            way = origins.path(operand, "storage")
            taken = loop.op(way.views[-1]).operands[0] if way.views else operand
            maker = loop.producers.get(taken.value)
            if maker is not None:
                key = (home, maker, op.name, way.distance)
                ready = loop.op(maker).ready if taken.latency is None else taken.latency
                found[key] = max(ready, found.get(key, 0))
    return found


# Storages ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Touch:
    op: Op
    iteration: int
    reads: bool
    writes: bool


def _sequence(loop: Loop, storage: Storage) -> list[_Touch]:
    """What happens to one copy (fixed: in three iterations) or to one instance, in order."""
    rows: list[_Touch] = []
    for op in loop.ops:
        back = {r.distance for r in loop.reads[op.name] if r.storage == storage.name}
        writes = storage.name in op.writes
        if storage.fixed and (back or writes):
            rows += [_Touch(op, i, bool(back), writes) for i in range(3)]
        elif not storage.fixed:
            rows += [_Touch(op, i, True, False) for i in back if i or not writes]
            rows += [_Touch(op, 0, 0 in back, True)] if writes else []
    return sorted(rows, key=lambda row: (row.iteration, loop.index[row.op.name]))


def _of_storage(
    loop: Loop, storage: Storage, flows: dict[tuple[str, str, str, int], int]
) -> Iterator[tuple[str, Requirement]]:
    """(who, what it needs) of all that touch a storage."""
    rows = _sequence(loop, storage)
    asked: dict[tuple[str, str], int] = {}
    feeder: _Touch | None = None
    for n, b in enumerate(rows):
        for a in rows[:n]:
            first = a.iteration == 0 or not storage.fixed
            updates = storage.fixed and a.op is b.op and a.reads and a.writes
            if not first or updates or not (a.writes or b.writes):
                continue
            latency = a.op.completion
            if a is feeder and not b.writes:
                latency = _readable(storage, a, b, flows)
            if asked.get((a.op.name, b.op.name), -1) < latency:
                asked[a.op.name, b.op.name] = latency
                lack: Lack = "overwritten" if b.writes else "unwritten"
                apart = b.iteration - a.iteration
                yield b.op.name, Requirement(a.op.name, latency, apart, lack, storage.name)
        feeder = b if b.writes else feeder


def _readable(
    storage: Storage, a: _Touch, b: _Touch, flows: dict[tuple[str, str, str, int], int]
) -> int:
    """Cycles after a write at which it can be read."""
    apart = b.iteration - a.iteration
    flow = flows.get((storage.name, a.op.name, b.op.name, apart))
    if flow is not None:
        return flow
    return a.op.completion if storage.fixed and apart else a.op.ready
