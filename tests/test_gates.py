"""The gates, their order and what each does about an operation it stops."""

from __future__ import annotations

import pytest

from stretto.generate.problem import Options, Problem, make_problem
from stretto.generate.seating.gates import (
    RECOVERY,
    Gate,
    Recovery,
    gates,
    reorder,
    seek,
    snapshot,
)
from stretto.generate.seating.partial import Partial
from stretto.loop import Constraint, Dependence, Loop, Op, Use
from stretto.machine import Machine, Slot

MACHINE = Machine("m", "", (Slot(1, "s", 1),))


def op(name: str, constraint: Constraint | None = None, duration: int = 2) -> Op:
    uses = (Use("s", duration),) if duration else ()
    return Op(name, "k", uses=uses, latency=2, constraint=constraint or Constraint())


def problem(*ops: Op, stated: tuple[Dependence, ...] = ()) -> Problem:
    return make_problem(Loop("l", ops, stated=stated), MACHINE, Options())


def test_every_gate_has_its_own_recovery() -> None:
    assert [gate.value for gate in Gate] == ["G1", "G2", "G3", "G4"]
    assert [RECOVERY[gate] for gate in Gate] == [
        Recovery.HOLD_OVER,
        Recovery.DEAD,
        Recovery.BUMP,
        Recovery.REORDER,
    ]


def everything_wrong() -> tuple[Partial, Problem]:
    """`b` is pending, deeper than the horizon, in the way of `a`, and of a group in stage 0."""
    deep = Constraint(gid=1, max_depth=3, pending=True)
    p = problem(op("a", Constraint(gid=1)), op("b", deep))
    partial = Partial(p, 4)
    partial.seat((0,), 0, "test")
    return partial, p


@pytest.mark.parametrize(
    ("alone", "horizon", "start", "gate"),
    [
        (False, 1, 4, Gate.PENDING),
        (True, 1, 4, Gate.DEPTH),
        (True, 3, 4, Gate.TABLE),
        (True, 3, 6, Gate.GROUP),
    ],
)
def test_gates_are_asked_in_order(alone: bool, horizon: int, start: int, gate: Gate) -> None:
    partial, _ = everything_wrong()
    snap = snapshot(partial)
    snap.horizon = horizon
    verdict = gates(partial, snap, 1, start, alone=alone)
    assert (verdict.gate, verdict.passed, verdict.recovery) == (gate, False, RECOVERY[gate])


def test_a_seat_that_passes_all_gates() -> None:
    partial, _ = everything_wrong()
    snap = snapshot(partial)
    snap.horizon = 3
    verdict = gates(partial, snap, 1, 2, alone=True)
    assert (verdict.passed, verdict.recovery, verdict.start) == (True, Recovery.NONE, 2)


def test_g1_holds_over_and_lets_pass_when_nothing_else_is_left() -> None:
    p = problem(op("a", Constraint(pending=True)))
    partial = Partial(p, 4)
    assert seek(partial, snapshot(partial), 0, alone=False).recovery is Recovery.HOLD_OVER
    assert seek(partial, snapshot(partial), 0, alone=True).start == 0


def test_g2_kills_in_the_snapshot_only() -> None:
    p = problem(op("a", Constraint(max_depth=2)), op("b", Constraint(max_depth=1)), op("c"))
    partial = Partial(p, 8)
    snap = snapshot(partial)
    assert snap.dead == {0}
    assert seek(partial, snap, 0).recovery is Recovery.DEAD
    assert partial.starts == [None, None, None]
    snap.horizon = 2
    assert seek(partial, snap, 0).start == 0


def test_g3_bumps_to_the_next_cycle_that_has_room() -> None:
    p = problem(op("a", duration=3), op("b"))
    partial = Partial(p, 6)
    partial.seat((0,), 0, "test")
    snap = snapshot(partial)
    assert not gates(partial, snap, 1, 2, alone=True).passed
    assert seek(partial, snap, 1).start == 3


def test_g3_gives_up_at_the_end_of_the_window() -> None:
    p = problem(op("a", duration=5), op("b"))
    partial = Partial(p, 6)
    partial.seat((0,), 0, "test")
    verdict = seek(partial, snapshot(partial), 1)
    assert (verdict.gate, verdict.recovery) == (Gate.TABLE, Recovery.BUMP)


def test_g4_moves_the_whole_group_to_a_later_stage() -> None:
    p = problem(
        op("a", Constraint(gid=1)),
        op("b", Constraint(gid=1)),
        op("after", duration=0),
        op("c", duration=4),
        stated=(Dependence("a", "after", 1),),
    )
    partial = Partial(p, 8)
    partial.seat((0,), 0, "test")
    partial.seat((2,), 1, "test")
    partial.seat((3,), 2, "test")
    snap = snapshot(partial)
    assert seek(partial, snap, 1).start == 6
    # Something else takes the rest of stage 0; in stage 1 there is no more room, but for `a`.
    snap.reach.low[1] = 9
    verdict = seek(partial, snap, 1)
    assert (verdict.gate, verdict.recovery) == (Gate.GROUP, Recovery.REORDER)
    assert verdict.start is not None
    moved = reorder(partial, snap, 1, verdict.start)
    assert moved == (0, 2)
    assert partial.starts == [None, None, None, 2]
    assert snap.floors == {0: 1}
    for i in (1, 0):
        start = seek(partial, snap, i).start
        assert start is not None
        assert start // 8 == 1
        partial.seat((i,), start, "test")
