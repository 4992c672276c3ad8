"""Is every value defined before it is used? xDSL's own verifiers do not ask.

    %b = use %a     ◄── refused: %a is defined below
    %a = make

One walk: an operation's place among its neighbours decides inside a block, the blocks' dominance
between blocks, the enclosing operation across regions.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.irdl.dominance import DominanceInfo


def undominated(module: ModuleOp) -> Iterator[tuple[Operation, SSAValue, Operation | None]]:
    """Each use that its definition does not reach: user, value and definer (None: an argument)."""
    place: dict[Operation, int] = {op: i for i, op in enumerate(module.walk())}
    known: dict[Region, DominanceInfo] = {}
    for op in place:
        for operand in op.operands:
            definer = operand.op if isinstance(operand, OpResult) else None
            if not _reaches(operand, op, place, known):
                yield op, operand, definer


def _reaches(
    value: SSAValue,
    user: Operation,
    place: dict[Operation, int],
    known: dict[Region, DominanceInfo],
) -> bool:
    if isinstance(value, OpResult):
        home = value.op.parent
    elif isinstance(value, BlockArgument):
        home = value.block
    else:
        return False
    if home is None or home.parent is None:
        return False
    around = _around(user, home.parent)
    if around is None or around.parent is None:
        return False
    if around.parent is not home:
        return _dominates(home, around.parent, home.parent, known)
    # Walking visits an operation before what it encloses, so places order a block.
    return not isinstance(value, OpResult) or place[value.op] < place[around]


def _around(op: Operation, region: Region) -> Operation | None:
    """The operation of a region that is or encloses this one."""
    at: Operation | None = op
    while at is not None and at.parent_region() is not region:
        at = at.parent_op()
    return at


def _dominates(a: Block, b: Block, region: Region, known: dict[Region, DominanceInfo]) -> bool:
    if region not in known:
        known[region] = DominanceInfo(region)
    return known[region].strictly_dominates(a, b)
