"""Pipes and mutexes: what the solve makes of groups, views, storages and orders."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import replace
from importlib import resources
from typing import Any

import pytest

from programs import TINY, guarded, placed, ready, two_agents
from stretto import build
from stretto.loop import Access, Use
from stretto.machine import Budget
from stretto.materialization import (
    MODES,
    Consumer,
    MaterializeError,
    Mode,
    Pipe,
    Program,
    Waiter,
    materialize,
)
from stretto.materialization.dataflow import Dataflow, Group
from stretto.materialization.program import Acquire, Direct, Issue, Stored, Through
from stretto.simulation import simulate


def pipe(program: Program, name: str) -> Pipe:
    return program.pipe_of[name]


# Groups and owners ------------------------------------------------------------------------


def test_gemm_has_a_pipe_for_each_tile() -> None:
    program = ready("gemm").program("unspecialized")
    assert [p.name for p in program.pipes] == ["Pipe_a_tile", "Pipe_b_tile"]
    a = program.pipes[0]
    assert (a.producers, a.owner, a.commits) == (("load_a",), "load_a", "load_a")
    assert a.consumers == (Consumer("mma"),)
    # 460 + 16,384 bytes at 512 / 3 bytes a cycle; 1,211 cycles of life in intervals of 256.
    assert (a.latency, a.depth, a.flavour) == (556, 5, "tile")
    assert (a.payload.bytes, a.payload.space) == (128 * 64 * 2, "smem")
    assert str(a.payload.type) == "128x64xf16"
    # The accumulator is updated in place by one operation, which waits for nobody.
    assert program.ring_of["acc"].depth == 1
    assert not any(p.ring == "acc" for p in program.pipes)


def test_in_place_updates_join_the_group_of_what_they_update() -> None:
    """`pv` adds to what `store_o` stored: one group, the earlier owns it, the later commits."""
    program = ready("attention_forward").program()
    whole = pipe(program, "Pipe_o_acc")
    assert whole.producers == ("store_o", "pv")
    assert (whole.owner, whole.commits) == ("store_o", "pv")
    assert whole.consumers == (Consumer("load_o", 1),)
    half = pipe(program, "Pipe_o_acc_1")
    assert (half.producers, half.consumers) == (("store_o",), (Consumer("pv"),))
    assert whole.ring == half.ring == "o_acc"


@pytest.mark.parametrize("mode", MODES)
def test_the_owner_decides_where_a_slot_is_waited_for(
    mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before `store_o` writes the sum, the first of its group: `pv` would be too late."""

    def waits(program: Program) -> list[str]:
        kernel = [i for agent in program.agents for i in agent.stream.kernel]
        return [i.op for i in kernel if isinstance(i, Acquire) and i.pipe == "Pipe_o_acc"]

    assert waits(ready("attention_forward").program(mode)) == ["store_o"]
    groups = Dataflow._groups  # pyright: ignore[reportPrivateUsage]

    def owned_by_the_last(self: Dataflow, *asked: Any) -> list[Group]:
        return [replace(group, owner=group.commits) for group in groups(self, *asked)]

    monkeypatch.setattr(Dataflow, "_groups", owned_by_the_last)
    assert waits(ready("attention_forward").program(mode)) == ["pv"]


def test_views_join_their_origin_and_are_seen_through_by_the_reader() -> None:
    program = ready("attention_forward").program()
    k = pipe(program, "Pipe_k_tile")
    assert (k.producers, k.aliases, k.consumers) == (
        ("load_k",),
        ("k_transposed",),
        (Consumer("qk"),),
    )
    qk = next(
        i for a in program.agents for i in a.stream.kernel if i.op == "qk" and isinstance(i, Issue)
    )
    assert qk.operands == (Stored("q", 0), Stored("k_transposed", 1, ("k_transposed",)))


def test_one_pipe_serves_all_consumers_of_a_group() -> None:
    program = ready("attention_backward").program()
    assert pipe(program, "Pipe_q_tile").consumers == (Consumer("kq"), Consumer("dk"))
    assert pipe(program, "Pipe_where").consumers == (
        Consumer("load_lse"),
        Consumer("load_delta"),
        Consumer("store_dq"),
    )
    assert pipe(program, "Pipe_where").flavour == "scalar"


def test_a_consumer_without_a_live_producer_has_a_trivial_pipe() -> None:
    program = ready("attention_forward").program()
    q = pipe(program, "Pipe_q_tile")
    assert q.trivial
    assert (q.producers, q.consumers, q.flavour, q.owner) == ((), (Consumer("qk"),), "scalar", None)
    assert [p.name for p in program.pipes if p.trivial] == ["Pipe_q_tile"]
    # Nothing in the streams waits for it.
    named = [getattr(i, "pipe", "") for a in program.agents for i in a.stream.kernel]
    assert q.name not in named


def test_a_pipe_carries_nothing_beside_its_consumer() -> None:
    """Same agent, same step: the value is taken directly."""
    program = ready("gemm").program("unspecialized")
    load = next(
        i for i in program.agents[0].stream.kernel if isinstance(i, Issue) and i.op == "load_a"
    )
    (source,) = load.operands
    assert isinstance(source, Direct)
    assert (source.op, source.latency) == ("offset", 1)


def test_operands_from_another_stage_come_through_pipes() -> None:
    program = ready("attention_forward").program("unspecialized")
    load = next(
        i for i in program.agents[0].stream.kernel if isinstance(i, Issue) and i.op == "load_v"
    )
    (source,) = load.operands
    assert isinstance(source, Through)
    assert source.pipe == "Pipe_where"


def test_two_writers_that_share_nothing_are_two_groups() -> None:
    loop = build("halves")
    tile = loop.storage("tile", "smem", 8)
    loop.op("low", "x", uses=[Use("a", 1)], latency=1, into=tile)
    high = loop.op("high", "x", uses=[Use("a", 1)], latency=1, into=tile)
    loop.op("use", "y", high, uses=[Use("b", 1)], latency=1)
    made = placed(loop.finish(), 4, {"low": 0, "high": 1, "use": 6}).program("unspecialized")
    assert [(p.producers, p.consumers) for p in made.pipes] == [
        (("low",), (Consumer("use"),)),
        (("high",), (Consumer("use"),)),
    ]
    assert made.ring_of["tile"].depth == 2  # 7 cycles of life in intervals of 4


def test_different_latencies_are_different_pipes() -> None:
    loop = build("early")
    x = loop.op("make", "x", type="4xf32", uses=[Use("a", 1)], latency=3)
    loop.op("soon", "y", x.after(1), uses=[Use("b", 1)], latency=1)
    loop.op("later", "y", x, uses=[Use("b", 1)], latency=1)
    made = placed(loop.finish(), 2, {"make": 0, "soon": 2, "later": 3}).program("unspecialized")
    assert [(p.latency, p.consumers) for p in made.pipes] == [
        (1, (Consumer("soon"),)),
        (3, (Consumer("later"),)),
    ]
    assert {p.ring for p in made.pipes} == {"make"}


# Depths -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gemm", "attention_forward", "attention_backward", "layernorm"])
def test_depths_are_those_of_the_analysis_and_fit(name: str) -> None:
    case = ready(name)
    for mode in ("unspecialized", "specialized"):
        program = case.program(mode)
        for row in case.analysis.storages:
            ring = program.ring_of[row.name]
            assert (ring.depth, ring.lifetime) == (row.ring_depth, row.lifetime)
        for space in ("smem", "tmem"):
            budget = case.machine.budget(space)
            assert budget is not None
            assert budget.bytes is not None
            inside = [r for r in program.rings if r.space == space]
            assert sum(r.bytes * r.depth for r in inside) <= budget.bytes


def test_operations_of_no_duration_that_wait_for_each_other_are_no_schedule() -> None:
    """`touch` reads what the last iteration wrote, in the cycle in which this one writes first."""
    loop = build("instant")
    tile = loop.storage("tile", "smem", 8)
    loop.op("write", "x", uses=[], latency=0, into=tile)
    loop.depends("write", "touch", 0)
    loop.op("touch", "y", uses=[], latency=0)
    whole = loop.finish()
    touch = replace(whole.ops[1], reads=(Access("tile", 1),))
    whole = replace(whole, ops=(whole.ops[0], touch))
    case = placed(whole, 2, {"write": 0, "touch": 0})
    assert case.analysis.storages[0].ring_depth == 1
    with pytest.raises(
        MaterializeError, match="each has to come before the next of touch -> write"
    ):
        case.program("unspecialized")
    later = placed(whole, 2, {"write": 0, "touch": 1})
    assert later.program("unspecialized").ring_of["tile"].depth == 2
    tight = replace(TINY, budgets=(Budget("smem", 15),))
    with pytest.raises(MaterializeError, match=r"smem holds 15 bytes; the schedule needs 16"):
        materialize(later.loop, tight, later.analysis)


def test_an_operation_of_no_duration_may_read_and_write_one_slot() -> None:
    """It takes what the last iteration left, and leaves its own in the same place."""
    loop = build("instant")
    tile = loop.storage("tile", "smem", 8)
    loop.op("step", "x", uses=[], latency=0, into=tile)
    whole = loop.finish()
    whole = replace(whole, ops=(replace(whole.ops[0], reads=(Access("tile", 1),)),))
    case = placed(whole, 1, {"step": 0})
    for mode in MODES:
        assert case.program(mode).ring_of["tile"].depth == 1
        assert simulate(case.loop, case.machine, case.analysis, 5, mode).success


# Mutexes ----------------------------------------------------------------------------------


def test_an_order_between_agents_is_a_mutex() -> None:
    program = two_agents().program()
    (mutex,) = program.mutexes
    assert (mutex.name, mutex.holder, mutex.latency) == ("Mutex_first", "first", 2)
    assert mutex.waiters == (Waiter("second", 0),)
    assert mutex.excludes == ("order",)
    assert program.named_barriers == ("Mutex_first",)
    assert two_agents().program("unspecialized").mutexes == ()


def test_a_mutex_says_which_storage_it_guards() -> None:
    found = {m.holder: (m.waiters, m.excludes) for m in guarded().program().mutexes}
    assert found == {
        "fill": ((Waiter("clear", 0),), ("box",)),
        "clear": ((Waiter("fill", 1),), ("box",)),
    }


def test_orders_that_pipes_imply_need_no_mutex() -> None:
    """The reader releases its slot before the writer takes it again: that is the anti order."""
    loop = build("capped")
    tile = loop.storage("tile", "smem", 8, depth=2)
    landed = loop.op("load", "x", type="4xf16", uses=[Use("a", 1)], latency=2, into=tile)
    loop.op("use", "y", landed, uses=[Use("b", 2)], latency=2)
    case = placed(loop.finish(), 3, {"load": 0, "use": 2}, load="one", use="other")
    assert any(d.kind == "anti" for d in case.loop.dependences)
    program = case.program()
    assert [p.reused for p in program.pipes] == [True]
    assert program.mutexes == ()


@pytest.mark.parametrize("name", ["gemm", "attention_forward", "attention_backward"])
def test_examples_need_no_mutex(name: str) -> None:
    assert ready(name).program().mutexes == ()


# What may go in ---------------------------------------------------------------------------


def test_no_schedule_no_program() -> None:
    case = ready("gemm")
    with pytest.raises(MaterializeError, match="there is no schedule"):
        materialize(case.loop, case.machine, replace(case.analysis, success=False, ii=None))


def test_an_illegal_schedule_is_refused_with_its_rule() -> None:
    case = ready("gemm")
    late = tuple(replace(p, start=p.start + 1) for p in case.analysis.placements)
    with pytest.raises(MaterializeError, match="order: "):
        materialize(case.loop, case.machine, replace(case.analysis, placements=late))


@pytest.mark.parametrize("mode", ["unspecialized", "specialized"])
def test_programs_are_frozen_picklable_and_always_the_same(mode: Mode) -> None:
    case = ready("attention_forward")
    program = case.program(mode)
    assert pickle.loads(pickle.dumps(program)) == program
    assert case.program(mode) == program
    assert hash(program.pipes) == hash(case.program(mode).pipes)
    with pytest.raises(AttributeError):
        program.ii = 3  # pyright: ignore[reportAttributeAccessIssue]


# Layers -----------------------------------------------------------------------------------


def test_materializing_loads_no_generator_and_simulating_no_numpy() -> None:
    """Materialization never searches: it cannot, for nothing that searches is there."""
    code = (
        "import sys, stretto.materialization, stretto.simulation, stretto.report.simulation\n"
        "print(*sorted(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = run.stdout.split()
    assert "stretto.simulation.simulator" in loaded
    unwanted = ("stretto.generate", "stretto.exact", "stretto.solve", "numpy", "xdsl", "ortools")
    assert [name for name in loaded if name.startswith(unwanted)] == []


def test_the_simulator_counts_for_itself() -> None:
    """It shares no arithmetic with what it checks."""
    folder = resources.files("stretto.simulation")
    for file in folder.iterdir():
        if file.name.endswith(".py"):
            text = file.read_text(encoding="utf-8")
            assert "schedule.views" not in text
            assert "stretto.verification" not in text
            assert "stretto.lower_bounds" not in text
