"""What a loop asks of its schedule, read off its parts: who waits for whom, who touches what.

    stated     as the writer of the loop says
    flow       an operand waits for its producer
    touch      a storage that an operation writes, reads, or takes an operand from

Nothing of this is taken from the loop's derived dependences: they are another's work, which the
verifier is there to check.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from stretto.loop import Dependence, DependenceKind, Loop, Op, Storage
from stretto.loop.parts import quickly


def stated_and_flows(loop: Loop) -> tuple[Dependence, ...]:
    """Dependences that are stated, and those of operands; of equal ones the longest."""
    found: dict[tuple[str, str, int, DependenceKind], Dependence] = {}
    for d in (*loop.stated, *_flows(loop)):
        key = (d.src, d.dst, d.distance, d.kind)
        known = found.setdefault(key, d)
        if known.latency < d.latency:
            found[key] = d
    return tuple(found.values())


def _flows(loop: Loop) -> list[Dependence]:
    made_by = {result: op for op in loop.ops for result in op.results}
    found: list[Dependence] = []
    for op in loop.ops:
        name = op.name
        for operand in op.operands:
            value = operand.value
            maker = made_by.get(value)
            if maker is not None:
                latency = maker.ready if operand.latency is None else operand.latency
                found.append(Dependence(maker.name, name, latency, operand.distance, "flow", value))
    return found


def flows_inside(loop: Loop) -> dict[str, set[tuple[str, str, int]]]:
    """Storage to the maker and the reader of what lies in it, and the iterations between them.

    A name is looked through: whoever reads it reads what its own maker was given.
    """
    if not loop.storages:
        return {}
    home = {value.name: value.storage for value in loop.values}
    made_by = {result: op for op in loop.ops for result in op.results}
    found: dict[str, set[tuple[str, str, int]]] = {s.name: set() for s in loop.storages}
    for op in loop.ops:
        for operand in () if _only_names(op, home) else op.operands:
            storage, back, at = home.get(operand.value), operand.distance, operand.value
            maker = made_by.get(at)
            for _ in loop.ops:
                if maker is None or not _only_names(maker, home):
                    break
                back += maker.operands[0].distance
                at = maker.operands[0].value
                maker = made_by.get(at)
            if storage in found and maker is not None:
                found[storage].add((maker.name, op.name, back))
    return found


def groups(loop: Loop) -> tuple[dict[str, int], ...]:
    """Operations that a chain of common group numbers joins, each with its offset from a stage."""
    numbers = {
        op.name: (asked.gid, asked.leader_gid)
        for op in loop.ops
        if (asked := op.constraint).gid is not None or asked.leader_gid is not None
    }
    asking: dict[int | None, list[str]] = {}
    for name, both in numbers.items():
        for number in both:
            asking.setdefault(number, []).append(name)
    asking.pop(None, None)
    found: list[dict[str, int]] = []
    seen: set[str] = set()
    for name in numbers:
        if name in seen:
            continue
        joined, front = {name: None}, [name]
        while front:
            for number in numbers[front.pop()]:
                near = [other for other in asking.pop(number, ()) if other not in joined]
                joined.update(dict.fromkeys(near))
                front += near
        seen.update(joined)
        if len(joined) > 1:
            found.append(
                {op.name: op.constraint.stage_offset for op in loop.ops if op.name in joined}
            )
    return tuple(found)


# Storages ---------------------------------------------------------------------------------


@quickly
@dataclass(frozen=True, slots=True)
class Touch:
    """What one operation does to one instance of a storage."""

    op: Op
    position: int
    """In the program."""
    back: int
    """Iterations from the operation's own back to the instance."""
    reads: bool
    writes: bool


def touches(loop: Loop) -> dict[str, list[Touch]]:
    """Storage to all that touch it, in program order."""
    if not loop.storages:
        return {}
    home = {value.name: value.storage for value in loop.values}
    lies = _lies_in(loop, home)
    written = {name for op in loop.ops for name in op.writes}
    turning = {s.name for s in loop.storages if not s.fixed and s.name in written}
    found: dict[str, list[Touch]] = {s.name: [] for s in loop.storages}
    for position, op in enumerate(loop.ops):
        seen: dict[tuple[str, int], tuple[bool, bool]] = {}
        for read in op.reads:
            seen[read.storage, read.distance if read.storage in turning else 0] = (True, False)
        for operand in () if _only_names(op, home) else op.operands:
            if operand.value in lies:
                storage, back = lies[operand.value]
                seen[storage, back + operand.distance if storage in turning else 0] = (True, False)
        for storage in op.writes:
            seen[storage, 0] = ((storage, 0) in seen, True)
        for (storage, back), (reads, writes) in seen.items():
            if storage in found:
                found[storage].append(Touch(op, position, back, reads, writes))
    return found


def _lies_in(loop: Loop, home: dict[str, str | None]) -> dict[str, tuple[str, int]]:
    """Value to the storage it lies in, and how many iterations before its own that instance is.

    A name of a name means what the other means.
    """
    made_by = {result: op for op in loop.ops for result in op.results}
    found: dict[str, tuple[str, int]] = {}
    # Only what is taken by more than a name matters.
    taken = {o.value for op in loop.ops if not _only_names(op, home) for o in op.operands}
    for value, storage in home.items():
        if storage is None or value not in taken:
            continue
        back, at, steps = 0, value, 0
        while (op := made_by.get(at)) is not None and _only_names(op, home):
            back += op.operands[0].distance
            at, steps = op.operands[0].value, steps + 1
            if steps >= len(loop.ops):
                break  # a name of itself, carried round
        found[value] = (storage, back)
    return found


def _only_names(op: Op, home: dict[str, str | None]) -> bool:
    """Whether it takes no time and makes another name of what lies in a storage."""
    if len(op.operands) != 1 or len(op.results) != 1 or op.reads or op.writes:
        return False
    inside = home.get(op.results[0])
    return inside is not None and inside == home.get(op.operands[0].value) and op.completion == 0


# One iteration ----------------------------------------------------------------------------


def waits_inside(
    loop: Loop, asked: Sequence[Dependence], touched: Mapping[str, Sequence[Touch]]
) -> dict[str, list[str]]:
    """Orders of one iteration, as who waits for whom: stated, of operands, of pins, of storages."""
    waits: dict[str, list[str]] = {op.name: [] for op in loop.ops}
    for d in asked:
        if d.distance == 0 and d.src in waits and d.dst in waits:
            waits[d.dst].append(d.src)
    for op in loop.ops:
        for other in op.constraint.before:
            if other in waits and other != op.name:
                waits[other].append(op.name)
    for storage in loop.storages:
        for before, after in _ordered(touched[storage.name], storage):
            waits[after].append(before)
    return waits


def _ordered(touched: Sequence[Touch], storage: Storage) -> Iterator[tuple[str, str]]:
    """(earlier, later) of one iteration that a storage puts in order; what follows is left out."""
    now = [touch for touch in touched if touch.back == 0]
    since: list[Touch] = []
    for touch in now:
        if touch.writes:
            yield from ((other.op.name, touch.op.name) for other in since)
            since = [touch]
        else:
            if since and since[0].writes:
                yield since[0].op.name, touch.op.name
            since.append(touch)
    writers = [touch for touch in now if touch.writes]
    for touch in touched:
        # The last copy of a capped ring is read in the iteration that fills it again.
        if touch.back and touch.back == storage.depth and writers and touch.op != writers[0].op:
            yield touch.op.name, writers[0].op.name
