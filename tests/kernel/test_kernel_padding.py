"""Padding that copies do not have is chosen behind the load: the kernel does what it did."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cutile_cases
import stretto
from gluon_cases import near, shipped
from stretto.compile.sources import kernels_of
from stretto.emission.gluon.spelling import spelled
from stretto.frontends import read_input
from stretto.kernel import Kernel, Operation, Value
from stretto.kernel.building import Builder
from stretto.kernel.padding import with_zeros_outside
from stretto.kernel.types import Scalar, View
from stretto.program.builder.trips import known_trips, trips
from stretto.program.expressions import Name, number


def softmax() -> Kernel:
    return kernels_of(*read_input(str(shipped("cutile/softmax"))))[0]


def paddings(kernel: Kernel) -> set[str]:
    """Those of the views that are read."""
    found: set[str] = set()
    for op in kernel.walk():
        if op.name == "tile.view_load":
            assert isinstance(op.operands[0].type, View)
            found.add(op.operands[0].type.padding)
    return found


def test_a_kernel_with_its_padding_written_out_does_the_same() -> None:
    case = cutile_cases.CASES["softmax"]()
    inputs = {f"arg{n}": value for n, value in enumerate(case.arguments)}
    written = with_zeros_outside(softmax())
    assert (paddings(softmax()), paddings(written)) == ({"neg_inf"}, {"zero"})
    found = stretto.simulate_kernel(written, inputs, case.grid, "h200", mode="sequential")
    near(found.arrays, {f"arg{n}": array for n, array in case.expected.items()}, case.tolerance)


def test_without_the_choice_the_numbers_are_others() -> None:
    """What shows that the test above sees the padding: zeros count where -inf does not."""
    case = cutile_cases.CASES["softmax"]()
    inputs = {f"arg{n}": value for n, value in enumerate(case.arguments)}
    kernel = with_zeros_outside(softmax())
    loads = {op.operands[2]: op.operands[1] for op in kernel.walk() if op.name == "arith.select"}
    assert loads
    zeros = dict.fromkeys(loads, 0.0)
    body = replace(
        kernel.body,
        operations=tuple(_with_constants(op, zeros) for op in kernel.body.operations),
    )
    found = stretto.simulate_kernel(
        replace(kernel, body=body), inputs, case.grid, "h200", mode="sequential"
    )
    for n, array in case.expected.items():
        assert not np.allclose(found.arrays[f"arg{n}"], array, atol=case.tolerance)


def _with_constants(operation: Operation, numbers: dict[Value, float]) -> Operation:
    regions = tuple(
        replace(r, operations=tuple(_with_constants(op, numbers) for op in r.operations))
        for r in operation.regions
    )
    said = operation.attributes
    if operation.name == "arith.constant" and operation.result in numbers:
        said = {**said, "value": numbers[operation.result]}
    return replace(operation, regions=regions, attributes=said)


def test_a_kernel_that_pads_with_zeros_is_left_as_it_is() -> None:
    kernel = kernels_of(*read_input(str(shipped("cutile/matmul"))))[0]
    assert with_zeros_outside(kernel) is kernel


# Trip counts that are known -----------------------------------------------------------------------

I32 = Scalar("i32")


@pytest.mark.parametrize(
    ("first", "further", "step", "expected"),
    [(0, 128, 64, 2), (0, 130, 64, 3), (5, 5, 1, 0), (9, 3, 1, 0), (None, 128, 64, 2)],
)
def test_bounds_a_number_apart_are_counted(
    first: int | None, further: int, step: int, expected: int
) -> None:
    out = Builder()
    begin = Value(I32, "begin")
    lower = begin if first is None else out.constant(first, I32)
    by = out.constant(step, I32)
    upper = out.constant(further, I32)
    if first is None:
        upper = out.op("arith.addi", (begin, upper), I32)
    loop = out.add("scf.for", (lower, upper, by))
    maker = {value: op for op in out.finish().operations for value in op.results}
    assert known_trips(loop, maker) == expected
    bounds = Name("begin"), Name("end"), number(64)
    assert trips(*bounds, known_trips(loop, maker)) == number(expected)


def test_bounds_that_the_caller_gives_are_not_known() -> None:
    out = Builder()
    length = Value(I32, "length")
    loop = out.add("scf.for", (out.constant(0, I32), length, out.constant(64, I32)))
    maker = {value: op for op in out.finish().operations for value in op.results}
    assert known_trips(loop, maker) is None
    count = trips(number(0), Name("length"), number(64), None)
    assert spelled(count) == "gl.maximum(gl.cdiv(length, 64), 0)"
