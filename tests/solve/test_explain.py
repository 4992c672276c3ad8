"""Why not a smaller II: conflicts that are minimal, changes that do what they say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import stretto
from brute_force import legal_schedules, optimum
from stretto import solve
from stretto.cli.main import main
from stretto.errors import StrettoError
from stretto.exact import Limits
from stretto.exact.case import Case, make_case
from stretto.exact.conflict import find_conflict
from stretto.exact.explain import explain
from stretto.exact.explanation import Explanation
from stretto.exact.reasons import Reason, brief, chain, paths
from stretto.exact.solving import Clock
from stretto.loop import Access, Constraint, Dependence, Loop, Op, Storage, Use
from stretto.machine import Budget, Machine, Slot
from stretto.machine.choice import ASKED
from stretto.report.explanation import ExplanationReport
from stretto.solution import Schedule
from stretto.solve import explaining
from tiny_loops import Tiny, tiny_problem

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
SCHEMA = json.loads(
    (ROOT / "src/stretto/report/schemas/explanation.schema.json").read_text(encoding="utf-8")
)


def keeps_schema(document: object) -> None:
    Draft202012Validator(SCHEMA).validate(document)  # pyright: ignore[reportUnknownMemberType]


def example(name: str, *options: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The explanation of a shipped loop, as JSON that keeps its schema."""
    assert main(["explain", str(EXAMPLES / f"{name}.json"), *options, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    keeps_schema(document)
    return document["loops"][0]


def test_four_op_is_kept_from_14_by_slot_16_alone(capsys: pytest.CaptureFixture[str]) -> None:
    entry = example("four_op", capsys=capsys)
    assert entry["best"] == {"ii": 15, "optimal": True, "lower_bound": 15}
    assert (entry["ii"], entry["verdict"], entry["minimal"]) == (14, "impossible", True)
    (reason,) = entry["reasons"]
    assert reason["kind"] == "slot"
    assert reason["name"] == "tp_smem_wr"
    assert reason["slot_id"] == 16
    assert reason["text"].startswith("load\u00a08 + write\u00a07 = 15")
    (change,) = entry["relaxations"]
    assert change["ii"] == 8
    assert change["change"] == "a second unit of tp_smem_wr (capacity 1 -> 2), on other hardware"
    assert change["hardware"]


def test_a_recurrence_is_told_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(EXAMPLES / "recurrence_bound.json")]) == 0
    out = capsys.readouterr().out
    assert "II 10 is optimal. Why not 9?" in out
    assert "impossible for 3 reasons together, each needed" in out
    assert "a recurrence: 10 weights over 1 iteration, 9 at II 9" in out
    assert "1 weight less latency of `add` -> `clamp` (4 -> 3)" in out


def test_memory_names_its_budget_and_what_to_shrink(capsys: pytest.CaptureFixture[str]) -> None:
    entry = example("over_smem", capsys=capsys)
    kinds = [reason["kind"] for reason in entry["reasons"]]
    assert kinds == ["storage", "dependence", "dependence"]
    changes = {r["change"]: r["ii"] for r in entry["relaxations"]}
    # Two copies of each tile take 262,144 bytes of 232,448: 29,696 too many, 14,848 a copy.
    assert changes["`a_tile` smaller by 14,848 bytes (65,536 -> 50,688)"] == 2048


def test_an_ii_that_is_possible(capsys: pytest.CaptureFixture[str]) -> None:
    entry = example("four_op", "--ii", "16", capsys=capsys)
    assert (entry["verdict"], entry["reasons"]) == ("possible", [])
    assert example("four_op", "--ii", "15", capsys=capsys)["verdict"] == "possible"


def test_far_below_the_bound(capsys: pytest.CaptureFixture[str]) -> None:
    """A hold longer than the II."""
    entry = example("four_op", "--ii", "3", capsys=capsys)
    assert entry["verdict"] == "impossible"
    assert entry["minimal"]


def test_an_ii_of_one_has_nothing_to_explain(capsys: pytest.CaptureFixture[str]) -> None:
    loop = Loop("l", (Op("a", "k", uses=(), latency=1),))
    explained = stretto.explain(loop, Machine("m", "", ()))
    assert explained.explanation is None
    report = ExplanationReport(explained, explained.problem.machine, ASKED)
    assert "no II is smaller than 1" in report.to_text()[0]
    document = {"schema": SCHEMA["$id"], "success": True, "loops": [report.to_json()]}
    keeps_schema(document)
    capsys.readouterr()


@pytest.mark.parametrize("bad", ["0", "-3", "x"])
def test_an_ii_that_is_none(bad: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(EXAMPLES / "four_op.json"), f"--ii={bad}"]) == 2
    assert "is not a whole number of at least 1" in capsys.readouterr().err
    with pytest.raises(StrettoError, match="at least 1"):
        stretto.explain(Loop("l", (Op("a", "k", uses=(), latency=1),)), Machine("m", "", ()), ii=0)


def test_a_limit_says_what_it_left_open(capsys: pytest.CaptureFixture[str]) -> None:
    loop = Loop(
        "l",
        tuple(Op(f"o{i}", "k", uses=(Use("s", 3 + i),), latency=9) for i in range(6)),
        stated=tuple(Dependence(f"o{i}", f"o{(i + 1) % 6}", 9, int(i == 5)) for i in range(6)),
    )
    machine = Machine("m", "", (Slot(1, "s", 1),))
    ready = solve.prepare(loop, machine)
    told = explaining.explain_prepared(ready, 50, limits=Limits(work=1e-9)).explanation
    assert told is not None
    assert told.verdict == "undecided"
    capsys.readouterr()


# Minimal, against brute force ---------------------------------------------------------------------


def without(tiny: Tiny, dropped: Reason) -> Tiny:
    """A loop of stated dependences only, with one reason taken away."""
    loop, machine = tiny.loop, tiny.machine
    match dropped.kind:
        case "slot":
            machine = machine.with_capacity(dropped.name, 1000)
        case "pool":
            machine = machine.with_cap(dropped.name, 1000)
        case "depth":
            one = loop.op(dropped.name)
            free = replace(one, constraint=replace(one.constraint, max_depth=None))
            loop = replace(loop, ops=tuple(free if o is one else o for o in loop.ops))
        case "stages":
            return replace(tiny, max_stages=None)
        case "group":
            names = loop.groups[dropped.number]
            ops = tuple(
                replace(o, constraint=replace(o.constraint, gid=None, stage_offset=0))
                if o.name in names
                else o
                for o in loop.ops
            )
            loop = replace(loop, ops=ops)
        case "dependence":
            # It and those beside it ask for nothing, but whom they keep from fusing stays as it is.
            gone = loop.stated[dropped.number]
            beside = (gone.src, gone.dst, gone.distance)
            stated = tuple(
                replace(d, latency=-1000) if (d.src, d.dst, d.distance) == beside else d
                for d in loop.stated
            )
            loop = replace(loop, stated=stated)
        case "storage" | "registers" | "ring" | "pin":
            raise AssertionError("the loops of this test have no storage and no pins")
    return replace(tiny, loop=loop, machine=machine)


def stated_only(seed: int) -> Tiny:
    """The tiny loop of a seed with its dependences stated and its storages gone."""
    tiny = tiny_problem(seed, 4)
    ops = tuple(replace(o, operands=(), reads=(), writes=(), results=()) for o in tiny.loop.ops)
    stated = tiny.loop.dependences
    return replace(tiny, loop=Loop(tiny.loop.name, ops, stated=stated))


def possible(tiny: Tiny, ii: int) -> bool:
    found = legal_schedules(tiny.loop, tiny.machine, ii, fuse=tiny.fuse, max_stages=tiny.max_stages)
    return next(found, None) is not None


def case_of(tiny: Tiny) -> Case:
    return make_case(tiny.loop, tiny.machine, tiny.fuse, tiny.max_stages)


def alone(tiny: Tiny, kept: tuple[Reason, ...]) -> Tiny:
    """A loop bound by some reasons and nothing else."""
    from stretto.exact.reasons import all_reasons  # noqa: PLC0415

    case = case_of(tiny)
    others = [r for r in all_reasons(case) if r not in kept]
    # Numbers shift as groups go, so the last ones go first.
    for reason in sorted(others, key=lambda r: -r.number):
        tiny = without(tiny, reason)
    return tiny


@pytest.mark.parametrize("seed", range(40))
def test_conflicts_are_enough_and_minimal(seed: int) -> None:
    tiny = stated_only(seed)
    best = optimum(tiny.loop, tiny.machine, tiny.fuse, 40, tiny.max_stages)
    if best is None or best == 1:
        assert best != 0
        return
    conflict = find_conflict(case_of(tiny), best - 1, Clock(Limits()))
    assert conflict.status == "impossible"
    assert conflict.minimal
    assert not possible(alone(tiny, conflict.reasons), best - 1)
    for reason in conflict.reasons:
        rest = tuple(r for r in conflict.reasons if r != reason)
        assert possible(alone(tiny, rest), best - 1), reason


@pytest.mark.parametrize("seed", range(24))
def test_relaxations_give_the_ii_they_promise(seed: int) -> None:
    """Every changed problem has the II as its optimum, by brute force."""
    tiny = tiny_problem(seed, 4)
    best = optimum(tiny.loop, tiny.machine, tiny.fuse, 40, tiny.max_stages)
    if best is None or best == 1:
        assert best != 0
        return
    case = case_of(tiny)
    ready = solve.prepare(tiny.loop, tiny.machine)
    seen: list[tuple[Case, Schedule]] = []
    bounds = solve.schedule_prepared(ready).bounds
    assert bounds is not None
    told = explain(case, best - 1, bounds, check=lambda case, found: seen.append((case, found)))
    assert told.verdict == "impossible"
    assert [r.hardware for r in told.relaxations] == sorted(r.hardware for r in told.relaxations)
    assert sorted(schedule.ii for _, schedule in seen) == sorted(r.ii for r in told.relaxations)
    assert all(r.ii < best and r.optimal for r in told.relaxations)
    for changed, schedule in seen:
        if changed.latencies:  # brute force knows no changed latency
            continue
        found = optimum(changed.loop, changed.machine, tiny.fuse, best, changed.max_stages)
        assert found == schedule.ii


def explained(loop: Loop, machine: Machine, ii: int | None = None) -> Explanation:
    told = stretto.explain(loop, machine, ii=ii).explanation
    assert told is not None
    assert told.verdict == "impossible"
    assert told.minimal
    return told


def test_what_waits_for_itself_may_wait_less() -> None:
    loop = Loop("l", (Op("a", "k", uses=(), latency=9),), stated=(Dependence("a", "a", 9, 2),))
    (change,) = explained(loop, Machine("m", "", ())).relaxations
    assert (change.text, change.ii) == ("1 cycle less latency of `a` -> `a` (9 -> 8)", 4)


def test_a_capped_ring_may_have_a_copy_more() -> None:
    """The ring is told, not a latency: what stands against the II is how few copies there are."""
    ops = (
        Op("load", "k", uses=(), latency=8, writes=("m",)),
        Op("read", "k", uses=(), latency=2, reads=(Access("m"),)),
    )
    loop = Loop("l", ops, storages=(Storage("m", "smem", 1, depth=1),))
    changes = explained(loop, Machine("m", "", (), budgets=(Budget("smem", 8),))).relaxations
    assert [(r.text, r.ii) for r in changes] == [
        ("a ring of 2 for `m` instead of 1", 5),
        ("1 cycle less latency of `load` -> `read` (8 -> 7)", 9),
    ]


def test_a_hold_of_several_iis_needs_several_units() -> None:
    loop = Loop("l", (Op("a", "k", uses=(Use("s", 10),), latency=1),))
    (change,) = explained(loop, Machine("m", "", (Slot(1, "s", 1),)), 3).relaxations
    assert change.text == "3 more units of s (capacity 1 -> 4), on other hardware"
    assert (change.ii, change.hardware) == (3, True)


def test_only_the_changed_latency_may_be_broken() -> None:
    """The verifier's finding is granted by as much as the change allows, and no other is."""
    stated = (Dependence("a", "a", 9, 1, "order"), Dependence("a", "a", 8, 1, "anti"))
    case = make_case(
        Loop("l", (Op("a", "k", uses=(), latency=1),), stated=stated), Machine("m", "", ())
    )
    check = vars(explaining)["_check"]
    check(replace(case, latencies=((0, 8),)), Schedule(8, {"a": 0}))
    for latencies, ii in ((((0, 7),), 7), (((0, 8),), 7), (((1, 8),), 8), ((), 8)):
        with pytest.raises(solve.IllegalScheduleError):
            check(replace(case, latencies=latencies), Schedule(ii, {"a": 0}))


def test_what_is_not_proved_minimal_is_not_settled() -> None:
    assert Explanation(3, "impossible", minimal=True).settled
    assert Explanation(3, "possible").settled
    for open_end in (
        Explanation(3, "impossible"),
        Explanation(3, "impossible", minimal=True, complete=False),
        Explanation(3, "undecided"),
    ):
        assert not open_end.settled


def test_ctrl_c_between_two_questions_keeps_the_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(explaining, "_explained", interrupted)
    loop = Loop("l", (Op("a", "k", uses=(), latency=9),), stated=(Dependence("a", "a", 9, 2),))
    told = stretto.explain(loop, Machine("m", "", ()))
    assert told.best.ii == 5
    assert told.explanation == Explanation(4, "undecided", stopped=True)


def test_dependences_are_told_path_by_path() -> None:
    """Also where two are alike, as in a set that is not minimal."""
    ab, bc, de = Dependence("a", "b", 1), Dependence("b", "c", 1), Dependence("d", "e", 1)
    assert paths([bc, de, ab, replace(ab)]) == [[1], [2, 0], [3]]
    assert chain([bc, de, ab]) == "d -> e; a -> b -> c"
    assert chain([bc, Dependence("c", "b", 1)]) == "b -> c -> b"


def test_every_kind_of_reason_in_a_few_words() -> None:
    ops = (
        Op("a", "k", uses=(Use("s", 1),), latency=1, constraint=Constraint(gid=0, max_depth=1)),
        Op("b", "k", uses=(Use("s", 1),), latency=1, constraint=Constraint(gid=0)),
    )
    stated = (Dependence("a", "b", 1), Dependence("b", "a", 1, 1))
    case = make_case(Loop("l", ops, stated=stated), Machine("m", "", (Slot(1, "s", 1),)), True, 2)
    reasons = (
        Reason("slot", "s"),
        Reason("pool", "p"),
        Reason("storage", "smem"),
        Reason("depth", "a"),
        Reason("stages"),
        Reason("group"),
        Reason("dependence", number=0),
        Reason("dependence", number=1),
    )
    assert brief(case, reasons) == (
        "slot s, pool p, the smem budget, max_depth of `a`, the limit on stages, the group of `a`, "
        "2 dependences (a -> b -> a)"
    )
