"""All kernels of a process: which are taken, how it ends, and programs that run under it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_launching import Jit
from test_trials import Bench

import stretto.triton
from stretto.errors import StrettoError
from stretto.launching.verdicts import Verdict, forget
from stretto.triton import installing
from stretto.triton.__main__ import main


class Third(Jit):
    """A kernel of somebody else's library."""

    def __init__(self, bench: Bench, name: str, module: str) -> None:
        super().__init__(bench.stub)
        self.__name__, self.__module__ = name, module
        self.on_launch = bench.theirs_runs


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Bench]:
    forget()

    def imported(name: str) -> Any:
        assert name == "triton.runtime.jit"
        return SimpleNamespace(JITFunction=Third)

    monkeypatch.setattr("stretto.triton.installing.import_module", imported)
    yield Bench(monkeypatch, tmp_path)
    stretto.triton.uninstall()


def test_kernels_of_others_are_taken_and_given_back(bench: Bench) -> None:
    early = Third(bench, "early", "library")
    bench.launch(early, 3)
    stretto.triton.install()
    late = Third(bench, "late", "library")
    bench.launch(early, 20)  # compiled before
    bench.launch(late, 20)
    assert bench.ran[-1] == "ours"
    assert bench.ran[:23] == ["theirs"] * 23
    assert [one.kernel for one in stretto.triton.verdicts()] == ["late"]
    stretto.triton.uninstall()
    bench.ran.clear()
    bench.launch(late, 3)
    bench.launch(Third(bench, "later", "library"), 3)
    assert bench.ran == ["theirs"] * 6
    (compiled,) = late.device_caches[0].values()
    assert compiled._run == compiled._launch


def test_patterns_say_which(bench: Bench) -> None:
    stretto.triton.install(include=["fla.ops.*", "mine"], exclude=["*_bwd_*"])
    names = [
        ("forward", "fla.ops.gated"),
        ("forward_bwd_dq", "fla.ops.gated"),
        ("mine", "train"),
        ("other", "train"),
    ]
    for name, module in names:
        bench.launch(Third(bench, name, module), 20)
    assert [one.kernel for one in stretto.triton.verdicts()] == ["forward", "mine"]
    with pytest.raises(StrettoError, match=r"one pattern; give a list, such as \[\"flash\"\]"):
        stretto.triton.install(include="flash")
    with pytest.raises(StrettoError, match="check='last' is not known"):
        stretto.triton.install(check="last")


def test_what_is_left_alone_is_told_by_verdicts_and_not_by_warnings(bench: Bench) -> None:
    bench.stub.text = "nonsense scf.for"
    stretto.triton.install()
    bench.launch(Third(bench, "odd", "library"), 3)
    (verdict,) = stretto.triton.verdicts()
    assert verdict.runs == "theirs"
    assert "odd" in verdict.why


def test_a_summary_has_kernels_seen_taken_and_gained(bench: Bench) -> None:
    stretto.triton.install()
    bench.launch(Third(bench, "product", "library"), 112)
    bench.ours = 300.0
    bench.launch(Third(bench, "slow", "library"), 20)
    decided = [*stretto.triton.verdicts(), Verdict("norm", why="there is no loop")]
    text = "\n".join(installing.summary_of(decided))
    assert "3 kernels seen, 1 run by Stretto in 1 kinds of launches; 0.002 s of the GPU" in text
    assert "product [1×1×1]: ours; ours 80.0 µs, Triton's 100.0 µs" in text
    assert "100 launches since" in text
    assert "norm: theirs, there is no loop" in text


def test_verbose_tells_of_each_kernel_as_it_is_decided(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    stretto.triton.install(verbose=True)
    bench.launch(Third(bench, "product", "library"), 20)
    bench.stub.text = "module { tt.return }"
    bench.launch(Third(bench, "norm", "library"), 2)
    stretto.triton.uninstall()
    bench.launch(Third(bench, "other", "library"), 2)
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("stretto: product [1×1×1]: ours; ours 80.0 µs, Triton's 100.0 µs")
    assert second == "stretto: norm: theirs, there is no loop, so nothing to overlap"


PROGRAM = """
import sys
from pathlib import Path
from stretto.triton.hooks import FOR_ALL
print(sys.argv[1:], __name__, FOR_ALL[-1].include, FOR_ALL[-1].settings.wait)
"""


def test_a_program_runs_under_it_with_its_own_arguments(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    del bench
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "train.py").write_text(PROGRAM)
    words = ["--include", "flash_*", "--wait", str(tmp_path / "train.py"), "--epochs", "3"]
    assert main(words) == 0
    assert capsys.readouterr().out == "['--epochs', '3'] __main__ ('flash_*',) True\n"
    assert sys.path[0] == str(tmp_path)
    assert main(["missing.py"]) == 1
    assert capsys.readouterr().err == "error: missing.py: there is no such file\n"

    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr("stretto.triton.installing.import_module", missing)
    assert main([str(tmp_path / "train.py")]) == 1
    assert "Triton is not installed; pip install stretto[gpu]" in capsys.readouterr().err
