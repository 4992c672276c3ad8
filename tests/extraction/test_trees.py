"""Kernels and modules answer what loops are made of alike, so that one derivation serves both."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stretto.compile.sources import kernels_of
from stretto.extraction.kernels import kernel_loops, runnable_kernels
from stretto.extraction.trees import Kernels
from stretto.ir import read_mlir
from stretto.ir.kernels.writing import kernel_module
from stretto.ir.loops.module import Module
from stretto.ir.loops.writer import print_module
from stretto.ir.parsing import Parsed, verify_module
from stretto.kernel import Kernel, KernelError, Location, Operation, Region, Value
from stretto.kernel.building import held_by, plain_name
from stretto.kernel.configuration import DEFAULT, Configuration
from stretto.kernel.pipeline import lower
from stretto.kernel.types import Scalar, Tile
from stretto.loop import Loop
from stretto.machine import load_machine
from stretto.ops.opcodes import opcode

TRITON = Path(__file__).parents[2] / "examples" / "triton"
LANGUAGE = Path(__file__).parents[1] / "ttir" / "language"
CASES = [
    (TRITON / "attention_backward_kv.ttir", "h200", 2),
    (TRITON / "matmul_persistent.ttir", "h200", 1),
    (TRITON / "matmul_pointers.ttir", "b200", 1),
    (TRITON / "softmax.ttir", "h200", 1),
    (TRITON / "layer_norm.ttir", "b200-pipes", 1),
    (LANGUAGE / "asm.ttir", "h200", 1),
    (LANGUAGE / "atomics.ttir", "h200", 1),
]


def lowered(file: Path, machine: str, consumers: int) -> Kernel:
    (kernel, *_) = kernels_of(str(file), file.read_text("utf-8"))
    return lower(kernel, load_machine(machine), Configuration(consumers)).kernel


@pytest.mark.parametrize(("file", "machine", "consumers"), CASES)
def test_trees_and_modules_give_the_same_answers(file: Path, machine: str, consumers: int) -> None:
    kernel = lowered(file, machine, consumers)
    module = kernel_module(kernel)
    parsed = Parsed.of_module(module)
    assert not verify_module(parsed)
    tree, text = Kernels("k", [kernel]), Module(parsed)
    ours, others = list(tree.all()), list(text.all())[1:]  # but for the module itself
    assert len(ours) == len(others)
    values: dict[Any, Any] = {}
    for mine, theirs in zip(ours, others, strict=True):
        assert of_operation(tree, mine) == of_operation(text, theirs)
        assert text.generic(theirs) or tree.row(mine) == text.row(theirs)
        for block, other in zip(tree.blocks(mine), text.blocks(theirs), strict=True):
            taken = (
                [p.value for p in kernel.parameters] if block is kernel.body else block.arguments
            )
            values.update(zip(taken, text.arguments(other), strict=True))
        values.update(zip(mine.results, theirs.results, strict=True))
        for one in ("destination", "accumulator"):
            found = getattr(tree, one)(mine)
            assert (None if found is None else values[found]) is getattr(text, one)(theirs)
    for mine, theirs in values.items():
        assert of_value(tree, mine) == of_value(text, theirs), mine


def of_operation(source: Any, op: Any) -> tuple[Any, ...]:
    """What is asked of an operation; an scf.for of a function has the function's name."""
    asked = ("ends", "unknown", "place", "function", "written")
    said = [getattr(source, one)(op) for one in (*asked, "alias_set", "made_already")]
    place = said[asked.index("place")] - source.place(next(iter(top(source))))
    said[asked.index("place")] = place
    stated, loop = source.stated(op), source.stated_loop(op)
    given = {name: getattr(stated.op, name) for name in stated.given}
    touches = opcode(source.kind(op)).memory and not (source.pure(op) or source.ends(op))
    kind = "" if source.ends(op) else source.kind(op)  # a kernel's last word is called otherwise
    return (kind, *said, touches, given, loop.loop.machine, loop.loop.force_serial)


def top(source: Any) -> Any:
    return (op for op in source.all() if source.name(op) == "func.func")


def of_value(source: Any, value: Any) -> tuple[Any, ...]:
    asked = ("index", "hint", "buffer", "far", "tile", "room", "is_pipeline", "immediate")
    said = [getattr(source, one)(value) for one in asked]
    number = source.constant(value)
    number = None if number is None else abs(number)  # true is -1 in a module's i1
    makers = source.maker(value), source.entered(value)
    return (*said, number, *(one is None for one in makers), len(source.users(value)))


@pytest.mark.parametrize(("file", "machine", "consumers"), CASES)
def test_loops_of_a_tree_are_those_of_its_text(file: Path, machine: str, consumers: int) -> None:
    (kernel, *_) = kernels_of(str(file), file.read_text("utf-8"))
    target = load_machine(machine)
    asked = Configuration(consumers)
    loops, _ = kernel_loops(str(file), (kernel,), target, asked)
    made = kernel_module(lower(kernel, target, asked).kernel)
    again, _ = read_mlir("k.mlir", print_module(made), target)
    assert [plain(one) for one in loops] == [plain(one) for one in again]


def plain(loop: Loop) -> Loop:
    """A loop without where it was written."""
    return replace(loop, ops=tuple(replace(op, written=None) for op in loop.ops))


def test_a_value_that_is_not_made_before_is_told() -> None:
    i32 = Scalar("i32")
    late, sum = Value(i32, "late"), Value(i32)
    place = Location("k.py", 3, 5)
    add = Operation("arith.addi", (late, late), (sum,), {}, (), place)
    make = Operation("arith.constant", (), (late,), {"value": 1})
    end = Operation("tile.return", (), ())
    kernel = Kernel("k", (), Region((add, make, end)), place)
    with pytest.raises(KernelError, match=r"k\.py:3:5: .*`arith\.addi` takes %late.*not made"):
        Kernels("k.py", [kernel])


def test_a_loop_keeps_the_references_to_its_kernel() -> None:
    file = TRITON / "matmul_descriptors.ttir"
    machine = load_machine("h200")
    (kernel,) = kernels_of(str(file), file.read_text("utf-8"))
    (made,) = runnable_kernels(str(file), (kernel,), machine, DEFAULT)
    (loop,) = made.loops
    known = set(made.kernel.walk())
    assert loop.operation in known
    assert known.issuperset(loop.wiring.operations.values())
    assert set(loop.wiring.operations) == {op.name for op in loop.wiring.loop.ops}


@pytest.mark.parametrize(
    ("given", "kept"), [("a_3", "a"), ("a_3_4", "a_3"), ("x.y", "x_y"), ("3", ""), ("", "")]
)
def test_names_are_those_that_mlir_keeps(given: str, kept: str) -> None:
    assert plain_name(given) == kept


def test_constants_are_what_their_types_hold() -> None:
    third = 1 / 3
    assert held_by(Scalar("f32"), third) == 0.3333333432674408
    assert held_by(Tile((4,), Scalar("f16")), (third, 0.5)) == (0.333251953125, 0.5)
    assert held_by(Scalar("bf16"), third) == 0.333984375
    assert held_by(Scalar("bf16"), float("-inf")) == float("-inf")
    assert str(held_by(Scalar("bf16"), float("nan"))) == "nan"
    assert held_by(Scalar("f64"), third) == third
    assert held_by(Scalar("i32"), 7) == 7
