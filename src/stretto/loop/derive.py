"""From values and storages to reads and dependences.

    rotating   load ─► read      ring: the next load takes a fresh slot, nothing waits
    fixed      mma  ─► load ─► mma(+1)     one copy: the next writer waits for the last reader
    capped n   read ─► write(+n)           the ring has n slots: the writer n later waits

Inside one iteration every order of accesses holds as the program has it. A writer's result may be
read when it is ready (its latency); it may be overwritten when the accessor is wholly done (its
completion). Where a value already flows from a writer to a reader, that flow is the precise
statement of when it may be read; whoever overwrites waits for completion all the same, also when
it reads first.

    load ─► k, in k_tile          qk lists no read of `k_tile`, but takes `k_t`, another name
       k ── transpose ─► k_t      of what lies there: it reads `k_tile` from start to completion

An operand that lives in a storage reads the instance its value lives in. A view is a name: it has
one operand and one result, both in the same storage, and takes no time. Whoever takes its result
reads what it names, as many iterations back as all names on the way add up to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from stretto.loop.parts import (
    Access,
    Dependence,
    DependenceKind,
    Op,
    Operand,
    Storage,
    Value,
    quickly,
)

_Key = tuple[str, str, int, DependenceKind]


@quickly
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
    reads: Mapping[str, tuple[Access, ...]],
) -> tuple[Dependence, ...]:
    """The dependences of a resolved loop: stated, from values, from storages.

    `reads` are those that each operation lists or that its operands imply. Of the orders that a
    storage imposes, those that follow from others are left out: everybody waits for the last
    writer, the last writer waited for those before it to complete.
    """
    found: dict[_Key, Dependence] = {}

    def add(dependences: Iterable[Dependence]) -> None:
        for dependence in dependences:
            key = (dependence.src, dependence.dst, dependence.distance, dependence.kind)
            known = found.setdefault(key, dependence)
            if known.latency < dependence.latency:
                found[key] = dependence

    flows = _flows(ops)
    add((*stated, *_before(ops), *flows))
    if not storages:
        return tuple(found.values())
    homes = {value.name: value.storage for value in values}
    through = {(d.src, d.dst, d.distance, homes[d.via]) for d in flows}
    through.update(_through_views(ops, values))
    touched = _accessors(ops, reads)
    for storage in storages:
        derive = _fixed if storage.fixed else _rotating
        add(
            d
            for d in derive(storage, touched.get(storage.name, []))
            if d.kind != "memory" or (d.src, d.dst, d.distance, storage.name) not in through
        )
        if storage.fixed:
            late = _behind_updater(storage, touched.get(storage.name, []))
            add(d for d in late if not _follows(d, found))
    return tuple(found.values())


def _follows(late: Dependence, found: Mapping[_Key, Dependence]) -> bool:
    """Whether one iteration less asks for as much already."""
    kinds: tuple[DependenceKind, ...] = ("flow", "memory")
    near = [found.get((late.src, late.dst, late.distance - 1, kind)) for kind in kinds]
    return any(d is not None and d.latency >= late.latency for d in near)


def _before(ops: Sequence[Op]) -> Iterable[Dependence]:
    """What operations are told to stand before."""
    for op in ops:
        if op.constraint.before:
            known = {other.name for other in ops}
            for after in op.constraint.before:
                if after in known and after != op.name:
                    yield Dependence(op.name, after, 1, 0, "order")


def _flows(ops: Sequence[Op]) -> list[Dependence]:
    producer = {result: op for op in ops for result in op.results}
    found: list[Dependence] = []
    for op in ops:
        name = op.name
        for operand in op.operands:
            src = producer.get(operand.value)
            if src is not None:
                latency = src.ready if operand.latency is None else operand.latency
                found.append(
                    Dependence(src.name, name, latency, operand.distance, "flow", operand.value)
                )
    return found


def _through_views(
    ops: Sequence[Op], values: Sequence[Value]
) -> Iterable[tuple[str, str, int, str | None]]:
    """(maker, reader, distance, storage) of what flows under another name."""
    homes = {value.name: value.storage for value in values}
    producer = {result: op.name for op in ops for result in op.results}
    views = storage_views(ops, values)
    if not views:
        return
    named = {op.results[0]: views[op.name] for op in ops if op.name in views}
    for op in ops:
        for operand in op.operands if op.name not in views else ():
            at, distance = behind_views(operand, named)
            if operand.value in named and at in producer:
                yield producer[at], op.name, distance, homes[operand.value]


def _accessors(
    ops: Sequence[Op], reads: Mapping[str, tuple[Access, ...]]
) -> dict[str, list[_Accessor]]:
    """Storage to those that touch it, in program order."""
    found: dict[str, list[_Accessor]] = {}
    for op in ops:
        if not (reads[op.name] or op.writes):
            continue
        back: dict[str, set[int]] = {}
        for read in reads[op.name]:
            back.setdefault(read.storage, set()).add(read.distance)
        for storage in dict.fromkeys((*back, *op.writes)):
            distances = tuple(sorted(back.get(storage, ())))
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


def _behind_updater(storage: Storage, accessors: list[_Accessor]) -> Iterable[Dependence]:
    """What readers owe to the turn of a lone updater before the one they read.

    An updater does not wait for itself, so nothing else tells them to wait for its completion.
    """
    written = [k for k, a in enumerate(accessors) if a.writes]
    if len(written) != 1 or not accessors[written[0]].in_place:
        return
    op = accessors[written[0]].op
    for k, a in enumerate(accessors):
        if k != written[0]:
            distance = 1 if k > written[0] else 2
            yield Dependence(op.name, a.op.name, op.completion, distance, "memory", storage.name)


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


# Reads ------------------------------------------------------------------------------------


def storage_views(ops: Sequence[Op], values: Sequence[Value]) -> dict[str, Operand]:
    """Operations that only give another name to what lies in a storage, and what they name."""
    home = {value.name: value.storage for value in values}
    found: dict[str, Operand] = {}
    for op in ops:
        if len(op.operands) != 1 or len(op.results) != 1 or op.reads or op.writes:
            continue
        (operand,), (result,) = op.operands, op.results
        here = home.get(result)
        if here is not None and here == home.get(operand.value) and not _takes_time(op):
            found[op.name] = operand
    return found


def _takes_time(op: Op) -> bool:
    return op.resolved and op.completion > 0


def effective_reads(
    ops: Sequence[Op], values: Sequence[Value], storages: Sequence[Storage]
) -> dict[str, tuple[Access, ...]]:
    """Operation to all its reads: those that are listed, then those its operands imply."""
    home = {value.name: value.storage for value in values if value.storage is not None}
    if not home:
        return {op.name: op.reads for op in ops}
    written = {name for op in ops for name in op.writes}
    rotating = {s.name for s in storages if not s.fixed} & written
    views = storage_views(ops, values)
    named = {op.results[0]: views[op.name] for op in ops if op.name in views}
    found: dict[str, tuple[Access, ...]] = {}
    for op in ops:
        reads = dict.fromkeys(op.reads)
        for operand in op.operands if op.name not in views else ():
            storage = home.get(operand.value)
            if storage is not None:
                back = behind_views(operand, named)[1] if storage in rotating else 0
                reads[Access(storage, back)] = None
        found[op.name] = tuple(reads)
    return found


def behind_views(operand: Operand, named: Mapping[str, Operand]) -> tuple[str, int]:
    """What an operand is a name of, and how many iterations back, through the views on the way.

    `named` has, by the name that each view gives, what it names.
    """
    value, back, steps = operand.value, operand.distance, 0
    while value in named and steps < len(named):  # a view of itself, carried round, must end
        back += named[value].distance
        value, steps = named[value].value, steps + 1
    return value, back
