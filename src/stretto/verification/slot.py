"""What operations hold and draw: slot, pool.

    tp_smem_wr, capacity 1     iteration 0   ████████·······
                               iteration 1          ████████·······       cycle 23: 2 held

A published fused group holds each of its slots once, use by use: from the earliest offset to the
latest end, with the largest occupancy. Whether it may be fused at all is another rule's business.

    regbank, cap 2             iteration 0   11··22
                               iteration 1       11··22       cycle 4: 3 drawn

An operation draws all it asks for from a pool from its start, for as long as it holds anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from stretto.loop import Op, Use
from stretto.verification.layout import Layout, Limit, Span, Violation, listed, names_of, overfull


def slot(laid: Layout) -> Iterator[Violation]:
    """In no cycle is more of a slot held than its capacity."""
    for name, spans in holds(laid).items():
        if not laid.machine.has_slot(name):
            users = names_of(spans)
            message = f"{listed(users)} uses slot `{name}`, which {laid.machine.name} has not"
            yield Violation("slot", message, users, (("slot", name),))
            continue
        capacity = laid.machine.slot(name).capacity
        if capacity is not None:
            yield from overfull(laid, Limit("slot", name, capacity), spans)


def holds(laid: Layout) -> dict[str, list[Span]]:
    """Per slot, what iteration 0 holds of it; members that start together hold once."""
    if laid.analysis.fused:
        return _joined(laid)
    starts = laid.starts
    spans: dict[str, list[Span]] = {}
    for op in laid.placed:
        if op.uses:
            owner, start = (op.name,), starts[op.name]
            for use in op.uses if len(op.uses) == 1 else _held(op):
                if use.duration > 0:
                    begin = start + use.offset
                    span = Span(owner, begin, begin + use.duration, use.occupancy)
                    spans.setdefault(use.slot, []).append(span)
    return spans


def _joined(laid: Layout) -> dict[str, list[Span]]:
    """The same where operations are fused."""
    group_of: dict[str, int] = {}
    for number, members in enumerate(laid.analysis.fused):
        for name in members:
            group_of.setdefault(name, number)
    together: dict[tuple[int | str, int], list[Op]] = {}
    for op in laid.placed:
        group = group_of.get(op.name, op.name)
        together.setdefault((group, laid.starts[op.name]), []).append(op)
    spans: dict[str, list[Span]] = {}
    for (_, start), members in together.items():
        joined: dict[tuple[str, int], Span] = {}
        for op in members:
            for key, span in _own(op, start).items():
                joined[key] = _join(joined[key], span) if key in joined else span
        for (name, _), span in joined.items():
            spans.setdefault(name, []).append(span)
    return spans


def _held(op: Op) -> list[Use]:
    """What lasts of an operation's uses, in order of time."""
    held = [use for use in op.vector.uses if use.duration > 0]
    return held if len(held) < 2 else sorted(held, key=lambda use: use.offset)


def _span(op: Op, use: Use, start: int) -> Span:
    begin = start + use.offset
    return Span((op.name,), begin, begin + use.duration, use.occupancy)


def _own(op: Op, start: int) -> dict[tuple[str, int], Span]:
    """The holds of one operation, numbered slot by slot in order of time."""
    spans: dict[tuple[str, int], Span] = {}
    numbers: Counter[str] = Counter()
    for use in _held(op):
        spans[use.slot, numbers[use.slot]] = _span(op, use, start)
        numbers[use.slot] += 1
    return spans


def _join(a: Span, b: Span) -> Span:
    owner = (*a.owner, *b.owner)
    return Span(owner, min(a.begin, b.begin), max(a.end, b.end), max(a.amount, b.amount))


def pool(laid: Layout) -> Iterator[Violation]:
    """In no cycle is more drawn from a pool than its cap."""
    for name, spans in draws(laid).items():
        if not laid.machine.has_pool(name):
            users = names_of(spans)
            message = f"{listed(users)} draws on pool `{name}`, which {laid.machine.name} has not"
            yield Violation("pool", message, users, (("pool", name),))
            continue
        yield from overfull(laid, Limit("pool", name, laid.machine.pool(name).cap), spans)


def draws(laid: Layout) -> dict[str, list[Span]]:
    """Per pool, what iteration 0 draws from it."""
    found: dict[str, list[Span]] = {}
    for op in laid.placed:
        if not op.demands:
            continue
        begin = laid.starts[op.name]
        end = begin + op.vector.duration
        for demand in op.demands:
            found.setdefault(demand.pool, []).append(Span((op.name,), begin, end, demand.units))
    return found
