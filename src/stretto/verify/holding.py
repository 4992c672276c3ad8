"""What operations hold and draw: slot, pool.

    tp_smem_wr, capacity 1     iteration 0   ████████·······
                               iteration 1          ████████·······       cycle 23: 2 held

A published fused group holds each of its slots once, use by use: from the earliest offset to the
latest end, with the largest occupancy. Whether it may be fused at all is another rule's business.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from typing import Literal

from stretto.loop import Op
from stretto.verify.case import Case, Moment, Run, Span, Violation, listed

SHOWN = 6
"""Holders that a message names before it says how many more there are."""


def slot(case: Case) -> Iterator[Violation]:
    """In no cycle is more of a slot held than its capacity."""
    for name, spans in _holds(case).items():
        if not case.machine.has_slot(name):
            users = _names(spans)
            message = f"{listed(users)} uses slot `{name}`, which {case.machine.name} has not"
            yield Violation("slot", message, users, (("slot", name),))
            continue
        capacity = case.machine.slot(name).capacity
        if capacity is not None:
            yield from _overfull(case, _Limit("slot", name, capacity), spans)


def pool(case: Case) -> Iterator[Violation]:
    """In no cycle is more drawn from a pool than its cap."""
    draws: dict[str, list[Span]] = {}
    for op in case.placed:
        begin = case.starts[op.name]
        end = begin + op.vector.duration
        for demand in op.demands:
            draws.setdefault(demand.pool, []).append(Span((op.name,), begin, end, demand.units))
    for name, spans in draws.items():
        if not case.machine.has_pool(name):
            users = _names(spans)
            message = f"{listed(users)} draws on pool `{name}`, which {case.machine.name} has not"
            yield Violation("pool", message, users, (("pool", name),))
            continue
        yield from _overfull(case, _Limit("pool", name, case.machine.pool(name).cap), spans)


def _holds(case: Case) -> dict[str, list[Span]]:
    """Per slot, what iteration 0 holds of it; members that start together hold once."""
    group_of: dict[str, int] = {}
    for number, members in enumerate(case.analysis.fused):
        for name in members:
            group_of.setdefault(name, number)
    together: dict[tuple[int | str, int], list[Op]] = {}
    for op in case.placed:
        group = group_of.get(op.name, op.name)
        together.setdefault((group, case.starts[op.name]), []).append(op)
    spans: dict[str, list[Span]] = {}
    for (_, start), members in together.items():
        joined: dict[tuple[str, int], Span] = {}
        for op in members:
            for key, span in _own(op, start).items():
                joined[key] = _join(joined[key], span) if key in joined else span
        for (name, _), span in joined.items():
            spans.setdefault(name, []).append(span)
    return spans


def _own(op: Op, start: int) -> dict[tuple[str, int], Span]:
    """The holds of one operation, numbered slot by slot in order of time."""
    spans: dict[tuple[str, int], Span] = {}
    held = [use for use in op.vector.uses if use.duration > 0]
    numbers: Counter[str] = Counter()
    for use in sorted(held, key=lambda use: use.offset):
        number = numbers[use.slot]
        numbers[use.slot] += 1
        begin = start + use.offset
        span = Span((op.name,), begin, begin + use.duration, use.occupancy)
        spans[use.slot, number] = span
    return spans


def _join(a: Span, b: Span) -> Span:
    owner = (*a.owner, *b.owner)
    return Span(owner, min(a.begin, b.begin), max(a.end, b.end), max(a.amount, b.amount))


@dataclass(frozen=True, slots=True)
class _Limit:
    """A slot's capacity or a pool's cap, with the words of its rule."""

    rule: Literal["slot", "pool"]
    name: str
    most: int

    def __str__(self) -> str:
        word = "capacity" if self.rule == "slot" else "cap"
        return f"{self.rule} `{self.name}` ({word} {self.most})"

    @property
    def verb(self) -> str:
        return "holds" if self.rule == "slot" else "draws"

    @property
    def total(self) -> str:
        return "held" if self.rule == "slot" else "drawn"

    def violation(self, message: str, ops: tuple[str, ...], **numbers: int) -> Violation:
        detail = ((self.rule, self.name), ("limit", self.most), *numbers.items())
        return Violation(self.rule, message, ops, detail)


def _overfull(case: Case, limit: _Limit, spans: list[Span]) -> Iterator[Violation]:
    """Every distinct way in which too much is held at once."""
    fitting: list[Span] = []
    for span in spans:
        # Over the limit on average: it meets itself, and everything else meets it.
        if span.amount * (span.end - span.begin) > limit.most * case.ii:
            yield _alone(case, limit, span)
        elif span.amount:
            fitting.append(span)
    seen: set[frozenset[tuple[tuple[str, ...], int, int]]] = set()
    for moment in case.moments(fitting, limit.most):
        oldest = min(run.first for run in moment.held)
        holders = frozenset((r.span.owner, r.first - oldest, r.last - oldest) for r in moment.held)
        if holders not in seen:
            seen.add(holders)
            yield _together(case, limit, moment, oldest)


def _alone(case: Case, limit: _Limit, span: Span) -> Violation:
    cycles = span.end - span.begin
    message = (
        f"{listed(span.owner)} alone {limit.verb} {span.amount} of {limit} for {cycles} cycles; "
        f"II {case.ii} leaves at most {limit.most * case.ii // span.amount}"
    )
    return limit.violation(message, span.owner, cycles=cycles, amount=span.amount, ii=case.ii)


def _together(case: Case, limit: _Limit, moment: Moment, oldest: int) -> Violation:
    """Told from the oldest iteration that takes part, as iteration 0."""
    cycle = moment.cycle - oldest * case.ii
    lines = [
        f"{listed(span.owner)} of iteration {iteration} {limit.verb} {span.amount} "
        f"from {begin} to {begin + span.end - span.begin}"
        for begin, iteration, span in islice(_by_begin(case, moment.held, oldest), SHOWN)
    ]
    holders = sum(run.count for run in moment.held)
    if holders > SHOWN:
        lines.append(f"and {holders - SHOWN} more")
    message = (
        f"of {limit}, {moment.load} is {limit.total} at cycle {cycle} (II {case.ii}): "
        f"{'; '.join(lines)}"
    )
    owners = _names([run.span for run in moment.held])
    return limit.violation(message, owners, cycle=cycle, load=moment.load, ii=case.ii)


def _by_begin(case: Case, runs: tuple[Run, ...], oldest: int) -> Iterator[tuple[int, int, Span]]:
    """Begin and iteration of all that is held, the earliest first, told from the oldest."""

    def each(run: Run) -> Iterator[tuple[int, int, Span]]:
        for iteration in range(run.first - oldest, run.last - oldest + 1):
            yield run.span.begin + iteration * case.ii, iteration, run.span

    return merge(*map(each, runs), key=lambda held: held[0])


def _names(spans: list[Span]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for span in spans for name in span.owner))
