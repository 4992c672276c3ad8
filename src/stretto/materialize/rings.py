"""How many copies of everything, and in what order one step of the kernel issues its operations.

    lifetime 1,211, II 256  ──►  ring of 5
    same cycle, no latency between them  ──►  the one that is waited for comes first

An operation that takes no time may need a slot at the very cycle at which its ring, by lifetime,
has handed it on. Where no order inside the cycle helps, the ring gets one slot more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush

from stretto.materialize.errors import MaterializeError
from stretto.materialize.origins import Raw
from stretto.materialize.plan import Plan
from stretto.materialize.solve import Skeleton
from stretto.materialize.types import Ring
from stretto.schedule.views import lifetime, ring_depth


@dataclass(frozen=True, slots=True)
class Reuse:
    """A slot that `src` needs until it is done, and that `dst` takes next."""

    ring: str
    src: str
    dst: str
    distance: int
    since: int
    """`src` has no slot before this iteration."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Rings with their final depths, and the order of one step."""

    rings: dict[Raw, Ring]
    sequence: tuple[str, ...]


def lay_out(plan: Plan, skeletons: Iterable[Skeleton]) -> Layout:
    """Depths from lifetimes, raised only where operations of no duration ask for it."""
    piped = [s for s in skeletons if s.group is not None]
    rings = {Raw("storage", s.name): _of_storage(plan, s.name) for s in plan.loop.storages}
    taken = {ring.name for ring in rings.values()}
    for skeleton in piped:
        if skeleton.raw.kind == "value":
            same = [s for s in piped if s.raw == skeleton.raw]
            rings.setdefault(skeleton.raw, _of_value(plan, skeleton.raw, same, taken))
    while True:
        sequence, short = _sequence(plan, [*reuses(plan, rings), *_piped(plan, rings, piped)])
        if short is None:
            break
        rings = {
            raw: replace(ring, depth=ring.depth + 1) if ring.name == short else ring
            for raw, ring in rings.items()
        }
    _within_budget(plan, rings.values())
    return Layout(rings, sequence)


def _of_storage(plan: Plan, name: str) -> Ring:
    storage = plan.loop.storage(name)
    life = lifetime(plan.loop, storage, plan.ii, plan.starts)
    written = any(name in op.writes for op in plan.loop.ops)
    return Ring(
        name=name,
        depth=ring_depth(storage, life, plan.ii),
        space=storage.space,
        bytes=storage.bytes,
        storage=name,
        fixed=storage.fixed or not written,
        lifetime=life,
    )


def _of_value(plan: Plan, raw: Raw, pipes: Sequence[Skeleton], taken: set[str]) -> Ring:
    """A ring in registers: a copy from its maker's start to the end of its last reader."""
    maker = plan.loop.producers[raw.name]
    consumers = [c for pipe in pipes for c in pipe.consumers]
    lives = [plan.slack(maker, c.op, c.distance) + plan.completion(c.op) for c in consumers]
    life = max(plan.completion(maker), *lives)
    # Not below the largest distance: the last iterations have no reader that hands slots back.
    most = max(c.distance for c in consumers)
    value = next(v for v in plan.loop.values if v.name == raw.name)
    name = raw.name if raw.name not in taken else f"{raw.name}.value"
    size = value.type.bytes if value.type is not None else 0
    depth = max(1, -(-life // plan.ii), most)
    return Ring(name, depth, "register", size, value=raw.name, lifetime=life)


def reuses(plan: Plan, rings: dict[Raw, Ring]) -> list[Reuse]:
    """Who must be done with a storage's slot before its first writer takes it again."""
    found: list[Reuse] = []
    for raw, ring in rings.items():
        writers = [op.name for op in plan.loop.ops if raw.name in op.writes]
        if raw.kind != "storage" or ring.fixed or not writers:
            continue
        first = writers[0]
        for op in plan.loop.ops:
            for distance in sorted({r.distance for r in op.reads if r.storage == raw.name}):
                back = ring.depth - distance
                found.append(Reuse(ring.name, op.name, first, back, distance))
            if raw.name in op.writes:
                found.append(Reuse(ring.name, op.name, first, ring.depth, 0))
    return found


def _piped(plan: Plan, rings: dict[Raw, Ring], pipes: Iterable[Skeleton]) -> list[Reuse]:
    found: list[Reuse] = []
    for pipe in pipes:
        if pipe.raw.kind == "value":
            ring, maker = rings[pipe.raw], plan.loop.producers[pipe.raw.name]
            for c in pipe.consumers:
                back = ring.depth - c.distance
                found.append(Reuse(ring.name, c.op, maker, back, c.distance))
    return found


def _sequence(plan: Plan, reused: Iterable[Reuse]) -> tuple[tuple[str, ...], str | None]:
    """Operations by cycle, then as zero latencies ask; or the ring that makes it impossible."""
    after: dict[str, list[tuple[str, str]]] = {op.name: [] for op in plan.loop.ops}
    waiting = dict.fromkeys(after, 0)
    for d in plan.loop.dependences:
        if d.latency == 0 and plan.slack(d.src, d.dst, d.distance) == 0:
            after[d.src].append((d.dst, ""))
            waiting[d.dst] += 1
    for reuse in reused:
        at_once = plan.slack(reuse.src, reuse.dst, reuse.distance) == 0
        if at_once and plan.completion(reuse.src) == 0:
            after[reuse.src].append((reuse.dst, reuse.ring))
            waiting[reuse.dst] += 1

    def key(op: str) -> tuple[int, int, int, int, str]:
        # Older iterations first, then the published order.
        return plan.cycle[op], -plan.stage[op], plan.order[op], plan.program_index[op], op

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
        return tuple(order), None
    left = set(after) - set(order)
    return (), next(
        ring for src in after if src in left for dst, ring in after[src] if ring and dst in left
    )


def _within_budget(plan: Plan, rings: Iterable[Ring]) -> None:
    for budget in plan.machine.budgets:
        inside = [r for r in rings if r.space == budget.space and r.storage is not None]
        used = sum(ring.bytes * ring.depth for ring in inside)
        if budget.space != "register" and budget.bytes is not None and used > budget.bytes:
            parts = " + ".join(f"`{r.name}` {r.depth} × {r.bytes:,}" for r in inside)
            raise MaterializeError(
                f"{plan.loop.name}: {budget.space} holds {budget.bytes:,} bytes; the rings need "
                f"{used:,} ({parts})"
            )
