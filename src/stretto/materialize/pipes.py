"""Skeletons become pipes, orders become tokens and mutexes.

    Pipe_a_tile     load_a ═► mma        ring 5, full 556 cycles after load_a starts
    Mutex_read      read ──► write       until read is done, one iteration on

A pipe's owner waits for slots to come back only where that wait can never be later than the
schedule; where it could be, the orders of the loop itself protect the ring.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from stretto.materialize.instructions import After, Direct
from stretto.materialize.orders import Order, Orders
from stretto.materialize.origins import Origins
from stretto.materialize.plan import Plan
from stretto.materialize.rings import Layout, Reuse, reuses
from stretto.materialize.solve import Skeleton, Solution, payload
from stretto.materialize.types import Mutex, Pipe, Ring, Waiter


@dataclass(frozen=True, slots=True)
class Wiring:
    """Everything that operations wait for."""

    pipes: tuple[Pipe, ...]
    pipe_of: dict[tuple[object, ...], Pipe]
    """By the key of the skeleton it was."""
    tokens: dict[str, tuple[After, ...]]
    mutexes: tuple[Mutex, ...]


def wire(
    plan: Plan, origins: Origins, agent_of: Mapping[str, str], solution: Solution, layout: Layout
) -> Wiring:
    """Mutex placeholders, then pipes, then what is left of the placeholders."""
    orders = Orders(plan, agent_of, layout.sequence)
    placeholders = _placeholders(plan, origins, layout)
    pipe_of = _pipes(plan, solution.skeletons.values(), layout)
    for order in _kept(plan, solution, pipe_of.values()):
        orders.add(order)
    tokens = {op: list(dict.fromkeys(found)) for op, found in solution.tokens.items()}
    held: dict[tuple[str, int], list[Order]] = {}
    for order in orders.reduced(placeholders):
        if agent_of[order.src] == agent_of[order.dst]:
            token = After(order.src, order.distance, order.latency)
            tokens.setdefault(order.dst, []).append(token)
        else:
            held.setdefault((order.src, order.latency), []).append(order)
    return Wiring(
        tuple(pipe_of.values()),
        pipe_of,
        {op: tuple(found) for op, found in tokens.items()},
        _mutexes(plan, held),
    )


# Pipes ------------------------------------------------------------------------------------


def _pipes(
    plan: Plan, skeletons: Iterable[Skeleton], layout: Layout
) -> dict[tuple[object, ...], Pipe]:
    found: dict[tuple[object, ...], Pipe] = {}
    names: dict[str, int] = {}
    for skeleton in skeletons:
        raw, group = skeleton.raw, skeleton.group
        ring = layout.rings[raw]
        number = names.get(ring.name, 0)
        names[ring.name] = number + 1
        carried, flavour = payload(plan, raw)
        found[skeleton.key] = Pipe(
            name=f"Pipe_{ring.name}" + (f"_{number}" if number else ""),
            ring=ring.name,
            producers=group.producers if group else (),
            consumers=skeleton.consumers,
            payload=carried,
            depth=ring.depth,
            flavour=flavour if group else "scalar",
            owner=group.owner if group else None,
            aliases=group.aliases if group else (),
            latency=skeleton.latency,
            reused=group is not None and _reused(plan, skeleton, ring, group.owner),
            trivial=group is None,
        )
    return found


def _reused(plan: Plan, skeleton: Skeleton, ring: Ring, owner: str) -> bool:
    """Whether the owner may wait for every consumer without ever being late."""
    for c in skeleton.consumers:
        back = ring.depth - c.distance
        if back < 0:
            return False
        done = plan.completion(c.op)
        room = plan.slack(c.op, owner, back)
        if room < done or (ring.fixed and room == done == 0):
            return False
        if c.op == owner and back == 0:
            return False  # it would wait for itself
    return True


def _kept(plan: Plan, solution: Solution, pipes: Iterable[Pipe]) -> list[Order]:
    """The orders that values keep: directly, by tokens beside them, and through pipes."""
    found: list[Order] = []
    for op, operands in solution.operands.items():
        for source in operands:
            if isinstance(source, Direct):
                distance = source.path.distance
                found.append(Order(source.op, op, distance, source.latency))
    for op, tokens in solution.tokens.items():
        found += [Order(t.op, op, t.distance, t.latency) for t in tokens]
    for pipe in pipes:
        if pipe.commits is None or pipe.owner is None:
            continue
        for c in pipe.consumers:
            found.append(Order(pipe.commits, c.op, c.distance, pipe.latency))
            if pipe.reused:
                back = pipe.depth - c.distance
                done = plan.completion(c.op)
                found.append(Order(c.op, pipe.owner, back, done, since=c.distance))
    return found


# What pipes do not carry ------------------------------------------------------------------


def _placeholders(plan: Plan, origins: Origins, layout: Layout) -> list[Order]:
    """Every order that must hold; those that data keeps are found to be implied later."""
    real = [
        d
        for d in plan.loop.dependences
        if not (d.kind == "flow" and _only_named(origins, d.src, d.dst))
    ]
    found = [
        Order(d.src, d.dst, d.distance, d.latency, why=d.via or d.kind)
        for d in dict.fromkeys((*real, *plan.loop.stated))
    ]
    found += [_until_done(plan, reuse) for reuse in reuses(plan, layout.rings)]
    found += _through_views(plan, origins)
    return list(dict.fromkeys(found))


def _only_named(origins: Origins, src: str, dst: str) -> bool:
    """A flow out of a view, or into a view of a storage, moves no data."""
    into = origins.views.get(dst)
    return src in origins.views or (into is not None and into.kind == "storage")


def _until_done(plan: Plan, reuse: Reuse) -> Order:
    done = plan.completion(reuse.src)
    return Order(reuse.src, reuse.dst, reuse.distance, done, reuse.since, reuse.ring)


def _through_views(plan: Plan, origins: Origins) -> list[Order]:
    """What a reader of a view owes to the origin behind it."""
    found: list[Order] = []
    for op in plan.loop.ops:
        for seen in origins.seen(op):
            maker = plan.loop.producers.get(seen.path.origin)
            if seen.kind not in ("value", "stored") or not seen.path.views or maker is None:
                continue
            flows = plan.between.get((maker, seen.path.views[-1]), ())
            back = seen.path.distances[-1]
            ready = [d.latency for d in flows if d.kind == "flow" and d.distance == back]
            order = Order(maker, op.name, seen.path.distance, max(ready, default=0))
            found.append(order)
    return found


def _mutexes(plan: Plan, held: Mapping[tuple[str, int], list[Order]]) -> tuple[Mutex, ...]:
    names: dict[str, int] = {}
    found: list[Mutex] = []
    for (holder, latency), orders in sorted(
        held.items(), key=lambda item: (plan.program_index[item[0][0]], item[0][1])
    ):
        number = names.get(holder, 0)
        names[holder] = number + 1
        waiters = dict.fromkeys(Waiter(order.dst, order.distance) for order in orders)
        found.append(
            Mutex(
                name=f"Mutex_{holder}" + (f"_{number}" if number else ""),
                holder=holder,
                latency=latency,
                waiters=tuple(waiters),
                excludes=tuple(dict.fromkeys(order.why for order in orders if order.why)),
            )
        )
    return tuple(found)
