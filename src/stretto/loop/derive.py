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

from stretto.loop.types import Dependence, DependenceKind, Op, Storage


@dataclass(frozen=True, slots=True)
class _Accessor:
    """An operation that touches one storage."""

    index: int
    op: Op
    reads: tuple[int, ...]
    """Distances of the instances it reads."""
    writes: bool

    @property
    def in_place(self) -> bool:
        return self.writes and bool(self.reads)


def derive_dependences(
    ops: Sequence[Op], storages: Sequence[Storage], stated: Sequence[Dependence]
) -> tuple[Dependence, ...]:
    """Every dependence of a resolved loop: stated, from values, from storages."""
    found: dict[tuple[str, str, int, DependenceKind], Dependence] = {}

    def add(dependence: Dependence) -> None:
        key = (dependence.src, dependence.dst, dependence.distance, dependence.kind)
        known = found.get(key)
        if known is None or known.latency < dependence.latency:
            found[key] = dependence

    for dependence in stated:
        add(dependence)
    for dependence in _flows(ops):
        add(dependence)
    flows = {(d.src, d.dst, d.distance) for d in found.values() if d.kind == "flow"}
    for storage in storages:
        accessors = _accessors(ops, storage.name)
        in_place = {a.op.name for a in accessors if a.in_place}
        derive = _fixed if storage.fixed else _rotating
        for dependence in derive(storage, accessors):
            carries_data = dependence.kind == "memory" or (
                dependence.kind == "output" and dependence.dst in in_place
            )
            key = (dependence.src, dependence.dst, dependence.distance)
            if not (carries_data and key in flows):
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


def _accessors(ops: Sequence[Op], storage: str) -> list[_Accessor]:
    accessors: list[_Accessor] = []
    for index, op in enumerate(ops):
        reads = tuple(sorted({r.distance for r in op.reads if r.storage == storage}))
        writes = storage in op.writes
        if reads or writes:
            accessors.append(_Accessor(index, op, reads, writes))
    return accessors


def _order(storage: Storage, a: _Accessor, b: _Accessor, distance: int) -> Iterable[Dependence]:
    """What b, `distance` iterations later, owes to a: at least one of them writes."""
    if a.writes and b.reads:
        latency = a.op.ready if distance == 0 else a.op.completion
        yield Dependence(a.op.name, b.op.name, latency, distance, "memory", storage.name)
    if b.writes:
        kind: DependenceKind = "output" if a.writes else "anti"
        yield Dependence(a.op.name, b.op.name, a.op.completion, distance, kind, storage.name)


def _fixed(storage: Storage, accessors: list[_Accessor]) -> Iterable[Dependence]:
    for a in accessors:
        for b in accessors:
            if not (a.writes or b.writes):
                continue
            if a.index < b.index:
                yield from _order(storage, a, b, 0)
            elif a.index > b.index or not a.in_place:
                yield from _order(storage, a, b, 1)


def _rotating(storage: Storage, accessors: list[_Accessor]) -> Iterable[Dependence]:
    writers = [a for a in accessors if a.writes]
    for w in writers:
        for a in accessors:
            touches_now = a.writes or 0 in a.reads
            if touches_now and w.index < a.index:
                yield from _order(storage, w, _at_distance_0(a), 0)
            elif touches_now and a.index < w.index and not a.writes:
                yield from _order(storage, a, w, 0)
            for distance in a.reads:
                if distance > 0:
                    yield Dependence(
                        w.op.name, a.op.name, w.op.ready, distance, "memory", storage.name
                    )
            yield from _ring_reuse(storage, a, w)


def _at_distance_0(accessor: _Accessor) -> _Accessor:
    reads = tuple(d for d in accessor.reads if d == 0)
    return _Accessor(accessor.index, accessor.op, reads, accessor.writes)


def _ring_reuse(storage: Storage, a: _Accessor, w: _Accessor) -> Iterable[Dependence]:
    """A ring of n slots: iteration i + n overwrites what iteration i's accessors still need."""
    if storage.depth is None:
        return
    touched: list[tuple[int, DependenceKind]] = [(d, "anti") for d in a.reads]
    if a.writes:
        touched.append((0, "output"))
    for distance, kind in touched:
        reuse = storage.depth - distance
        if reuse >= 0 and not (reuse == 0 and a.op is w.op):
            yield Dependence(a.op.name, w.op.name, a.op.completion, reuse, kind, storage.name)
