"""From dataflow to pipes. Not a search: classify, close, join, emit.

    for each raw value and consumer
      producers live at the consumer  ──►  groups  ──►  one skeleton pipe a group
    skeletons with the same producers ──►  one pipe, several consumers
    operands of consumers elsewhere   ──►  read through their pipes

A consumer beside its producer (same agent, same step of the kernel) takes the value directly. A
consumer with no live producer gets a consumer-only pipe with the trivial flag. Who makes a raw
value, as one consumer sees it:

    writers of `o_acc`:  store_o, then pv in place     consumer: load_o of the next iteration
    live at it:          store_o, pv                   pv's operand comes from store_o:
    groups:              {store_o, pv}                 owner store_o, pv commits

No cost, no resource row and no interval is looked at here: producers have their stage and order,
and that is all that ranks them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from stretto.loop import Op
from stretto.materialization.origins import Raw, Seen
from stretto.materialization.program import (
    After,
    Alias,
    Consumer,
    Direct,
    Flavour,
    LiveIn,
    Path,
    Payload,
    Stored,
    Supply,
)
from stretto.materialization.roster import Roster, joined
from stretto.ops.spaces import REGISTERS

Key = tuple[object, ...]
"""Skeletons of equal keys are one pipe."""


@dataclass(frozen=True, slots=True)
class Group:
    """Producers that fill one payload together, oldest data first."""

    producers: tuple[str, ...]
    owner: str
    """The earliest by (stage, order)."""
    aliases: tuple[str, ...]
    distance: int
    """Iterations from the one that commits, the last, to the consumer."""

    @property
    def commits(self) -> str:
        """The producer whose data is the newest."""
        return self.producers[-1]


@dataclass(frozen=True, slots=True)
class Skeleton:
    """A pipe before it has a ring."""

    raw: Raw
    group: Group | None
    """None: consumer-only."""
    consumers: tuple[Consumer, ...]
    latency: int

    @property
    def key(self) -> Key:
        """Who produces what; of a consumer-only pipe, who takes it."""
        if self.group is None:
            return (self.raw, self.consumers)
        return (self.raw, self.group.producers, self.latency)


@dataclass(frozen=True, slots=True)
class Pending:
    """An operand that comes through the pipe of a raw value; which, is known after collapsing."""

    path: Path
    skeleton: Key


class Dataflow:
    """Every raw value solved for every consumer: pipes in the making, and all operands."""

    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self._loop = roster.loop
        self._origins = roster.origins
        self.skeletons: dict[Key, Skeleton] = {}
        self.operands: dict[str, list[Supply | Pending]] = {}
        """Where every operand comes from."""
        self.tokens: dict[str, list[After]] = {}
        """What an operation waits for beside it, where a storage carries the data."""
        for op in self._loop.ops:
            self.operands[op.name] = [self._operand(op, seen) for seen in self._origins.seen(op)]
            if op.name not in self._origins.views:
                self._accesses(op)

    # Register values --------------------------------------------------------------------------

    def _operand(self, op: Op, seen: Seen) -> Supply | Pending:
        if seen.kind == "alias":
            return Alias(seen.path.values[0])
        if seen.kind == "stored":
            return Stored(seen.path.values[0], seen.read, seen.path.views)
        direct = self._direct(op.name, seen.path)
        if direct is not None:
            return direct
        if seen.kind == "live-in":
            return LiveIn(seen.path)
        raw = Raw("value", seen.path.origin)
        return Pending(seen.path, self._emit(raw, op.name, seen.path.distance, seen.path))

    def _direct(self, consumer: str, path: Path) -> Direct | None:
        """The nearest maker along the path that stands beside the consumer."""
        distance = 0
        for n, value in enumerate(path.values):
            distance += path.distances[n]
            maker = self._loop.producers.get(value)
            if maker is not None and self._roster.beside(maker, consumer, distance):
                reader = consumer if n == 0 else path.views[n - 1]
                latency = self._flow(maker, reader, path.distances[n]) or 0
                cut = Path(path.values[: n + 1], path.distances[: n + 1], path.views[:n])
                return Direct(cut, maker, latency)
        return None

    def _flow(self, src: str, dst: str, distance: int) -> int | None:
        """The latency of the data that flows from one operation to another, if any does."""
        found = [
            d.latency
            for d in self._roster.between.get((src, dst), ())
            if d.distance == distance and d.kind in ("flow", "memory")
        ]
        return max(found, default=None)

    # Storages ---------------------------------------------------------------------------------

    def _accesses(self, op: Op) -> None:
        views: dict[tuple[str, int], list[str]] = {}
        reads = self._loop.reads[op.name]
        for seen in self._origins.seen(op):
            if seen.kind == "stored":
                read = reads[seen.read]
                views.setdefault((read.storage, read.distance), []).extend(seen.path.views)
        for read in dict.fromkeys(reads):
            through = tuple(dict.fromkeys(views.get((read.storage, read.distance), ())))
            path = Path((read.storage,), (read.distance,), through)
            self._emit(Raw("storage", read.storage), op.name, read.distance, path)

    # Both -------------------------------------------------------------------------------------

    def _emit(self, raw: Raw, consumer: str, distance: int, path: Path) -> Key:
        """A skeleton for each group of producers; the key of the one that has the newest data."""
        groups = self._groups(raw, consumer, distance, path.views)
        key: Key = ()
        for group in groups:
            latency = self._latency(raw, group, consumer, path)
            beside = self._roster.beside(group.commits, consumer, group.distance)
            if raw.kind == "storage" and beside:
                token = After(group.commits, group.distance, latency)
                self.tokens.setdefault(consumer, []).append(token)
                continue
            key = self._add(Skeleton(raw, group, (Consumer(consumer, group.distance),), latency))
        own = raw.kind == "storage" and raw.name in self._loop.op(consumer).writes
        if not groups and not own:
            key = self._add(Skeleton(raw, None, (Consumer(consumer, distance),), 0))
        return key

    def _add(self, skeleton: Skeleton) -> Key:
        """Collapse a skeleton into the pipe of the same producers, if there is one."""
        known = self.skeletons.get(skeleton.key)
        if known is not None:
            consumers = tuple(dict.fromkeys((*known.consumers, *skeleton.consumers)))
            group = known.group
            if group is not None and skeleton.group is not None:
                aliases = tuple(dict.fromkeys((*group.aliases, *skeleton.group.aliases)))
                group = replace(group, aliases=aliases)
            skeleton = replace(known, group=group, consumers=consumers)
        self.skeletons[skeleton.key] = skeleton
        return skeleton.key

    def _latency(self, raw: Raw, group: Group, consumer: str, path: Path) -> int:
        """When the committing producer's data may be read, after its start."""
        commits = group.commits
        if raw.kind == "value":
            reader = path.views[-1] if path.views else consumer
            return self._flow(commits, reader, path.distances[-1]) or 0
        stated = self._flow(commits, consumer, group.distance)
        if stated is not None:
            return stated
        # No dependence of its own, since others imply it: no later than the schedule allows.
        room = self._roster.slack(commits, consumer, group.distance)
        return max(0, min(self._loop.op(commits).ready, room))

    # Producers --------------------------------------------------------------------------------

    def _groups(
        self, raw: Raw, consumer: str, distance: int, views: tuple[str, ...]
    ) -> list[Group]:
        """Producers that share the original value, joined; none where nothing is live."""
        live = self._live(raw, consumer, distance)
        behind = sorted(dict.fromkeys(views), key=self._roster.rank)
        members = (*live, *(op for op in behind if op not in live))
        found: list[Group] = []
        pairs = ((op, maker) for op in members for maker in self._defines(raw, op))
        for group in joined(members, pairs):
            producers = tuple(op for op in group if op in live)
            if producers:
                owner = min(producers, key=self._roster.rank)
                aliases = tuple(op for op in group if op not in live)
                found.append(Group(producers, owner, aliases, live[producers[-1]]))
        return found

    def _live(self, raw: Raw, consumer: str, distance: int) -> dict[str, int]:
        """Producers whose data the consumer sees, oldest first, each with its distance.

        Writers may write a part: what an earlier one left is still there beneath the last one.
        """
        if raw.kind == "value":
            maker = self._loop.producers.get(raw.name)
            return {} if maker is None else {maker: distance}
        writers = [op.name for op in self._loop.ops if raw.name in op.writes]
        at = self._loop.index
        before = [op for op in writers if at[op] < at[consumer]]
        if self._loop.storage(raw.name).fixed:
            if before:
                return dict.fromkeys(before, 0)
            # Only itself, updating in place: it is pipelined inside, and waits for nobody.
            return {} if writers == [consumer] else dict.fromkeys(writers, 1)
        return dict.fromkeys(writers, distance) if distance else dict.fromkeys(before, 0)

    def _defines(self, raw: Raw, op: str) -> list[str]:
        """Operations that defined what `op` takes of the raw value."""
        loop, producers = self._loop, self._loop.producers
        taken = [operand.value for operand in loop.op(op).operands]
        found = [producers[v] for v in taken if v in producers and self._origins.raw(v) == raw]
        if raw.kind == "storage" and any(read.storage == raw.name for read in loop.reads[op]):
            writers = [w.name for w in loop.ops[: loop.index[op]] if raw.name in w.writes]
            found += writers[-1:]
        return found


def payload(roster: Roster, raw: Raw) -> tuple[Payload, Flavour]:
    """What a slot carries, and whether that is a tile."""
    if raw.kind == "storage":
        storage = roster.loop.storage(raw.name)
        held = (v.type for v in roster.loop.values if v.storage == raw.name and v.type is not None)
        return Payload(raw.name, next(held, None), storage.bytes, storage.space), "tile"
    made = next(v.type for v in roster.loop.values if v.name == raw.name)
    size, elements = (0, 0) if made is None else (made.bytes, made.elements)
    return Payload(raw.name, made, size, REGISTERS), "tile" if elements > 1 else "scalar"
