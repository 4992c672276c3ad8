"""The table of operations: whoever lacks a column is named here, and not when a user comes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from stretto.frontends.cutile.translating import REFUSED as REFUSED_BY_CUTILE
from stretto.frontends.tileir.rows import ROWS as TILEIR_ROWS
from stretto.kernel.axes import RULES as AXIS_RULES
from stretto.kernel.checking import RULES
from stretto.machine import load_machine, machine_names
from stretto.ops.atomics import ATOMICS
from stretto.ops.opcodes import OPCODES
from stretto.ops.operations import BY_SYMBOL, OF_COST, OPERATIONS
from stretto.ops.predicates import PREDICATES
from stretto.ops.rows import NONE, Row, reason_of
from stretto.simulation.kernels.evaluator import METHODS
from stretto.simulation.values import function_named

ROWS = list(OPERATIONS.values())
ELEMENTWISE = [row for row in ROWS if row.elementwise]


def _name(row: Row) -> str:
    return row.name


@pytest.mark.parametrize("row", ROWS, ids=_name)
def test_every_row_states_every_column(row: Row) -> None:
    assert row.lacking() == ()


@pytest.mark.parametrize("row", ROWS, ids=_name)
def test_what_a_row_names_is_there(row: Row) -> None:
    """Its value and its rule of types, in those who resolve them."""
    if row.elementwise:
        assert row.numpy in METHODS or function_named(row.numpy.split()[0])
    else:
        assert row.numpy in {*METHODS, NONE, "same"}
        assert row.types in {*RULES, NONE}


def test_what_is_known_of_results_has_a_rule_and_each_rule_a_row() -> None:
    assert {row.axis for row in ROWS if row.axis} == {*AXIS_RULES}


def test_atomic_operations_have_functions() -> None:
    assert all(callable(function_named(row.numpy)) for row in ATOMICS.values())
    assert {row.name for row in ATOMICS.values() if not row.commutes} == {"exch"}


@pytest.mark.parametrize("row", ELEMENTWISE, ids=_name)
def test_what_gluon_has_names_operands_that_there_are(row: Row) -> None:
    if reason_of(row.gluon) is None and row.name not in PREDICATES:
        known = {f"{sign}{n}" for sign in ("u", "f") for n in range(row.operands[0] or 0)}
        given = dict.fromkeys((*known, "type", "bits"), "x")
        assert row.gluon.format(*("x" * (row.operands[0] or 0)), **given)


@pytest.mark.parametrize("row", ELEMENTWISE, ids=_name)
def test_what_is_computed_is_an_opcode_that_touches_no_memory(row: Row) -> None:
    assert not OPCODES[row.name].memory
    assert OPCODES[row.name].issuer == "simt"


@pytest.mark.parametrize("machine", ["h200", "b200-pipes", "blackwell"])
@pytest.mark.parametrize("cost", OF_COST)
def test_every_class_of_costs_has_a_cost(machine: str, cost: str) -> None:
    assert machine in machine_names()
    known = load_machine(machine).opcodes
    assert [name for name in OF_COST[cost] if name not in known] == []


def test_a_symbol_of_the_library_is_one_operation() -> None:
    symbols = [symbol for row in ROWS for symbol in row.symbols]
    assert len(symbols) == len(BY_SYMBOL)


@pytest.mark.parametrize("name", sorted({row.name for row in TILEIR_ROWS.values()}))
def test_what_tile_ir_has_is_a_row_or_is_refused_with_a_reason(name: str) -> None:
    spelled = {word.partition(" ")[0] for row in ROWS for word in row.tileir}
    assert name in spelled | set(REFUSED_BY_CUTILE) | TRANSLATED


TRANSLATED = {
    "continue",  # the end of a loop's body: scf.yield, or scf.condition
    "for",
    "fpowi",  # a conversion and a power
    "ftof",
    "get_index_space_shape",  # divisions of sizes
    "make_partition_view",  # coordinates of it are multiplied
    "make_gather_scatter_view",
    "make_strided_view",
    "make_token",
    "mmai",
    "negi",  # zero less it
}
"""What becomes several operations of a kernel, or none."""

ONE_ROW = """
from stretto.ops import arithmetic
arithmetic.ARITHMETIC = tuple(row for row in arithmetic.ARITHMETIC if row.name != "math.sin")
from stretto.frontends.triton import read_ttir
from stretto.machine import load_machine
from stretto.ops.atomics import ATOMICS
from stretto.ops.opcodes import OPCODES
from stretto.emission.gluon import expressions
from stretto.simulation import values
assert "math.sin" not in OPCODES
assert "math.sin" not in load_machine("h200").opcodes
try:
    read_ttir("k.ttir", "module {tt.func public @k(%x: f32) {%y = math.sin %x : f32 tt.return}}")
except Exception as error:
    assert "`math.sin` is not an operation of a kernel" in str(error), error
else:
    raise AssertionError("read")
"""


def test_without_its_row_nobody_knows_a_sine() -> None:
    """No front end, machine, checker, evaluator or printer has it from elsewhere."""
    done = subprocess.run(
        [sys.executable, "-c", ONE_ROW], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def test_only_the_table_says_sine() -> None:
    root = Path(__file__).parents[2] / "src" / "stretto"
    naming = {
        file.relative_to(root).as_posix()
        for file in root.rglob("*.py")
        if re.search(r'"sin"|math\.sin', file.read_text("utf-8"))
    }
    # The sanitizer is a second opinion, which knows no table.
    known = {name for name in naming if not name.startswith("sanitizer/")}
    assert known == {"ops/arithmetic.py", "ops/rows.py"}
