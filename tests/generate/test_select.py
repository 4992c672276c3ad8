"""Every rule of the selector, in its order, and what overrides it."""

from __future__ import annotations

from dataclasses import replace

import pytest

import stretto
from stretto.errors import StrettoError
from stretto.generate import select
from stretto.limits import USES_SEARCHED
from stretto.loop import Loop, Op, Use
from stretto.machine import Machine, Slot, load_machine

ASYNC = Slot(1, "async", 1)
SIMT = Slot(2, "simt", None)
MACHINE = Machine("m", "asks for async", (ASYNC, SIMT), pipelining=("async",))


def made(*slots: str, force_serial: bool = False) -> Loop:
    ops = tuple(Op(f"o{i}", "k", uses=(Use(s, 2),), latency=2) for i, s in enumerate(slots))
    return Loop("l", ops, force_serial=force_serial)


def rule(loop: Loop, machine: Machine = MACHINE, **options: object) -> tuple[str, str]:
    chosen = select(loop, machine, **options)  # pyright: ignore[reportArgumentType]
    return chosen.generator, chosen.rule


def test_force_serial_comes_first() -> None:
    told = ("serial", "the loop forces serial execution")
    assert rule(made("async", "async", force_serial=True)) == told
    assert rule(made("simt", force_serial=True), serial_threshold=8) == told


def test_then_the_threshold() -> None:
    assert rule(made("async")) == ("serial", "1 operation, fewer than the threshold of 2")
    seven = made(*["async"] * 7)
    assert rule(seven)[0] == "cost-based"
    told = "7 operations, fewer than the threshold of 8"
    assert rule(seven, serial_threshold=8) == ("serial", told)
    assert rule(made(*["async"] * 8), serial_threshold=8)[0] == "cost-based"
    assert rule(made("simt")) == ("serial", "1 operation, fewer than the threshold of 2")


def test_then_what_is_worth_pipelining() -> None:
    told = "nothing worth pipelining: it holds none of async"
    assert rule(made("simt", "simt")) == ("serial", told)
    unsaid = replace(MACHINE, pipelining=None)
    told = "nothing worth pipelining: it holds no limited slot"
    assert rule(made("simt", "simt"), unsaid) == ("serial", told)
    assert rule(made("simt", "async"), unsaid)[0] == "cost-based"
    nothing = replace(MACHINE, pipelining=())
    told = "nothing worth pipelining: no slot of m makes a loop so"
    assert rule(made("async", "async"), nothing) == ("serial", told)


def test_a_hold_of_no_cycles_is_none() -> None:
    loop = made("simt", "simt", "simt")
    idle = replace(loop.ops[0], uses=(Use("async", 0),))
    assert rule(replace(loop, ops=(idle, *loop.ops[1:])))[0] == "serial"


def test_else_cost_based() -> None:
    assert rule(made("simt", "async")) == ("cost-based", "worth pipelining: it holds async")


def test_operations_of_asynchronous_pipelines_are_worth_it_whatever_they_hold() -> None:
    idle = Op("wait", "async.pipeline.consumer_wait", uses=(), latency=0)
    loop = replace(made("simt", "simt"), ops=(idle, *made("simt", "simt").ops))
    told = "worth pipelining: 1 operation of asynchronous pipelines"
    for machine in (MACHINE, replace(MACHINE, pipelining=()), replace(MACHINE, pipelining=None)):
        assert rule(loop, machine) == ("cost-based", told)
    assert rule(replace(loop, force_serial=True))[0] == "serial"
    assert rule(replace(loop, ops=loop.ops[1:]))[0] == "serial"


@pytest.mark.parametrize("slot", ["tma", "tc_and_mma", "tp_smem_wr"])
def test_what_blackwell_pipelines(slot: str) -> None:
    assert rule(made(slot, slot), load_machine("blackwell"))[0] == "cost-based"


def test_blackwell_arithmetic_is_serial() -> None:
    loop = made("alu_or_fmaheavy", "alu_or_fmaheavy")
    generator, told = rule(loop, load_machine("blackwell"))
    assert generator == "serial"
    assert told.startswith("nothing worth pipelining: it holds none of ")


def test_overrides() -> None:
    assert rule(made("async", "async"), generator="serial") == ("serial", "asked for")
    assert rule(made("simt"), generator="cost-based") == ("cost-based", "asked for")
    forced = made("async", "async", force_serial=True)
    chosen = select(forced, MACHINE, generator="cost-based")
    assert chosen.generator == "cost-based"
    assert chosen.warnings == (
        "the loop forces serial execution; generator cost-based overrides it",
    )
    assert select(forced, MACHINE, generator="serial").warnings == ()


def test_unknown_generator() -> None:
    with pytest.raises(StrettoError, match="no generator `fast`; known: auto, serial, cost-based"):
        select(made("async"), MACHINE, generator="fast")


def test_an_operation_of_very_many_uses_is_not_searched() -> None:
    """Neither by the generators nor by the solver: the serial schedule, and that is said."""
    crowded = tuple(Use("TC", 1, offset=2 * i) for i in range(USES_SEARCHED + 1))
    ops = (Op("a", "k", uses=crowded, latency=1), Op("b", "k", uses=(Use("CUDA", 1),), latency=1))
    loop = Loop("crowded", ops)
    analysis = stretto.schedule(loop, "b200-pipes", prove=True)
    assert analysis.generator == "serial"
    assert any("the solver was not asked" in warning.text for warning in analysis.warnings)
    with pytest.raises(StrettoError, match="only the serial generator takes it"):
        stretto.schedule(loop, "b200-pipes", "exact")
    with pytest.raises(StrettoError, match="`a` has 257 uses"):
        stretto.explain(loop, "b200-pipes")
