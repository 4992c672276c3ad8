"""(stage, order) is enough: starts are found that have it, and everything else follows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import stretto
from rich_loops import rich_problem
from stretto.cli.main import main
from stretto.diagnostics import MlirError
from stretto.errors import StrettoError
from stretto.ir.loops.writer import print_module, write_loop
from stretto.ir.passes.published import II, START, publish, published_on, read_schedules
from stretto.loop import Dependence, Facts, Loop, Op, Use
from stretto.machine import Machine, Slot
from stretto.resources.prepare import Prepared, prepare
from stretto.solution import Schedule, ScheduleAnalysis
from stretto.solution.views import analyse
from stretto.solve import schedule_prepared
from stretto.solve.starts import Places, starts_of
from stretto.verification import verify

EXAMPLES = Path(__file__).parents[2] / "examples"
KERNELS = ("four_op", "gemm", "attention_forward", "attention_backward", "layernorm")
UNIT = Machine("m", "", (Slot(1, "u", 1), Slot(2, "v", 1, fusion_cap=2)))


def places_of(analysis: ScheduleAnalysis) -> Places:
    return Places({p.op: (p.stage, p.order) for p in analysis.placements}, analysis.fused)


def on(machine: Machine, *ops: Op, stated: tuple[Dependence, ...] = ()) -> Prepared:
    return prepare(Loop("l", ops, stated=stated), machine)


def legal(ready: Prepared, schedule: Schedule, places: Places) -> None:
    """The verifier passes it, and its places are those asked for."""
    found = analyse(ready.loop, ready.machine, schedule)
    assert verify(ready.loop, ready.machine, found) == ()
    assert places_of(found).of == places.of


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_get_starts_from_their_places(name: str) -> None:
    (loop,) = stretto.read(EXAMPLES / f"{name}.json")
    ready = prepare(loop)
    known = schedule_prepared(ready)
    places = places_of(known)
    legal(ready, starts_of(ready, places, known.ii), places)


@pytest.mark.parametrize("seed", range(40))
def test_loops_with_everything_get_starts_from_their_places(seed: int) -> None:
    rich = rich_problem(seed)
    ready = prepare(rich.loop, rich.machine)
    known = schedule_prepared(ready)
    if known.ii is not None:
        places = places_of(known)
        legal(ready, starts_of(ready, places, known.ii), places)


def test_without_an_ii_the_smallest_that_has_them_is_found() -> None:
    a, b = (Op(name, "k", uses=(Use("u", 4),), latency=4) for name in "ab")
    ready = on(UNIT, a, b)
    assert starts_of(ready, Places({"a": (0, 0), "b": (0, 1)})).ii == 8
    flow = Dependence("a", "b", 20, 0, "order")
    far = on(UNIT, a, b, stated=(flow,))
    assert starts_of(far, Places({"a": (0, 0), "b": (0, 1)})).ii == 24
    assert starts_of(far, Places({"a": (0, 0), "b": (1, 0)})).ii == 12


def test_a_tie_that_would_turn_two_round_is_broken() -> None:
    a, b = (Op(name, "k", uses=(), latency=1) for name in "ab")
    ready = on(UNIT, a, b)
    assert starts_of(ready, Places({"a": (0, 0), "b": (0, 1)}), 4).starts == {"a": 0, "b": 0}
    assert starts_of(ready, Places({"b": (0, 0), "a": (0, 1)}), 4).starts == {"a": 1, "b": 0}


def test_who_is_fused_starts_together() -> None:
    reads = [
        Op(name, "r", uses=(Use("v", length),), latency=length, facts=Facts(bank=3))
        for name, length in (("a", 3), ("b", 5))
    ]
    ready = on(UNIT, *reads, Op("c", "k", uses=(Use("u", 2),), latency=2))
    places = Places({"a": (0, 1), "b": (0, 2), "c": (0, 0)}, (("a", "b"),))
    found = starts_of(ready, places, 5)
    assert found.fused == (("a", "b"),)
    legal(ready, found, places)
    with pytest.raises(StrettoError, match="II 5"):
        starts_of(ready, replace(places, fused=()), 5)


def test_stages_that_a_dependence_contradicts_are_told_with_numbers() -> None:
    a, b = (Op(name, "k", uses=(Use("u", 4),), latency=4) for name in "ab")
    ready = on(UNIT, a, b, stated=(Dependence("a", "b", 4, 0, "flow"),))
    told = "`b` in stage 0 cannot wait for `a` in stage 1: flow latency 4, distance 0, II 8"
    with pytest.raises(StrettoError, match=told):
        starts_of(ready, Places({"a": (1, 0), "b": (0, 0)}), 8)


def test_orders_that_a_dependence_contradicts_are_told() -> None:
    a, b = (Op(name, "k", uses=(Use("u", 4),), latency=4) for name in "ab")
    ready = on(UNIT, a, b, stated=(Dependence("a", "b", 4, 0, "flow"),))
    told = "`b`, number 0 of stage 0, cannot wait for `a`, number 1: flow latency 4, distance 0"
    with pytest.raises(StrettoError, match=told):
        starts_of(ready, Places({"b": (0, 0), "a": (0, 1)}), 8)


def test_places_that_slots_contradict_are_told() -> None:
    """At II 9, c at 8 would still hold the slot when the next a begins."""
    a, b, c = (Op(name, "k", uses=(Use("u", 2),), latency=4) for name in "abc")
    flows = (Dependence("a", "b", 4), Dependence("b", "c", 4))
    ready = on(UNIT, a, b, c, stated=flows)
    with pytest.raises(StrettoError, match="no starts at II 9 have these stages and orders"):
        starts_of(ready, Places({"a": (0, 0), "b": (0, 1), "c": (0, 2)}), 9)
    assert starts_of(ready, Places({"a": (0, 0), "b": (0, 1), "c": (0, 2)}), 10).ii == 10


# In modules -----------------------------------------------------------------------------------


def bare(name: str, *without: str) -> str:
    """A module of an example with its schedule, attributes of some names taken off."""
    (loop,) = stretto.read(EXAMPLES / f"{name}.json")
    written = write_loop(loop)
    publish(written.for_op, written.ops, schedule_prepared(prepare(loop)))
    for op, attribute in published_on(written.for_op):
        if attribute in without:
            del op.attributes[attribute]
    return print_module(written.module)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("without", [(START,), (START, II)])
def test_modules_with_places_alone_are_legal(name: str, without: tuple[str, ...]) -> None:
    text = bare(name, *without)
    assert START not in text
    (found,) = read_schedules("k.mlir", text)
    assert found.analysis is not None
    ready = prepare(found.loop, found.machine)
    assert verify(ready.loop, ready.machine, found.analysis) == ()


def test_a_start_on_some_operations_alone_is_a_fault() -> None:
    text = bare("four_op").replace(f", {START} = 0 : i64", "", 1)
    with pytest.raises(MlirError, match="start` is missing"):
        read_schedules("k.mlir", text)


def test_places_that_cannot_be_are_told_at_the_loop() -> None:
    text = bare("four_op", START)
    swapped = text.replace("nv_tile.aws.ii = 15", "nv_tile.aws.ii = 14")
    with pytest.raises(MlirError, match=r"k\.mlir:\d+:\d+: error: .*14"):
        read_schedules("k.mlir", swapped)


def test_the_command_line_verifies_and_simulates_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "places.mlir"
    file.write_text(bare("four_op", START))
    assert main(["verify", str(file)]) == 0
    assert "legal" in capsys.readouterr().out
    assert main(["simulate", str(file)]) == 0
    assert "the one in the module" in capsys.readouterr().out
