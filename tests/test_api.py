"""`stretto.schedule`: selects, generates, falls back, proves and verifies."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FunctionType

import pytest
from hypothesis import given

import generated
import stretto
from documents import parse_loop
from stretto import solve
from stretto.errors import StrettoError
from stretto.generate.problem import EFFORTS, Options, Problem
from stretto.generate.search import Found
from stretto.generate.seating.partial import Partial
from stretto.loop import Access, Constraint, Dependence, Loop, Op, Storage, Use, texts
from stretto.machine import Budget, Machine, Slot
from stretto.solution import Bounds, Proof, Refusal, ScheduleAnalysis
from stretto.verification import verify

EXAMPLES = Path(__file__).parent.parent / "examples"
FOUR_OP = parse_loop("four_op.json", (EXAMPLES / "four_op.json").read_text(encoding="utf-8"))
AT_15 = {"load": 0, "write": 8, "wgmma": 0, "read": 8}


Search = Callable[[Problem, Bounds, Callable[[], int], solve.Progress | None], Found]


def stub(monkeypatch: pytest.MonkeyPatch, search: Search) -> None:
    """Let another function search, and nobody else."""
    monkeypatch.setattr("stretto.generate.search.search", search)
    monkeypatch.setattr("stretto.solve.scheduling.EACH", dict.fromkeys(EFFORTS, 0.0))
    monkeypatch.setattr("stretto.solve.scheduling.TINY", 0)


def finds(ii: int, starts: dict[str, int], *refused: Refusal) -> Search:
    """A search that finds these starts."""

    def search(problem: Problem, _b: Bounds, _s: object, _p: solve.Progress | None) -> Found:
        placement = Partial(problem, ii)
        for name, start in starts.items():
            placement.seat([problem.index[name]], start, "rau", "permute")
        return Found(placement, ii, refused)

    return search


def finds_nothing(*refused: Refusal) -> Search:
    """A search that gives up."""
    return lambda _problem, _bounds, _serial_ii, _progress: Found(None, None, refused)


def stopped(*_: object) -> Found:
    """A search during which the user presses Ctrl-C."""
    raise KeyboardInterrupt


# A plain function -------------------------------------------------------------------------


def test_the_function_is_a_function() -> None:
    from stretto import schedule  # noqa: PLC0415

    direct = solve.schedule_prepared(solve.prepare(FOUR_OP, "blackwell"), "serial")
    for call in (schedule, stretto.schedule):
        assert isinstance(call, FunctionType)
        found = call(FOUR_OP, machine="blackwell", generator="serial")
        assert replace(found.analysis, seconds=0.0) == replace(direct, seconds=0.0)
    assert "schedule" in stretto.__all__
    assert ScheduleAnalysis.__module__ == "stretto.solution"


# What is found ----------------------------------------------------------------------------


def test_a_schedule_at_the_bound_is_optimal(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = Refusal(15, "first guess")
    stub(monkeypatch, finds(15, AT_15, refusal))
    analysis = stretto.schedule(FOUR_OP)
    assert (analysis.ii, analysis.starts, analysis.generator) == (15, AT_15, "cost-based")
    assert analysis.proof == Proof(True, 15, "bound")
    assert (analysis.stage_count, analysis.pipeline_depth) == (1, 2)
    assert analysis.refused == (refusal,)
    assert {(p.rung, p.arm) for p in analysis.placements} == {("rau", "permute")}
    assert analysis.rule.startswith("worth pipelining: it holds tma")
    assert analysis.seconds > 0
    assert pickle.loads(pickle.dumps(analysis)) == analysis


def test_a_schedule_above_the_bound_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    stub(monkeypatch, finds(16, AT_15))
    analysis = stretto.schedule(FOUR_OP)
    assert (analysis.ii, analysis.proof) == (16, Proof(False, 15, "none"))


def test_stages_are_counted_from_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    stub(monkeypatch, finds(15, {name: start + 30 for name, start in AT_15.items()}))
    assert stretto.schedule(FOUR_OP).starts == AT_15


def test_fused_groups_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine("m", "m", (Slot(1, "rd", 1, fusion_cap=2),))
    facts = replace(FOUR_OP.ops[0].facts, bank=0)
    ops = [Op(n, "k", uses=(Use("rd", 3),), latency=3, facts=facts) for n in ("a", "b")]

    def search(problem: Problem, *_: object) -> Found:
        placement = Partial(problem, 3)
        placement.seat([1, 0], 0, "initial", "fuse")
        return Found(placement, 3, ())

    stub(monkeypatch, search)
    analysis = stretto.schedule(Loop("l", tuple(ops)), machine)
    assert (analysis.ii, analysis.fused) == (3, (("a", "b"),))
    assert analysis.proof == Proof(True, 3, "bound")


def test_options_reach_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []

    def search(
        problem: Problem, bounds: Bounds, serial_ii: Callable[[], int], progress: object
    ) -> Found:
        seen.extend([problem.options, bounds.mii, serial_ii(), progress])
        return Found(None, None, ())

    stub(monkeypatch, search)
    stretto.schedule(FOUR_OP, max_ii=20, without=["rau", "arm:fuse"], progress=seen.append)
    options, mii, serial_ii, progress = seen[-4:]
    assert isinstance(options, Options)
    assert (options.max_ii, sorted(options.without)) == (20, ["arm:fuse", "rau"])
    assert (mii, serial_ii, progress) == (15, 24, seen.append)


# Falling back -----------------------------------------------------------------------------


def test_the_serial_schedule_when_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = Refusal(15, "no seat", through=24)
    stub(monkeypatch, finds_nothing(refusal))
    analysis = stretto.schedule(FOUR_OP)
    assert (analysis.success, analysis.ii, analysis.generator) == (True, 24, "serial")
    assert analysis.refused == (refusal,)
    assert analysis.rule.endswith("; fell back on the serial schedule")
    assert analysis.warnings[-1].text.startswith("the search found nothing up to II 24")
    assert analysis.proof == Proof(False, 15, "none")


def test_no_schedule_within_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = Refusal(15, "no seat", through=20)
    stub(monkeypatch, finds_nothing(refusal))
    analysis = stretto.schedule(FOUR_OP, max_ii=20)
    assert (analysis.success, analysis.ii, analysis.placements) == (False, None, ())
    assert (analysis.generator, analysis.refused) == ("cost-based", (refusal,))
    assert analysis.bounds is not None
    assert analysis.bounds.mii == 15
    ready = solve.prepare(FOUR_OP)
    assert verify(ready.loop, ready.machine, analysis) != ()


def test_a_limit_below_the_bound_needs_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    stub(monkeypatch, stopped)
    for generator in ("auto", "serial"):
        analysis = stretto.schedule(FOUR_OP, generator=generator, max_ii=14)
        told = "below the MII 15 (resource bound: slot tp_smem_wr)"
        assert analysis.refused == (Refusal(1, told, through=14, proved=True),)
        assert not analysis.success
    carried = Loop(
        "l",
        (Op("a", "k", uses=(), latency=1),),
        stated=(Dependence("a", "a", 9, 2),),
    )
    (refusal,) = stretto.schedule(carried, Machine("m", "m", ()), max_ii=1).refused
    told = "below the MII 5 (recurrence bound: latency 9 over distance 2)"
    assert refusal == Refusal(1, told, proved=True)


def test_the_serial_generator_within_a_limit() -> None:
    assert stretto.schedule(FOUR_OP, generator="serial", max_ii=24).ii == 24
    analysis = stretto.schedule(FOUR_OP, generator="serial", max_ii=23)
    told = "the serial schedule has II 24; the largest II allowed is 23"
    assert (analysis.success, analysis.refused) == (False, (Refusal(23, told, limit="max_ii"),))


def too_much() -> tuple[Loop, Machine]:
    """A loop whose rings do not fit serially: what it reads is three iterations old."""
    slots = (Slot(1, "s", 1),)
    ops = (
        Op("a", "k", writes=("m",), uses=(Use("s", 2),), latency=2),
        Op("b", "k", reads=(Access("m", 3),), uses=(Use("s", 2),), latency=2),
    )
    loop = Loop("l", ops, storages=(Storage("m", "smem", 10),))
    return loop, Machine("m", "m", slots, budgets=(Budget("smem", 32),))


def test_rings_that_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, machine = too_much()
    told = "serially, at II 4, smem needs 40 bytes; the budget is 32 (m 4 × 10)"
    analysis = stretto.schedule(loop, machine, "serial")
    assert (analysis.success, analysis.refused) == (False, (Refusal(4, told, limit="smem"),))
    # The search may start `b` before `a`, which is then one copy less.
    stub(monkeypatch, finds(4, {"a": 2, "b": 0}))
    assert stretto.schedule(loop, machine).ii == 4
    stub(monkeypatch, finds_nothing(Refusal(3, "no")))
    analysis = stretto.schedule(loop, machine)
    assert analysis.refused == (Refusal(3, "no"), Refusal(4, told, limit="smem"))
    stub(monkeypatch, finds_nothing(Refusal(3, "no", through=4)))
    assert len(stretto.schedule(loop, machine).refused) == 1
    stub(monkeypatch, stopped)
    with pytest.raises(KeyboardInterrupt) as caught:
        stretto.schedule(loop, machine)
    assert not isinstance(caught.value, solve.StoppedError)


def test_ctrl_c_leaves_the_serial_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    stub(monkeypatch, stopped)
    with pytest.raises(solve.StoppedError) as caught:
        stretto.schedule(FOUR_OP)
    analysis = caught.value.analysis
    assert (analysis.success, analysis.ii, analysis.generator) == (True, 24, "serial")
    assert analysis.warnings[-1].text.startswith("stopped while a better schedule was sought")
    assert analysis.seconds > 0


# Constraints that are not honoured --------------------------------------------------------


def pending() -> Loop:
    last = replace(FOUR_OP.ops[0], constraint=Constraint(pending=True))
    return replace(FOUR_OP, ops=(last, *FOUR_OP.ops[1:]))


def test_strict(monkeypatch: pytest.MonkeyPatch) -> None:
    stub(monkeypatch, finds_nothing(Refusal(15, "no")))
    analysis = stretto.schedule(pending(), generator="serial")
    assert analysis.warnings[-1].text.startswith("`pending` of `load` is not honoured")
    for generator in ("serial", "auto"):
        strict = stretto.schedule(pending(), generator=generator, strict=True)
        assert not strict.success
        assert "`pending` of `load`" in strict.refused[-1].reason


def test_force_serial(monkeypatch: pytest.MonkeyPatch) -> None:
    stub(monkeypatch, finds(15, AT_15))
    forced = replace(FOUR_OP, force_serial=True)
    analysis = stretto.schedule(forced)
    assert (analysis.ii, analysis.rule) == (24, "the loop forces serial execution")
    overridden = stretto.schedule(forced, generator="cost-based")
    assert overridden.ii == 15
    assert texts(overridden.warnings) == [
        "the loop forces serial execution; generator cost-based overrides it"
    ]
    with pytest.raises(StrettoError, match="four_op: the loop forces serial execution"):
        stretto.schedule(forced, generator="cost-based", strict=True)


# Errors -----------------------------------------------------------------------------------


def test_an_illegal_schedule_is_never_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def search(problem: Problem, *_: object) -> Found:
        placement = Partial(problem, 15)
        for i in range(problem.size):
            placement.starts[i], placement.seated_by[i] = 0, ("rau", "")
        return Found(placement, 15, ())

    stub(monkeypatch, search)
    with pytest.raises(solve.IllegalScheduleError, match="this is a bug of Stretto") as caught:
        stretto.schedule(FOUR_OP)
    assert {"dependence", "slot"} == {v.rule for v in caught.value.violations}
    assert "\n  dependence: `" in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_unknown_parts_and_numbers() -> None:
    with pytest.raises(StrettoError) as caught:
        stretto.schedule(FOUR_OP, without=["rau", "fuse"])
    assert str(caught.value) == (
        "without: no part `fuse`; known: rau, deepest-depth, initial, cost-based, arm:permute, "
        "arm:fuse, arm:retry, arm:cost-based, cost:feasibility, cost:pipe-slot, cost:spill, "
        "cost:bank, cost:structural, cost:anchors, gate:depth, gate:table, gate:group, improve, "
        "retries, ties"
    )
    with pytest.raises(StrettoError, match="max_ii is 0; at least 1 is needed"):
        stretto.schedule(FOUR_OP, max_ii=0)
    with pytest.raises(StrettoError, match="max_stages is -1"):
        stretto.schedule(FOUR_OP, max_stages=-1)
    with pytest.raises(StrettoError, match="no generator `fast`"):
        stretto.schedule(FOUR_OP, generator="fast")


@given(generated.problems())
def test_serial_analyses_are_whole(drawn: generated.Problem) -> None:
    analysis = stretto.schedule(drawn.loop, drawn.machine, "serial")
    if not analysis.success:
        assert "the budget is" in analysis.refused[0].reason
        return
    assert verify(drawn.loop, drawn.machine, analysis) == ()
    assert analysis.proof is not None
    assert analysis.proof.optimal == (analysis.ii == analysis.proof.lower_bound)
