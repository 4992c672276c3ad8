"""What `stretto bounds` says: witnesses, what would lower the bound, and why nothing does."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
from test_cli import schema

import stretto
from stretto.loop import Constraint, Demand, Dependence, Loop, Op, Use
from stretto.lower_bounds import compute_bounds
from stretto.lower_bounds.remedies import remedies, ties
from stretto.machine import Machine, Pool, Slot
from stretto.report import printable
from stretto.report.bounds import BoundsReport

EXAMPLES = Path(__file__).parents[2] / "examples"

MACHINE = Machine(
    "m",
    "three slots and a pool",
    (Slot(1, "s", 1), Slot(2, "t", 1), Slot(3, "wide", 7)),
    pools=(Pool("bank", 2),),
)


def op(name: str, *uses: Use, latency: int = 1, units: int = 0) -> Op:
    demands = (Demand("bank", units),) if units else ()
    return Op(name, "k", uses=uses, latency=latency, demands=demands)


def report(loop: Loop) -> BoundsReport:
    bounds = compute_bounds(loop, MACHINE)
    found = remedies(loop, MACHINE, bounds)
    held = () if found else ties(loop, MACHINE, bounds)
    made = BoundsReport(loop.name, MACHINE, "as asked", bounds, found, (), held)
    document: Any = {"schema": "stretto.bounds/1", "success": True, "loops": [made.to_json()]}
    jsonschema.validate(json.loads(json.dumps(document)), schema("bounds"))
    return made


def text(loop: Loop) -> str:
    """Its text, unwrapped."""
    return " ".join(" ".join(report(loop).to_text()).split())


def test_units_are_drawn() -> None:
    loop = Loop("l", (op("a", Use("s", 4), units=2), op("b", Use("t", 8), units=4)))
    assert "40 unit-cycles are drawn from pool bank an iteration, cap 2: a 8 + b 32" in text(loop)
    one = Loop("l", (op("a", Use("s", 1), units=1),))
    assert "1 unit-cycle is drawn from pool bank" in text(one)


def test_one_cycle_is_not_plural() -> None:
    assert "s (slot 1) is held 1 cycle an iteration" in text(Loop("l", (op("a", Use("s", 1)),)))
    assert "is held 2 cycles an" in text(Loop("l", (op("a", Use("s", 2)),)))


def test_many_parts_are_the_largest_and_the_rest_summed() -> None:
    loop = Loop("l", tuple(op(f"o{i}", Use("s", 1 + i % 30)) for i in range(30)))
    told = text(loop)
    assert "held 465 cycles an iteration, capacity 1: o6 7 + o7 8 + " in told
    assert "+ o29 30 + ... and 6 more (21) recurrence" in told
    parts = report(loop).to_json()["bounds"]["witness"]["parts"]
    assert len(parts) == 30


def test_a_long_way_shows_its_first_steps() -> None:
    ops = tuple(op(f"o{i}") for i in range(40))
    steps = tuple(Dependence(f"o{i}", f"o{(i + 1) % 40}", 1, int(i == 39)) for i in range(40))
    told = text(Loop("l", ops, stated=steps))
    assert "o23 -1-> ... and 16 more -> o0 fine" in told


def test_one_operation_on_two_slots() -> None:
    loop = Loop("l", (op("a", Use("s", 8), Use("t", 8)),))
    (remedy,) = report(loop).remedies
    assert remedy.text == "`a` holds all its slots (s, t) 7 cycles less (8 -> 1)"
    assert remedy.mii == 1


def test_why_no_single_change_helps() -> None:
    slots = Loop("l", tuple(op(f"{slot}{i}", Use(slot, 1)) for slot in "st" for i in (1, 2)))
    assert "no single change would do; slot s and slot t each ask for 2" in text(slots)
    assert report(slots).to_json()["ties"] == ["slot s", "slot t"]
    both = Loop(
        "l",
        (op("a", Use("s", 1)), op("b", Use("s", 1))),
        stated=(Dependence("a", "a", 2, 1), Dependence("b", "b", 2, 1)),
    )
    assert report(both).to_json()["ties"] == [
        "slot s",
        "the recurrence through a",
        "the recurrence through b",
    ]
    shallow = Constraint(max_depth=0)
    late = tuple(replace(op(name), constraint=shallow) for name in "bc")
    steps = tuple(Dependence("a", name, 9) for name in "bc")
    deep = Loop("l", (op("a"), *late), stated=steps)
    assert report(deep).to_json()["ties"] == ["the depth limit of b"]
    assert "to lower it: no single change that Stretto tries is enough" in text(deep)


def test_a_remedy_reaches_to_what_limits_next() -> None:
    ops = (*(op(f"o{i}", Use("wide", 1)) for i in range(22)), op("t", Use("s", 2)))
    (remedy,) = report(Loop("l", ops)).remedies
    assert (remedy.kind, remedy.before, remedy.after, remedy.mii) == ("capacity", 7, 11, 2)
    assert (remedy.next, remedy.effort, remedy.unit) == ("slot s", 5, "units")


def test_no_ties_where_a_remedy_helps() -> None:
    assert report(Loop("l", (op("a", Use("s", 9)),))).to_json()["ties"] == []


def test_control_characters_are_shown_not_obeyed() -> None:
    assert printable("a\x1b[31mb\nc\u202ed ü→") == r"a\x1b[31mb\nc\u202ed ü→"
    lines = report(Loop("x\x1b[2J", (op("a\tb\x07", Use("s", 9)),))).to_text()
    assert all(line.isprintable() for line in lines)
    assert lines[0].startswith(r"x\x1b[2J on m")
    assert any(r"a\tb\x07 9" in line for line in lines)


def test_what_a_user_can_do_comes_before_other_hardware() -> None:
    (loop,) = stretto.read(EXAMPLES / "triton/attention_forward_d128.ttir")
    found = stretto.bounds(loop, "h200").remedies
    assert found[0].text.endswith("(capacity 1 -> 2), by `emit --consumers 2`")
    assert (found[0].effort, found[0].hardware) == (2, False)
    (loop,) = stretto.read(EXAMPLES / "triton/matmul_descriptors.ttir")
    found = stretto.bounds(loop, "b200-pipes").remedies
    assert [remedy.hardware for remedy in found] == [False, True]
    assert "on other hardware" in found[1].text
