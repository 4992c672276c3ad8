"""What each operation needs of others, worked out anew from the parts of the loop.

    flow, stated     from its producer, at the latency the operand or the writer says
    storage          of every two that touch one instance or one copy, one of which writes: the
                     first complete before the second; a read of what was just written, when ready

The derived dependences of the loop are not looked at: a program is built from those, and this is
what its run is held against. Rings hand their slots on while a program runs; `ring_memory.py`
watches that. What an agent can be sure of, whatever the timing:

    load(3) ── commit ─► wait ── mma(3)        mma's agent knows: load(3) is 556 cycles on

Each agent knows, for every operation and every latency that matters, the last iteration that has
come so far. Issuing in order and waiting add to that; whoever signals passes on all it knows. A
read that happens at the right time, but that nothing makes happen then, is found by this.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from stretto.loop import DependenceKind, Loop, Op, Operand, Storage
from stretto.materialization.origins import Origins

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
            ready = _latency(loop, maker, operand)
            yield Requirement(maker, ready, operand.distance, "unwritten", operand.value)
        behind = loop.producers.get(seen.path.origin)
        if seen.kind == "value" and seen.path.views and behind is not None:
            (last,) = loop.op(seen.path.views[-1]).operands
            ready = _latency(loop, behind, last)
            yield Requirement(behind, ready, seen.path.distance, "unwritten", seen.path.origin)


def _latency(loop: Loop, maker: str, operand: Operand) -> int:
    return loop.op(maker).ready if operand.latency is None else operand.latency


Flows = dict[tuple[str, str, str, int], int]
"""(storage, maker, reader, distance) to the latency of a value that lives there."""


def storage_flows(loop: Loop) -> Flows:
    """Under another name a value is there when the first that names it may take it."""
    origins = Origins(loop)
    found: Flows = {}
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
                found[key] = max(_latency(loop, maker, taken), found.get(key, 0))
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


def _of_storage(loop: Loop, storage: Storage, flows: Flows) -> Iterator[tuple[str, Requirement]]:
    """(who, what it needs) of all that touch a storage.

    A write that has waited for all that came before it stands for them: whoever waits for the write
    waits for those as well. An updater does not wait for its own last turn, so that stays.
    """
    asked: dict[tuple[str, str], int] = {}
    writers: list[_Touch] = []
    readers: list[_Touch] = []
    for b in _sequence(loop, storage):
        updates = storage.fixed and b.reads and b.writes
        own = [a for a in writers if updates and a.op is b.op]
        for a in (*writers, *(readers if b.writes else ())):
            if a in own or (storage.fixed and a.iteration):
                continue
            latency, apart = a.op.completion, b.iteration - a.iteration
            if not b.writes and a is writers[-1]:
                latency = readable(flows, storage.name, storage.fixed, a.op, b.op.name, apart)
            if asked.get((a.op.name, b.op.name), -1) < latency:
                asked[a.op.name, b.op.name] = latency
                lack: Lack = "overwritten" if b.writes else "unwritten"
                yield b.op.name, Requirement(a.op.name, latency, apart, lack, storage.name)
        if b.writes:
            writers, readers = [*own, b], []
        else:
            readers.append(b)


def readable(flows: Flows, storage: str, fixed: bool, writer: Op, reader: str, apart: int) -> int:
    """Cycles after a write at which it can be read, so many iterations later."""
    late = writer.completion if fixed and apart else writer.ready
    return flows.get((storage, writer.name, reader, apart), late)


# Knowledge --------------------------------------------------------------------------------


class Known:
    """What an agent can be sure of: the last iteration by level, -1 where there is none.

    Whoever is told what another knew takes over what is new since it was told last, so that
    handing all of it on at every signal costs no more than learning it.
    """

    __slots__ = ("_heard", "_learned", "last")

    def __init__(self, levels: int) -> None:
        self.last = [-1] * levels
        self._learned: list[tuple[int, int]] = []
        """Levels and their iterations, in the order in which they became known."""
        self._heard: dict[Known, int] = {}
        """How much of what others learned is known."""

    def learn(self, level: int, iteration: int) -> None:
        """One thing more."""
        if self.last[level] < iteration:
            self.last[level] = iteration
            self._learned.append((level, iteration))

    def tells(self, facts: dict[int, int]) -> Told:
        """All that is known by now, and what will be so when it is told."""
        return Told({self: len(self._learned)}, facts)

    def hear(self, told: Told) -> None:
        """Add what others tell."""
        for who, count in told.learned.items():
            begin = self._heard.get(who, 0)
            if who is not self and begin < count:
                self._heard[who] = count
                for level, iteration in who._learned[begin:count]:
                    self.learn(level, iteration)
        for level, iteration in told.facts.items():
            self.learn(level, iteration)


@dataclass(frozen=True, slots=True)
class Told:
    """What a signal tells."""

    learned: dict[Known, int] = field(default_factory=dict[Known, int])
    """Of whom, and how many of the things they learned."""
    facts: dict[int, int] = field(default_factory=dict[int, int])
    """Iteration by level, besides."""

    def add(self, other: Told) -> None:
        """Tell what another does as well; it may have been on its way for longer."""
        for who, count in other.learned.items():
            self.learned[who] = max(count, self.learned.get(who, 0))
        for level, iteration in other.facts.items():
            self.facts[level] = max(iteration, self.facts.get(level, -1))

    def copy(self) -> Told:
        """As it is now."""
        return Told(self.learned.copy(), self.facts.copy())


class Levels:
    """Numbers the (operation, latency) pairs that matter."""

    def __init__(self, loop: Loop, needs: dict[str, tuple[Requirement, ...]]) -> None:
        wanted: dict[str, set[int]] = {op.name: {op.completion} for op in loop.ops}
        for found in needs.values():
            for need in found:
                wanted[need.src].add(need.latency)
        self._number: dict[tuple[str, int], int] = {}
        self._of: dict[str, list[tuple[int, int]]] = {}
        for op, latencies in wanted.items():
            for latency in sorted(latencies):
                number = len(self._number)
                self._number[op, latency] = number
                self._of.setdefault(op, []).append((latency, number))

    def nothing(self) -> Known:
        """What is known before anything happens."""
        return Known(len(self._number))

    def number(self, op: str, latency: int) -> int:
        """The level of an operation at a latency that matters."""
        return self._number[op, latency]

    def facts(self, op: str, latency: int, iteration: int) -> dict[int, int]:
        """What is so once an operation's iteration has come so far."""
        return {number: iteration for level, number in self._of[op] if level <= latency}

    def learn(self, known: Known, op: str, latency: int, iteration: int) -> None:
        """An operation's iteration has come so far."""
        for level, number in self._of[op]:
            if level <= latency:
                known.learn(number, iteration)
