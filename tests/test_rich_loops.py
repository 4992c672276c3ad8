"""Rich loops: verifier, simulator and two oracles of their own agree on every schedule.

`tests/soundness.py` runs the same at length; `make test-deep` something between.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace

import pytest

import stretto
from absolute import disagreements
from interpreter import misread
from programs import TINY
from rich_loops import features, rich_problem
from soundness import Outcome, examine
from stretto.loop import Access, Loop, Op, Operand, Storage, Use, Value, check
from stretto.solution import Schedule
from stretto.solution.views import analyse
from stretto.verification import verify

DEEP = os.environ.get("STRETTO_HYPOTHESIS") == "deep"
CHUNK = 20
CHUNKS = 300 if DEEP else 10

WANTED = {
    "ring",
    "fixed storage",
    "live-in storage",
    "register storage",
    "ring capped at 1",
    "ring capped at 2",
    "ring capped at 3",
    "several writers",
    "overwriting writer",
    "in-place update",
    "carried in-place update",
    "reader before the writer",
    "operand listed",
    "operand not listed",
    "operand of its writer",
    "operand through a view",
    "operand latency below",
    "operand latency above",
    "stored live-in value",
    "register live-in value",
    "view",
    "carried view",
    "view of a view",
    "register view",
    "group",
    "leader_gid",
    "stage_offset",
    "max_depth",
    "pending",
    "nest",
    "loop slot",
    "fusible pair",
    "pool",
    "capacity above 1",
    "unlimited slot",
    "several uses",
    "one slot twice",
    "offset",
    "long hold",
    "completion far above latency",
    "holds far below latency",
    "instant",
    "zero latency",
    "zero duration",
    "no uses",
    "tight memory",
    "max_stages",
    "more than 8 operations",
    *(f"stated {kind}" for kind in ("flow", "anti", "output", "memory", "order")),
    *(f"stated at distance {distance}" for distance in range(4)),
    *(f"stored operand at distance {distance}" for distance in range(4)),
    *(f"register operand at distance {distance}" for distance in range(4)),
    *(f"listed read at distance {distance}" for distance in range(4)),
}
"""What a fair share of the loops must have."""


def test_loops_are_rich() -> None:
    seen: Counter[str] = Counter()
    for seed in range(400):
        rich = rich_problem(seed)
        assert check(rich.loop, rich.machine) == ()
        seen.update(features(rich))
    rare = {name: seen[name] for name in WANTED if seen[name] < 12}
    assert rare == {}


def test_loops_are_the_same_on_every_run() -> None:
    assert rich_problem(17) == rich_problem(17)
    assert rich_problem(17) != rich_problem(18)


@pytest.mark.parametrize("first", range(0, CHUNK * CHUNKS, CHUNK))
def test_everything_agrees(first: int) -> None:
    outcome = Outcome()
    for seed in range(first, first + CHUNK):
        outcome.add(examine(seed))
    assert [str(finding) for finding in outcome.findings] == []
    assert outcome.counts["schedules all agree on"] > CHUNK // 2
    assert outcome.counts["changed schedules both refuse"] > 0
    assert outcome.counts["changed schedules both accept"] > 0


# The oracles themselves ---------------------------------------------------------------------


def _filled(depth: int | None = None, fixed: bool = False) -> Loop:
    """One writer of four cycles, one reader of two; the result lives in the storage."""
    fill = Op("fill", "x", results=("v",), writes=("box",), uses=(Use("a", 4),), latency=4)
    take = Op("take", "y", (Operand("v"),), uses=(Use("b", 2),), latency=2)
    box = Storage("box", "smem", 8, fixed, depth)
    return Loop("filled", (fill, take), (Value("v", None, "box"),), (box,))


def _told(loop: Loop, ii: int, **starts: int) -> str:
    """What the oracle of order says, having made sure that the verifier agrees."""
    analysis = analyse(loop, TINY, Schedule(ii, starts))
    wrong = disagreements(loop, TINY, analysis)
    assert bool(wrong) == bool(verify(loop, TINY, analysis))
    return "; ".join(wrong)


def test_a_reader_waits_for_what_it_reads() -> None:
    assert _told(_filled(), 4, fill=0, take=4) == ""
    assert "value v" in _told(_filled(), 4, fill=0, take=3)


def test_a_ring_is_as_deep_as_what_lives_in_it() -> None:
    analysis = analyse(_filled(), TINY, Schedule(4, {"fill": 0, "take": 4}))
    assert [(use.lifetime, use.ring_depth) for use in analysis.storages] == [(6, 2)]
    short = replace(analysis.storages[0], ring_depth=1)
    wrong = disagreements(_filled(), TINY, replace(analysis, storages=(short,)))
    assert any("lives 6 cycles in 2 copies" in told for told in wrong)
    assert any("`take` of iteration 0" in told for told in wrong), "copy 0 is overwritten"


def test_a_cap_is_kept() -> None:
    assert "its cap is 1" in _told(_filled(depth=1), 4, fill=0, take=4)
    assert _told(_filled(depth=1), 6, fill=0, take=4) == ""


def test_one_copy_is_taken_in_turn() -> None:
    assert "storage box, copy 0" in _told(_filled(fixed=True), 5, fill=0, take=4)
    assert _told(_filled(fixed=True), 6, fill=0, take=4) == ""


def test_an_operand_is_a_read_through_any_name() -> None:
    """The reader sees the storage through a view of the iteration before."""
    plain = _filled()
    name = Op("name", "view", (Operand("v", 1),), ("w",), uses=(), latency=0)
    take = replace(plain.ops[1], operands=(Operand("w"),))
    values = (*plain.values, Value("w", None, "box"))
    loop = replace(plain, ops=(plain.ops[0], name, take), values=values)
    analysis = analyse(loop, TINY, Schedule(4, {"fill": 0, "name": 0, "take": 0}))
    assert disagreements(loop, TINY, analysis) == []
    assert [(use.lifetime, use.ring_depth) for use in analysis.storages] == [(6, 2)]


def test_instants_in_one_cycle_have_an_order() -> None:
    """What is read a lap later is overwritten in the very cycle: no order of the two serves."""
    first = Op("first", "x", writes=("box",), uses=(), latency=0)
    again = Op("again", "y", reads=(Access("box", 1),), writes=("box",), uses=(), latency=0)
    loop = Loop("instants", (first, again), (), (Storage("box", "smem", 8),))
    assert "no order inside one cycle" in _told(loop, 1, first=0, again=0)
    assert _told(loop, 1, first=0, again=1) == ""


def test_values_show_what_orders_forbid() -> None:
    loop = _filled(fixed=True)
    good, bad = ({"fill": 0, "take": start} for start in (4, 5))
    assert misread(loop, analyse(loop, TINY, Schedule(6, good))) == []
    assert "`take`" in misread(loop, analyse(loop, TINY, Schedule(6, bad)))[0]


def test_values_agree_with_orders_on_good_schedules() -> None:
    rich = rich_problem(3)
    analysis = stretto.schedule(rich.loop, rich.machine, fuse=rich.fuse, max_stages=rich.max_stages)
    assert analysis.success
    assert misread(rich.loop, analysis, iterations=30) == []
