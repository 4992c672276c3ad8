"""What must happen before what: dependence.

    one copy of a ring of 2, II 10          instance 0            instance 2
                                       write ██  read ████   write ██  read ████
                                             5   8                25   28

Stated dependences and operands say it themselves. For storages every touch is laid out in absolute
time, copy by copy, in the order of the sequential program: every two of which one writes must
happen in that order, the first complete before the second starts; a read of what was just written
may start when that is ready. Of a fixed storage three iterations show everything that can go wrong
on its one copy; of a rotating storage, one instance and the next that takes its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import cast

from stretto.loop import Dependence, DependenceKind, Op, Storage
from stretto.loop.parts import quickly
from stretto.verification.layout import Layout, Violation, listed
from stretto.verification.requirements import Touch

SHOWN = 3
"""Iterations of a fixed storage that are laid out: a turn, the next, and the one behind that."""


def dependence(laid: Layout) -> Iterator[Violation]:
    """The destination, `distance` iterations on, starts when the source allows it."""
    starts, ii = laid.starts, laid.ii
    asked = [d for d in laid.asked if d.src in starts and d.dst in starts]
    for d in asked:
        if starts[d.dst] + d.distance * ii < starts[d.src] + d.latency:
            yield _too_early(laid, d)
    copies = [copy for storage in laid.loop.storages for copy in _laid_out(laid, storage)]
    for copy in copies:
        yield from _out_of_order(laid, copy)
    yield from _at_one_cycle(laid, asked, copies)


# One copy of a storage --------------------------------------------------------------------


@quickly
@dataclass(frozen=True, slots=True)
class Turn:
    """A touch in one iteration, in absolute time."""

    touch: Touch
    op: Op
    """Who touches."""
    iteration: int
    begin: int
    end: int
    """When the operation is wholly done."""
    first: bool
    """Whether it belongs to the first turn of the copy: the others repeat what this one shows."""


@quickly
@dataclass(frozen=True, slots=True)
class _Copy:
    """All that happens to one copy, in the order of the sequential program."""

    storage: Storage
    turns: Sequence[Turn]
    flows: set[tuple[str, str, int]]
    """Maker and reader of values that live here, and the iterations between them."""

    def needed(self, a: Turn, b: Turn, feeder: Turn | None) -> int | None:
        """Cycles from the start of a touch to that of a later one; None: they need no order.

        `feeder`: whose write the later one finds.
        """
        if a.op.name == b.op.name:
            updates = self.storage.fixed and a.touch.reads and a.touch.writes
            if updates or a.iteration == b.iteration:
                return None
        if b.touch.writes or not a.touch.writes or a is not feeder:
            return a.op.completion
        apart = b.iteration - a.iteration
        if (a.op.name, b.op.name, apart) in self.flows:
            return None  # operands say when, and are looked at themselves
        return a.op.ready if apart == 0 or not self.storage.fixed else a.op.completion


def _laid_out(laid: Layout, storage: Storage) -> Iterator[_Copy]:
    """A copy of a storage that is written, once all that touch it are placed."""
    touched, kept = laid.touched[storage.name], laid.kept[storage.name]
    if kept is None or not any(touch.writes for touch in touched):
        return
    if storage.fixed:
        rows = [(touch, i, i == 0) for i in range(SHOWN) for touch in touched]
    else:
        inside: Sequence[Touch] = touched
        if any(touch.back for touch in touched):
            inside = sorted(touched, key=lambda touch: (touch.back, touch.position))
        copies = min(kept.copies, storage.depth or kept.copies)
        rows = [(touch, at + touch.back, at == 0) for at in (0, copies) for touch in inside]
    turns: list[Turn] = []
    starts, ii = laid.starts, laid.ii
    for touch, i, first in rows:
        op = touch.op
        begin = starts[op.name] + i * ii
        turns.append(Turn(touch, op, i, begin, begin + op.completion, first))
    yield _Copy(storage, turns, laid.flows[storage.name])


def _out_of_order(laid: Layout, copy: _Copy) -> Iterator[Violation]:
    """Touches that begin before an earlier one allows it; each two operations are told once."""
    told: set[tuple[str, str]] = set()
    reads, writes = list[Turn](), list[Turn]()
    read_until, written_until = 0, 0
    for turn in copy.turns:
        before = list(writes) if turn.begin < written_until else []
        if turn.touch.writes and turn.begin < read_until:
            before += reads
        feeder = writes[-1] if writes else None
        for earlier in before:
            pair = (earlier.op.name, turn.op.name)
            if not earlier.first or earlier.end <= turn.begin or pair in told:
                continue
            needed = copy.needed(earlier, turn, feeder)
            if needed is not None and earlier.begin + needed > turn.begin:
                told.add(pair)
                yield _too_early(laid, _as_dependence(copy.storage, earlier, turn, needed))
        if turn.touch.writes:
            writes.append(turn)
            written_until = max(written_until, turn.end)
        else:
            reads.append(turn)
            read_until = max(read_until, turn.end)


# Operations that take no time -------------------------------------------------------------


def _at_one_cycle(
    laid: Layout, asked: Sequence[Dependence], copies: Sequence[_Copy]
) -> Iterator[Violation]:
    """What takes no time hands on in the cycle in which it takes: some order must do that."""
    waits: dict[str, set[str]] = {}
    for d in asked:
        if d.latency == 0 and d.src != d.dst and laid.at(d.src, 0) == laid.at(d.dst, d.distance):
            waits.setdefault(d.dst, set()).add(d.src)
    for copy in copies:
        if all(turn.op.latency for turn in copy.turns):
            continue  # each needs time before the next
        for earlier, later in _at_once(copy):
            waits.setdefault(later, set()).add(earlier)
    if not waits:
        return
    try:
        TopologicalSorter(waits).prepare()
    except CycleError as error:
        way = cast("list[str]", error.args[1])
        names = tuple(dict.fromkeys(way))
        message = (
            f"{listed(names)} start in one cycle and take no time; each has to come before the "
            f"next of {' -> '.join(way)}: no order of them serves all"
        )
        yield Violation("dependence", message, names, (("ii", laid.ii),))


def _at_once(copy: _Copy) -> Iterator[tuple[str, str]]:
    """Operations of one cycle, the first of which needs no time before the second."""
    beginning: dict[int, list[Turn]] = {}
    feeder: Turn | None = None
    for turn in copy.turns:
        for earlier in beginning.get(turn.begin, ()):
            if earlier.op.name == turn.op.name:
                continue
            writes = earlier.touch.writes or turn.touch.writes
            if writes and copy.needed(earlier, turn, feeder) == 0:
                yield earlier.op.name, turn.op.name
        beginning.setdefault(turn.begin, []).append(turn)
        feeder = turn if turn.touch.writes else feeder


# Words ------------------------------------------------------------------------------------


def _as_dependence(storage: Storage, earlier: Turn, later: Turn, needed: int) -> Dependence:
    kind: DependenceKind = "memory"
    if not earlier.touch.writes:
        kind = "anti"
    elif later.touch.writes:
        kind = "output"
    apart = later.iteration - earlier.iteration
    return Dependence(earlier.op.name, later.op.name, needed, apart, kind, storage.name)


def _too_early(laid: Layout, d: Dependence) -> Violation:
    allowed, starts = laid.at(d.src, 0) + d.latency, laid.at(d.dst, d.distance)
    later = ""
    if d.distance:
        plural = "iteration" if d.distance == 1 else "iterations"
        later = f" (start {laid.starts[d.dst]}, {d.distance} {plural} later)"
    state = "ready" if d.kind in ("flow", "memory") else "done"
    message = (
        f"`{d.dst}` starts at {starts}{later}; `{d.src}` is {state} at {allowed} "
        f"(start {laid.starts[d.src]} + latency {d.latency}, distance {d.distance}, II {laid.ii})"
    )
    detail = (
        ("kind", d.kind),
        ("via", d.via),
        ("starts", starts),
        ("allowed", allowed),
        ("latency", d.latency),
        ("distance", d.distance),
        ("ii", laid.ii),
    )
    return Violation("dependence", message, tuple(dict.fromkeys((d.src, d.dst))), detail)
