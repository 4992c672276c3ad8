"""Loops that once went wrong, each with what is right: tests/cases/."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import stretto
from absolute import disagreements
from stretto.cli.main import main
from stretto.materialization import MODES
from stretto.simulation import simulate
from stretto.verification import verify

CASES = Path(__file__).parent / "cases"
MACHINES = {
    "instant": "one_byte.toml",
    "one_of_two": None,
    "before_pin": None,
    "huge_holds": None,
    "used_before_made": None,
}
SOUND = (
    "overwritten_inside",
    "overwritten_fixed",
    "unlisted_read",
    "capped_update",
    "capped_writers",
    "instant",
    "one_of_two",
    "used_before_made",
)


def arguments(name: str) -> list[str]:
    machine = MACHINES.get(name, "four.toml")
    file = str(CASES / f"{name}.json")
    return [file] if machine is None else [file, "--machine", str(CASES / machine)]


def answer(capsys: pytest.CaptureFixture[str], command: str, name: str, *more: str) -> Any:
    """The one loop of a command's JSON answer."""
    assert main([command, *arguments(name), "--json", *more]) == 0
    return json.loads(capsys.readouterr().out)["loops"][0]


def ready(name: str) -> stretto.Prepared:
    file = CASES / f"{name}.json"
    (loop,) = stretto.read(file)
    machine = MACHINES.get(name, "four.toml")
    return stretto.prepare(loop, None if machine is None else str(CASES / machine))


@pytest.mark.parametrize("name", SOUND)
def test_schedules_are_proved_and_all_agree(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With and without the solver: proved, verified, legal in absolute time, equal when run."""
    given = ready(name)
    for more in ((), ("--prove",)):
        assert answer(capsys, "schedule", name, *more)["proof"]["optimal"]
    for generator in ("auto", "serial", "exact"):
        analysis = stretto.schedule(given.loop, given.machine, generator)
        assert verify(given.loop, given.machine, analysis) == ()
        assert disagreements(given.loop, given.machine, analysis) == []
        for mode in MODES:
            run = simulate(given.loop, given.machine, analysis, None, mode)
            assert run.success, run.violations


@pytest.mark.parametrize("name", SOUND)
def test_explanations_come(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = answer(capsys, "explain", name)
    assert told["verdict"] in ("impossible", "none")
    assert told["minimal"] == (told["verdict"] == "impossible")


def test_a_writer_at_work_is_not_overwritten(capsys: pytest.CaptureFixture[str]) -> None:
    """`w0` writes `acc` until cycle 100; `w1` may read it at 5, but who writes waits."""
    loop = answer(capsys, "schedule", "overwritten_inside")
    start = {op["name"]: op["start"] for op in loop["ops"]}
    assert start["w1"] >= start["w0"] + 100
    assert start["w2"] >= start["w0"] + 100


def test_one_copy_has_one_writer_at_work(capsys: pytest.CaptureFixture[str]) -> None:
    """`init` writes the one copy for 100 cycles, then `upd` does, then `init` again."""
    assert answer(capsys, "schedule", "overwritten_fixed")["ii"] == 101
    assert answer(capsys, "schedule", "capped_update")["ii"] == 101


def test_a_reader_that_lists_nothing_keeps_what_it_reads(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`rd` takes `v`, which lives in `t`, and is at work for 50 cycles; `far` takes it 3 later."""
    loop = answer(capsys, "schedule", "unlisted_read")
    start = {op["name"]: op["start"] for op in loop["ops"]}
    (tile,) = loop["storages"]
    ends = [start["rd"] + 50, start["far"] + 1 + 3 * loop["ii"]]
    assert tile["lifetime"] == max(ends) - start["ld"]
    assert tile["ring_depth"] == -(-tile["lifetime"] // loop["ii"])
    assert loop["memory"]["smem"]["used"] == 16 * tile["ring_depth"]


def test_a_capped_ring_is_a_reason_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    told = answer(capsys, "explain", "capped_writers")
    assert [(r["kind"], r["name"]) for r in told["reasons"]] == [("ring", "t")]
    (change,) = told["relaxations"]
    assert change["change"] == "a ring of 3 for `t` instead of 2"
    assert change["ii"] == 4


def test_a_pinned_order_is_given_up_not_shortened(capsys: pytest.CaptureFixture[str]) -> None:
    """`a` starts before `b`, which is ready 3 cycles before the next `a`; `b` holds `u` for 2."""
    told = answer(capsys, "explain", "before_pin", "--pin", "a=before:b")
    assert told["best"] == {"ii": 4, "optimal": True, "lower_bound": 4}
    changes = {change["change"]: change["ii"] for change in told["relaxations"]}
    assert changes == {
        "`a` not pinned to start before `b`": 2,
        "1 cycle less latency of `b` -> `a` (3 -> 2)": 3,
    }


def test_bounds_and_explanation_agree(capsys: pytest.CaptureFixture[str]) -> None:
    """What flows and what a storage asks of the same two operations is one dependence."""
    assert main(["bounds", *arguments("one_of_two")]) == 0
    assert "133 cycles less latency of `mma` -> `ld` (900 -> 767)" in capsys.readouterr().out
    told = answer(capsys, "explain", "one_of_two")
    assert {(r["src"], r["dst"]) for r in told["reasons"]} == {("mma", "ld"), ("ld", "mma")}
    texts = [change["change"] for change in told["relaxations"]]
    assert "1 cycle less latency of `mma` -> `ld` (900 -> 899)" in texts


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("huge_holds", "$.ops[0].uses[0].duration: error: `a` use of `tma` has duration"),
        ("huge_formula", "encodings.e.latency"),
    ],
)
@pytest.mark.parametrize("command", ["schedule", "bounds", "explain"])
def test_numbers_beyond_all_measure_are_refused(
    name: str, said: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = ["--machine", str(CASES / f"{name}.toml")] if name == "huge_formula" else []
    assert main([command, str(CASES / f"{name}.json"), *machine]) == 1
    assert said in capsys.readouterr().err
