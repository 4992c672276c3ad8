"""The machine where nobody names one: the same in every command, and every report says why."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import stretto
from stretto.cli.main import main
from stretto.machine.choice import ASKED, KERNELS, LOOPS, NAMED, chosen_for_kernel
from stretto.view.workshop import Workshop

EXAMPLES = Path(__file__).parents[2] / "examples"
KERNEL = EXAMPLES / "triton" / "matmul_descriptors.ttir"
BYTECODE = next((EXAMPLES / "cutile").glob("*.tileirbc"))
LOOP = str(Path(__file__).parents[1] / "cases" / "unlisted_read.json")
Capture = pytest.CaptureFixture[str]


def kernel(folder: Path, arch: object = None) -> str:
    """A kernel, and beside it a file that says what it was compiled for."""
    file = folder / "kernel.ttir"
    shutil.copy(KERNEL, file)
    if arch is not None:
        target = {"backend": "cuda", "arch": arch, "warp_size": 32}
        (folder / "kernel.json").write_text(json.dumps({"num_warps": 4, "target": target}))
    return str(file)


def answered(capsys: Capture, *words: str) -> Any:
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


COMMANDS = ("bounds", "schedule", "simulate", "explain", "import", "sweep", "emit", "predict")
MORE = {
    "sweep": ["--no-cache"],
    "predict": [
        *("--grid", "8,8", "--consumers", "1", "--depth", "3"),
        *(f"--argument={name}=1024" for name in "MNK"),
    ],
    "emit": ["--consumers", "1", "--depth", "3"],
    "explain": ["--ii", "100"],
}


def entry(document: Any) -> Any:
    """The part of a document that speaks of a machine."""
    for key in ("loops", "configurations", "predictions"):
        if key in document and "machine" in document[key][0]:
            return document[key][0]
    return document


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_takes_the_machine_of_the_kernel(
    command: str, tmp_path: Path, capsys: Capture
) -> None:
    words = [command, kernel(tmp_path, 90), *MORE.get(command, [])]
    told = entry(answered(capsys, *words))
    assert (told["machine"], told["machine_why"]) == ("h200", "kernel.json says cuda:90")
    assert told.get("unit", "cycles") == "cycles"
    told = entry(answered(capsys, *words, "--machine", "h200"))
    assert (told["machine"], told["machine_why"]) == ("h200", ASKED)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_report_says_which_machine_was_assumed(
    command: str, tmp_path: Path, capsys: Capture
) -> None:
    said = f"machine {KERNELS}: the default for kernels; nothing beside it says a target"
    words = [command, kernel(tmp_path), *MORE.get(command, [])]
    assert main(words) == 0
    told = capsys.readouterr()
    assert said in " ".join((told.out + told.err).split())
    assert main([*words, "--machine", KERNELS]) == 0
    told = capsys.readouterr()
    assert "machine h200:" not in told.out + told.err


@pytest.mark.parametrize(
    ("arch", "machine", "why"),
    [
        (90, "h200", "kernel.json says cuda:90"),
        (100, "b200", "kernel.json says cuda:100"),
        (80, KERNELS, "the default for kernels; kernel.json says cuda:80, which no machine is for"),
        (None, KERNELS, "the default for kernels; nothing beside it says a target"),
    ],
)
def test_python_takes_the_same(arch: object, machine: str, why: str, tmp_path: Path) -> None:
    file = kernel(tmp_path, arch)
    (loop,) = stretto.read(file)
    assert loop.machine == machine
    found = stretto.bounds(loop)
    assert (found.problem.machine.name, found.problem.machine_why) == (machine, why)
    assert stretto.bounds(loop, machine).problem.machine_why == ASKED
    page = Workshop.opened(file).document()["loops"][0]
    assert (page["machine"], page["machine_why"]) == (machine, why)
    if machine == "h200":
        assert stretto.emit(file, consumers=1, depth=3).machine_why == why


def test_bytecode_has_the_default_of_kernels() -> None:
    (loop, *_) = stretto.read(BYTECODE)
    told = stretto.bounds(loop).problem
    assert (told.machine.name, told.machine_why) == chosen_for_kernel("")


def test_loops_keep_theirs(capsys: Capture) -> None:
    told = entry(answered(capsys, "bounds", str(EXAMPLES / "gemm.json")))
    assert (told["machine"], told["machine_why"], told["unit"]) == ("b200-pipes", NAMED, "cycles")
    loop = stretto.read(EXAMPLES / "gemm.json")[0]
    assert stretto.bounds(loop).problem.machine_why == NAMED


def test_a_loop_that_names_none_says_so(tmp_path: Path, capsys: Capture) -> None:
    loop = json.loads((EXAMPLES / "four_op.json").read_text())
    del loop["machine"]
    file = tmp_path / "four.json"
    file.write_text(json.dumps(loop))
    told = entry(answered(capsys, "bounds", str(file)))
    assert (told["machine"], told["unit"]) == (LOOPS, "weights")
    assert told["machine_why"] == "the default for loops that name none"
    assert main(["bounds", str(file)]) == 0
    assert f"machine {LOOPS}: the default for loops" in capsys.readouterr().out


WEIGHTS = ("bounds", "schedule", "simulate", "explain")


@pytest.mark.parametrize("command", WEIGHTS)
def test_weights_are_called_weights(command: str, capsys: Capture) -> None:
    assert main([command, str(EXAMPLES / "four_op.json")]) == 0
    told = capsys.readouterr().out
    assert "figures of blackwell are weights, not cycles of a clock" in told
    assert " cycles" not in told.replace("not cycles of a clock", "")
    assert "weights" in told.replace("are weights", "")


@pytest.mark.parametrize(("format", "unit"), [("csv", "ii_weights"), ("svg", ">weights<")])
def test_pictures_and_tables_say_the_unit(format: str, unit: str, capsys: Capture) -> None:
    assert main(["schedule", str(EXAMPLES / "four_op.json"), "--format", format]) == 0
    told = capsys.readouterr().out
    assert unit in told
    assert "cycles" not in told


def test_a_machine_says_what_its_figures_are(tmp_path: Path, capsys: Capture) -> None:
    units = {name: stretto.load_machine(name).unit for name in stretto.machine_names()}
    assert units == dict.fromkeys(units, "cycles") | {"blackwell": "weights"}
    file = tmp_path / "own.toml"
    file.write_text('[machine]\nname = "own"\nunit = "hours"\n[slots.s]\ncapacity = 1\n')
    assert main(["machines", str(file)]) == 1
    assert "machine.unit: error:" in capsys.readouterr().err
    file.write_text('extends = "blackwell"\n[machine]\nname = "own"\n')
    assert stretto.load_machine(str(file)).unit == "weights"
