"""What control flow inside of a body costs as one of its operations.

trips = ceil((ub - lb) / step)
length = (trips - 1) * MII + span        span: one iteration from first start to last completion

an scf.if costs what its longer side does; an scf.while as often as it is said to go round

inner body uses tma, tc_and_mma   ──►   uses tma for `length`, tc_and_mma for `length`, and
                                        a slot of its own, so that it never meets itself
"""

from __future__ import annotations

from dataclasses import replace

from stretto.errors import StrettoError
from stretto.extraction.body import Inner
from stretto.extraction.source import IF, WHILE, BlockT, OpT, Source, UnreadableError, ValueT
from stretto.limits import CYCLES
from stretto.loop import Demand, Loop, LoopError, Op, Use, topological_order
from stretto.lower_bounds import compute_bounds
from stretto.machine import Machine
from stretto.resources.prepare import Prepared, prepare

CONTROL = (IF, WHILE)
_TRIPS, _LENGTH = "stretto.trip_count", "stretto.length"
FREE = Inner(Op("", "", uses=(), latency=0), ())
"""For a loop whose text states all it costs."""


def loop_cost(
    source: Source[OpT, BlockT, ValueT], for_op: OpT, loop: Loop, machine: Machine
) -> Inner:
    """What an inner loop costs on a machine; UnreadableError where that cannot be told."""
    try:
        ready = prepare(loop, machine)
        ii = compute_bounds(ready.loop, ready.machine).mii
    except StrettoError as error:
        told = error.lines(loop.name)[0] if isinstance(error, LoopError) else str(error)
        reason = f"what inner loop `{loop.name}` costs on {machine.name} cannot be told: {told}"
        raise UnreadableError(for_op, reason) from None
    length = source.stated_loop(for_op).length
    if length is None:
        trips = _trip_count(source, for_op)
        length = (trips - 1) * ii + _span(ready.loop) if trips else 0
    if length > CYCLES:
        reason = f"inner loop `{loop.name}` takes {length:,} cycles; at most {CYCLES:,} are allowed"
        raise UnreadableError(for_op, reason)
    own = f"inner.{loop.name}"
    uses = (Use(own, length), *_uses(ready, ii, length))
    op = Op("", "", uses=uses, demands=_demands(ready), latency=length)
    return Inner(op, (own, *loop.slots))


def control_cost(
    source: Source[OpT, BlockT, ValueT], op: OpT, name: str, sides: list[Prepared]
) -> Inner:
    """What control flow costs: the longer side of an scf.if; of an scf.while every turn."""
    lengths = [max(_span(side.loop), compute_bounds(side.loop, side.machine).mii) for side in sides]
    length: int | None = max(lengths, default=0)
    if source.name(op) == WHILE:
        stated = source.stated_loop(op)
        trips, length = stated.trip_count, stated.length
        if length is None:
            if trips is None:
                raise UnreadableError(
                    op,
                    "how often an scf.while inside goes round is not known before; "
                    f"state `{_TRIPS}`, or its cycles as `{_LENGTH}`",
                )
            # Once more than it goes round, it asks whether to.
            length = (trips + 1) * sum(lengths)
    own = f"inner.{name}"
    held: dict[str, Use] = {own: Use(own, length)}
    drawn: dict[str, Demand] = {}
    for side in sides:
        for use in _uses(side, max(1, length), length):
            share = max(use.occupancy, held[use.slot].occupancy if use.slot in held else 0)
            held[use.slot] = replace(use, occupancy=share)
        for demand in _demands(side):
            most = max(demand.units, drawn[demand.pool].units if demand.pool in drawn else 0)
            drawn[demand.pool] = Demand(demand.pool, most)
    slots = dict.fromkeys(slot for side in sides for slot in side.loop.slots)
    made = Op("", "", uses=tuple(held.values()), demands=tuple(drawn.values()), latency=length)
    return Inner(made, (own, *slots))


def _trip_count(source: Source[OpT, BlockT, ValueT], for_op: OpT) -> int:
    """How often a loop runs: computed where its bounds are constants, else as stated."""
    stated = source.stated_loop(for_op)
    lower, upper, step = (source.constant(value) for value in source.operands(for_op)[:3])
    if lower is None or upper is None or step is None:
        if stated.trip_count is not None:
            return stated.trip_count
        raise UnreadableError(
            for_op,
            "an inner loop whose trip count is not constant; "
            f"state `{_TRIPS}`, or its cycles as `{_LENGTH}`",
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
