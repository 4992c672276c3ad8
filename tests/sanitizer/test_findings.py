"""A sound kernel passes; the same with one thing wrong is told, by its class and its lines."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from stretto.cli.main import main
from stretto.errors import DocumentError
from stretto.sanitizer.checking import check
from stretto.sanitizer.finding import Report
from stretto.sanitizer.launches import Settings

KERNELS = Path(__file__).parent / "kernels"
ROOT = Path(__file__).parents[2]
SOUND = (KERNELS / "gemm_specialized.py").read_text()
SETTINGS = Settings(seeds=(0, 1, 2), programs=2)

BUGS = {
    "nobody waits for a free slot": (
        "        mbarrier.wait(free.index(slot), phase ^ 1)\n",
        "",
        {"two-writers", "too-many-arrivals"},
    ),
    "nobody waits for a full slot": (
        "        mbarrier.wait(full.index(slot), phase)\n",
        "",
        {"never-written", "read-too-early"},
    ),
    "the producer begins in the wrong phase": ("phase ^ 1", "phase", {"deadlock"}),
    "the consumer begins in the wrong phase": (
        "full.index(slot), phase)",
        "full.index(slot), phase ^ 1)",
        {"wrong-phase", "never-written"},
    ),
    "too few bytes": (" + b_desc.block_type.nbytes", "", {"expected-bytes"}),
    "too many bytes": (
        " + b_desc.block_type.nbytes",
        " + 2 * b_desc.block_type.nbytes",
        {"expected-bytes"},
    ),
    "a slot is freed before the product is done": (
        "        total = warpgroup_mma_wait(0, deps=(total,))\n        mbarrier.arrive",
        "        mbarrier.arrive",
        {"overwritten-too-early"},
    ),
    "a slot is never freed": (
        "        mbarrier.arrive(free.index(slot), count=1)\n",
        "",
        {"deadlock"},
    ),
    "a count is too large": (
        "init(free.index(slot), count=1)",
        "init(free.index(slot), count=2)",
        {"deadlock"},
    ),
    "too many arrivals": (
        "mbarrier.arrive(free.index(slot), count=1)",
        "mbarrier.arrive(free.index(slot), count=2)",
        {"too-many-arrivals"},
    ),
    "no fence": ("    fence_async_shared()\n    tma", "    tma", {"missing-fence"}),
    "a store is not waited for": ("    tma.store_wait(0)\n", "", {"in-flight-at-exit"}),
    "phases are not flipped": (
        "phase = (step // DEPTH) & 1",
        "phase = 0",
        {"too-many-arrivals", "two-writers"},
    ),
    "more slots than memory": ("64, 3), {", "64, 16), {", {"shared-memory"}),
    "a sum is used in flight": (
        "    total = warpgroup_mma_wait(0, deps=(total,))\n    c_tile",
        "    c_tile",
        {"accumulator-in-flight"},
    ),
}


def checked(tmp_path: Path, text: str) -> Report:
    file = tmp_path / "kernel.py"
    file.write_text(text)
    return check(file, settings=SETTINGS)


def test_a_sound_kernel_passes_in_every_class_of_trip_counts() -> None:
    report = check(KERNELS / "gemm_specialized.py", settings=SETTINGS)
    assert report.findings == []
    assert {n for loop in report.coverage.loops.values() for n in loop.counts} == {0, 1, 2, 3, 4, 7}


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_is_told_by_its_class(bug: str, tmp_path: Path) -> None:
    old, new, classes = BUGS[bug]
    assert old in SOUND
    report = checked(tmp_path, SOUND.replace(old, new))
    assert {finding.rule for finding in report.findings} & classes
    assert report.failed()


def test_a_race_names_both_lines_slot_turns_agents_and_barrier(tmp_path: Path) -> None:
    old, new, _ = BUGS["a slot is freed before the product is done"]
    text = SOUND.replace(old, new)
    found = checked(tmp_path, text).findings[0]
    assert found.first is not None
    assert found.second is not None
    lines = text.splitlines()
    assert "warpgroup_mma" in lines[found.first.site.line - 1]
    assert "tma.async_copy_global_to_shared" in lines[found.second.site.line - 1]
    assert (found.slot, found.first.turn, found.second.turn) == ("a_ring[0]", 0, 3)
    assert found.agents == ("compute", "load")
    assert found.barrier.startswith("`free[0]`: compute arrives at line ")


def test_a_deadlock_says_who_waits_for_whom(tmp_path: Path) -> None:
    old, new, _ = BUGS["a slot is never freed"]
    (found,) = checked(tmp_path, SOUND.replace(old, new)).findings
    assert found.rule == "deadlock"
    assert set(found.agents) == {"compute", "load"}
    assert any("load waits for `free[0]`, phase 0" in line for line in found.details)
    assert any("0 of 1 arrivals" in line for line in found.details)
    assert any("`free[0]`: nobody has ever arrived" in line for line in found.details)


def test_the_command_answers_in_text_json_and_sarif(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sound = str(KERNELS / "gemm_specialized.py")
    assert main(["check", sound, "--seeds", "1", "--programs", "1"]) == 0
    assert "nothing wrong" in capsys.readouterr().out
    file = tmp_path / "kernel.py"
    file.write_text(SOUND.replace("    fence_async_shared()\n    tma", "    tma"))
    asked = ["check", f"{file}:gemm", "--seeds", "1", "--programs", "1"]
    assert main(asked) == 1
    out = capsys.readouterr().out
    assert f"{file}:" in out
    assert ": error: `c_tile` is written by threads" in out
    assert main([*asked, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    schema = json.loads((ROOT / "src/stretto/report/schemas/check.schema.json").read_text())
    jsonschema.validate(document, schema)
    assert document["findings"][0]["rule"] == "missing-fence"
    assert main([*asked, "--format", "sarif"]) == 1
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["results"][0]["ruleId"] == "missing-fence"
    assert main(["check", f"{file}:other"]) == 1
    assert "no launch of a kernel `other`" in capsys.readouterr().err
    assert main(["check", sound, "--time-limit", "1e-9"]) == 3


def test_tests_that_skip_hopper_are_run_as_on_blackwell(tmp_path: Path) -> None:
    test = "def launches(trips):"
    at = SOUND.index(test)
    skipping = (
        "import pytest\n"
        + SOUND[:at]
        + "@pytest.mark.skipif(torch.cuda.get_device_capability()[0] != 10, reason='')\n"
        + "@pytest.mark.parametrize('trips', [1])\ndef test_it(trips):\n"
        + "    for kernel, grid, given, *more in launched(trips):\n"
        + "        kernel[grid](*given, **(more[0] if more else {}))\n\n\n"
        + SOUND[at:].replace(test, "def launched(trips):")
    )
    report = checked(tmp_path, skipping)
    assert report.findings == []
    assert report.coverage.programs
    assert any("Hopper" in why for why in report.coverage.left_out)
    file = tmp_path / "kernel.py"
    with pytest.raises(DocumentError, match="skipped by its own mark"):
        check(file, settings=SETTINGS, capability=(9, 0))


def test_a_file_that_cannot_be_run_is_told_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for text, told in (
        ("x = (", "1:5: error: '(' was never closed"),
        ("\nraise KeyError('a')", "2:1: error: KeyError: 'a'"),
        ("x = 1", "nothing in it launches a kernel"),
    ):
        file = tmp_path / "wrong.py"
        file.write_text(text)
        assert main(["check", str(file)]) == 1
        assert told in capsys.readouterr().err
