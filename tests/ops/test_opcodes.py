"""One table says what an opcode is; nothing is guessed from its name."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from xdsl.irdl import IRDLOperation

from stretto.ir import read_mlir
from stretto.ir.dialect import NvTileas, row_of
from stretto.ir.parsing import parse_module
from stretto.loop import Op, TileType
from stretto.machine import load_machine, machine_names
from stretto.materialization.roster import role_of
from stretto.ops.opcodes import ISSUERS, OPCODES, UNKNOWN, Issuer, opcode
from stretto.ops.spaces import SPACES
from stretto.simulation.real import FUNCTIONS, Array, Call

DIALECT = sorted(op.name.removeprefix("nv_tileas.") for op in NvTileas.operations)


@pytest.mark.parametrize("kind", DIALECT)
def test_every_operation_of_the_dialect_has_a_row(kind: str) -> None:
    assert kind in OPCODES


@pytest.mark.parametrize("machine", machine_names())
def test_every_opcode_of_a_machine_that_ships_has_a_row(machine: str) -> None:
    assert [kind for kind in load_machine(machine).opcodes if kind not in OPCODES] == []


@pytest.mark.parametrize(
    "kind", ["tma", "my.tma_like", "x.not_tma", "arith.dotted", "foo.mma", "descriptor_load", ""]
)
def test_a_word_in_a_name_says_nothing(kind: str) -> None:
    assert opcode(kind) is UNKNOWN
    assert role_of(Op("op", kind)) == "simt"


def test_who_issues_what() -> None:
    issued = {
        who: sorted(kind for kind, row in OPCODES.items() if row.issuer == who)
        for who in ("tma", "mma")
    }
    assert [kind for kind in issued["tma"] if kind in DIALECT] == [
        "async.tiled_tma_load",
        "async.tiled_tma_store",
        "async.tma_gather",
        "async.tma_scatter",
    ]
    assert [kind for kind in issued["mma"] if kind in DIALECT] == [
        "async.dot",
        "async.tcgen05_mma",
        "async.tmem_copy",
        "async.wgmma",
        "async.wgmma_wait",
    ]


BARRIERS = """
func.func @fenced(%n: i32, %x: tensor<16xf32>) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  scf.for %i = %zero to %n step %one : i32 {
    %a = OPERATION
    nv_tileas.barrier
    %b = nv_tileas.math.exp %x : tensor<16xf32> -> tensor<16xf32>
  }
  return
}
"""
ANY = "(%x) : (tensor<16xf32>) -> tensor<16xf32>"


@pytest.mark.parametrize(
    ("operation", "ordered"),
    [
        (f'nv_tileas.generic "some.thing" {ANY}', True),
        (f'"some.thing"{ANY}', True),
        ("nv_tileas.math.exp2 %x : tensor<16xf32> -> tensor<16xf32>", False),
        ("arith.mulf %x, %x : tensor<16xf32>", False),
    ],
)
def test_a_barrier_orders_all_that_may_touch_memory(operation: str, ordered: bool) -> None:
    """Whoever is not known to leave memory alone stays on its side of a barrier."""
    loops, _ = read_mlir("text", BARRIERS.replace("OPERATION", operation), None)
    first = loops[0].ops[0].name
    near = {d.src for d in loops[0].stated} | {d.dst for d in loops[0].stated}
    assert (first in near) == ordered


# Rows and the operations of the dialect -----------------------------------------------------------


@pytest.mark.parametrize("kind", DIALECT)
def test_what_a_row_says_of_operands_is_what_the_dialect_defines(kind: str) -> None:
    """Where the buffer to fill and the sum stand, and that views have a source and one result."""
    row = OPCODES[kind]
    (defined,) = (op for op in NvTileas.operations if op.name == f"nv_tileas.{kind}")
    assert issubclass(defined, IRDLOperation)
    operands = [name for name, _ in defined.get_irdl_definition().operands]
    results = [name for name, _ in defined.get_irdl_definition().results]
    for name, place in (("destination", row.destination), ("accumulator", row.accumulator)):
        assert (operands.index(name) if name in operands else None) == place
    if row.view:
        assert (operands[0], results) == ("source", ["result"])
    if row.destination is not None:
        assert (operands[-1], results) == ("after", ["result", "token"])
    if row.accumulator is not None:
        assert operands == ["a", "b", "accumulator", "destination", "after"]


def test_of_other_peoples_operations_nothing_is_known() -> None:
    """Not even of one whose text has an opcode's name: it need not have its operands."""
    loops = "func.func @f(%x: tensor<4xf32>) { OP\n return }"
    for text in (
        '"tt.trans"(%x) : (tensor<4xf32>) -> tensor<4xf32>',
        'nv_tileas.generic "async.wgmma"(%x) : (tensor<4xf32>) -> tensor<4xf32>',
    ):
        module = parse_module(loops.replace("OP", text)).module
        (op,) = (op for op in module.walk() if op.operands)
        assert row_of(op) is UNKNOWN


def test_who_makes_and_renames_what() -> None:
    def named(*fields: str) -> set[str]:
        return {kind for kind, row in OPCODES.items() if any(getattr(row, f) for f in fields)}

    assert named("allocates") == {"alloc_tensor", "ttg.local_alloc", "ttng.tmem_alloc"}
    assert {kind for kind in named("view") if kind in DIALECT} == {
        "slice",
        "view",
        "transpose",
        "broadcast",
        "expand_dims",
        "splat",
    }
    assert not any(OPCODES[kind].memory for kind in named("view", "allocates"))
    assert {row.lands for row in OPCODES.values() if row.lands is not None} <= set(SPACES)
    assert get_args(Issuer) == ISSUERS


# Real values --------------------------------------------------------------------------------------


def array(numbers: Sequence[object]) -> Array:
    return np.asarray(numbers, dtype=np.float32)


X, Y, Z = array([[1, 4], [9, 16]]), array([[2, 2], [3, 5]]), array([[1, 0], [0, 1]])
COMPUTED: dict[str, tuple[tuple[Array, ...], Sequence[object]]] = {
    "broadcast": ((array([[7], [8]]),), [[7, 7], [8, 8]]),
    "greatest_of_row": ((X,), [4, 16]),
    "load": ((), [[2, 2], [3, 5]]),
    "product": ((X, Y), [[15, 22], [66, 99]]),
    "product_sum": ((X, Y, Z), [[15, 22], [66, 99]]),
    "reshape": ((array([7, 8, 9, 10]),), [[7, 8], [9, 10]]),
    "same": ((X,), [[1, 4], [9, 16]]),
    "sum_of_row": ((X,), [5, 25]),
    "transpose": ((X,), [[1, 9], [4, 16]]),
}


STRUCTURAL = [kind for kind, row in OPCODES.items() if row.computes not in ("", "elementwise")]
ELEMENTWISE: dict[str, tuple[tuple[Array, ...], Sequence[object]]] = {
    "arith.addf": ((X, Y), [[3, 6], [12, 21]]),
    "arith.maxnumf": ((X, Y), [[2, 4], [9, 16]]),
    "arith.minnumf": ((X, Y), [[1, 2], [3, 5]]),
    "arith.mulf": ((X, Y), [[2, 8], [27, 80]]),
    "arith.subf": ((X, Y), [[-1, 2], [6, 11]]),
    "arith.subf of what the loop has": ((X,), [[1, 4], [9, 16]]),
    "math.exp2": ((Y,), [[4, 4], [8, 32]]),
    "math.fma": ((X, Y, Z), [[3, 8], [27, 81]]),
    "math.rsqrt": ((X,), [[1, 1 / 2], [1 / 3, 1 / 4]]),
}


@pytest.mark.parametrize("case", ELEMENTWISE)
def test_what_is_computed_element_by_element_is_what_its_row_says(case: str) -> None:
    kind = case.partition(" ")[0]
    operands, wanted = ELEMENTWISE[case]
    call = Call(Op("op", kind), operands, TileType((2, 2), "f32"), None, lambda: Y)
    assert OPCODES[kind].computes == "elementwise"
    np.testing.assert_allclose(FUNCTIONS["elementwise"](call), array(wanted), rtol=1e-6)


@pytest.mark.parametrize("kind", STRUCTURAL)
def test_every_row_with_real_values_computes_them(kind: str) -> None:
    row = OPCODES[kind]
    operands, wanted = COMPUTED[row.computes]
    total = Z if row.accumulator is not None else None  # product: + 1 on the diagonal
    call = Call(Op("op", kind), operands, TileType((2, 2), "f32"), total, lambda: Y)
    np.testing.assert_allclose(FUNCTIONS[row.computes](call), array(wanted), rtol=1e-6)


def test_every_function_is_some_rows() -> None:
    assert {row.computes for row in OPCODES.values()} - {""} == set(FUNCTIONS)


# Nobody else decides by names ---------------------------------------------------------------------

SOURCES = Path(__file__).parents[2] / "src" / "stretto"
DEFINING = {
    "ops/arithmetic.py",
    "ops/opcodes.py",
    "ops/predicates.py",
    "ops/products.py",
    "ops/reductions.py",
    "ops/tiles.py",
    "ops/spaces.py",
    "ir/dialect/compute.py",
    "ir/dialect/kernels.py",
    "ir/dialect/transfers.py",
}
TABLES = {
    "program/builder/layouts.py",  # how it is laid out
    "program/errors.py",  # what else helps where Gluon has none
    "frontends/triton/formats.py",  # what is refused
    "frontends/cutile/names.py",  # what is written for those of Tile IR that are several
    "frontends/triton/translating.py",  # what is written for those of Triton that are several
    "ir/dialect/short_form.py",  # how it is written in short
    "kernel/axes.py",  # what is known of its result
    "kernel/padding.py",  # how what lies outside of a tensor is written out
    "kernel/lowering/written.py",  # what it is lowered to
}
"""One row an operation: a table says one thing of each."""
NAMING = {
    "compile/overlap.py": {  # who brings tiles in while others compute
        "async.cp_async",
        "async.tiled_tma_load",
        "async.tma_gather",
        "pointer.load",
    },
    "kernel/promotion.py": {"arith.addf"},  # sums that threads add up
    "simulation/kernels/evaluator.py": {
        "pointer.load",
        "pointer.atomic_cas",
    },  # of two in a method
    "ir/programs/work_tiles.py": {"arith.extsi"},  # how an index is widened
    "launching/reporting.py": {"smem"},  # a key of the report
    "program/clocks/agents.py": {"arith.trunci"},  # a number that is the same in fewer bits
    "program/builder/loop_operations.py": {"arith.truncf"},  # what is narrowed for the next step
    "program/builder/loops.py": {"arith.trunci"},  # a count that is narrower than an index
    "kernel/contracting.py": {  # what is one operation together
        "arith.addf",
        "arith.mulf",
        "arith.negf",
        "arith.subf",
        "math.fma",
    },
    "program/builder/trips.py": {"arith.addi"},  # an end that is its beginning and some more
    "machine/calibrating.py": {"smem"},  # how a microbenchmark stores
    "many/sweep.py": {"smem", "tmem"},  # figures of a row
    "report/batch.py": {"smem", "tmem"},  # columns of the table
    "report/sweep.py": {"smem", "tmem", "register"},  # figures of a row, a unit
    "kernel/partition.py": {"arith.addi"},  # where the rows of a replica begin
    "ir/dialect/types.py": {"smem", "tmem"},  # what operations ask of one space
    "materialization/origins.py": {"register"},  # a kind of view
    "exact/objectives/registers.py": {"register"},  # a unit
    "exact/relax.py": {"register"},  # a unit
    "report/schedule.py": {"register"},  # a unit
    "solution/__init__.py": {"register"},  # a unit
    "kernel/reshaping.py": {"arith.truncf", "arith.trunci"},  # what narrows a tile
    "kernel/block_order.py": {  # where a block lies, by its number
        "arith.addi",
        "arith.ceildivsi",
        "arith.cmpi",
        "arith.divsi",
        "arith.extsi",
        "arith.extui",
        "arith.index_cast",
        "arith.maxsi",
        "arith.minsi",
        "arith.muli",
        "arith.remsi",
        "arith.select",
        "arith.subi",
        "arith.trunci",
    },
    "kernel/persistence.py": {  # likewise, of a tile
        "arith.addi",
        "arith.ceildivsi",
        "arith.divsi",
        "arith.minsi",
        "arith.muli",
        "arith.remsi",
        "arith.subi",
    },
    "kernel/hidden_steps.py": {  # what a step that a mask hides works out
        "arith.addf",
        "arith.andi",
        "arith.cmpf",
        "arith.cmpi",
        "arith.extf",
        "arith.maximumf",
        "arith.maxnumf",
        "arith.mulf",
        "arith.select",
        "arith.subf",
        "arith.truncf",
        "math.exp",
        "math.exp2",
        "math.fma",
    },
    "kernel/neighbours.py": {"arith.addi", "arith.cmpi", "arith.muli"},  # which block is whose
    "program/rescaling.py": {"arith.mulf"},  # by what a sum is rescaled
    "kernel/trip_counts.py": {  # how a bound follows from the block
        "arith.addi",
        "arith.ceildivsi",
        "arith.divsi",
        "arith.divui",
        "arith.floordivsi",
        "arith.maxsi",
        "arith.minsi",
        "arith.muli",
        "arith.subi",
    },
    "kernel/lowering/offsets.py": {  # how the offset of an iteration is counted
        "arith.addi",
        "arith.ceildivsi",
        "arith.divsi",
        "arith.extsi",
        "arith.maxsi",
        "arith.muli",
        "arith.subi",
        "arith.trunci",
    },
    "kernel/addresses.py": {  # what sums of indices and strides are made of
        "arith.addi",
        "arith.andi",
        "arith.ceildivsi",
        "arith.cmpi",
        "arith.divsi",
        "arith.divui",
        "arith.extsi",
        "arith.extui",
        "arith.floordivsi",
        "arith.index_cast",
        "arith.maxsi",
        "arith.minsi",
        "arith.muli",
        "arith.remsi",
        "arith.remui",
        "arith.select",
        "arith.shli",
        "arith.subi",
        "arith.trunci",
    },
    "kernel/lowering/view_addresses.py": {  # where a view's rows lie, and which are there
        "arith.addi",
        "arith.andi",
        "arith.cmpi",
        "arith.extsi",
        "arith.muli",
    },
    "kernel/scaled_products.py": {  # how numbers of a few bits are unpacked and scaled
        "arith.andi",
        "arith.bitcast",
        "arith.cmpi",
        "arith.extf",
        "arith.extui",
        "arith.mulf",
        "arith.muli",
        "arith.negf",
        "arith.select",
        "arith.shli",
        "arith.shrui",
        "arith.sitofp",
        "arith.truncf",
    },
    "schemas/loop.py": {"register", "smem", "tmem"},  # types of what is published: no table makes
    "schemas/many.py": {"smem", "tmem"},  # them
    "schemas/schedule.py": {"register", "smem", "tmem"},
    "kernel/lowering/wrapped_rows.py": {"arith.select"},  # what leaves rows out
    "kernel/lowering/address_views.py": {  # coordinates, worked out anew
        "arith.addi",
        "arith.cmpi",
        "arith.extsi",
        "arith.muli",
        "arith.trunci",
    },
    "kernel/lowering/views.py": {  # what a base is moved by
        "arith.addi",
        "arith.extsi",
        "arith.muli",
        "arith.subi",
        "arith.trunci",
    },
}


def test_opcodes_and_spaces_stand_in_their_tables_alone() -> None:
    """No other module has a word of them as a string, to compare or to match with."""
    words = {kind for kind in OPCODES if "." in kind} | set(SPACES)
    found: dict[str, set[str]] = {}
    for file in sorted(SOURCES.rglob("*.py")):
        name = file.relative_to(SOURCES).as_posix()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Constant)
                and node.value in words
                and name not in DEFINING | TABLES
                and not name.startswith("sanitizer/")  # a second opinion: it knows no table
            ):
                found.setdefault(name, set()).add(str(node.value))
    assert found == NAMING
