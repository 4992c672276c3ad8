"""Where operations stand: order.

start    0        8           23        II = 15
         load     read        write
stage    0        0           1         start // II
order    0        1           0         rank inside the stage
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from stretto.verification.layout import Layout, Violation


def interval(laid: Layout) -> Iterator[Violation]:
    """There is an II, and it is at least 1."""
    ii = laid.analysis.ii
    if ii is None:
        yield Violation("order", "the schedule has no II")
    elif ii < 1:
        yield Violation("order", f"the II is {ii}; it must be at least 1", (), (("ii", ii),))


def target(laid: Layout) -> Iterator[Violation]:
    """The schedule is of this machine, where it says of which."""
    said = laid.analysis.machine
    if said not in ("", laid.machine.name):
        message = f"the schedule is said to be of machine `{said}`, not of `{laid.machine.name}`"
        detail = (("published", said), ("machine", laid.machine.name))
        yield Violation("order", message, (), detail)


def names(laid: Layout) -> Iterator[Violation]:
    """Every operation is placed, once, at 0 or later; nothing else is."""
    placements = laid.analysis.placements
    times = Counter([placement.op for placement in placements])
    for op in laid.loop.ops:
        if op.name not in times:
            yield Violation("order", f"`{op.name}` has no place", (op.name,))
    index = laid.loop.index
    for name, count in times.items():
        if name not in index:
            message = f"`{name}` is placed, but loop `{laid.loop.name}` has no such operation"
            yield Violation("order", message, (name,))
        if count > 1:
            starts = ", ".join(str(p.start) for p in placements if p.op == name)
            message = f"`{name}` is placed {count} times: at {starts}"
            yield Violation("order", message, (name,), (("times", count),))
    for placement in placements:
        if placement.start < 0:
            message = f"`{placement.op}` starts at {placement.start}; no start is below 0"
            yield Violation("order", message, (placement.op,), (("start", placement.start),))


def order(laid: Layout) -> Iterator[Violation]:
    """Origin, stage and order are as they follow from the starts."""
    yield from _origin(laid)
    yield from _stages(laid)
    yield from _ranks(laid)
    yield from _counts(laid)


def _origin(laid: Layout) -> Iterator[Violation]:
    if not laid.starts:
        return
    first = min(laid.starts, key=laid.starts.__getitem__)
    if laid.stage(first) > 0:
        start = laid.starts[first]
        message = (
            f"the first operation, `{first}`, starts at {start}: stage {laid.stage(first)} "
            f"at II {laid.ii}; the smallest stage is 0"
        )
        yield Violation("order", message, (first,), (("start", start), ("ii", laid.ii)))


def _stages(laid: Layout) -> Iterator[Violation]:
    ii = laid.ii
    for placement in laid.analysis.placements:
        stage, cycle = divmod(placement.start, ii)
        if placement.stage != stage:
            message = (
                f"`{placement.op}` is said to be in stage {placement.stage}; "
                f"start {placement.start} is in stage {stage} at II {laid.ii}"
            )
            detail = (("published", placement.stage), ("stage", stage), ("ii", laid.ii))
            yield Violation("order", message, (placement.op,), detail)
        if placement.cycle not in (None, cycle):
            message = (
                f"`{placement.op}` is said to be at cycle {placement.cycle}; "
                f"start {placement.start} is cycle {cycle} of stage {stage} at II {laid.ii}"
            )
            said = (("published", placement.cycle), ("cycle", cycle), ("ii", laid.ii))
            yield Violation("order", message, (placement.op,), said)


def _ranks(laid: Layout) -> Iterator[Violation]:
    if not laid.complete:
        return  # ranks among the operations that happen to be there would say nothing
    if not laid.levels:
        yield Violation("order", "dependences at distance 0 form a cycle: there is no order")
        return
    rank: dict[str, int] = {}
    filled: dict[int, int] = {}
    levels, index, ii = laid.levels, laid.loop.index, laid.ii
    for start, _, _, name in sorted(
        [(start, levels[name], index[name], name) for name, start in laid.starts.items()]
    ):
        stage = start // ii
        rank[name] = filled.get(stage, 0)
        filled[stage] = rank[name] + 1
    for placement in laid.analysis.placements:
        if placement.order != rank[placement.op]:
            message = (
                f"`{placement.op}` is said to be number {placement.order} of its stage; start "
                f"{placement.start} makes it number {rank[placement.op]} of stage "
                f"{laid.stage(placement.op)}"
            )
            detail = (("published", placement.order), ("order", rank[placement.op]))
            yield Violation("order", message, (placement.op,), detail)


def _counts(laid: Layout) -> Iterator[Violation]:
    """Stage count and pipeline depth, where stated (0: not stated)."""
    if not laid.complete:
        return
    stages = laid.stage_count
    published = laid.analysis.stage_count
    if published not in (0, stages):
        message = f"the stage count is said to be {published}; the last stage is {stages - 1}"
        yield Violation("order", message, (), (("published", published), ("stages", stages)))
    starts = laid.starts
    ends = [starts[op.name] + op.ready for op in laid.placed]
    ready = max(ends)
    last = laid.placed[ends.index(ready)]
    depth = ready // laid.ii + 1
    published = laid.analysis.pipeline_depth
    if published not in (0, depth):
        message = (
            f"the pipeline depth is said to be {published}; `{last.name}` is ready at {ready} "
            f"(start {laid.starts[last.name]} + latency {last.ready}), which takes {depth} "
            f"intervals of {laid.ii}"
        )
        yield Violation(
            "order", message, (last.name,), (("published", published), ("depth", depth))
        )
