"""What the axis analysis claims of index arithmetic holds of every number it can come out as."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from stretto.frontends.triton import read_ttir
from stretto.kernel import Kernel, Location, Parameter, Region, Scalar, Tile, Value
from stretto.kernel.axes import Axis, analyse
from stretto.kernel.building import Builder
from stretto.kernel.pipeline import lower
from stretto.machine import load_machine
from stretto.simulation.kernels.arrays import Array
from stretto.simulation.kernels.evaluator import Evaluator

EXAMPLES = Path(__file__).parents[2] / "examples" / "triton"

I32 = Scalar("i32")
_EVALUATED = {
    f"tile.{name}": name for name in ("range", "splat", "expand_dims", "broadcast", "transpose")
}


class _Random:
    """A random piece of index arithmetic."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.builder = Builder(Location("random"))
        self.parameters = [
            Parameter(Value(I32, "n"), 16),
            Parameter(Value(I32, "m"), 4),
            Parameter(Value(I32, "k"), 1),
        ]

    def scalar(self) -> Value:
        if self.random.random() < 0.5:
            return self.random.choice(self.parameters).value
        return self.builder.constant(self.random.choice([1, 2, 3, 8, 16, 64, 100]), I32)

    def row(self, size: int) -> Value:
        type = Tile((size,), I32)
        if self.random.random() < 0.6:
            start = self.random.choice([0, 0, 4, 3])
            return self.builder.op("tile.range", (), type, start=start, end=start + size)
        return self.builder.op("tile.splat", (self.scalar(),), type)

    def tile(self, depth: int) -> Value:
        shape = (8, 16)
        if depth == 0:
            axis = self.random.randrange(2)
            row = self.row(shape[1 - axis])
            narrow = (1, shape[1]) if axis == 0 else (shape[0], 1)
            column = self.builder.op("tile.expand_dims", (row,), Tile(narrow, I32), axis=axis)
            return self.builder.op("tile.broadcast", (column,), Tile(shape, I32))
        name = self.random.choice(
            ["addi", "subi", "muli", "divsi", "remsi", "minsi", "maxsi", "addi", "muli", "select"]
        )
        a = self.tile(depth - 1)
        if name in ("divsi", "remsi"):
            divisor = self.builder.constant(self.random.choice([2, 4, 8, 16, 3]), Tile(shape, I32))
            return self.builder.op(f"arith.{name}", (a, divisor), Tile(shape, I32))
        b = self.tile(self.random.randrange(depth))
        if name == "select":
            predicate = self.random.choice(["slt", "sge", "sgt", "sle", "eq"])
            mask = Tile(shape, Scalar("i1"))
            less = self.builder.op("arith.cmpi", (a, b), mask, predicate=predicate)
            return self.builder.op("arith.select", (less, a, b), Tile(shape, I32))
        return self.builder.op(f"arith.{name}", (a, b), Tile(shape, I32))

    def kernel(self) -> Kernel:
        self.tile(self.random.randrange(1, 4))
        self.builder.add("tile.return")
        body = self.builder.finish()
        return Kernel("random", tuple(self.parameters), body, Location("random"))


def _evaluate(body: Region, given: dict[Value, Array]) -> dict[Value, Array]:
    evaluator = Evaluator((1, 1, 1), (0, 0, 0))
    found = dict(given)
    for operation in body.operations[:-1]:
        renamed = _EVALUATED.get(operation.name, operation.name)
        named = type(operation)(
            renamed, operation.operands, operation.results, operation.attributes
        )
        (found[operation.result],) = evaluator.apply(named, [found[v] for v in operation.operands])
    return found


def _holds(axis: Axis, array: Array) -> str | None:
    """What is wrong with a claim, if something is."""
    shape = array.shape or (1,)
    array = np.asarray(array).reshape(shape).astype(np.int64)
    if axis.lower is not None and array.min() < axis.lower:
        return f"lower bound {axis.lower}"
    if axis.upper is not None and array.max() > axis.upper:
        return f"upper bound {axis.upper}"
    for dimension in range(len(shape)):
        rows = np.moveaxis(array, dimension, -1).reshape(-1, shape[dimension])
        for row in rows:
            for at in range(0, len(row), axis.constancy[dimension]):
                if len(set(row[at : at + axis.constancy[dimension]])) > 1:
                    return f"constancy {axis.constancy} along {dimension}"
            run = axis.contiguity[dimension]
            for at in range(0, len(row), run):
                part = row[at : at + run]
                if not np.array_equal(part, part[0] + np.arange(len(part))):
                    return f"contiguity {axis.contiguity} along {dimension}"
                if part[0] % axis.divisibility[dimension]:
                    return f"divisibility {axis.divisibility} along {dimension}"
    return None


@pytest.mark.parametrize("seed", range(400))
def test_claims_hold(seed: int) -> None:
    kernel = _Random(seed).kernel()
    axes = analyse(kernel)
    numbers = random.Random(seed)
    for _ in range(3):
        given = {
            p.value: np.asarray(p.divisibility * numbers.randrange(0, 6), dtype=np.int32)
            for p in kernel.parameters
        }
        for value, array in _evaluate(kernel.body, given).items():
            if value in axes:
                wrong = _holds(axes[value], array)
                assert wrong is None, f"{value}: {wrong}: {axes[value]}\n{array}"


_POINTERS = """module {
  tt.func public @k(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32},
                    %s: i32 {tt.divisibility = 16 : i32}, %n: i32) {
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %x = tt.get_program_id x : i32
    %o = arith.muli %x, %s : i32
    %q = tt.addptr %p, %o : !tt.ptr<f16>, i32
    %t = tt.splat %q : !tt.ptr<f16> -> tensor<64x!tt.ptr<f16>>
    %a = tt.addptr %t, %r : tensor<64x!tt.ptr<f16>>, tensor<64xi32>
    %m = tt.splat %n : i32 -> tensor<64xi32>
    %c = arith.cmpi slt, %r, %m : tensor<64xi32>
    %sixteen = arith.constant 16 : i32
    %zero = arith.constant 0 : i32
    %rest = arith.remsi %n, %sixteen : i32
    %whole = arith.cmpi eq, %rest, %zero : i32
    ASSUMED
    %d = arith.cmpi slt, %r, %m : tensor<64xi32>
    %v = tt.load %a, %d : tensor<64x!tt.ptr<f16>>
    tt.store %a, %v, %c : tensor<64x!tt.ptr<f16>>
    tt.return
  }
}
"""


def _named(text: str) -> dict[str, Axis]:
    (kernel,) = read_ttir("k.ttir", text)
    return {value.name: axis for value, axis in analyse(kernel).items()}


def test_addresses_are_told_in_bytes() -> None:
    axes = _named(_POINTERS.replace("ASSUMED", ""))
    assert axes["a"].contiguity == (64,)
    assert axes["a"].divisibility == (16,)
    assert axes["d"].constancy == (1,)


def test_assumptions_count() -> None:
    axes = _named(_POINTERS.replace("ASSUMED", "llvm.intr.assume %whole : i1"))
    assert axes["n"].divisibility == (16,)


def test_a_loop_is_gone_round_until_nothing_changes() -> None:
    text = """module {
      tt.func public @k(%n: i32) {
        %z = arith.constant 0 : i32
        %s = arith.constant 16 : i32
        %e = scf.for %i = %z to %n step %s iter_args(%a = %z) -> (i32) : i32 {
          %b = arith.addi %a, %s : i32
          scf.yield %b : i32
        }
        %u = arith.addi %e, %e : i32
        tt.return
      }
    }"""
    axes = _named(text)
    assert axes["i"].divisibility == (16,)
    assert axes["a"].divisibility == (16,)
    assert axes["a"].upper is None


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.ttir")), ids=lambda file: file.stem)
def test_lowered_kernels_are_analysed_too(file: Path) -> None:
    """Whose tiles in shared memory are transposed as well: of those nothing is known."""
    (kernel,) = read_ttir(file.name, file.read_text(encoding="utf-8"))
    lowered = lower(kernel, load_machine("h200")).kernel
    assert all(len(axis.contiguity) == len(axis.constancy) for axis in analyse(lowered).values())
