"""An inner loop as one operation of the outer: it holds what it uses, for as long as it runs.

trips = ceil((ub - lb) / step)
length = (trips - 1) * MII + span        span: one iteration from first start to last completion

inner body uses tma, tc_and_mma   ──►   uses tma for `length`, tc_and_mma for `length`, and
                                        a slot of its own, so that it never meets itself
"""

from __future__ import annotations

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IntegerAttr
from xdsl.dialects.scf import ForOp
from xdsl.ir import OpResult, SSAValue
from xdsl.utils.hints import isa

from stretto.bounds import compute_bounds
from stretto.errors import StrettoError
from stretto.ir.attributes import LENGTH, STATED, TRIP_COUNT, StatedLoop
from stretto.ir.reading.body import Inner
from stretto.ir.reading.values import UnreadableError
from stretto.loop import Demand, Loop, Op, Use, topological_order
from stretto.machine import Machine
from stretto.resources.prepare import Prepared, prepare

FREE = Inner(Op("", "", uses=(), latency=0), ())
"""For a loop whose text states all it costs."""


def inner_cost(for_op: ForOp, loop: Loop, stated: StatedLoop, machine: Machine) -> Inner:
    """What an inner loop costs on a machine; UnreadableError where that cannot be told."""
    try:
        ready = prepare(loop, machine)
        ii = compute_bounds(ready.loop, ready.machine).mii
    except StrettoError as error:
        told = str(error).splitlines()[0]
        reason = f"what inner loop `{loop.name}` costs on {machine.name} cannot be told: {told}"
        raise UnreadableError(for_op, reason) from None
    length = stated.length
    if length is None:
        trips = trip_count(for_op, stated)
        length = (trips - 1) * ii + _span(ready.loop) if trips else 0
    own = f"inner.{loop.name}"
    uses = (Use(own, length), *_uses(ready, ii, length))
    op = Op("", "", uses=uses, demands=_demands(ready), latency=length)
    return Inner(op, (own, *loop.slots))


def trip_count(for_op: ForOp, stated: StatedLoop) -> int:
    """How often a loop runs: computed where its bounds are constants, else as stated."""
    bounds = [_constant(value) for value in (for_op.lb, for_op.ub, for_op.step)]
    lower, upper, step = bounds
    if lower is None or upper is None or step is None:
        if stated.trip_count is not None:
            return stated.trip_count
        raise UnreadableError(
            for_op,
            "an inner loop whose trip count is not constant; "
            f"state `{STATED}{TRIP_COUNT}`, or its cycles as `{STATED}{LENGTH}`",
        )
    if step < 1:
        raise UnreadableError(for_op, f"an inner loop whose step is {step}")
    trips = max(0, -(-(upper - lower) // step))
    if stated.trip_count not in (None, trips):
        raise UnreadableError(
            for_op,
            f"an inner loop that states {stated.trip_count} trips; its bounds {lower}, {upper} "
            f"and step {step} make {trips}",
        )
    return trips


def _constant(value: SSAValue) -> int | None:
    if isinstance(value, OpResult) and isinstance(value.op, ConstantOp):
        constant = value.op.value
        if isa(constant, IntegerAttr):
            return constant.value.data
    return None


def _span(loop: Loop) -> int:
    """One iteration with nothing in its way: its longest path at distance 0, completion added."""
    start = [0] * len(loop.ops)
    incoming: list[list[tuple[int, int]]] = [[] for _ in loop.ops]
    for dependence in loop.dependences:
        if dependence.distance == 0:
            src = loop.index[dependence.src]
            incoming[loop.index[dependence.dst]].append((src, dependence.latency))
    order = topological_order(loop)
    assert isinstance(order, tuple)  # `prepare` has checked
    for i in order:
        start[i] = max((start[src] + latency for src, latency in incoming[i]), default=0)
    return max(start[i] + op.completion for i, op in enumerate(loop.ops))


def _uses(ready: Prepared, ii: int, length: int) -> list[Use]:
    """Each slot the body uses: as much of it as the body holds on average, at least its most."""
    held: dict[str, int] = {}
    most: dict[str, int] = {}
    for op in ready.loop.ops:
        for use in op.uses or ():
            if use.duration:
                held[use.slot] = held.get(use.slot, 0) + use.duration * use.occupancy
                most[use.slot] = max(most.get(use.slot, 0), use.occupancy)
    found: list[Use] = []
    for slot, total in held.items():
        capacity = ready.machine.slot(slot).capacity
        share = max(most[slot], -(-total // ii))
        share = share if capacity is None else min(share, capacity)
        found.append(Use(slot, length, 0, share))
    return found


def _demands(ready: Prepared) -> tuple[Demand, ...]:
    """The most that any one operation of the body draws from each pool."""
    most: dict[str, int] = {}
    for op in ready.loop.ops:
        for demand in op.demands:
            most[demand.pool] = max(most.get(demand.pool, 0), demand.units)
    return tuple(Demand(pool, units) for pool, units in most.items() if units)
