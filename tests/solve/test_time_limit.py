"""A time limit cuts, wherever it comes: the best verified schedule so far, or an error."""

from __future__ import annotations

import json
import pickle
import time
from dataclasses import replace
from pathlib import Path

import pytest

import stretto
from stretto import solve
from stretto.cli.main import main
from stretto.deadline import NEVER, Deadline, OverdueError, deadline_after
from stretto.errors import StrettoError
from stretto.exact import Limits, ProofOptions
from stretto.exact.case import make_case
from stretto.exact.model import Model
from stretto.frontends.documents import read_source
from stretto.generate.ladder.serial import SerialResult, serial
from stretto.generate.problem import Options, Problem
from stretto.loop import Dependence, Loop, Op, Operand, Use, Value
from stretto.loop.json import dump_loop
from stretto.loop.parts import TileType
from stretto.machine import Machine, Slot
from stretto.solution import ScheduleAnalysis
from stretto.verification import verify

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str) -> solve.Prepared:
    file = EXAMPLES / f"{name}.json"
    return solve.prepare(read_source(str(file), file.read_text()).loops[0])


def crowd(ops: int = 40) -> tuple[Loop, Machine]:
    """Holds of many lengths on few slots, tied by short recurrences: no plan meets the bound."""
    slots = ("a", "b", "c")
    body = tuple(
        Op(
            name=f"o{i}",
            kind="test",
            operands=(Operand(f"v{i - 1 - i % 3}"),) if i > 3 else (),
            results=(f"v{i}",),
            uses=(Use(slots[i % 3], 3 + i * 7 % 11), Use(slots[(i + 1) % 3], 2 + i * 5 % 7, i % 4)),
            latency=5 + i * 13 % 17,
        )
        for i in range(ops)
    )
    stated = tuple(Dependence(f"o{i + 4}", f"o{i}", 9, 1, "order") for i in range(0, ops - 4, 5))
    values = tuple(Value(f"v{i}", TileType((128,), "f32")) for i in range(ops))
    machine = Machine("few", "", tuple(Slot(i + 1, name, 1) for i, name in enumerate(slots)))
    return Loop("crowd", body, values, stated=stated), machine


class Ticks:
    """A clock that moves by one millisecond whenever somebody looks at it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> Ticks:
    clock = Ticks()
    monkeypatch.setattr("stretto.deadline.monotonic", clock)
    monkeypatch.setattr("stretto.solve.scheduling.perf_counter", clock)
    return clock


# The deadline itself ------------------------------------------------------------------------------


def test_never_is_never_over() -> None:
    assert (NEVER.over, NEVER.left) == (False, None)
    NEVER.check()
    assert NEVER.later(3) == NEVER == NEVER.share(0.5) == deadline_after(None)


def test_a_deadline_passes(ticks: Ticks) -> None:
    deadline = deadline_after(0.01)
    assert not deadline.over
    assert deadline.left is not None
    assert 0 < deadline.left < 0.01
    ticks.now += 0.02
    assert (deadline.over, deadline.left) == (True, 0.0)
    with pytest.raises(OverdueError, match=r"the time limit of 0\.01 s came before any schedule"):
        deadline.check()
    assert not deadline.later(1).over
    deadline.later(1).check()


def test_a_share_of_what_is_left(ticks: Ticks) -> None:
    deadline = deadline_after(10)
    half = deadline.share(0.5)
    assert half.at is not None
    assert half.at - ticks.now == pytest.approx(5, abs=0.01)
    assert half.seconds == 10


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_no_time_at_all_is_no_limit(seconds: float) -> None:
    with pytest.raises(StrettoError, match="more than 0 is needed"):
        deadline_after(seconds)


def test_the_error_travels() -> None:
    error = pickle.loads(pickle.dumps(OverdueError(0.5, "gemm")))
    assert (error.seconds, error.loop) == (0.5, "gemm")
    assert str(error).startswith("gemm: the time limit of 0.5 s")


# Cut anywhere -------------------------------------------------------------------------------------


def cut(seconds: float, prove: bool = False) -> ScheduleAnalysis | None:
    """The crowd under a limit; None: no schedule yet. Whatever comes back is legal."""
    loop, machine = crowd()
    try:
        found = stretto.schedule(loop, machine, prove=prove, time_limit=seconds)
    except OverdueError:
        return None
    ready = solve.prepare(loop, machine)
    assert found.success
    assert verify(ready.loop, ready.machine, found) == ()
    return found


def test_wherever_it_cuts_the_answer_is_legal_and_no_worse_with_more_time(ticks: Ticks) -> None:
    ticks.now = 0.0
    best: int | None = None
    cuts = 0
    for seconds in (0.001, 0.02, 0.1, 0.3, 0.5, 1, 2, 5):
        found = cut(seconds)
        assert found is not None  # the first schedule has its grace
        assert found.ii is not None
        assert best is None or found.ii <= best, seconds
        best = found.ii
        cuts += found.overdue
    assert cuts >= 3


def test_the_serial_schedule_is_the_least_that_comes(ticks: Ticks) -> None:  # noqa: ARG001
    loop, machine = crowd()
    found = stretto.schedule(loop, machine, time_limit=0.001)
    assert found.ii == stretto.schedule(loop, machine, "serial").ii
    assert found.overdue
    assert found.warnings[-1].text == (
        "the time limit came while a better schedule was sought: this is the best so far"
    )
    assert any("not tried: the time limit came first" in r.reason for r in found.refused)


def test_no_schedule_in_time_is_an_error_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stretto.deadline.monotonic", lambda: 100.0)
    late = Options(deadline=Deadline(50.0, 0.25))
    loop, machine = crowd()
    with pytest.raises(OverdueError, match=r"^crowd: the time limit of 0\.25 s came before any"):
        solve.schedule_prepared(solve.prepare(loop, machine), "auto", late)


def test_a_limit_that_is_not_reached_changes_nothing() -> None:
    loop, machine = crowd()
    free = stretto.schedule(loop, machine)
    limited = stretto.schedule(loop, machine, time_limit=3600)
    assert limited.options == {**free.options, "time_limit": 3600}
    assert limited == replace(
        free, seconds=pytest.approx(free.seconds, abs=1e9), options=limited.options
    )
    assert not free.overdue


def test_a_model_in_the_making_is_cut_too(ticks: Ticks) -> None:
    """As is all that comes before the solver: what was found without it is the answer."""
    full = cut(1e6)
    assert full is not None
    for seconds in (0.5, 2, 6):
        ticks.now = 0.0
        found = cut(seconds, prove=True)
        assert found is not None
        assert found.overdue
        assert found.proof is not None
        assert full.ii is not None
        assert found.proof.lower_bound <= full.ii
        assert [row.name for row in found.proof.objectives] in ([], ["ii", "stages"])


def test_what_is_proved_stands_when_a_second_look_comes_too_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A limit between the solver and the thorough generators takes nothing away."""
    loop, machine = crowd()
    calls: list[bool] = []

    def late(problem: Problem) -> SerialResult:
        calls.append(True)
        if len(calls) > 1:
            raise OverdueError(1.0)
        return serial(problem)

    monkeypatch.setattr("stretto.generate.ladder.serial.serial", late)
    proof = ProofOptions("ii", Limits(work=1e-9))
    found = solve.schedule_prepared(solve.prepare(loop, machine), "auto", None, None, proof)
    assert len(calls) > 1
    assert found.success
    assert found.overdue


def test_a_case_that_is_late_makes_no_model() -> None:
    ready = example("four_op")
    case = make_case(ready.loop, ready.machine, deadline=Deadline(0.0, 1.0))
    with pytest.raises(OverdueError):
        Model(case, 15)


def test_an_explanation_that_is_cut_is_undecided(ticks: Ticks) -> None:  # noqa: ARG001
    loop, machine = crowd()
    told = stretto.explain(loop, machine, time_limit=0.5)
    assert told.explanation is not None
    assert told.explanation.verdict == "undecided"
    assert not told.explanation.settled


# The command line ---------------------------------------------------------------------------------


def written(folder: Path, name: str = "crowd.json") -> str:
    loop, machine = crowd()
    slots = "".join(f"[slots.{s.name}]\nid = {s.id}\ncapacity = 1\n" for s in machine.slots)
    (folder / "few.toml").write_text(f'[machine]\nname = "few"\n{slots}')
    (folder / name).write_text(dump_loop(replace(loop, machine=None)))
    return str(folder / name)


def test_exit_code_3_and_a_warning(
    tmp_path: Path, ticks: Ticks, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path)
    ticks.now = 0.0
    asked = ["schedule", file, "--machine", str(tmp_path / "few.toml"), "--time-limit", "0.05"]
    assert main([*asked, "--json"]) == 3
    entry = json.loads(capsys.readouterr().out)["loops"][0]
    assert entry["success"]
    assert any("the time limit came" in line for line in entry["warnings"])
    assert main(asked) == 3
    assert "the time limit came while a better schedule was sought" in capsys.readouterr().out


def test_exit_code_1_where_there_is_nothing_yet(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def slow(*_: object) -> None:
        try:
            time.sleep(5)
        except Exception:  # as parsers do, who tell of a fault of the file instead
            pytest.fail("the limit was taken for an error")

    monkeypatch.setattr("stretto.cli.commands._read_input", slow)
    began = time.monotonic()
    assert main(["schedule", str(EXAMPLES / "gemm.json"), "--time-limit", "0.05"]) == 1
    assert time.monotonic() - began < 4
    assert "the time limit of 0.05 s came before any schedule was found" in capsys.readouterr().err


def test_a_short_limit_still_answers_for_a_small_loop(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schedule", str(EXAMPLES / "four_op.json"), "--time-limit", "0.001"]) in (0, 3)
    assert "four_op on blackwell" in capsys.readouterr().out
