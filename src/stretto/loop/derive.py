"""From values and storages to dependences.

    rotating   load ─► read      ring: the next load takes a fresh slot, nothing waits
    fixed      mma  ─► load ─► mma(+1)     one copy: the next writer waits for the last reader
    capped n   read ─► write(+n)           the ring has n slots: the writer n later waits

Inside one iteration every order of accesses holds as the program has it. A writer's result may be
read when it is ready (its latency); it may be overwritten when the accessor is wholly done (its
completion). Where a value already flows between two operations, that flow is the precise
statement and the storage adds none of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stretto.loop.types import Dependence, DependenceKind, Op, Storage, Value


@dataclass(frozen=True, slots=True)
class _Accessor:
    """An operation that touches one storage."""

    op: Op
    reads: tuple[int, ...]
    """Distances of the instances it reads."""
    writes: bool

    @property
    def in_place(self) -> bool:
        return self.writes and bool(self.reads)


def derive_dependences(
    ops: Sequence[Op],
    values: Sequence[Value],
    storages: Sequence[Storage],
    stated: Sequence[Dependence],
) -> tuple[Dependence, ...]:
    """The dependences of a resolved loop: stated, from values, from storages.

    Of the orders that a storage imposes, those that follow from others are left out: everybody
    waits for the last writer, the last writer waited for those before it.
    """
    found: dict[tuple[str, str, int, DependenceKind], Dependence] = {}

    def add(dependence: Dependence) -> None:
        key = (dependence.src, dependence.dst, dependence.distance, dependence.kind)
        known = found.get(key)
        if known is None or known.latency < dependence.latency:
            found[key] = dependence

    for dependence in stated:
        add(dependence)
    homes = {value.name: value.storage for value in values}
    through: set[tuple[str, str, int, str | None]] = set()
    for dependence in _flows(ops):
        add(dependence)
        through.add((dependence.src, dependence.dst, dependence.distance, homes[dependence.via]))
    touched = _accessors(ops)
    for storage in storages:
        accessors = touched.get(storage.name, [])
        in_place = {a.op.name for a in accessors if a.in_place}
        derive = _fixed if storage.fixed else _rotating
        for dependence in derive(storage, accessors):
            carries_data = dependence.kind == "memory" or (
                dependence.kind == "output" and dependence.dst in in_place
            )
            key = (dependence.src, dependence.dst, dependence.distance, storage.name)
            if not (carries_data and key in through):
                add(dependence)
    return tuple(found.values())


def _flows(ops: Sequence[Op]) -> Iterable[Dependence]:
    producer = {result: op for op in ops for result in op.results}
    for op in ops:
        for operand in op.operands:
            src = producer.get(operand.value)
            if src is None:
                continue
            latency = src.ready if operand.latency is None else operand.latency
            yield Dependence(src.name, op.name, latency, operand.distance, "flow", operand.value)


def _accessors(ops: Sequence[Op]) -> dict[str, list[_Accessor]]:
    """Storage to those that touch it, in program order."""
    found: dict[str, list[_Accessor]] = {}
    for op in ops:
        reads: dict[str, set[int]] = {}
        for read in op.reads:
            reads.setdefault(read.storage, set()).add(read.distance)
        for storage in dict.fromkeys((*reads, *op.writes)):
            distances = tuple(sorted(reads.get(storage, ())))
            found.setdefault(storage, []).append(_Accessor(op, distances, storage in op.writes))
    return found


def _order(
    storage: Storage, a: _Accessor, b: _Accessor, distance: int, reads: bool
) -> Iterable[Dependence]:
    """What b, `distance` iterations later, owes to a; `reads`: whether it reads what a wrote."""
    if a.writes and reads:
        latency = a.op.ready if distance == 0 else a.op.completion
        yield Dependence(a.op.name, b.op.name, latency, distance, "memory", storage.name)
    if b.writes:
        kind: DependenceKind = "output" if a.writes else "anti"
        yield Dependence(a.op.name, b.op.name, a.op.completion, distance, kind, storage.name)


def _inside(storage: Storage, accessors: Sequence[_Accessor]) -> Iterable[Dependence]:
    """The orders of one iteration: readers after the last writer, writers after those readers."""
    writer: _Accessor | None = None
    readers: list[_Accessor] = []
    for a in accessors:
        reads_now = 0 in a.reads
        if writer is not None and (reads_now or a.writes):
            yield from _order(storage, writer, a, 0, reads_now)
        if a.writes:
            for reader in readers:
                yield from _order(storage, reader, a, 0, False)
            writer, readers = a, []
        elif reads_now:
            readers.append(a)


def _fixed(storage: Storage, accessors: list[_Accessor]) -> Iterable[Dependence]:
    yield from _inside(storage, accessors)
    written = [k for k, a in enumerate(accessors) if a.writes]
    if not written:
        return
    first, last = written[0], written[-1]
    for a in accessors[last:]:
        if a is not accessors[first]:
            yield from _order(storage, a, accessors[first], 1, bool(accessors[first].reads))
        elif not a.in_place:
            yield from _order(storage, a, a, 1, False)
    for reader in accessors[:first]:
        yield from _order(storage, accessors[last], reader, 1, True)


def _rotating(storage: Storage, accessors: list[_Accessor]) -> Iterable[Dependence]:
    yield from _inside(storage, accessors)
    written = [k for k, a in enumerate(accessors) if a.writes]
    if not written:
        return
    first, last = accessors[written[0]], accessors[written[-1]]
    for a in accessors:
        for distance in a.reads:
            if distance > 0:
                yield Dependence(
                    last.op.name, a.op.name, last.op.ready, distance, "memory", storage.name
                )
    if storage.depth is not None:
        for k, a in enumerate(accessors):
            yield from _ring_reuse(storage, a, first, k >= written[-1])


def _ring_reuse(
    storage: Storage, a: _Accessor, first: _Accessor, last: bool
) -> Iterable[Dependence]:
    """A ring of n slots: iteration i + n overwrites what iteration i's accessors still need.

    `last`: nobody overwrites the instance after this accessor in its own iteration.
    """
    depth = storage.depth or 0
    touched: list[tuple[int, DependenceKind]] = [(d, "anti") for d in a.reads if d or last]
    if a.writes and last:
        touched.append((0, "output"))
    for distance, kind in touched:
        reuse = depth - distance
        if reuse >= 0 and not (reuse == 0 and a.op is first.op):
            yield Dependence(a.op.name, first.op.name, a.op.completion, reuse, kind, storage.name)
