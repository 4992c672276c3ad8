"""What nobody wants: gone, with what loops carried for it; what has an effect stays."""

from __future__ import annotations

import pytest

from stretto.kernel import Kernel, Operation
from stretto.kernel.building import Builder
from stretto.kernel.lowering.unused import without_unused
from stretto.kernel.tree import Location, Parameter, Region, Value
from stretto.kernel.types import Pointer, Scalar

I32 = Scalar("i32")
HERE = Location("unused.py", 1, 1)


def looped(*, stored: bool = False, chosen: bool = False) -> tuple[Kernel, Operation]:
    """A loop that carries two numbers; one of them perhaps only for itself."""
    out = Builder(HERE)
    array = Value(Pointer(I32), "x_ptr")
    zero, one, ten = (out.constant(n, I32) for n in (0, 1, 10))
    index, at, total = (Value(I32, name) for name in ("i", "at", "total"))
    with out.region((index, at, total)) as body:
        further = out.op("arith.addi", (at, one), I32)
        out.op("arith.muli", (further, further), I32)
        more = out.op("arith.addi", (total, further if chosen else index), I32)
        if stored:
            out.add("tile.store", (array, further))
        out.add("scf.yield", (further, more))
    loop = out.add("scf.for", (zero, ten, one, zero, zero), (I32, I32), regions=(body.region,))
    out.add("tile.store", (array, loop.results[1]))
    out.add("tile.return")
    parameters = (Parameter(array),)
    return Kernel("looped", parameters, out.finish(), HERE), loop


@pytest.mark.parametrize(
    ("stored", "chosen", "carried"), [(False, False, 1), (True, False, 2), (False, True, 2)]
)
def test_a_loop_carries_what_somebody_wants(stored: bool, chosen: bool, carried: int) -> None:
    kernel, _ = looped(stored=stored, chosen=chosen)
    made = without_unused(kernel)
    (loop,) = [op for op in made.walk() if op.name == "scf.for"]
    assert len(loop.results) == len(loop.regions[0].arguments) - 1 == carried
    assert len(loop.operands) == 3 + carried
    assert len(loop.regions[0].terminator.operands) == carried
    names = [op.name for op in made.walk()]
    assert "arith.muli" not in names
    assert names.count("tile.store") == 1 + stored


def test_a_volatile_load_and_an_atomic_operation_stay() -> None:
    out = Builder(HERE)
    array = Value(Pointer(I32), "x_ptr")
    one = out.constant(1, I32)
    for said in ({}, {"volatile": True}):
        out.add("tile.load", (array,), (I32,), said)
    out.add("tile.atomic_rmw", (array, one), (I32,), {"kind": "add"})
    out.add("tile.return")
    kernel = Kernel("effects", (Parameter(array),), out.finish(), HERE)
    names = [op.name for op in without_unused(kernel).walk()]
    assert names == ["arith.constant", "tile.load", "tile.atomic_rmw", "tile.return"]


def test_a_branch_hands_on_what_somebody_wants() -> None:
    out = Builder(HERE)
    array = Value(Pointer(I32), "x_ptr")
    one, two = out.constant(1, I32), out.constant(2, I32)
    condition = out.op("arith.cmpi", (one, two), Scalar("i1"), predicate="slt")
    regions: list[Region] = []
    for value in (one, two):
        with out.region() as opened:
            out.add("scf.yield", (value, out.op("arith.muli", (value, two), I32)))
        regions.append(opened.region)
    branch = out.add("scf.if", (condition,), (I32, I32), regions=regions)
    out.add("tile.store", (array, branch.results[0]))
    out.add("tile.return")
    made = without_unused(Kernel("branch", (Parameter(array),), out.finish(), HERE))
    (branch,) = [op for op in made.walk() if op.name == "scf.if"]
    assert len(branch.results) == 1
    assert "arith.muli" not in [op.name for op in made.walk()]
