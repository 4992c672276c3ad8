"""What programs compute on: terms that remember everything they were made of, or real arrays.

    mma(iteration 3, a = load_a(3, ..), b = load_b(3, ..), acc = write(mma(2, ..)))

Two executions are equal when every operation made the same value in every iteration and left the
same content in every storage it wrote. Terms are interned, so equal terms are equal numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from stretto.loop import Fault, Loop, Op, topological_order
from stretto.materialization.origins import Origins

Datum = Any
"""A value of a domain: an interned term, an array, a number."""


class Domain(Protocol):
    """How operations compute."""

    def live_in(self, value: str, iteration: int) -> Datum:
        """A value from outside, as an iteration sees it."""
        ...

    def initial(self, value: str, iteration: int) -> Datum:
        """A carried value before the loop; the iteration is negative."""
        ...

    def content(self, storage: str, iteration: int) -> Datum:
        """What a storage holds before the loop; the iteration is negative."""
        ...

    def apply(
        self, op: Op, iteration: int, operands: Sequence[Datum], reads: Sequence[Datum]
    ) -> tuple[Datum, ...]:
        """The results of an operation, or one value where it has none."""
        ...

    def alias(self, op: Op, iteration: int) -> Datum:
        """The result of a view that does not look at what it names."""
        ...

    def stored(self, op: Op, storage: str, made: tuple[Datum, ...], before: Datum | None) -> Datum:
        """What a storage holds after an operation wrote it; `before`: None in a fresh copy."""
        ...

    def same(self, a: Datum, b: Datum) -> bool:
        """Whether two values are equal."""
        ...


class Symbolic:
    """Terms, interned: the same number stands for the same term."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[object, ...], int] = {}

    def _term(self, *parts: object) -> int:
        return self._numbers.setdefault(parts, len(self._numbers))

    def live_in(self, value: str, iteration: int) -> Datum:
        """One term for each iteration: it may be the loop's own counter."""
        return self._term("live-in", value, iteration)

    def initial(self, value: str, iteration: int) -> Datum:
        """One term for each iteration before the first."""
        return self._term("initial", value, iteration)

    def content(self, storage: str, iteration: int) -> Datum:
        """One term for each iteration before the first."""
        return self._term("content", storage, iteration)

    def apply(
        self, op: Op, iteration: int, operands: Sequence[Datum], reads: Sequence[Datum]
    ) -> tuple[Datum, ...]:
        """A term of the operation, its iteration and all it saw."""
        made = self._term("op", op.name, iteration, tuple(operands), tuple(reads))
        if len(op.results) <= 1:
            return (made,)
        return tuple(self._term("result", made, n) for n in range(len(op.results)))

    def alias(self, op: Op, iteration: int) -> Datum:
        """A term of the view alone."""
        return self._term("alias", op.name, iteration)

    def stored(self, op: Op, storage: str, made: tuple[Datum, ...], before: Datum | None) -> Datum:
        """A write may leave parts of what was there before."""
        return self._term("stored", op.name, storage, made, before)

    def same(self, a: Datum, b: Datum) -> bool:
        """Equal terms have equal numbers."""
        return a == b


@dataclass(slots=True)
class Trace:
    """What an execution made."""

    results: dict[tuple[str, int], tuple[Datum, ...]] = field(
        default_factory=dict[tuple[str, int], tuple[Datum, ...]]
    )
    """By operation and iteration."""
    writes: dict[tuple[str, int, str], Datum] = field(
        default_factory=dict[tuple[str, int, str], Datum]
    )
    """By operation, iteration and storage: what the storage held afterwards."""
    final: dict[str, Datum] = field(default_factory=dict[str, Datum])
    """What storages of one copy hold in the end."""


BEFORE = -1
"""The iteration whose content a storage of one copy has before the loop."""


def rotating(loop: Loop) -> set[str]:
    """Storages of which each iteration fills a copy of its own."""
    written = {name for op in loop.ops for name in op.writes}
    return {s.name for s in loop.storages if not s.fixed} & written


def run_sequential(loop: Loop, domain: Domain, iterations: int) -> Trace:
    """One operation after the other, one iteration after the other."""
    return _Sequential(loop, domain).run(iterations)


def _in_order(loop: Loop) -> Sequence[Op]:
    """The program's order; where that names values before they are made, one that does not."""
    made: set[str] = set()
    for op in loop.ops:
        taken = {operand.value for operand in op.operands if not operand.distance}
        if any(value in loop.producers and value not in made for value in taken):
            order = topological_order(loop)
            return loop.ops if isinstance(order, Fault) else [loop.ops[i] for i in order]
        made.update(op.results)
    return loop.ops


class _Sequential:
    def __init__(self, loop: Loop, domain: Domain) -> None:
        self._loop = loop
        self._domain = domain
        self._origins = Origins(loop)
        self._seen = {op.name: self._origins.seen(op) for op in loop.ops}
        self._trace = Trace()
        self._values: dict[tuple[str, int], Datum] = {}
        self._contents: dict[tuple[str, int], Datum] = {}
        self._rotating = rotating(loop)

    def run(self, iterations: int) -> Trace:
        order = _in_order(self._loop)
        for iteration in range(iterations):
            for op in order:
                self._issue(op, iteration)
        for storage in self._loop.storages:
            if storage.name not in self._rotating:
                self._trace.final[storage.name] = self._held(storage.name, BEFORE)
        return self._trace

    def _issue(self, op: Op, iteration: int) -> None:
        view = self._origins.views.get(op.name)
        if view is not None and view.kind == "storage":
            made: tuple[Datum, ...] = (self._domain.alias(op, iteration),)
        else:
            reads = [
                self._read(r.storage, iteration - r.distance) for r in self._loop.reads[op.name]
            ]
            operands = self._operands(op, iteration, reads)
            made = self._domain.apply(op, iteration, operands, reads)
        self._trace.results[op.name, iteration] = made
        for name, datum in zip(op.results, made, strict=False):
            self._values[name, iteration] = datum
        for storage in op.writes:
            self._write(op, storage, iteration, made)

    def _operands(self, op: Op, iteration: int, reads: Sequence[Datum]) -> list[Datum]:
        found: list[Datum] = []
        for operand, seen in zip(op.operands, self._seen[op.name], strict=True):
            at = iteration - operand.distance
            if seen.kind == "stored":
                datum = reads[seen.read]
                for name in reversed(seen.path.views):
                    (datum,) = self._domain.apply(self._loop.op(name), iteration, [datum], [])
                found.append(datum)
            elif at < 0:
                found.append(self._domain.initial(operand.value, at))
            elif operand.value in self._loop.producers:
                found.append(self._values[operand.value, at])
            else:
                found.append(self._domain.live_in(operand.value, at))
        return found

    def _read(self, storage: str, iteration: int) -> Datum:
        return self._held(storage, iteration if storage in self._rotating else BEFORE)

    def _held(self, storage: str, iteration: int) -> Datum:
        if (storage, iteration) not in self._contents:
            return self._domain.content(storage, iteration)
        return self._contents[storage, iteration]

    def _write(self, op: Op, storage: str, iteration: int, made: tuple[Datum, ...]) -> None:
        if storage in self._rotating:
            before = self._contents.get((storage, iteration))
            key = (storage, iteration)
        else:
            before, key = self._held(storage, BEFORE), (storage, BEFORE)
        after = self._domain.stored(op, storage, made, before)
        self._contents[key] = after
        self._trace.writes[op.name, iteration, storage] = after
