"""What operations draw: pool.

    regbank, cap 2     iteration 0   11··22
                       iteration 1       11··22       cycle 4: 3 drawn

An operation draws all it asks for from its start, for as long as it holds anything.
"""

from __future__ import annotations

from collections.abc import Iterator

from stretto.verify.layout import Layout, Limit, Span, Violation, listed, names_of, overfull


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
