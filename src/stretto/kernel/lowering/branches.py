"""Branches inside innermost loops become masks: a schedule has no branches.

    if c:                          x = load p[i], c and m           not read where c is off
        x = load p[i], m           y = x * 2                        computed either way
        y = x * 2           ──►    store q[i], y, c                 not written where c is off
        store q[i], y              z = select c, y, w
    z = y if c else w

Loads through views are done either way: what lies outside is not read, and nobody takes what is
not wanted. A store through a view that is not to be goes to a place outside of the tensor, where
nothing is written. Branches of other loops stay, unless they touch no memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stretto.kernel.building import Builder
from stretto.kernel.lowering.work_tiles import LOOPS, has_loop_inside
from stretto.kernel.lowering.written import AND, OR, SELECT, XOR
from stretto.kernel.tree import Kernel, Location, Lowered, Operation, Region, Value
from stretto.kernel.types import Scalar, Tile, Token, Type, View, like

_BIT = Scalar("i1")
_MASK = {"tile.load": 1, "tile.store": 2, "tile.atomic_rmw": 2, "tile.atomic_cas": 3}
"""Which operand of an operation through pointers is its mask."""
_OUTSIDE = {"tile.view_store": 2, "tile.view_reduce": 2, "tile.view_scatter": 2}
"""Which operand of a store through a view says where it goes along the first axis."""
_CLAIMS = ("tile.assert", "tile.assume")
_ELSEWHERE = (*_MASK, *_OUTSIDE, *_CLAIMS, "tile.view_load", "tile.view_gather", "tile.dot")
"""Operations for whose sake a branch of an outer loop is worth keeping."""


def straightened(kernel: Kernel) -> Lowered:
    """The kernel without branches in its innermost loops."""
    if not any(op.name == "scf.if" for op in kernel.walk()):
        return Lowered(kernel)
    straight = _Straightening(kernel.location)
    straight.inside(kernel.body, None, innermost=False)
    return Lowered(replace(kernel, body=straight.out.finish()), tuple(straight.notes))


class _Straightening:
    def __init__(self, location: Location) -> None:
        self.out = Builder(location)
        self.notes: list[tuple[Location, str]] = []

    def inside(self, region: Region, loop: Operation | None, innermost: bool) -> None:
        """The operations of a region, its last included."""
        for operation in region.operations:
            self._operation(operation, loop, innermost)

    def _operation(self, operation: Operation, loop: Operation | None, innermost: bool) -> None:
        if operation.name == "scf.if" and loop is not None and _straight(operation, innermost):
            self._branch(operation, None)
            return
        if operation.name in (*LOOPS, "scf.if"):
            if operation.name == "scf.for":
                loop, innermost = operation, not has_loop_inside(operation)
            elif operation.name == "scf.while":
                loop = None
            regions: list[Region] = []
            for region in operation.regions:
                with self.out.region(region.arguments) as opened:
                    self.inside(region, loop, innermost)
                regions.append(opened.region)
            operation = replace(operation, regions=tuple(regions))
        self.out.append(operation)

    # One branch -----------------------------------------------------------------------------

    def _branch(self, branch: Operation, taken: Value | None) -> None:
        """Both sides, one after the other, and then the results of the one that is wanted."""
        (condition,) = branch.operands
        touching = [op for op in branch.walk() if op.name in (*_MASK, *_OUTSIDE)]
        if taken is None and touching:
            told = "both sides of this branch are gone through, its loads and stores under a mask"
            self.notes.append((branch.location, told))
        self.out.location = branch.location
        truth = self.out.constant(True, _BIT)
        otherwise = self.out.op(XOR, (condition, truth), _BIT)
        for side, turn in zip(branch.regions, (condition, otherwise), strict=True):
            self.out.location = branch.location
            wanted = turn if taken is None else self.out.op(AND, (taken, turn), _BIT)
            for operation in side.operations[:-1]:
                self._masked(operation, wanted)
        self.out.location = branch.location
        then, other = (side.terminator.operands for side in branch.regions)
        for result, one, two in zip(branch.results, then, other, strict=True):
            self._choice(branch, result, condition, (one, two))

    def _choice(
        self, branch: Operation, result: Value, condition: Value, sides: tuple[Value, Value]
    ) -> None:
        operands: Sequence[Value] = (condition, *sides)
        name = SELECT
        if sides[0] is sides[1]:
            name, operands = "tile.hint", sides[:1]
        elif isinstance(result.type, Token):
            name, operands = "tile.token", sides
        self.out.append(Operation(name, tuple(operands), (result,), location=branch.location))

    def _masked(self, operation: Operation, wanted: Value) -> None:
        """An operation of one side, without effect where it is not that side's turn."""
        self.out.location = operation.location
        if operation.name == "scf.if":
            self._branch(operation, wanted)
        elif operation.name in _MASK:
            self.out.append(self._under_mask(operation, wanted))
        elif operation.name in _OUTSIDE:
            self.out.append(self._elsewhere(operation, wanted))
        elif operation.name in _CLAIMS:
            self.out.append(self._claimed(operation, wanted))
        else:
            self.out.append(operation)

    def _under_mask(self, operation: Operation, wanted: Value) -> Operation:
        at = _MASK[operation.name]
        operands = operation.operands
        mask = self._spread(wanted, operands[0].type)
        if len(operands) > at:
            mask = self.out.op(AND, (operands[at], mask), mask.type)
        return replace(operation, operands=(*operands[:at], mask, *operands[at + 1 :]))

    def _elsewhere(self, operation: Operation, wanted: Value) -> Operation:
        """A store to where it goes, or just before the tensor's first row."""
        at = _OUTSIDE[operation.name]
        view, row = operation.operands[0].type, operation.operands[at]
        assert isinstance(view, View)
        type = row.type
        assert isinstance(type, Scalar | Tile)
        before = self.out.constant(-view.tile[0], type)
        moved = self.out.op(SELECT, (wanted, row, before), type, row.name)
        operands = operation.operands
        return replace(operation, operands=(*operands[:at], moved, *operands[at + 1 :]))

    def _claimed(self, operation: Operation, wanted: Value) -> Operation:
        """What is claimed of one side only holds there."""
        (claim,) = operation.operands
        truth = self.out.constant(True, _BIT)
        not_here = self.out.op(XOR, (wanted, truth), _BIT)
        spread = self._spread(not_here, claim.type)
        either = self.out.op(OR, (claim, spread), claim.type)
        return replace(operation, operands=(either,))

    def _spread(self, bit: Value, over: Type) -> Value:
        """A bit for every element of a tile."""
        if not isinstance(over, Tile):
            return bit
        return self.out.op("tile.splat", (bit,), like(over, _BIT))


def _straight(branch: Operation, innermost: bool) -> bool:
    """Whether both sides of a branch may be gone through."""
    if any(isinstance(result.type, View) for result in branch.results):
        return False  # a descriptor cannot be chosen element by element
    if innermost:
        return True
    return not any(op.name in (*LOOPS, *_ELSEWHERE) for op in branch.walk())
