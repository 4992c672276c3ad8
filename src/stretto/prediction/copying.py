"""Where copies come from: how many blocks of a wave ask for the same tile.

block 0  A row 0, B column 0        A is asked for by 8 blocks at once, B by 16;
block 1  A row 1, B column 0        the first of them goes to memory, the others wait with it
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from stretto.kernel import Kernel, Operation
from stretto.kernel.types import Buffer, Scalar
from stretto.prediction.instructions import Costs
from stretto.prediction.numbers import Number, Numbers
from stretto.prediction.score import AgentScore, Around, Beat, LoopScore, Part
from stretto.prediction.timings import MANY, Timings

WAVES = 2
"""Blocks of an SM of which most are not its first."""
WIDE = 128
"""Bytes of a row from which on it is loaded as fast as memory goes."""


def loads(parts: Iterable[Part]) -> list[tuple[int | None, list[Beat]]]:
    """All copies in of a score, each once: those of each loop, by its number, and of none."""
    found: list[tuple[int | None, list[Beat]]] = []
    for part in parts:
        if isinstance(part, LoopScore):
            found.append((part.number, [beat for beat in part.kernel if beat.kind == "copy"]))
        elif isinstance(part, Around):
            found += loads(part.body)
        elif part.kind == "copy":
            found.append((None, [part]))
    return found


def sources(
    kernel: Kernel,
    scores: Iterable[AgentScore],
    held: Callable[[int], float],
    turns: Callable[[int | None], float],
    timings: Timings,
    blocks: int,
    numbers_of: Callable[[int], Numbers],
    clock: float,
    shared: dict[Operation, float] | None = None,
) -> tuple[Costs, dict[Operation, str]]:
    """Costs with a source of its own for each degree of sharing, and the source of each copy.

    `held` tells how long an iteration's products hold the tensor core, `turns` how often a loop
    goes round in a block. `shared` keeps by how many blocks a copy is shared, for another of the
    same kernel and grid.
    """
    timings = at_clock(timings, clock)
    costs = timings.costs
    found: dict[Operation, str] = {}
    latency, rates = dict(costs.latency), dict(costs.rate)
    groups = [group for score in scores for group in loads(score.parts)]
    known = {} if shared is None else shared
    every = [beat.operation for _, beats in groups for beat in beats if beat.operation]
    share(kernel, every, range(min(blocks, timings.sms)), numbers_of, known)
    # What fits into the cache is found there. So is what others load too by most blocks where many
    # follow others on their SMs: those are out of step, and one of them comes first.
    fits = timings.cached >= sum(
        beat.bytes * turns(loop) * blocks / known[beat.operation]
        for loop, beats in groups
        for beat in beats
        if loop is not None and beat.operation
    )
    follow = blocks > WAVES * timings.sms
    for loop, beats in groups:
        copies = [(beat.operation, beat.bytes) for beat in beats if beat.operation]
        rate = {
            op: shared_rate(known[op], timings, narrow=row_bytes(op) < WIDE) for op, _ in copies
        }
        # Blocks whose copies are the longest run as fast as they can, and so fall out of step: then
        # only those share a tile that stand side by side.
        if loop is not None and sum(n / rate[op] for op, n in copies) > held(loop):
            rate = out_of_step(kernel, [op for op, _ in copies], known, timings, numbers_of, blocks)
        for op, _ in copies:
            source = "l2" if fits or (follow and known[op] > 1) else "hbm"
            name = f"{source}, shared by {known[op]:.0f} at {rate[op]:.1f}"
            found[op], latency[name], rates[name] = name, costs.latency[source], rate[op]
    return replace(costs, latency=latency, rate=rates), found


def at_clock(timings: Timings, clock: float) -> Timings:
    """Copies at a clock of the SMs.

    What is outside of them has clocks of its own, and takes as many nanoseconds whatever theirs is.
    What several load at once is held up by their own port as well.
    """
    slow = clock / timings.memory
    partly = 1 + (slow - 1) * timings.outside
    return replace(
        timings,
        costs=replace(
            timings.costs,
            latency={source: late * slow for source, late in timings.costs.latency.items()},
            rate={source: rate / slow for source, rate in timings.costs.rate.items()},
        ),
        alone={source: rate / slow for source, rate in timings.alone.items()},
        together=timings.together / partly,
        apart=timings.apart / slow,
    )


def shared_rate(sharing: float, timings: Timings, *, narrow: bool = False) -> float:
    """Bytes a cycle of a copy that so many blocks share, while they are in step.

    What they share comes from HBM once, and then from the cache.
    """
    some = min(1.0, (sharing - 1) / (MANY - 1))
    cached = timings.alone["l2"] + (timings.together - timings.alone["l2"]) * some
    return min(cached * (timings.narrow[0] if narrow else 1.0), once(sharing, timings))


def out_of_step(
    kernel: Kernel,
    copies: Sequence[Operation],
    known: Mapping[Operation, float],
    timings: Timings,
    numbers_of: Callable[[int], Numbers],
    blocks: int,
) -> dict[Operation, float]:
    """Bytes a cycle of copies of blocks that run as fast as they can; `known`: who shares them.

    What neighbours share is held up by the SM's own port alone, so that this may be more than while
    they are in step.
    """
    beside = neighbours(kernel, copies, numbers_of, blocks)
    rate: dict[Operation, float] = {}
    for op in copies:
        some, alone = timings.narrow if row_bytes(op) < WIDE else (1.0, 1.0)
        apart = timings.costs.port * some if op in beside else timings.apart * alone
        rate[op] = min(apart, once(known[op], timings))
    return rate


def once(sharing: float, timings: Timings) -> float:
    """Bytes a cycle of what comes from HBM once for so many blocks."""
    return timings.alone["hbm"] * max(1.0, sharing)


def row_bytes(operation: Operation) -> int:
    """Of the tile that a copy brings."""
    made = operation.results[0].type if operation.results else None
    return made.shape[-1] * made.element.bits // 8 if isinstance(made, Buffer) else WIDE


def share(
    kernel: Kernel,
    copies: Iterable[Operation],
    wave: range,
    numbers_of: Callable[[int], Numbers],
    known: dict[Operation, float],
) -> None:
    """By how many blocks of a wave each copy is shared, where it is not known yet."""
    new = [operation for operation in copies if operation not in known]
    for operation, different in _tiles(kernel, new, wave, numbers_of).items():
        known[operation] = len(wave) / max(1, different)


def neighbours(
    kernel: Kernel, copies: Iterable[Operation], numbers_of: Callable[[int], Numbers], blocks: int
) -> set[Operation]:
    """Copies that blocks share which stand side by side."""
    first = range(min(blocks, int(2 * MANY)))
    found = _tiles(kernel, list(copies), first, numbers_of)
    return {operation for operation, different in found.items() if different * 2 <= len(first)}


def _tiles(
    kernel: Kernel, copies: Sequence[Operation], blocks: range, numbers_of: Callable[[int], Numbers]
) -> dict[Operation, int]:
    """How many different tiles the copies of some blocks begin with."""
    tiles: dict[Operation, set[tuple[Number | None, ...]]] = {}
    for block in blocks if copies else ():
        numbers = numbers_of(block)
        _first_turns(kernel, numbers)
        for operation in copies:
            at = [v for v in operation.operands[1:-1] if isinstance(v.type, Scalar)]
            tiles.setdefault(operation, set()).add(tuple(numbers.of(v) for v in at))
    return {operation: len(different) for operation, different in tiles.items()}


def _first_turns(kernel: Kernel, numbers: Numbers) -> None:
    """Counters of all loops at their beginning."""
    for operation in kernel.walk():
        if operation.name == "scf.for":
            begin = numbers.of(operation.operands[0])
            numbers.bind(operation.regions[0].arguments[0], begin)
