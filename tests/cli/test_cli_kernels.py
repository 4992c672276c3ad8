"""Kernels on the command line: imported, scheduled, run; and what is said where that cannot be."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import stretto.triton
from kernel_cases import CASES
from stretto.cli.main import main
from stretto.errors import StrettoError
from stretto.kernel.errors import KernelError
from stretto.kernel.tree import Location

EXAMPLES = Path(__file__).parents[2] / "examples" / "triton"
SOFTMAX = str(EXAMPLES / "softmax.ttir")


def _valid(document: dict[str, Any], name: str) -> None:
    folder = resources.files("stretto.report").joinpath("schemas")
    schema = json.loads(folder.joinpath(f"{name}.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(document, schema)


def _inputs(folder: Path) -> str:
    path = folder / "inputs.npz"
    np.savez(path, **CASES["softmax"]().inputs)
    return str(path)


def test_an_imported_kernel_schedules_as_its_dump_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module = str(tmp_path / "softmax.mlir")
    assert main(["import", SOFTMAX, "--machine", "b200-pipes", "-o", module]) == 0
    assert "note: loaded by threads" in capsys.readouterr().err
    assert main(["schedule", SOFTMAX, "--machine", "b200-pipes"]) == 0
    from_dump = capsys.readouterr().out
    assert main(["schedule", module]) == 0
    assert capsys.readouterr().out == from_dump


def test_import_answers_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", SOFTMAX, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    _valid(document, "kernel")
    assert "func.func @softmax" in document["mlir"]


def test_a_kernel_is_emitted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    matmul = str(EXAMPLES / "matmul_descriptors.ttir")
    file = tmp_path / "matmul.py"
    asked = ["emit", matmul, "--to", "gluon", "--consumers", "2", "--depth", "5"]
    assert main([*asked, "-o", str(file)]) == 0
    assert capsys.readouterr().out == ""
    assert main([*asked, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    _valid(document, "emitted")
    assert document["source"] == file.read_text(encoding="utf-8")
    assert (document["consumers"], document["mode"]) == (2, "specialized")
    assert max(document["rings"].values()) == 5
    compile(document["source"], "matmul.py", "exec")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"target": {"arch": "x", "backend": 3}}', "$.target.backend: error: is 3; expected a"),
        ('{"target": \n', "error: not JSON: Expecting value"),
        ("[1]", "$: error: is [1]; expected a table of keys"),
    ],
)
def test_a_fault_of_the_file_beside_is_said_of_that_file(
    text: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel, beside = tmp_path / "k.ttir", tmp_path / "k.json"
    kernel.write_text(Path(SOFTMAX).read_text(encoding="utf-8"), encoding="utf-8")
    beside.write_text(text, encoding="utf-8")
    assert main(["schedule", str(kernel), "--json"]) == 1
    (error,) = json.loads(capsys.readouterr().out)["errors"]
    assert error.startswith(str(beside))
    assert told in error


def test_what_cannot_be_emitted_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["emit", SOFTMAX, "--mode", "specialized", "--consumers", "2"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("softmax.py:9:1: error: it cannot be split between replicas; ")
    assert main(["emit", SOFTMAX, "--machine", "blackwell", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["success"] is False
    assert main(["emit", SOFTMAX, "--consumers", "5"]) == 1
    assert capsys.readouterr().err == "error: 5 consumers; h200 has 1 to 4\n"


def test_a_kernel_runs_on_arrays_of_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["simulate", SOFTMAX, "--machine", "b200-pipes", "--inputs", _inputs(tmp_path)]
    assert main([*asked, "--grid", "8", "--mode", "specialized"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("softmax, specialized, grid 8: equal to sequential execution\n")
    assert main([*asked, "--grid", "4,2", "--json"]) == 0
    _valid(json.loads(capsys.readouterr().out), "kernel-simulation")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["import", str(EXAMPLES / "softmax.py")], 1, "is Python, not a kernel"),
        (["import", str(EXAMPLES.parent / "gemm.mlir")], 1, "is no kernel that can be imported"),
        (["simulate", SOFTMAX, "--inputs", SOFTMAX], 1, "cannot be read"),
        (["simulate", SOFTMAX, "--inputs", "x.npz", "--grid", "0"], 2, "at least 1"),
        (["simulate", SOFTMAX, "--inputs", "x.npz", "--grid", "1,1,1,1"], 2, "three axes"),
        (["verify", SOFTMAX], 1, "has no schedule"),
    ],
)
def test_what_cannot_be_done_is_said(
    arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == code
    assert said in capsys.readouterr().err


def test_loops_of_a_kernel_run_on_symbols_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", SOFTMAX, "--machine", "b200-pipes", "--iterations", "3"]) == 0
    assert "equal to sequential execution" in capsys.readouterr().out


def test_without_triton_a_function_is_refused_with_advice() -> None:
    with pytest.raises(StrettoError, match=r"Triton is not installed; pip install stretto\[gpu\]"):
        stretto.triton.read(None, signature={})


@pytest.mark.parametrize("command", ["schedule", "bounds", "explain", "import"])
def test_an_error_begins_with_its_place(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And with nothing before it: editors jump to it."""
    whole = (EXAMPLES / "attention_forward_d64.ttir").read_text(encoding="utf-8")
    broken = tmp_path / "broken.ttir"
    broken.write_text(whole[:900], encoding="utf-8")
    assert main([command, str(broken), "--machine", "b200-pipes"]) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"{broken}:21:")
    assert told.count("error:") == 1


def test_a_kernel_error_travels() -> None:
    error = KernelError(Location("k.py", 3, 7), "is wrong", "do this")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) == "k.py:3:7: error: is wrong; do this"
    assert again.message == "is wrong"


def test_emitting_products_predicts_and_simulates_nothing() -> None:
    """How fast a kernel is whose threads load is predicted; one with products has its II."""
    kernel = str(EXAMPLES / "matmul_descriptors.ttir")
    options = ["--consumers", "1", "--depth", "3", "-q", "-o", os.devnull]
    code = (
        "import sys\n"
        "from stretto.cli.main import main\n"
        f"main({['emit', kernel, *options]!r})\n"
        "ours = {m for m in sys.modules if m.startswith('stretto.')}\n"
        "heavy = {'numpy', 'xdsl', 'stretto.prediction', 'stretto.simulation'}\n"
        "more = {*sys.modules} & heavy\n"
        "sys.exit(f'{len(ours)} modules, {more}' if more or len(ours) > 245 else 0)\n"
    )
    _succeeds(code)


def test_making_a_kernel_at_its_launch_needs_no_modules_of_mlir(tmp_path: Path) -> None:
    """A kernel whose threads load is predicted on the way; xDSL is for MLIR, read or written."""
    kernel = str(EXAMPLES / "softmax.ttir")
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from stretto.compile.sources import kernels_of\n"
        "from stretto.launching.asked import Asked\n"
        "from stretto.launching.making import make\n"
        "from stretto.launching.storing import Store\n"
        f"file, folder = {kernel!r}, Path({str(tmp_path / 'store')!r})\n"
        "(kernel,) = kernels_of(file, Path(file).read_text())\n"
        "asked = Asked(mode='unspecialized').on('cuda:90')\n"
        "entry = make('softmax', 'f' * 64, lambda: kernel, asked, Store(folder))\n"
        "assert 'gluon.jit' in entry.source\n"
        "sys.exit('xDSL' if 'xdsl' in sys.modules else 0)\n"
    )
    _succeeds(code)


def _succeeds(code: str) -> None:
    """A program that ends well in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
