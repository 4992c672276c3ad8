"""One table says what an opcode is; nothing is guessed from its name."""

from __future__ import annotations

import pytest

from stretto.ir import read_mlir
from stretto.ir.dialect import NvTileas
from stretto.loop import Op
from stretto.machine import load_machine, machine_names
from stretto.materialize.agents import role_of
from stretto.vocabulary.opcodes import OPCODES, UNKNOWN, opcode

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
