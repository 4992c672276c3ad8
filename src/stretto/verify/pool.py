"""What operations draw: pool.

    regbank, cap 2     iteration 0   11··22
                       iteration 1       11··22       cycle 4: 3 drawn

An operation draws all it asks for from its start, for as long as it holds anything.
"""

from __future__ import annotations

from collections.abc import Iterator

from stretto.verify.case import Case, Span, Violation, listed
from stretto.verify.overfull import Limit, names_of, overfull


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
            users = names_of(spans)
            message = f"{listed(users)} draws on pool `{name}`, which {case.machine.name} has not"
            yield Violation("pool", message, users, (("pool", name),))
            continue
        yield from overfull(case, Limit("pool", name, case.machine.pool(name).cap), spans)
