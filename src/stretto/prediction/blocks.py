"""Arithmetic between two waits, as one stretch of work.

    max ▓▓▓▓┐
    sub     └▓▓▓▓▓▓
    exp      ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓   MUFU
    sum       ······▓▓▓▓▓▓▓▓▓▓┐
                              └ tail of a reduction

The compiler mixes the instructions of operations that nothing separates: elements flow from one
operation to the next as they are made. Only a reduction has to see all of them, and then takes a
while to bring lanes together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from stretto.loop import Loop, Op
from stretto.prediction.instructions import Work, both

PIPES = ("arithmetic", "special")
COMPARING = frozenset(
    ("max", "maximum", "umax", "min", "minimum", "umin", "maxnumf", "minnumf", "maximumf",
     "minimumf", "select", "cmpf")
)  # fmt: skip
"""Last words of opcodes that compare or choose."""
ROWS = 64
"""Rows of a product that one warpgroup takes at a time: two of each thread."""
LANES = 4
"""Lanes among which a product spreads a row; what is one number a row, each of them has."""


@dataclass(frozen=True, slots=True)
class Part:
    """One operation: what it takes of which pipe."""

    name: str
    arithmetic: float
    special: float
    own: float
    """Cycles of its agent, of no pipe: shared memory, say."""
    tail: float
    """From its last element to its result."""
    whole: bool
    """Whether its result is there only when all elements have been seen."""
    rows: float = 0.0
    """Of what it makes, where lanes have to meet for each."""
    further: float = 0.0
    """Cycles more for each two rows of a thread beyond the first two."""
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pipes:
    """The slots of a machine that stand for pipes, by name."""

    arithmetic: str
    special: str
    beside: float
    """Cycles of the arithmetic pipes that go with one of the special function units."""
    add: float
    """Cycles of them for an element that is added to others."""
    compare: float
    """Cycles of them for an element that is compared or chosen: by half as many lanes."""
    lag: float
    """Cycles from one operation to the next that takes its elements."""
    meeting: float
    """Cycles in which lanes are brought together, for two rows of each thread."""
    further: float
    """Cycles more for each two rows beyond."""


def part_of(op: Op, loop: Loop, pipes: Pipes) -> Part:
    """What an operation of a prepared loop takes."""
    held = {use.slot: float(use.duration) for use in op.uses or ()}
    arithmetic = held.pop(pipes.arithmetic, 0.0)
    special = held.pop(pipes.special, 0.0)
    types = {value.name: value.type for value in loop.values}
    made = [types[name] for name in op.results]
    taken = [types.get(operand.value) for operand in op.operands]
    size = max((t.elements for t in made if t is not None), default=0)
    before = max((t.elements for t in taken if t is not None), default=0)
    whole = 0 < size < before
    word = op.kind.rpartition(".")[2]
    rows = {t.shape[0] for t in types.values() if t is not None and len(t.shape) == 2}
    tiles = [t for t in (*made, *taken) if t is not None]
    if tiles and all(len(t.shape) == 1 and t.shape[0] in rows for t in tiles):
        arithmetic, special = arithmetic * LANES, special * LANES
        size, before = size * LANES, before * LANES
    if arithmetic and word in COMPARING:
        arithmetic = max(size, before) * pipes.compare
    elif arithmetic and whole:
        arithmetic = before * pipes.add
    busy = max(arithmetic, special)
    arithmetic += special * pipes.beside
    own = 0.0 if busy else max(held.values(), default=0.0)
    inputs = tuple(operand.value for operand in op.operands if not operand.distance)
    part = Part(op.name, arithmetic, special, own, pipes.lag, whole, 0.0, 0.0, inputs, op.results)
    if not whole:
        return part
    return replace(part, tail=pipes.meeting, rows=float(size), further=pipes.further)


def stretches(parts: Sequence[Part], lag: float, groups: float) -> list[Work]:
    """Operations that nothing separates: a stretch up to each meeting of lanes, and what follows.

    What takes the result of a reduction begins when all lanes have met; all else of a stretch is
    mixed by the compiler. Several warpgroups, each with its part of the rows, drift apart, and
    one fills the pipes while another waits.
    """
    if groups > 1:
        each = _stretches([_part_of_group(part, groups) for part in parts], lag)
        arithmetic, special = (sum(getattr(part, of) for part in parts) for of in PIPES)
        alone = sum(work.cycles for work in each)
        return [Work(max(alone, both(arithmetic, special)), arithmetic, special)]
    return _stretches(parts, lag)


def _part_of_group(part: Part, groups: float) -> Part:
    """What one of several groups has of an operation."""
    shared = {of: getattr(part, of) / groups for of in (*PIPES, "rows")}
    return replace(part, **shared)


def _stretches(parts: Sequence[Part], lag: float) -> list[Work]:
    level: dict[str, int] = {}
    by_level: dict[int, list[Part]] = {}
    for part in parts:
        at = max((level[name] for name in part.inputs if name in level), default=0)
        level.update(dict.fromkeys(part.outputs, at + part.whole))
        by_level.setdefault(at, []).append(part)
    return [_mixed(by_level[at], lag) for at in sorted(by_level)]


def _mixed(parts: Sequence[Part], lag: float) -> Work:
    """Operations none of which waits for lanes to meet, as one stretch."""
    spans: dict[str, tuple[float, float]] = {}
    special_free = own_free = end = 0.0
    for part in parts:
        feeding = [spans[name] for name in part.inputs if name in spans]
        begin = max((first + lag for first, _ in feeding), default=0.0)
        done = max((last for _, last in feeding), default=0.0)
        if part.special:
            begin = max(begin, special_free)
            special_free = begin + part.special
        if part.own:
            begin = max(begin, own_free, done)
            own_free = begin + part.own
        tail = part.tail + part.further * max(0.0, part.rows / ROWS - 1)
        last = max(begin + max(part.arithmetic, part.special, part.own), done) + tail
        spans.update(dict.fromkeys(part.outputs, (begin, last)))
        end = max(end, last)
    arithmetic = sum(part.arithmetic for part in parts)
    special = sum(part.special for part in parts)
    meetings = sum(max(1.0, part.rows / ROWS) for part in parts if part.whole)
    return Work(max(end, both(arithmetic, special)), arithmetic, special, meetings)


def through_views(loop: Loop) -> dict[str, str]:
    """Values that are others seen through views, by name: what they are."""
    found: dict[str, str] = {}
    for value in loop.values:
        origin, seen = value.name, {value.name}
        by_name = {v.name: v for v in loop.values}
        while (of := by_name[origin].view_of) is not None and of in by_name and of not in seen:
            origin = of
            seen.add(of)
        if origin != value.name:
            found[value.name] = origin
    return found


def seen(parts: Iterable[Part], views: dict[str, str]) -> list[Part]:
    """Parts whose inputs are what the views show."""
    return [replace(p, inputs=tuple(views.get(name, name) for name in p.inputs)) for p in parts]
