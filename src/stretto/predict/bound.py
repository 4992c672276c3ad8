"""What a loop is bound by: a unit that is always busy, or else what its agents wait for.

units    tensor core 2048, special 1024, arithmetic 1190, copies 1024   of 2374 cycles
agents   compute: work 1130, products 820, k_tile 104, ...
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stretto.emit.score import AgentScore, LoopScore
from stretto.predict.flow import Costing
from stretto.predict.running import loops_of

FULL = 0.95
"""Part of the time from which on a unit counts as always busy."""
TENSOR, SPECIAL, ARITHMETIC, COPIES = "tensor core", "MUFU", "arithmetic", "copies"


def units_of(number: int, scores: Iterable[AgentScore], costing: Costing) -> dict[str, float]:
    """Cycles of an iteration in which each unit is busy, whoever keeps it so."""
    found: dict[str, float] = dict.fromkeys((TENSOR, SPECIAL, ARITHMETIC, COPIES), 0.0)
    for score in scores:
        for loop in loops_of(score.parts):
            if not isinstance(loop, LoopScore) or loop.number != number:
                continue
            for beat in loop.kernel:
                if beat.kind == "product":
                    found[TENSOR] += costing.product(number, beat.op).cycles
                elif beat.kind == "work":
                    part = costing.inside(number, beat.op)
                    found[SPECIAL] += part.special
                    found[ARITHMETIC] += part.arithmetic
                elif beat.kind == "copy" and beat.operation is not None:
                    source = costing.sources.get(beat.operation, "hbm")
                    found[COPIES] += beat.bytes / costing.timings.costs.rate[source]
    left = costing.timings.costs.beside
    found[ARITHMETIC] += (1 - left) * found[TENSOR]
    return found


def bound_of(
    cycles: float, units: Mapping[str, float], spent: Mapping[str, Mapping[str, float]]
) -> str:
    """What takes the time: a unit, or what the busiest agent waits for most."""
    if cycles <= 0:
        return "nothing"
    unit = max(units, key=lambda name: units[name])
    if units[unit] >= FULL * cycles:
        return unit
    kinds = {"issue": 0.0, "copies": 0.0, "barriers": 0.0, "latency": 0.0}
    consumers = [by for by in spent.values() if "work" in by or "wait for products" in by]
    for by in consumers[:1]:
        for what, of in by.items():
            if what in ("issue", "work"):
                kinds["issue"] += of
            elif what in ("wait for products", "wait for loads"):
                kinds["latency"] += of
            elif what == "arrive":
                kinds["barriers"] += of
            else:
                kinds["copies"] += of
    return max(kinds, key=lambda kind: kinds[kind])
