"""Where operations stand: order.

start    0        8           23        II = 15
         load     read        write
stage    0        0           1         start // II
order    0        1           0         rank inside the stage
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from stretto.verify.case import Case, Violation


def interval(case: Case) -> Iterator[Violation]:
    """There is an II, and it is at least 1."""
    ii = case.analysis.ii
    if ii is None:
        yield Violation("order", "the schedule has no II")
    elif ii < 1:
        yield Violation("order", f"the II is {ii}; it must be at least 1", (), (("ii", ii),))


def target(case: Case) -> Iterator[Violation]:
    """The schedule is of this machine, where it says of which."""
    said = case.analysis.machine
    if said not in ("", case.machine.name):
        message = f"the schedule is said to be of machine `{said}`, not of `{case.machine.name}`"
        detail = (("published", said), ("machine", case.machine.name))
        yield Violation("order", message, (), detail)


def names(case: Case) -> Iterator[Violation]:
    """Every operation is placed, once, at 0 or later; nothing else is."""
    placements = case.analysis.placements
    times = Counter(placement.op for placement in placements)
    for op in case.loop.ops:
        if op.name not in times:
            yield Violation("order", f"`{op.name}` has no place", (op.name,))
    for name, count in times.items():
        if name not in case.loop.index:
            message = f"`{name}` is placed, but loop `{case.loop.name}` has no such operation"
            yield Violation("order", message, (name,))
        if count > 1:
            starts = ", ".join(str(p.start) for p in placements if p.op == name)
            message = f"`{name}` is placed {count} times: at {starts}"
            yield Violation("order", message, (name,), (("times", count),))
    for placement in placements:
        if placement.start < 0:
            message = f"`{placement.op}` starts at {placement.start}; no start is below 0"
            yield Violation("order", message, (placement.op,), (("start", placement.start),))


def order(case: Case) -> Iterator[Violation]:
    """Origin, stage and order are as they follow from the starts."""
    yield from _origin(case)
    yield from _stages(case)
    yield from _ranks(case)
    yield from _counts(case)


def _origin(case: Case) -> Iterator[Violation]:
    if not case.starts:
        return
    first = min(case.starts, key=lambda name: case.starts[name])
    if case.stage(first) > 0:
        start = case.starts[first]
        message = (
            f"the first operation, `{first}`, starts at {start}: stage {case.stage(first)} "
            f"at II {case.ii}; the smallest stage is 0"
        )
        yield Violation("order", message, (first,), (("start", start), ("ii", case.ii)))


def _stages(case: Case) -> Iterator[Violation]:
    for placement in case.analysis.placements:
        stage = placement.start // case.ii
        if placement.stage != stage:
            message = (
                f"`{placement.op}` is said to be in stage {placement.stage}; "
                f"start {placement.start} is in stage {stage} at II {case.ii}"
            )
            detail = (("published", placement.stage), ("stage", stage), ("ii", case.ii))
            yield Violation("order", message, (placement.op,), detail)
        cycle = placement.start - stage * case.ii
        if placement.cycle not in (None, cycle):
            message = (
                f"`{placement.op}` is said to be at cycle {placement.cycle}; "
                f"start {placement.start} is cycle {cycle} of stage {stage} at II {case.ii}"
            )
            said = (("published", placement.cycle), ("cycle", cycle), ("ii", case.ii))
            yield Violation("order", message, (placement.op,), said)


def _ranks(case: Case) -> Iterator[Violation]:
    if not case.complete:
        return  # ranks among the operations that happen to be there would say nothing
    if not case.levels:
        yield Violation("order", "dependences at distance 0 form a cycle: there is no order")
        return
    rank: dict[str, int] = {}
    filled: Counter[int] = Counter()
    for _, _, _, name in sorted(
        (start, case.levels[name], case.loop.index[name], name)
        for name, start in case.starts.items()
    ):
        rank[name] = filled[case.stage(name)]
        filled[case.stage(name)] += 1
    for placement in case.analysis.placements:
        if placement.order != rank[placement.op]:
            message = (
                f"`{placement.op}` is said to be number {placement.order} of its stage; start "
                f"{placement.start} makes it number {rank[placement.op]} of stage "
                f"{case.stage(placement.op)}"
            )
            detail = (("published", placement.order), ("order", rank[placement.op]))
            yield Violation("order", message, (placement.op,), detail)


def _counts(case: Case) -> Iterator[Violation]:
    """Stage count and pipeline depth, where stated (0: not stated)."""
    if not case.complete:
        return
    stages = case.stage_count
    published = case.analysis.stage_count
    if published not in (0, stages):
        message = f"the stage count is said to be {published}; the last stage is {stages - 1}"
        yield Violation("order", message, (), (("published", published), ("stages", stages)))
    last = max(case.placed, key=lambda op: case.starts[op.name] + op.ready)
    ready = case.starts[last.name] + last.ready
    depth = ready // case.ii + 1
    published = case.analysis.pipeline_depth
    if published not in (0, depth):
        message = (
            f"the pipeline depth is said to be {published}; `{last.name}` is ready at {ready} "
            f"(start {case.starts[last.name]} + latency {last.ready}), which takes {depth} "
            f"intervals of {case.ii}"
        )
        yield Violation(
            "order", message, (last.name,), (("published", published), ("depth", depth))
        )
