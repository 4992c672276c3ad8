"""The exact solver rule by rule, its objectives, its limits, and what the schedule command does."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

import stretto
from generated import Problem, problems
from stretto import solve
from stretto.cli.main import main
from stretto.errors import StrettoError
from stretto.exact import Event, Limits, ProofOptions
from stretto.exact.case import Case, make_case
from stretto.exact.horizon import last_stages
from stretto.exact.model import Model
from stretto.exact.objectives import NAMES, goal_of, up_to
from stretto.exact.search import optimize
from stretto.exact.solving import Clock
from stretto.exact.solving import solve as ask
from stretto.exact.symmetry import anchor, twins
from stretto.frontends.documents import read_source
from stretto.loop import Constraint, Demand, Dependence, Facts, Loop, Op, Storage, Use
from stretto.loop.parts import Access
from stretto.machine import Budget, Machine, Pool, Slot
from stretto.solution import Refusal, Schedule, ScheduleAnalysis
from stretto.verification import verify

EXAMPLES = Path(__file__).parents[2] / "examples"


def machine(*slots: Slot, pools: tuple[Pool, ...] = (), smem: int | None = None) -> Machine:
    return Machine("m", "a machine", slots, pools, budgets=(Budget("smem", smem),))


def op(name: str, *uses: Use, latency: int = 1, **rest: Any) -> Op:
    return replace(Op(name, "k", uses=uses, latency=latency), **rest)


def feasible(case: Case) -> list[int]:
    """The IIs from 1 to 12 at which there is a schedule."""
    return [ii for ii in range(1, 13) if ask(Model(case, ii), Clock(Limits())).solution is not None]


ONE = Slot(1, "s", 1)
TWO = Slot(1, "s", 2)


def test_dependence_around_a_cycle() -> None:
    ops = (op("a"), op("b"))
    stated = (Dependence("a", "b", 4), Dependence("b", "a", 5, 2))
    assert feasible(make_case(Loop("l", ops, stated=stated), machine()))[0] == 5


def test_dependence_on_itself() -> None:
    loop = Loop("l", (op("a"),), stated=(Dependence("a", "a", 7, 2),))
    assert feasible(make_case(loop, machine()))[0] == 4


def test_exclusive_slot_runs_over_the_end_of_the_circle() -> None:
    """b starts 3 after a and holds 4 of 6 cycles: it must come in again at the start."""
    ops = (op("a", Use("s", 2)), op("b", Use("s", 4)))
    stated = (Dependence("a", "b", 2), Dependence("b", "a", -2, 0))
    assert feasible(make_case(Loop("l", ops, stated=stated[:1]), machine(ONE)))[0] == 6


def test_exclusive_hold_longer_than_the_ii_is_impossible() -> None:
    assert feasible(make_case(Loop("l", (op("a", Use("s", 5)),)), machine(ONE)))[0] == 5


def test_capacity_two_takes_a_hold_of_up_to_two_iis() -> None:
    """5 cycles at II 3 fill one unit all round and another for 2 cycles."""
    assert feasible(make_case(Loop("l", (op("a", Use("s", 5)),)), machine(TWO)))[0] == 3
    both = Loop("l", (op("a", Use("s", 5)), op("b", Use("s", 1))))
    assert feasible(make_case(both, machine(TWO)))[0] == 3
    wide = Loop("l", (op("a", Use("s", 5)), op("b", Use("s", 2))))
    assert feasible(make_case(wide, machine(TWO)))[0] == 4


def test_occupancy_fills_a_slot() -> None:
    ops = (op("a", Use("s", 2, occupancy=2)), op("b", Use("s", 3)), op("c", Use("s", 3)))
    assert feasible(make_case(Loop("l", ops), machine(TWO)))[0] == 5


def test_uses_at_different_offsets_of_one_slot() -> None:
    """a holds cycles 0 and 3: at II 3 they meet."""
    loop = Loop("l", (op("a", Use("s", 1), Use("s", 1, offset=3)),))
    assert feasible(make_case(loop, machine(ONE))) == [2, *range(4, 13)]


def test_pool_is_drawn_for_the_longest_duration() -> None:
    ops = (
        op("a", Use("s", 3), demands=(Demand("p", 2),)),
        op("b", Use("s", 2), demands=(Demand("p", 2),)),
    )
    loop = Loop("l", ops)
    free = machine(Slot(1, "s", None), pools=(Pool("p", 3),))
    assert feasible(make_case(loop, free))[0] == 5
    assert feasible(make_case(loop, free.with_cap("p", 4)))[0] == 3


def test_depth_counts_stages_from_the_first_start() -> None:
    ops = (op("a"), op("b", constraint=Constraint(max_depth=1)))
    loop = Loop("l", ops, stated=(Dependence("a", "b", 9),))
    assert feasible(make_case(loop, machine()))[0] == 5
    assert feasible(make_case(loop, machine(), max_stages=1))[0] == 10


def test_group_shares_a_stage() -> None:
    ops = (op("a", constraint=Constraint(gid=1)), op("b", constraint=Constraint(gid=1)))
    loop = Loop("l", ops, stated=(Dependence("a", "b", 4),))
    assert feasible(make_case(loop, machine()))[0] == 5


def test_storage_fits_its_budget() -> None:
    """Two copies of 10 bytes do not fit 19: the lifetime of 6 must fit one II."""
    ops = (
        op("w", latency=4, writes=("m",)),
        op("r", latency=2, reads=(Access("m"),)),
    )
    loop = Loop("l", ops, storages=(Storage("m", "smem", 10),))
    assert feasible(make_case(loop, machine(smem=19)))[0] == 6
    assert feasible(make_case(loop, machine(smem=20)))[0] == 3
    assert feasible(make_case(loop, machine(smem=None)))[0] == 1


def reads(count: int, duration: int = 3) -> tuple[Op, ...]:
    return tuple(op(f"r{i}", Use("s", duration), facts=Facts(bank=0)) for i in range(count))


def test_fusion_shares_a_hold_up_to_its_cap() -> None:
    fusing = machine(Slot(1, "s", 1, fusion_cap=2))
    loop = Loop("l", reads(3))
    assert feasible(make_case(loop, fusing))[0] == 6
    assert feasible(make_case(loop, fusing, fuse=False))[0] == 9


def test_fusion_keeps_operations_apart_that_wait_for_one_another() -> None:
    """Not even with no latency between them, nor by way of another group."""
    fusing = machine(Slot(1, "s", 1, fusion_cap=2))
    direct = Loop("l", reads(2), stated=(Dependence("r0", "r1", 0),))
    assert feasible(make_case(direct, fusing))[0] == 6
    four = (
        *(op(n, Use("s", 3), facts=Facts(bank=0)) for n in ("a", "b")),
        *(op(n, Use("t", 3), facts=Facts(bank=0)) for n in ("c", "d")),
    )
    crossed = (Dependence("a", "c", 0), Dependence("d", "b", 0))
    both = machine(Slot(1, "s", 1, fusion_cap=2), Slot(2, "t", 1, fusion_cap=2))
    assert feasible(make_case(Loop("l", four), both))[0] == 3
    # Fusing both pairs would make a group wait for itself: one pair stays apart.
    assert feasible(make_case(Loop("l", four, stated=crossed), both))[0] == 6


def test_fused_hold_covers_its_members() -> None:
    ops = (
        op("a", Use("s", 2), facts=Facts(bank=0)),
        op("b", Use("s", 2, offset=3), facts=Facts(bank=0)),
    )
    fusing = machine(Slot(1, "s", 1, fusion_cap=2))
    # Apart they need 4 cycles; fused they hold from 0 to 5.
    assert feasible(make_case(Loop("l", ops), fusing))[0] == 4


def test_horizon_reaches_as_far_as_latency_asks() -> None:
    ops = tuple(op(f"o{i}") for i in range(4))
    stated = tuple(Dependence(f"o{i}", f"o{i + 1}", 10) for i in range(3))
    last = last_stages(make_case(Loop("l", ops, stated=stated), machine()), 3)
    assert last == (1, 5, 9, 13)  # 10 cycles from the last cycle of a stage: 4 stages on


def test_rows_turn_unless_groups_tie_operations_to_stages() -> None:
    loop = Loop("l", (op("a", Use("s", 2)), op("b", Use("s", 3))))
    turned = anchor(make_case(loop, machine(ONE)), 5)
    assert turned is not None
    assert (turned.op, turned.cycle) == (1, 0)
    tied = replace(loop, ops=tuple(replace(o, constraint=Constraint(gid=0)) for o in loop.ops))
    assert anchor(make_case(tied, machine(ONE)), 5) is None


def test_twins_may_change_places() -> None:
    ops = (op("a", Use("s", 2)), op("b", Use("s", 2)), op("c", Use("s", 3)), op("d"))
    stated = (Dependence("a", "d", 5), Dependence("b", "d", 5))
    assert twins(make_case(Loop("l", ops, stated=stated), machine(ONE))) == ((0, 1),)
    assert twins(make_case(Loop("l", ops, stated=stated[:1]), machine(ONE))) == ()


@given(problems(max_ops=7, offsets=True))
def test_answers_are_legal_and_never_above_the_heuristic(drawn: Problem) -> None:
    ready = solve.prepare(drawn.loop, drawn.machine)
    heuristic = solve.schedule_prepared(ready, "cost-based")
    exact = solve.schedule_prepared(ready, "exact")
    assert exact.success or not heuristic.success
    if not exact.success:
        return
    assert verify(ready.loop, ready.machine, exact) == ()
    assert exact.ii is not None
    assert exact.proof is not None
    assert exact.proof.optimal
    assert exact.proof.lower_bound == exact.ii
    assert heuristic.ii is None or exact.ii <= heuristic.ii
    if exact.ii == heuristic.ii:
        assert exact.stage_count <= heuristic.stage_count
    if heuristic.proof is not None and heuristic.proof.optimal:
        assert exact.ii == heuristic.ii


@given(problems(max_ops=6))
def test_floors_hold(drawn: Problem) -> None:
    case = make_case(drawn.loop, drawn.machine.with_slots(drawn.loop.slots))
    answer = optimize(case, 1, 60)
    if answer.schedule is None:
        return
    assert tuple(row.name for row in answer.objectives) == NAMES
    for row in answer.objectives[1:]:
        goal = goal_of(row.name)
        assert goal.floor(case, answer.schedule.ii) <= row.value
        assert row.value == goal.value(case, answer.schedule)
        assert row.optimal


# Hints, bounds and the solver ---------------------------------------------------------------------


def test_four_op_is_proved_by_its_bound_without_the_solver() -> None:
    """In a process of its own: no module of the solver is loaded."""
    code = (
        "import sys; from stretto.cli.main import main;"
        f"code = main(['schedule', {str(EXAMPLES / 'four_op.json')!r}, '--prove']);"
        "sys.exit(code or any(name.startswith('ortools') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "II 15 is the MII" in done.stdout
    assert "1 stage proved fewest" in done.stdout


def test_a_hint_is_improved_in_stages_and_its_ii_kept() -> None:
    """a and b need one stage; the hint takes three."""
    loop = Loop("l", (op("a", Use("s", 2)), op("b", Use("s", 2))))
    case = make_case(loop, machine(ONE))
    answer = optimize(case, 4, 4, Schedule(4, {"a": 0, "b": 10}), up_to("stages"))
    assert answer.schedule is not None
    assert [(o.name, o.value, o.optimal) for o in answer.objectives] == [
        ("ii", 4, True),
        ("stages", 1, True),
    ]
    assert answer.refused == ()


def test_refused_iis_are_proofs_and_name_what_refutes_them() -> None:
    """The bound is 21; a slot and a recurrence together ask for more, one II like another."""
    ready, analysis = harder()
    assert analysis.ii is not None
    assert analysis.bounds is not None
    assert analysis.ii > analysis.bounds.mii
    assert [(r.ii, r.through) for r in analysis.refused] == [(21, analysis.ii - 1)]
    assert all(r.proved for r in analysis.refused)
    assert analysis.proof is not None
    assert analysis.proof.method == "solver"
    assert "holds that cannot share tensor" in analysis.refused[-1].reason
    assert verify(ready.loop, ready.machine, analysis) == ()


def harder() -> tuple[solve.Prepared, ScheduleAnalysis]:
    """Two long holds in one recurrence that cannot be brought into step with the II."""
    ops = (op("a", Use("tensor", 10)), op("b", Use("tensor", 10)))
    stated = (Dependence("a", "b", 21), Dependence("b", "a", 21, 2))
    ready = solve.prepare(Loop("l", ops, stated=stated), machine(Slot(1, "tensor", 1)))
    return ready, solve.schedule_prepared(ready, "exact")


def test_no_schedule_up_to_a_limit_is_a_proof_too() -> None:
    ready, best = harder()
    assert best.ii is not None
    from stretto.generate.problem import Options  # noqa: PLC0415

    below = solve.schedule_prepared(ready, "exact", Options(max_ii=best.ii - 1))
    assert not below.success
    assert below.generator == "exact"
    assert all(r.proved for r in below.refused)


def test_progress_tells_bound_and_incumbent() -> None:
    events: list[Refusal | int | Event] = []
    ready, _ = harder()
    solve.schedule_prepared(ready, "exact", progress=events.append)
    tried = [e for e in events if isinstance(e, Event) and e.what == "ii"]
    assert tried
    assert all(e.bound <= e.value for e in tried)
    assert all(e.best is None or e.best > e.value for e in tried)


def test_a_forced_serial_loop_is_left_alone_unless_exact_is_asked_for() -> None:
    loop = Loop("l", (op("a", Use("s", 2)), op("b", Use("s", 2))), force_serial=True)
    proved = stretto.schedule(loop, machine(ONE), prove=True)
    assert proved.generator == "serial"
    assert any("nothing to prove" in warning.text for warning in proved.warnings)
    exact = stretto.schedule(loop, machine(ONE), "exact")
    assert exact.generator == "exact"
    assert any("overrides" in warning.text for warning in exact.warnings)


def test_options_that_make_no_sense() -> None:
    loop = Loop("l", (op("a"),))
    with pytest.raises(StrettoError, match="no objective `speed`"):
        stretto.schedule(loop, machine(), "exact", objective="speed")
    with pytest.raises(StrettoError, match="time_limit is 0"):
        stretto.schedule(loop, machine(), prove=True, time_limit=0)


# Limits -------------------------------------------------------------------------------------------


def attention() -> solve.Prepared:
    path = EXAMPLES / "attention_forward.json"
    return solve.prepare(read_source(path.name, path.read_text(encoding="utf-8")).loops[0])


def test_a_limit_of_work_returns_the_best_with_its_bound() -> None:
    """And the same one on every run."""
    proof = ProofOptions("registers", Limits(work=0.3))
    first = solve.schedule_prepared(attention(), "exact", proof=proof)
    again = solve.schedule_prepared(attention(), "exact", proof=proof)
    assert replace(first, seconds=0.0) == replace(again, seconds=0.0)
    assert first.proof is not None
    row = first.proof.objectives[-1]
    assert row.name == "registers"
    assert not row.optimal
    assert 0 < row.lower_bound < row.value
    assert first.pressure is not None
    assert row.value == first.pressure.peak


def test_two_workers_are_deterministic_too() -> None:
    proof = ProofOptions("stages", Limits(workers=2, seed=7))
    first = solve.schedule_prepared(attention(), "exact", proof=proof)
    again = solve.schedule_prepared(attention(), "exact", proof=proof)
    assert replace(first, seconds=0.0) == replace(again, seconds=0.0)
    assert first.stage_count == 4


def test_no_work_at_all_states_the_gap() -> None:
    """Nothing decided: the heuristic's schedule, and the bound it stands above."""
    rng = random.Random(3)
    ops = tuple(op(f"o{i}", Use("s", rng.randint(2, 9))) for i in range(8))
    stated = (Dependence("o0", "o1", 21), Dependence("o1", "o0", 21, 1))
    case = make_case(Loop("l", ops, stated=stated), machine(ONE))
    hint = Schedule(200, {f"o{i}": 21 * i for i in range(8)})
    answer = optimize(case, 42, 200, hint, limits=Limits(work=0.0))
    assert answer.schedule == hint
    assert answer.lower_bound == 42
    assert answer.limited
    assert not answer.objectives[0].optimal
    (left,) = answer.refused
    assert (left.ii, left.through, left.proved) == (42, 199, False)


def test_whoever_asks_for_a_proof_is_not_worse_off() -> None:
    """The solver decides nothing: what the search finds is the answer all the same."""
    nothing = ProofOptions("ii", Limits(work=1e-9))
    analysis = solve.schedule_prepared(attention(), "exact", proof=nothing)
    assert (analysis.ii, analysis.generator, analysis.refused) == (1325, "exact", ())
    assert analysis.proof is not None
    assert (analysis.proof.optimal, analysis.proof.method) == (True, "bound")


def test_time_limit_ends_with_a_verified_schedule_and_exit_3(
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = str(EXAMPLES / "attention_forward.json")
    limited = ["--generator", "exact", "--objective", "registers", "--time-limit", "1"]
    assert main(["schedule", file, *limited, "--json"]) == 3
    entry = json.loads(capsys.readouterr().out)["loops"][0]
    assert entry["success"]
    assert entry["ii"] == 1325
    rows = {row["name"]: row for row in entry["proof"]["objectives"]}
    assert rows["ii"]["optimal"]
    assert not rows["registers"]["optimal"]
    assert rows["registers"]["lower_bound"] < rows["registers"]["value"]


def test_ctrl_c_returns_the_best_so_far_and_exit_3() -> None:
    """Interrupted while it minimizes registers, which takes long."""
    file = str(EXAMPLES / "attention_forward.json")
    code = "from stretto.cli import run; run()"
    options = ["--generator", "exact", "--objective", "registers", "-v"]
    running = subprocess.Popen(
        [sys.executable, "-c", code, "schedule", file, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert running.stderr is not None
    for line in running.stderr:
        if "minimizing registers" in line:
            break
    time.sleep(0.5)
    running.send_signal(signal.SIGINT)
    try:
        out, _ = running.communicate(timeout=30)
    finally:
        running.kill()
    assert running.returncode == 3
    assert "II 1325 is the MII" in out
    assert "stopped while a better schedule was sought" in out


# The command line ---------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", ["0", "-1", "soon", "nan", "inf"])
def test_time_limits_that_are_none(bad: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(EXAMPLES / "four_op.json")
    assert main(["schedule", file, "--prove", f"--time-limit={bad}"]) == 2
    assert "is not a number above 0" in capsys.readouterr().err


def test_prove_proves_the_stages_of_the_heuristic(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(EXAMPLES / "attention_backward.json")
    assert main(["schedule", file, "--prove", "--json"]) == 0
    entry = json.loads(capsys.readouterr().out)["loops"][0]
    assert (entry["ii"], entry["stage_count"]) == (946, 5)
    assert entry["proof"]["method"] == "bound"
    assert [row["optimal"] for row in entry["proof"]["objectives"]] == [True, True]
