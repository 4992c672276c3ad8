"""Programs of whole kernels as MLIR: written, read back, edited by hand.

That each shipped kernel prints the same bytes once its program was written and read is tested with
the golden sources (`tests/emission/test_emit_golden.py`, `tests/gpu/compile.py --golden`).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import stretto
from kernel_cases import CASES
from stretto.api.emitting import emit
from stretto.cli.main import main
from stretto.compile.emitted import EmittedKernel
from stretto.diagnostics import MlirError
from stretto.ir.kernel_programs import kernel_program_text, read_kernel_program
from stretto.ir.kernel_programs.fields import called, fields_of, kind_of_operation, records
from stretto.ir.parsing import parse_module
from stretto.program.clocks import FaultError
from stretto.program.expressions import Expression
from stretto.program.instructions import Instruction

KERNEL = Path(__file__).parents[2] / "examples" / "triton" / "matmul_persistent.ttir"


@pytest.fixture(scope="module")
def made() -> EmittedKernel:
    return emit(KERNEL, "h200", consumers=1)


@pytest.fixture(scope="module")
def text(made: EmittedKernel) -> str:
    return made.to_mlir()


@pytest.mark.parametrize("kind", [*get_args(Instruction), *get_args(Expression)])
def test_each_instruction_and_expression_has_a_name_of_its_own(kind: type) -> None:
    assert kind_of_operation(*called(kind)) is kind
    assert fields_of(kind) or kind.__name__ in ("Fence", "ThreadBarrier", "TraceEnd")


def test_types_say_what_stands_in_attributes() -> None:
    assert {"Origin", "Kept", "Mark", "Product", "Rows", "Tile", "Scalar"} <= set(records())


def test_waits_and_arrivals_are_called_as_pipes_call_them(text: str) -> None:
    for name in ("consumer_wait", "consumer_release", "producer_acquire", "producer_commit"):
        assert f'"stretto.{name}"(' in text
    assert 'means = "mbarrier"' in text
    assert 'means = "bytes"' in text


def test_it_is_a_module_without_fault(text: str) -> None:
    assert len(list(parse_module(text, "p.mlir").module.body.block.ops)) == 2


def test_what_is_read_computes_what_the_kernel_does(text: str, tmp_path: Path) -> None:
    file = tmp_path / "p.mlir"
    file.write_text(text)
    case = CASES["matmul_persistent"]()
    found = stretto.simulate_kernel(file, case.inputs, case.grid)
    assert found.success, found.to_text()
    assert found.program is not None
    for name, expected in case.expected.items():
        got = found.arrays[name].reshape(expected.shape)
        assert np.allclose(got, expected, rtol=0, atol=case.tolerance)


def test_the_command_line_writes_prints_and_runs_it(
    tmp_path: Path, made: EmittedKernel, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "p.mlir")
    options = ["--machine", "h200", "--consumers", "1", "-q"]
    assert main(["emit", str(KERNEL), "--to", "mlir", "-o", file, *options]) == 0
    assert main(["emit", file, "-q"]) == 0
    assert capsys.readouterr().out == made.source
    assert main(["simulate", file]) == 0
    assert "nothing wrong by clocks" in capsys.readouterr().out
    assert main(["emit", file, "--depth", "2"]) == 1
    assert "is a program already; it is printed as it stands" in capsys.readouterr().err
    assert main(["predict", file, "--grid", "1"]) == 1
    assert "stretto emit FILE prints it, stretto simulate FILE runs it" in capsys.readouterr().err


def test_a_wait_that_a_hand_took_out_is_missed(text: str, tmp_path: Path) -> None:
    file = tmp_path / "p.mlir"
    lines = text.splitlines(keepends=True)
    waits = [n for n, line in enumerate(lines) if '"stretto.consumer_wait"(' in line]
    file.write_text("".join(lines[: waits[-1]] + lines[waits[-1] + 1 :]))
    with pytest.raises(FaultError):
        emit(file)


def test_a_loop_that_a_hand_made_endless_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "p.mlir"
    endless, changed = re.subn(r"needed = \d+ ", "needed = 99999999999 ", text)
    assert changed
    file.write_text(endless)
    with pytest.raises(FaultError, match="a run has more than 200,000 events or turns"):
        emit(file)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("stretto.consumer_wait", "stretto.consumer_weight", "is no instruction of a program"),
        ("bytes = 16384", "bites = 16384", "has no field `bites`"),
        ('name = "arith.divsi"', 'name = "arith.muli"', "of the kernel is no `arith.muli`"),
        ('is = "Origin", ', 'is = "Origin", opp = 1 : i64, ', "unexpected keyword argument 'opp'"),
        ('is = "Origin"', 'is = "Organ"', "`Organ` is no record of a program"),
        ('memory = "b_tile"', 'memory = "c_tile"', "names `c_tile`, which is not declared"),
        ('name = "b_tile", depth = ', "depth = 3 : i64, name = ", "a `name` of another type"),
        ("stretto.kernel_program", "stretto.kernel", "has 0 programs of 1 kernels"),
    ],
)
def test_what_cannot_be_read_is_told_at_its_place(
    text: str, before: str, after: str, told: str
) -> None:
    assert before in text
    with pytest.raises(MlirError, match=told) as caught:
        read_kernel_program("p.mlir", text.replace(before, after))
    assert str(caught.value).startswith("p.mlir:")


def test_numbers_come_back_as_they_were() -> None:
    made = emit(KERNEL.parent / "softmax.ttir", "h200", mode="unspecialized")
    text = kernel_program_text(made.emitted.program)
    assert "-inf" in made.source
    assert kernel_program_text(read_kernel_program("p.mlir", text)) == text
