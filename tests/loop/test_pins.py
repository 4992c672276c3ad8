"""Pins: operations stand where they are told to, in every generator, or it is said why not."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

import stretto
from brute_force import optimum
from documents import parse_loop
from rich_loops import rich_problem
from stretto import Loop, LoopError, StrettoError
from stretto.cli.main import main
from stretto.exact import Limits
from stretto.exact.case import make_case
from stretto.exact.objectives import up_to
from stretto.exact.search import optimize
from stretto.ir import write_mlir
from stretto.loop import Constraint, Dependence, Op, Use
from stretto.loop.json import dump_loop
from stretto.loop.pins import parse_pin, with_pins
from stretto.machine import Machine, Slot
from stretto.solution import Schedule
from stretto.solution.views import analyse
from stretto.verification import verify
from tiny_loops import tiny_problem

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str) -> Loop:
    (loop,) = stretto.read(EXAMPLES / name).loops
    return loop


@pytest.mark.parametrize("generator", ["auto", "exact"])
@pytest.mark.parametrize(
    "pins",
    [
        ("mma=stage:3",),
        ("mma=cycle:7",),
        ("load_a=start:5",),
        ("load_b=before:load_a",),
        ("offset=stage:0", "load_b=cycle:40", "mma=stage:3"),
    ],
)
def test_operations_stand_where_they_are_pinned(pins: tuple[str, ...], generator: str) -> None:
    found = stretto.schedule(example("gemm.json"), generator=generator, pins=pins)
    assert found.ii == 256
    for name, kind, value in (parse_pin(pin) for pin in pins):
        start = found.starts[name]
        if kind == "before":
            assert start < found.starts[value]
        else:
            has = {"start": start, "stage": start // 256, "cycle": start % 256}[kind]
            assert has == int(value)


def test_a_pin_may_cost_an_ii() -> None:
    """`mma` in stage 0 waits there for what is loaded: 653 cycles before it starts."""
    found = stretto.schedule(example("gemm.json"), pins=["mma=stage:0"])
    assert found.ii == 654
    assert found.proof is not None
    assert found.proof.optimal
    assert found.starts["mma"] // 654 == 0


@pytest.mark.parametrize("generator", ["cost-based", "exact"])
def test_what_holds_nothing_keeps_its_cycle_and_what_it_waits_for(generator: str) -> None:
    """`late` is ready a cycle after II 5 has come round: cycle 0 of the stage after it."""
    ops = (
        Op("late", "k", uses=(), latency=3, constraint=Constraint(cycle=0)),
        Op("long", "k", uses=(Use("s", 3),), latency=4),
        Op("short", "k", uses=(Use("s", 2),), latency=1),
    )
    loop = Loop("l", ops, stated=(Dependence("long", "late", 6, 1, "order"),))
    found = stretto.schedule(loop, Machine("m", "", (Slot(1, "s", 1),)), generator)
    assert found.ii == 5
    assert found.starts["late"] % 5 == 0
    assert found.starts["late"] + 5 >= found.starts["long"] + 6


def test_a_whole_schedule_is_kept_when_all_of_it_is_pinned() -> None:
    loop = example("attention_forward.json")
    before = stretto.schedule(loop)
    again = stretto.schedule(loop, pins=[f"{op}=start:{at}" for op, at in before.starts.items()])
    assert (again.ii, again.starts) == (before.ii, before.starts)


def test_a_partial_schedule_is_completed_around_its_pins() -> None:
    loop = example("attention_forward.json")
    before = stretto.schedule(loop)
    kept = [op.name for op in loop.ops[::3]]
    found = stretto.schedule(loop, pins=[f"{op}=start:{before.starts[op]}" for op in kept])
    assert found.ii == before.ii
    assert {op: found.starts[op] for op in kept} == {op: before.starts[op] for op in kept}


def test_pins_of_rich_loops_hold_in_both_generators() -> None:
    """Half of the operations of an exact schedule, pinned: it is still there to be found."""
    tried = 0
    for seed in range(40):
        rich = rich_problem(seed)
        first = stretto.schedule(
            rich.loop, rich.machine, fuse=rich.fuse, max_stages=rich.max_stages, max_ii=40
        )
        if not first.success or first.fused or first.ii is None:
            continue
        tried += 1
        kept = [op.name for op in rich.loop.ops[::2]]
        pinned = with_pins(rich.loop, [f"{op}=start:{first.starts[op]}" for op in kept])
        for generator in ("cost-based", "exact"):
            found = stretto.schedule(
                pinned,
                rich.machine,
                generator,
                fuse=False,
                max_stages=rich.max_stages,
                max_ii=first.ii,
            )
            assert found.success, (seed, generator)
            assert {op: found.starts[op] for op in kept} == {op: first.starts[op] for op in kept}
    assert tried > 20


def test_the_solver_finds_what_brute_force_does() -> None:
    """Tiny loops with one pin each, at every II of a few."""
    rng = random.Random(2026)
    pinned = found = 0
    for seed in range(60):
        tiny = tiny_problem(seed, 3)
        name = rng.choice(tiny.loop.ops).name
        kind, most = rng.choice([("stage", 2), ("cycle", 4), ("start", 9)])
        loop = with_pins(tiny.loop, [f"{name}={kind}:{rng.randint(0, most)}"])
        best = optimum(loop, tiny.machine, tiny.fuse, 9, tiny.max_stages)
        case = make_case(loop, tiny.machine, tiny.fuse, tiny.max_stages)
        schedule = optimize(case, 1, 9, None, up_to("ii"), Limits()).schedule
        assert (None if schedule is None else schedule.ii) == best, seed
        pinned += best != optimum(tiny.loop, tiny.machine, tiny.fuse, 9, tiny.max_stages)
        found += best is not None
    assert pinned > 5
    assert found > 20


# Who says so where they do not hold ---------------------------------------------------------


@pytest.mark.parametrize(
    ("pin", "told"),
    [
        ("mma=start:654", "`mma` is pinned to start 654; it has start 653"),
        ("mma=stage:3", "`mma` is pinned to stage 3; it has stage 2 (start 653, II 256)"),
        ("mma=cycle:9", "`mma` is pinned to cycle 9; it has cycle 141 (start 653, II 256)"),
        (
            "load_b=before:load_a",
            "`load_b` is to start before `load_a`; it starts at 97, `load_a` at 1",
        ),
    ],
)
def test_the_verifier_tells_of_a_pin_that_does_not_hold(pin: str, told: str) -> None:
    """The same schedule, legal without the pin."""
    ready = stretto.prepare(example("gemm.json"))
    starts = {"offset": 0, "load_a": 1, "load_b": 97, "mma": 653}
    schedule = analyse(ready.loop, ready.machine, Schedule(256, starts))
    assert verify(ready.loop, ready.machine, schedule) == ()
    pinned = with_pins(ready.loop, [pin])
    (violation,) = verify(pinned, ready.machine, schedule)
    assert violation.rule == "pin"
    assert violation.message.startswith(told)


def test_pins_in_each_others_way_are_explained() -> None:
    """Both loads hold TMA for 96 cycles: at no II can they begin one cycle apart."""
    loop = example("gemm.json")
    pins = ["load_a=cycle:5", "load_b=cycle:6"]
    found = stretto.schedule(loop, pins=pins, max_ii=300)
    assert not found.success
    assert all(refusal.proved for refusal in found.refused)
    told = stretto.explain(loop, ii=280, pins=pins).report()
    assert "pin of load_a" in told
    assert "load_a must have cycle 5" in told
    assert "`load_a` not pinned" in told


def test_pins_are_read_and_written(tmp_path: Path) -> None:
    loop = with_pins(
        stretto.prepare(example("gemm.json")).loop,
        ["mma=stage:3", "load_a=start:5", "load_b=cycle:101", "load_a=before:load_b"],
    )
    assert parse_loop("x.json", dump_loop(loop)) == loop
    path = tmp_path / "pinned.mlir"
    path.write_text(write_mlir(loop), encoding="utf-8")
    assert 'tileas.schedule.constraint.before = ["load_b"]' in path.read_text(encoding="utf-8")
    (again,) = stretto.read(path).loops
    assert [op.constraint for op in again.ops] == [op.constraint for op in loop.ops]


def test_pins_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(EXAMPLES / "gemm.json")
    assert main(["schedule", file, "--pin", "mma=stage:3", "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["loops"]
    assert {op["name"]: op["stage"] for op in entry["ops"]}["mma"] == 3
    assert main(["schedule", file, "--pin", "mma=depth:3"]) == 2
    assert "`mma=depth:3` is no pin" in capsys.readouterr().err
    assert main(["schedule", file, "--pin", "mmm=stage:3"]) == 1
    assert "there is no operation `mmm`" in capsys.readouterr().err


def test_what_is_no_pin_is_refused() -> None:
    loop = example("gemm.json")
    for pin in ("mma", "mma=stage", "mma=stage:-1", "=stage:1", "mma=stage:x", "mma=before:"):
        with pytest.raises(StrettoError, match="is no pin"):
            stretto.schedule(loop, pins=[pin])
    with pytest.raises(LoopError, match="`mma` is to start before itself"):
        stretto.schedule(loop, pins=["mma=before:mma"])
    with pytest.raises(StrettoError, match="load_a"):  # it waits for `load_a`
        stretto.schedule(loop, pins=["mma=before:load_a"])
    negative = replace(loop.ops[0], constraint=replace(loop.ops[0].constraint, stage=-1))
    with pytest.raises(LoopError, match="has stage -1"):
        stretto.schedule(replace(loop, ops=(negative, *loop.ops[1:])))
