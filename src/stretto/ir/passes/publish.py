"""A schedule, written onto the loop it is of. Nothing else of the module changes.

    %t = nv_tileas.async.tiled_tma_load ... {nv_tile.aws.stage = 0, .order = 0, .start = 0}
    ...
    } {nv_tile.aws.ii = 15, .stage_count = 1, .pipeline_depth = 2, .generator = "cost-based",
       .machine = "blackwell", .bounds = {resource = 15, ..., mii = 15, limiter = "resource"},
       .fused = [["read0", "read1"]]}

Members of a fused group also get their name, `stretto.name`. `published.py` is the way back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xdsl.dialects.scf import ForOp, ParallelOp, WhileOp
from xdsl.ir import Attribute, Operation

from stretto.ir.attributes import SCHEDULE, STATED, to_attribute
from stretto.solution import BOUND_NAMES, ScheduleAnalysis

PREFIX = SCHEDULE
STAGE, ORDER, START = PREFIX + "stage", PREFIX + "order", PREFIX + "start"
ON_OPS = (STAGE, ORDER, START)
"""What an operation of a scheduled loop has."""

II, STAGE_COUNT, PIPELINE_DEPTH = PREFIX + "ii", PREFIX + "stage_count", PREFIX + "pipeline_depth"
GENERATOR, MACHINE = PREFIX + "generator", PREFIX + "machine"
BOUNDS, FUSED = PREFIX + "bounds", PREFIX + "fused"
ON_LOOP = (II, STAGE_COUNT, PIPELINE_DEPTH, GENERATOR, MACHINE, BOUNDS, FUSED)
"""What a scheduled loop has itself. An inner loop is an operation of the outer one as well."""


def publish(for_op: ForOp, ops: Mapping[str, Operation], analysis: ScheduleAnalysis) -> None:
    """Write a schedule onto its loop, in the place of any that is there."""
    withdraw(for_op)
    if not analysis.success or analysis.ii is None:
        raise ValueError(f"`{analysis.loop}` has no schedule to publish")
    for name in (name for group in analysis.fused for name in group):
        # Groups go by names, and other tools drop those of values: keep what is named.
        ops[name].attributes.setdefault(STATED + "name", to_attribute(name))
    numbers: dict[int, Attribute] = {}  # few are different, and making one is slow
    for placed in analysis.placements:
        attributes = ops[placed.op].attributes
        for name, number in ((STAGE, placed.stage), (ORDER, placed.order), (START, placed.start)):
            if number not in numbers:
                numbers[number] = to_attribute(number)
            attributes[name] = numbers[number]
    for_op.attributes.update(_of_loop(analysis))


def _of_loop(analysis: ScheduleAnalysis) -> dict[str, Attribute]:
    found: dict[str, object] = {
        II: analysis.ii,
        STAGE_COUNT: analysis.stage_count,
        PIPELINE_DEPTH: analysis.pipeline_depth,
        GENERATOR: analysis.generator,
        MACHINE: analysis.machine,
    }
    bounds = analysis.bounds
    if bounds is not None:
        numbers = {name: bounds[name].bound for name in BOUND_NAMES}
        found[BOUNDS] = {**numbers, "mii": bounds.mii, "limiter": bounds.limiter}
    if analysis.fused:
        found[FUSED] = [list(group) for group in analysis.fused]
    return {name: to_attribute(value) for name, value in found.items()}


def withdraw(for_op: Operation) -> bool:
    """Take a schedule off its loop; whether there was anything of one."""
    found = False
    for op, name in published_on(for_op):
        del op.attributes[name]
        found = True
    return found


def published_on(for_op: Operation) -> list[tuple[Operation, str]]:
    """Every operation and attribute name by which this loop has a schedule, or part of one."""
    return list(_published_on(for_op))


def _published_on(loop: Operation) -> Iterator[tuple[Operation, str]]:
    yield from ((loop, name) for name in loop.attributes if _belongs(name, ON_LOOP, ON_OPS))
    for op in _inside(loop):
        yield from ((op, name) for name in op.attributes if _belongs(name, ON_OPS, ON_LOOP))


def _inside(op: Operation) -> Iterator[Operation]:
    """What a loop encloses, but not what inner loops do."""
    for region in op.regions:
        for block in region.blocks:
            for inside in block.ops:
                yield inside
                if not isinstance(inside, ForOp | WhileOp | ParallelOp):
                    yield from _inside(inside)


def _belongs(name: str, mine: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Names nobody knows count as well, so that none is left behind or overlooked."""
    return name in mine or (name.startswith(PREFIX) and name not in others)
