"""What a loop is bound by: a unit that is always busy, or else what its agents wait for.

units    tensor core 2048, special 1024, arithmetic 1190, copies 1024   of 2374 cycles
agents   compute: work 1130, products 820, k_tile 104, ...
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stretto.prediction.flow import Costing
from stretto.prediction.running import loops_of
from stretto.prediction.score import AgentScore, LoopScore

FULL = 0.95
"""Part of the time from which on a unit counts as always busy."""
TENSOR, SPECIAL, ARITHMETIC, COPIES = "tensor core", "MUFU", "arithmetic", "copies"
ISSUE, LATENCY, BARRIERS, COPIED = "issue", "latency", "barriers", "wait for copies"
CODED, OTHER = "by machine code", "other"
SHORT = "few trips"
"""Of a loop that ends before its steps are steady."""
_KINDS = {
    "issue": ISSUE,
    "work": ISSUE,
    "store": ISSUE,
    CODED: ISSUE,
    "wait for products": LATENCY,
    "wait for loads": LATENCY,
    "arrive": BARRIERS,
    "wait for memory": "memory",
    "more trips": OTHER,
    OTHER: OTHER,
}
"""Of what kind the parts of an iteration are; all others wait for copies."""


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


def kinds_of(spent: Mapping[str, Mapping[str, float]]) -> tuple[str, dict[str, float]]:
    """The agent that computes, and cycles of its iteration by kind; the first where several do."""
    computing = [a for a, by in spent.items() if "work" in by or "wait for products" in by]
    agent = next(iter(computing or spent), "")
    kinds: dict[str, float] = {}
    for what, of in spent.get(agent, {}).items():
        kind = _KINDS.get(what, COPIED)
        kinds[kind] = kinds.get(kind, 0.0) + of
    return agent, kinds


def bound_of(cycles: float, units: Mapping[str, float], kinds: Mapping[str, float]) -> str:
    """What takes the time: a unit, or what the agent that computes spends most of it on."""
    if cycles <= 0:
        return "nothing"
    if not kinds:
        return SHORT
    unit = max(units, key=lambda name: units[name])
    if units[unit] >= FULL * cycles:
        return unit
    return max(kinds, key=lambda kind: kinds[kind])
