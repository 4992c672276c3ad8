"""Where copies come from: how many blocks of a wave ask for the same tile.

block 0  A row 0, B column 0        A is asked for by 8 blocks at once, B by 16;
block 1  A row 1, B column 0        the first of them goes to memory, the others wait with it
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from stretto.emit.score import AgentScore, Around, Beat, LoopScore, Part
from stretto.kernel import Kernel, Operation
from stretto.kernel.types import Scalar
from stretto.predict.engine import Costs
from stretto.predict.numbers import Number, Numbers
from stretto.predict.timings import Timings, rate


def loads(parts: Iterable[Part]) -> list[Beat]:
    """All copies in of a score, each once."""
    found: list[Beat] = []
    for part in parts:
        if isinstance(part, LoopScore):
            found += [beat for beat in part.kernel if beat.kind == "copy"]
        elif isinstance(part, Around):
            found += loads(part.body)
        elif part.kind == "copy":
            found.append(part)
    return found


def sources(
    kernel: Kernel,
    scores: Iterable[AgentScore],
    timings: Timings,
    blocks: int,
    numbers_of: Callable[[int], Numbers],
    clock: float,
    shared: dict[Operation, float] | None = None,
) -> tuple[Costs, dict[Operation, str]]:
    """Costs with a source of its own for each degree of sharing, and the source of each copy.

    `shared` keeps by how many blocks a copy is shared, for another of the same kernel and grid.
    """
    costs = timings.costs
    found: dict[Operation, str] = {}
    latency, rates = dict(costs.latency), dict(costs.rate)
    copies = [b.operation for score in scores for b in loads(score.parts) if b.operation]
    known = {} if shared is None else shared
    share(kernel, copies, range(min(blocks, timings.sms)), numbers_of, known)
    for operation in dict.fromkeys(copies):
        name = f"hbm, shared by {known[operation]:.0f}"
        found[operation] = name
        latency[name] = costs.latency["hbm"]
        rates[name] = shared_rate(known[operation], timings, clock)
    return replace(costs, latency=latency, rate=rates), found


def shared_rate(sharing: float, timings: Timings, clock: float) -> float:
    """Bytes a cycle of a copy that so many blocks share."""
    return rate(timings.shares["hbm"], sharing) * timings.memory / clock


def share(
    kernel: Kernel,
    copies: Iterable[Operation],
    wave: range,
    numbers_of: Callable[[int], Numbers],
    known: dict[Operation, float],
) -> None:
    """By how many blocks of a wave each copy is shared, where it is not known yet."""
    new = [operation for operation in copies if operation not in known]
    tiles: dict[Operation, set[tuple[Number | None, ...]]] = {}
    for block in wave if new else ():
        numbers = numbers_of(block)
        _first_turns(kernel, numbers)
        for operation in new:
            at = [v for v in operation.operands[1:-1] if isinstance(v.type, Scalar)]
            tiles.setdefault(operation, set()).add(tuple(numbers.of(v) for v in at))
    for operation, different in tiles.items():
        known[operation] = len(wave) / max(1, len(different))


def _first_turns(kernel: Kernel, numbers: Numbers) -> None:
    """Counters of all loops at their beginning."""
    for operation in kernel.walk():
        if operation.name == "scf.for":
            begin = numbers.of(operation.operands[0])
            numbers.bind(operation.regions[0].arguments[0], begin)
