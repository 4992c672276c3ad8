"""What is called proved is so: how far a refutation looks, and what an objective may move."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import stretto
from stretto import solve
from stretto.cli.main import main
from stretto.errors import StrettoError
from stretto.exact import Limits, interrupts, objectives
from stretto.exact.case import Case, make_case
from stretto.exact.horizon import last_ii
from stretto.exact.model import Model
from stretto.exact.objectives import up_to
from stretto.exact.search import optimize
from stretto.exact.solving import Clock
from stretto.exact.solving import solve as ask
from stretto.generate.problem import Options
from stretto.loop import (
    Access,
    Dependence,
    Facts,
    Loop,
    Op,
    Operand,
    Storage,
    TileType,
    Use,
    Value,
)
from stretto.machine import Budget, Machine, Slot

REGISTERS = Budget("register", 1 << 18, unit=512)


def op(name: str, *uses: Use, latency: int = 0) -> Op:
    return Op(name, "k", uses=uses, latency=latency)


def found(case: Case, ii: int) -> bool:
    return ask(Model(case, ii), Clock(Limits())).status == "found"


@pytest.mark.parametrize("distance", [2, 3, 5])
def test_a_dependence_that_asks_for_no_stage_leads_on_to_those_that_do(distance: int) -> None:
    """d stands twice 50 cycles behind a, though c may start before b ends."""
    stated = (
        Dependence("a", "b", 50),
        Dependence("b", "c", 1, distance),
        Dependence("c", "d", 50),
        Dependence("d", "a", 0, 30),
    )
    case = make_case(Loop("l", tuple(map(op, "abcd")), stated=stated), Machine("m", "", ()))
    least = -(-101 // (30 + distance))
    assert not found(case, least - 1)
    assert all(found(case, ii) for ii in range(least, 12))


def late_producer() -> Loop:
    """x has no one before it, and is read at the end of a chain of 8 cycles."""
    tile = TileType((128,), "f32")
    ops = (
        Op("a", "k", uses=(), latency=4, results=("va",)),
        Op("b", "k", uses=(), latency=4, operands=(Operand("va"),), results=("vb",)),
        Op("x", "k", uses=(), latency=0, results=("vx",)),
        Op("c", "k", uses=(), latency=1, operands=(Operand("vb"), Operand("vx"))),
    )
    return Loop("l", ops, (Value("va"), Value("vb"), Value("vx", tile)))


@pytest.mark.parametrize("ii", [1, 2, 3])
def test_fewer_registers_may_need_a_later_stage_than_any_rule_asks_for(ii: int) -> None:
    case = make_case(late_producer(), Machine("m", "", (), budgets=(REGISTERS,)))
    answer = optimize(case, ii, ii, None, up_to("registers"), Limits())
    registers = answer.objectives[-1]
    assert (registers.value, registers.optimal) == (1, True)
    assert answer.schedule is not None
    assert answer.schedule.starts["x"] >= 8 - ii


def test_what_fused_operations_hold_may_fill_a_slot_that_each_alone_does_not() -> None:
    """Together they hold 2 units for 2 cycles, 4 at II 1; one by one 3."""
    ops = tuple(
        Op(name, "k", uses=(Use("s", 1, offset, units),), latency=1, facts=Facts(bank=0))
        for name, offset, units in (("a", 0, 2), ("b", 1, 1))
    )
    case = make_case(Loop("l", ops), Machine("m", "", (Slot(1, "s", 3, fusion_cap=2),)))
    assert found(case, 1)
    model = Model(case, 1)
    model.cp.add(model.choices[0].joins[1, 0] == 1)
    assert ask(model, Clock(Limits())).status == "refuted"


def carried_ring() -> tuple[Loop, Machine]:
    """At the serial II of 4 the ring has two copies; with a first it needs one, at II 6."""
    ops = (
        Op("a", "k", uses=(Use("s", 3),), latency=1, results=("v",), reads=(Access("m", 1),)),
        Op("b", "k", uses=(), latency=3, operands=(Operand("v"),), writes=("m",)),
    )
    loop = Loop("l", ops, (Value("v"),), (Storage("m", "tmem", 3, depth=2),))
    return loop, Machine("m", "", (Slot(1, "s", 1),), budgets=(Budget("tmem", 4), REGISTERS))


def test_the_serial_schedule_that_does_not_fit_is_no_end_of_the_search() -> None:
    analysis = stretto.schedule(*carried_ring(), "exact")
    assert analysis.success
    assert analysis.ii == 6
    assert analysis.proof is not None
    assert analysis.proof.optimal


def test_an_ii_that_the_user_allows_is_the_end_of_the_search() -> None:
    ready = solve.prepare(*carried_ring())
    analysis = solve.schedule_prepared(ready, "exact", Options(max_ii=5))
    assert not analysis.success
    assert max(r.through or r.ii for r in analysis.refused) == 5


def test_no_ii_above_everybody_in_turn_is_the_smallest() -> None:
    loop, machine = carried_ring()
    assert last_ii(make_case(loop, machine)) == 6
    steps = (Dependence("a", "b", 9, 1),)
    two = Loop("l", (op("a"), op("b")), stated=steps)
    assert last_ii(make_case(two, Machine("m", "", ()))) == 10


def test_a_loop_that_the_solver_trips_over() -> None:
    """OR-tools 9.15 ends the presolve of this one with an uncaught std::out_of_range."""
    ops = (
        Op("a", "k", results=("v",), uses=(Use("s1", 3, 6), Use("s0", 3, 0, 2)), latency=0),
        Op("b", "k", (Operand("v"),), uses=(), latency=0),
        Op("c", "k", results=("w",), writes=("m",), uses=(), latency=0),
        Op(
            "d",
            "k",
            (Operand("w", latency=5),),
            reads=(Access("m"), Access("n")),
            uses=(Use("s0", 1), Use("s0", 2)),
            latency=0,
        ),
    )
    storages = (Storage("m", "tmem", 3), Storage("n", "tmem", 2))
    machine = Machine("m", "", (Slot(1, "s0", 3), Slot(2, "s1", 2)), budgets=(Budget("tmem", 7),))
    case = make_case(Loop("l", ops, (Value("v"), Value("w")), storages), machine, fuse=False)
    assert [found(case, ii) for ii in range(5, 8)] == [False, False, True]


# What the solver cannot count, and what cannot wait -----------------------------------------------


def test_numbers_beyond_the_solver_are_told() -> None:
    """Loops from files have limits of their own, far below."""
    huge = 10**19
    stated = (Dependence("a", "b", huge, 0, "order"), Dependence("b", "a", 5, huge, "order"))
    loop = Loop("huge", (op("a"), op("b")), stated=stated)
    machine = Machine("m", "", (Slot(1, "s", 1),))
    with pytest.raises(StrettoError, match="too large for the solver"):
        found(make_case(loop, machine), 1)


def test_a_machine_may_have_more_than_the_solver_can_count() -> None:
    loop = Loop("l", (op("a", Use("s", 3)), op("b", Use("s", 3))))
    machine = Machine("m", "", (Slot(1, "s", 10**30),), budgets=(Budget("smem", 10**30),))
    assert found(make_case(loop, machine), 1)


def test_too_little_memory_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def exhausted(_: object) -> None:
        raise MemoryError

    monkeypatch.setitem(main.__globals__["COMMANDS"], "machines", exhausted)
    assert main(["machines"]) == 1
    assert "not enough memory" in capsys.readouterr().err


def test_ctrl_c_waits_for_the_solver_to_load(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []

    def slow(name: str) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        loaded.append(name)

    monkeypatch.setattr(interrupts, "import_module", slow)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        interrupts.load_solver()
    assert loaded == ["ortools.sat.python.cp_model"]
    assert signal.getsignal(signal.SIGINT) is before


def test_the_solver_loads_no_pandas_until_somebody_asks_it_for_a_table() -> None:
    code = (
        "import sys\n"
        "from stretto.exact.interrupts import load_solver\n"
        "load_solver()\n"
        "assert 'pandas' not in sys.modules\n"
        "from ortools.sat.python import cp_model\n"
        "import pandas\n"
        "index = pandas.Index(['a', 'b'])\n"
        "table = cp_model.CpModel().new_int_var_series('x', index, 0, 5)\n"
        "assert isinstance(table, pandas.Series)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_pressed_twice_stops_the_solver_and_ends_its_thread() -> None:
    pressed: list[int] = []
    with interrupts.on_ctrl_c(lambda: pressed.append(1)):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
    assert pressed == [1, 1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_that_somebody_else_handles_is_left_to_them() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupts.on_ctrl_c(lambda: pytest.fail("it was ignored before")):
            os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("option", ["--seed=2147483648", "--workers=1001"])
def test_numbers_that_the_solver_does_not_take_are_usage_errors(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "loop.json", option]) == 2
    assert "is more than" in capsys.readouterr().err


def test_ranges_are_checked_before_the_solver_sees_them() -> None:
    loop = Loop("l", (op("a"), op("b")), stated=(Dependence("a", "b", 1 << 61),))
    with pytest.raises(StrettoError, match="too large"):
        Model(make_case(loop, Machine("m", "", ())), 1)


# Registers --------------------------------------------------------------------------------


TRITON = Path(__file__).parents[2] / "examples" / "triton"


@pytest.mark.parametrize("name", ["matmul_pointers", "softmax"])
def test_asked_where_it_hurts_or_minimized_as_a_whole_it_is_the_same_least(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (loop,) = stretto.read(TRITON / f"{name}.ttir", machine="blackwell").loops
    asked = stretto.schedule(loop, prove=True, objective="registers").proof
    assert asked is not None
    whole = tuple(replace(goal, parts=None) for goal in objectives.GOALS)
    monkeypatch.setattr(objectives, "GOALS", whole)
    minimized = stretto.schedule(loop, prove=True, objective="registers").proof
    assert minimized is not None
    assert asked.objectives[-1].optimal
    assert asked.objectives[-1] == minimized.objectives[-1]


def test_the_registers_of_attention_forward_are_proved_within_the_work_of_one_loop() -> None:
    (loop,) = stretto.read(TRITON.parent / "attention_forward.json").loops
    proof = stretto.schedule(loop, prove=True, objective="registers", work_limit=20).proof
    assert proof is not None
    assert [row.name for row in proof.objectives if row.optimal] == list(objectives.NAMES)
