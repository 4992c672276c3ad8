"""The commands on MLIR: as on its JSON twin, with positions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stretto.cli.main import main
from stretto.frontends import is_mlir
from stretto.ir.opt.__main__ import main as opt

EXAMPLES = Path(__file__).parents[2] / "examples"
TWINS = ("four_op", "gemm", "attention_forward", "attention_backward", "layernorm")


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    capsys.readouterr()
    main([*arguments, "--json"])
    (entry,) = json.loads(capsys.readouterr().out)["loops"]
    entry.pop("seconds", None)
    for op in entry.get("ops", ()):
        op.pop("location", None)  # a place in the one file or the other
    return entry


@pytest.mark.parametrize("name", TWINS)
@pytest.mark.parametrize("command", ["schedule", "bounds"])
def test_a_module_answers_as_its_json_twin(
    command: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    mlir = answer(capsys, command, str(EXAMPLES / f"{name}.mlir"))
    assert mlir == answer(capsys, command, str(EXAMPLES / f"{name}.json"))


def test_attention_forward_passes_few_of_our_modules() -> None:
    code = (
        "import sys\n"
        "from stretto.cli.main import main\n"
        "failed = main(sys.argv[1:])\n"
        "ours = sorted(m for m in sys.modules if m.split('.')[0] == 'stretto')\n"
        "print(*ours, sep='\\n', file=sys.stderr)\n"
        "sys.exit(failed)\n"
    )
    asked = ["schedule", str(EXAMPLES / "attention_forward.mlir"), "--machine", "b200-pipes"]
    done = subprocess.run(
        [sys.executable, "-c", code, *asked], capture_output=True, text=True, check=True
    )
    passed = done.stderr.split()
    assert {"stretto.cli.main", "stretto.ir.loops", "stretto.generate.search"} <= set(passed)
    assert len(passed) <= 118, done.stderr


def test_explain_reads_mlir(capsys: pytest.CaptureFixture[str]) -> None:
    entry = answer(capsys, "explain", str(EXAMPLES / "four_op.mlir"))
    assert entry == answer(capsys, "explain", str(EXAMPLES / "four_op.json"))


def test_mlir_from_stdin_is_recognized_by_content(capsys: pytest.CaptureFixture[str]) -> None:
    text = (EXAMPLES / "gemm.mlir").read_text(encoding="utf-8")
    code = "from stretto.cli import run; run()"
    done = subprocess.run(
        [sys.executable, "-c", code, "bounds", "-"],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("gemm on b200-pipes: II >= 256")
    capsys.readouterr()


@pytest.mark.parametrize("command", ["cli", "ir.opt.__main__"])
def test_stdin_is_utf8_whatever_the_locale_says(command: str) -> None:
    def run(data: bytes) -> subprocess.CompletedProcess[bytes]:
        code = f"from stretto.{command} import run; run()"
        arguments = ["bounds", "-"] if command == "cli" else ["-"]
        return subprocess.run(
            [sys.executable, "-c", code, *arguments],
            input=data,
            capture_output=True,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )

    assert run(b"// \xff").stderr == b"<stdin>: error: is not UTF-8 text (byte 3)\n"
    kernel = (EXAMPLES / "four_op.mlir").read_bytes()
    assert run("\ufeff// Längen\n".encode() + kernel).returncode == 0


@pytest.mark.parametrize(
    ("text", "mlir"),
    [
        ("arith.constant 3 : i32", True),
        ('"func.func" () ({})', True),
        ("llvm.func @f()", True),
        ("{-# dialect_resources: {} #-}", True),
        ("#map = 3", True),
        ("", False),
        (" {", False),
        ("[]", False),
        ('"text"', False),
        ("-3", False),
        ("null", False),
    ],
)
def test_all_that_does_not_begin_as_json_does_is_mlir(text: str, mlir: bool) -> None:
    assert is_mlir(text) == mlir


def test_errors_have_a_position_and_a_caret(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (EXAMPLES / "gemm.mlir").read_text(encoding="utf-8")
    broken = tmp_path / "broken.mlir"
    broken.write_text(text.replace("acc %acc :", "acc %nowhere :"), encoding="utf-8")
    assert main(["schedule", str(broken)]) == 1
    err = capsys.readouterr().err
    assert err.startswith(f"{broken}:24:")
    assert ": error: " in err
    assert "^" in err
    assert main(["schedule", str(broken), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["success"] is False
    assert "broken.mlir:24:" in told["errors"][0]


def test_a_machine_without_the_operations_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bounds", str(EXAMPLES / "gemm.mlir"), "--machine", "nowhere"]) == 1
    assert "nowhere" in capsys.readouterr().err


def scheduled(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str = "gemm") -> Path:
    """A module with its schedule on it."""
    file = tmp_path / f"{name}.mlir"
    capsys.readouterr()
    assert opt(["-p", "tileas-generate-schedule", str(EXAMPLES / f"{name}.mlir")]) == 0
    file.write_text(capsys.readouterr().out, encoding="utf-8")
    return file


def test_verify_reads_the_schedule_from_the_attributes_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = scheduled(tmp_path, capsys)
    assert main(["verify", str(file)]) == 0
    assert capsys.readouterr().out == "gemm on b200-pipes, II 256: legal\n"


def test_a_schedule_edited_by_hand_is_refused_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second load moved onto the first: both hold the TMA unit."""
    file = scheduled(tmp_path, capsys)
    text = file.read_text(encoding="utf-8")
    assert "nv_tile.aws.start = 97" in text
    file.write_text(
        text.replace("nv_tile.aws.start = 97", "nv_tile.aws.start = 50"), encoding="utf-8"
    )
    assert main(["verify", str(file)]) == 1
    told = capsys.readouterr()
    assert "not legal" in told.out
    assert "slot: " in told.out
    row = next(i for i, line in enumerate(text.splitlines(), 1) if "start = 97" in line)
    assert f"{file}:{row}:" in told.err


def test_verify_a_module_against_a_schedule_document(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = tmp_path / "gemm.schedule.json"
    assert main(["schedule", str(EXAMPLES / "gemm.json"), "--json", "-o", str(document)]) == 0
    assert main(["verify", str(EXAMPLES / "gemm.mlir"), str(document)]) == 0
    assert "legal" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("gemm.mlir", "has no schedule on any of these loops; stretto-opt -p tileas-generate"),
        ("gemm.json", "has no schedule; only a module can carry its schedule"),
    ],
)
def test_verify_without_a_schedule(
    name: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(EXAMPLES / name)]) == 1
    assert told in capsys.readouterr().err


def test_help_loads_no_heavy_library() -> None:
    code = (
        "import sys; from stretto.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = [m for m in ('xdsl', 'ortools', 'numpy', 'pandas') if m in sys.modules]\n"
        "sys.exit(','.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
