"""Skeletons become pipes, orders that data does not carry become tokens and mutexes.

    Pipe_a_tile     load_a ═► mma        ring 5, full 556 cycles after load_a starts
    Mutex_read      read ──► write       until read is done, one iteration on

A pipe's owner waits for slots to come back only where that wait can never be later than the
schedule; where it could be, the orders of the loop itself protect the ring.

    read ──► next write          same agent: the write takes the read's token
                                 two agents: a mutex, unless pipes already imply it

An order is implied when a chain of waits leads from the one operation to the other: the first wait
must last until the first operation has come far enough, the others may be waits of any kind or an
agent's own sequence. Only iterations that exist for every trip count may stand in the chain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from stretto.materialization.dataflow import Dataflow, Key, Skeleton, payload
from stretto.materialization.program import After, Direct, Mutex, Pipe, Ring, Waiter
from stretto.materialization.ring_layout import Order, RingLayout, reuses
from stretto.materialization.roster import Roster


@dataclass(frozen=True, slots=True)
class Wiring:
    """Everything that operations wait for."""

    pipes: tuple[Pipe, ...]
    pipe_of: dict[Key, Pipe]
    """By the key of the skeleton it was."""
    tokens: dict[str, tuple[After, ...]]
    mutexes: tuple[Mutex, ...]


def wire(roster: Roster, dataflow: Dataflow, layout: RingLayout) -> Wiring:
    """Mutex placeholders, then pipes, then what is left of the placeholders."""
    orders, agent_of = Orders(roster, layout.sequence), roster.agent_of
    placeholders = _placeholders(roster, layout)
    pipe_of = _pipes(roster, dataflow.skeletons.values(), layout)
    for order in _kept(roster, dataflow, pipe_of.values()):
        orders.add(order)
    tokens = {op: list(dict.fromkeys(found)) for op, found in dataflow.tokens.items()}
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
        _mutexes(roster, held),
    )


# Pipes ------------------------------------------------------------------------------------


def _pipes(roster: Roster, skeletons: Iterable[Skeleton], layout: RingLayout) -> dict[Key, Pipe]:
    found: dict[Key, Pipe] = {}
    names: dict[str, int] = {}
    for skeleton in skeletons:
        raw, group = skeleton.raw, skeleton.group
        ring = layout.rings[raw]
        number = names.get(ring.name, 0)
        names[ring.name] = number + 1
        carried, flavour = payload(roster, raw)
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
            reused=group is not None and _reused(roster, skeleton, ring, group.owner),
            trivial=group is None,
        )
    return found


def _reused(roster: Roster, skeleton: Skeleton, ring: Ring, owner: str) -> bool:
    """Whether the owner may wait for every consumer without ever being late."""
    for c in skeleton.consumers:
        back = ring.depth - c.distance
        if back < 0:
            return False
        done = roster.completion(c.op)
        room = roster.slack(c.op, owner, back)
        if room < done or (ring.fixed and room == done == 0):
            return False
        if c.op == owner and back == 0:
            return False  # it would wait for itself
    return True


def _kept(roster: Roster, dataflow: Dataflow, pipes: Iterable[Pipe]) -> list[Order]:
    """The orders that values keep: directly, by tokens beside them, and through pipes."""
    found: list[Order] = []
    for op, operands in dataflow.operands.items():
        for source in operands:
            if isinstance(source, Direct):
                distance = source.path.distance
                found.append(Order(source.op, op, distance, source.latency))
    for op, tokens in dataflow.tokens.items():
        found += [Order(t.op, op, t.distance, t.latency) for t in tokens]
    for pipe in pipes:
        if pipe.commits is None or pipe.owner is None:
            continue
        for c in pipe.consumers:
            found.append(Order(pipe.commits, c.op, c.distance, pipe.latency))
            if pipe.reused:
                back = pipe.depth - c.distance
                done = roster.completion(c.op)
                found.append(Order(c.op, pipe.owner, back, done, since=c.distance))
    return found


# What pipes do not carry ------------------------------------------------------------------


def _placeholders(roster: Roster, layout: RingLayout) -> list[Order]:
    """Every order that must hold; those that data keeps are found to be implied later."""
    real = [
        d
        for d in roster.loop.dependences
        if not (d.kind == "flow" and _only_named(roster, d.src, d.dst))
    ]
    found = [
        Order(d.src, d.dst, d.distance, d.latency, why=d.via or d.kind)
        for d in dict.fromkeys((*real, *roster.loop.stated))
    ]
    return list(dict.fromkeys((*found, *reuses(roster, layout.rings), *_through_views(roster))))


def _only_named(roster: Roster, src: str, dst: str) -> bool:
    """A flow out of a view, or into a view of a storage, moves no data."""
    views = roster.origins.views
    into = views.get(dst)
    return src in views or (into is not None and into.kind == "storage")


def _through_views(roster: Roster) -> list[Order]:
    """What a reader of a view owes to the origin behind it."""
    found: list[Order] = []
    for op in roster.loop.ops:
        for seen in roster.origins.seen(op):
            maker = roster.loop.producers.get(seen.path.origin)
            if seen.kind not in ("value", "stored") or not seen.path.views or maker is None:
                continue
            flows = roster.between.get((maker, seen.path.views[-1]), ())
            back = seen.path.distances[-1]
            ready = [d.latency for d in flows if d.kind == "flow" and d.distance == back]
            order = Order(maker, op.name, seen.path.distance, max(ready, default=0))
            found.append(order)
    return found


def _mutexes(roster: Roster, held: Mapping[tuple[str, int], list[Order]]) -> tuple[Mutex, ...]:
    names: dict[str, int] = {}
    found: list[Mutex] = []
    for (holder, latency), orders in sorted(
        held.items(), key=lambda item: (roster.loop.index[item[0][0]], item[0][1])
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


# What follows from what -------------------------------------------------------------------


@dataclass
class Orders:
    """What is ordered so far, and what follows from it."""

    roster: Roster
    sequence: Sequence[str]
    known: dict[str, list[Order]] = field(default_factory=dict[str, list[Order]])

    def __post_init__(self) -> None:
        self._position = {op: n for n, op in enumerate(self.sequence)}
        self._ops: dict[str, list[str]] = {}
        for op in self.sequence:
            self._ops.setdefault(self.roster.agent_of[op], []).append(op)

    def add(self, order: Order) -> None:
        """Something that the program now waits for."""
        self.known.setdefault(order.src, []).append(order)

    def reduced(self, wanted: Sequence[Order]) -> list[Order]:
        """Those that must be waited for on their own: none of them follows from the rest."""
        kept: list[Order] = []
        for order in sorted(wanted, key=self.steps):
            if not self.implied(order):
                self.add(order)
                kept.append(order)
        for order in tuple(kept):
            self.known[order.src].remove(order)
            if self.implied(order):
                kept.remove(order)
            else:
                self.add(order)
        return kept

    def implied(self, order: Order) -> bool:
        """Whether what is known already keeps an order, in every iteration that exists."""
        since = max(order.since, -order.distance)
        low, high = -since, max(order.distance, 0)
        goal = self._point(order.dst, order.distance)
        best: dict[str, tuple[int, int]] = {}
        work: list[str] = []

        def reach(op: str, offset: int) -> None:
            agent, point = self.roster.agent_of[op], self._point(op, offset)
            if agent not in best or point < best[agent]:
                best[agent] = point
                work.append(agent)

        def follow(known: Order, offset: int) -> None:
            """Along a wait that begins `offset` iterations after the order does."""
            offset = max(offset, known.since - since, low - known.distance)
            if offset <= high and offset + known.distance <= high:
                reach(known.dst, offset + known.distance)

        home = self.roster.agent_of[order.dst]
        for known in self.known.get(order.src, ()):
            if known.latency >= order.latency:
                follow(known, 0)
                if home in best and best[home] <= goal:
                    return True
        if order.latency == 0:
            reach(order.src, 0)
        while work:
            agent = work.pop()
            point = best[agent]
            if home in best and best[home] <= goal:
                return True
            for op in self._ops[agent]:
                offset = max(low, point[0] - self.roster.stage[op])
                if self._point(op, offset) < point:
                    offset += 1
                for known in self.known.get(op, ()):
                    follow(known, offset)
        return home in best and best[home] <= goal

    def _point(self, op: str, offset: int) -> tuple[int, int]:
        """Where an operation's iteration stands in its agent's stream."""
        return offset + self.roster.stage[op], self._position[op]

    def steps(self, order: Order) -> tuple[int, int, int, int]:
        """Nearest first, so that far orders follow from near ones."""
        steps = self.roster.steps(order.src, order.dst, order.distance)
        at = self.roster.loop.index
        gap = self.roster.slack(order.src, order.dst, order.distance)
        return steps, gap, at[order.src], at[order.dst]
