"""How many copies of everything, and in what order one step of the kernel issues its operations.

    lifetime 1,211, II 256  ──►  ring of 5
    same cycle, no latency between them  ──►  the one that is waited for comes first

An operation that takes no time may need a slot at the very cycle at which its ring, by lifetime,
has handed it on. Of storages the schedule is known to have an order for that; a ring of register
values, where no order helps, gets one slot more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush

from stretto.errors import MaterializeError
from stretto.materialization.dataflow import Skeleton, payload
from stretto.materialization.origins import Raw
from stretto.materialization.program import Ring
from stretto.materialization.roster import Roster
from stretto.solution.views import lifetime, ring_depth


@dataclass(frozen=True, slots=True)
class Order:
    """`dst`, `distance` iterations later, waits until `src` has come `latency` cycles far."""

    src: str
    dst: str
    distance: int
    latency: int
    since: int = 0
    """From this iteration of `src` on."""
    why: str = ""


@dataclass(frozen=True, slots=True)
class RingLayout:
    """Rings with their final depths, and the order of one step."""

    rings: dict[Raw, Ring]
    sequence: tuple[str, ...]


def lay_out(roster: Roster, skeletons: Iterable[Skeleton]) -> RingLayout:
    """Depths from lifetimes, those of values raised where operations of no duration ask for it."""
    piped = [s for s in skeletons if s.group is not None]
    rings = {Raw("storage", s.name): _of_storage(roster, s.name) for s in roster.loop.storages}
    taken = {ring.name for ring in rings.values()}
    for skeleton in piped:
        if skeleton.raw.kind == "value":
            same = [s for s in piped if s.raw == skeleton.raw]
            rings.setdefault(skeleton.raw, _of_value(roster, skeleton.raw, same, taken))
    while True:
        sequence, short = _sequence(roster, [*reuses(roster, rings), *_piped(roster, rings, piped)])
        if not short:
            return RingLayout(rings, sequence)
        rings = {
            raw: replace(ring, depth=ring.depth + 1) if ring.name == short else ring
            for raw, ring in rings.items()
        }


def _of_storage(roster: Roster, name: str) -> Ring:
    storage = roster.loop.storage(name)
    life = lifetime(roster.loop, storage, roster.ii, roster.starts)
    written = any(name in op.writes for op in roster.loop.ops)
    return Ring(
        name=name,
        depth=ring_depth(storage, life, roster.ii),
        space=storage.space,
        bytes=storage.bytes,
        storage=name,
        fixed=storage.fixed or not written,
        lifetime=life,
    )


def _of_value(roster: Roster, raw: Raw, pipes: Sequence[Skeleton], taken: set[str]) -> Ring:
    """A ring in registers: a copy from its maker's start to the end of its last reader."""
    maker = roster.loop.producers[raw.name]
    consumers = [c for pipe in pipes for c in pipe.consumers]
    lives = [roster.slack(maker, c.op, c.distance) + roster.completion(c.op) for c in consumers]
    life = max(roster.completion(maker), *lives)
    # Not below the largest distance: the last iterations have no reader that hands slots back.
    most = max(c.distance for c in consumers)
    name = raw.name if raw.name not in taken else f"{raw.name}.value"
    depth = max(1, -(-life // roster.ii), most)
    carried, _ = payload(roster, raw)
    return Ring(name, depth, carried.space, carried.bytes, value=raw.name, lifetime=life)


def reuses(roster: Roster, rings: dict[Raw, Ring]) -> list[Order]:
    """Who must be done with a storage's slot before its first writer takes it again."""
    found: list[Order] = []
    for raw, ring in rings.items():
        writers = [op.name for op in roster.loop.ops if raw.name in op.writes]
        if raw.kind != "storage" or ring.fixed or not writers:
            continue
        for op in roster.loop.ops:
            reads = {r.distance for r in roster.loop.reads[op.name] if r.storage == raw.name}
            back = [*sorted(reads), *([0] if raw.name in op.writes else [])]
            found += [_hand_over(roster, ring, op.name, writers[0], since) for since in back]
    return found


def _piped(roster: Roster, rings: dict[Raw, Ring], pipes: Iterable[Skeleton]) -> list[Order]:
    """The same of the rings of values."""
    return [
        _hand_over(roster, rings[p.raw], c.op, roster.loop.producers[p.raw.name], c.distance)
        for p in pipes
        if p.raw.kind == "value"
        for c in p.consumers
    ]


def _hand_over(roster: Roster, ring: Ring, src: str, dst: str, since: int) -> Order:
    """`dst` takes the slot again that `src`, which sees none before `since`, must be done with."""
    return Order(src, dst, ring.depth - since, roster.completion(src), since, ring.name)


def _sequence(roster: Roster, reused: Iterable[Order]) -> tuple[tuple[str, ...], str]:
    """Operations by cycle, then as zero latencies ask; or the ring that makes it impossible."""
    after: dict[str, list[tuple[str, str]]] = {op.name: [] for op in roster.loop.ops}
    waiting = dict.fromkeys(after, 0)
    for d in roster.loop.dependences:
        if d.latency == 0 and roster.slack(d.src, d.dst, d.distance) == 0:
            after[d.src].append((d.dst, ""))
            waiting[d.dst] += 1
    storages = {storage.name for storage in roster.loop.storages}
    for o in reused:
        if o.src == o.dst and o.why in storages:
            continue  # it reads the old instance before it writes the new one
        if o.latency == 0 and roster.slack(o.src, o.dst, o.distance) == 0:
            after[o.src].append((o.dst, o.why))
            waiting[o.dst] += 1

    def key(op: str) -> tuple[int, int, int, int, str]:
        # Older iterations first, then the published order.
        return roster.cycle[op], -roster.stage[op], roster.order[op], roster.loop.index[op], op

    ready = [key(op) for op, count in waiting.items() if count == 0]
    heapify(ready)
    order: list[str] = []
    while ready:
        op = heappop(ready)[-1]
        order.append(op)
        for dst, _ in after[op]:
            waiting[dst] -= 1
            if waiting[dst] == 0:
                heappush(ready, key(dst))
    if len(order) == len(after):
        return tuple(order), ""
    left = set(after) - set(order)
    stuck = [ring for src in after if src in left for dst, ring in after[src] if dst in left]
    short = next((ring for ring in stuck if ring and ring not in storages), "")
    if not short:
        raise MaterializeError(f"no order of one cycle serves {sorted(left)}", roster.loop.name)
    return (), short
