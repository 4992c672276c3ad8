"""From dataflow to pipes. Not a search: classify, close, join, emit.

    for each raw value and consumer
      producers live at the consumer  ──►  groups  ──►  one skeleton pipe a group
    skeletons with the same producers ──►  one pipe, several consumers
    operands of consumers elsewhere   ──►  read through their pipes

A consumer beside its producer (same agent, same step of the kernel) takes the value directly. A
consumer with no live producer gets a consumer-only pipe with the trivial flag.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from stretto.loop import Op, Value
from stretto.materialize.groups import Group, Grouping
from stretto.materialize.instructions import After, Alias, Direct, LiveIn, Path, Source, Stored
from stretto.materialize.origins import Origins, Raw, Seen
from stretto.materialize.plan import Plan
from stretto.materialize.types import Consumer, Flavour, Payload
from stretto.vocabulary.spaces import REGISTERS


@dataclass(frozen=True, slots=True)
class Skeleton:
    """A pipe before it has a ring."""

    raw: Raw
    group: Group | None
    """None: consumer-only."""
    consumers: tuple[Consumer, ...]
    latency: int

    @property
    def key(self) -> tuple[object, ...]:
        """Skeletons of equal keys are one pipe."""
        if self.group is None:
            return (self.raw, self.consumers)
        return (self.raw, self.group.producers, self.latency)


@dataclass(frozen=True, slots=True)
class Piped:
    """An operand that comes through the pipe of a raw value; which, is known after collapsing."""

    path: Path
    skeleton: tuple[object, ...]


@dataclass(slots=True)
class Solution:
    """Pipes in the making, and where every operand comes from."""

    skeletons: dict[tuple[object, ...], Skeleton] = field(
        default_factory=dict[tuple[object, ...], Skeleton]
    )
    operands: dict[str, list[Source | Piped]] = field(
        default_factory=dict[str, list[Source | Piped]]
    )
    tokens: dict[str, list[After]] = field(default_factory=dict[str, list[After]])
    """What an operation waits for beside it, where a storage carries the data."""

    def add(self, skeleton: Skeleton) -> None:
        """Collapse a skeleton into the pipe of the same producers, if there is one."""
        known = self.skeletons.get(skeleton.key)
        if known is None:
            self.skeletons[skeleton.key] = skeleton
            return
        consumers = tuple(dict.fromkeys((*known.consumers, *skeleton.consumers)))
        group = known.group
        if group is not None and skeleton.group is not None:
            aliases = tuple(dict.fromkeys((*group.aliases, *skeleton.group.aliases)))
            group = replace(group, aliases=aliases)
        self.skeletons[skeleton.key] = replace(known, group=group, consumers=consumers)


@dataclass(frozen=True)
class Solve:
    """One loop's pipes, given who issues what."""

    plan: Plan
    origins: Origins
    agent_of: Mapping[str, str]

    def run(self) -> Solution:
        """Solve every raw value for every consumer."""
        solution = Solution()
        for op in self.plan.loop.ops:
            solution.operands[op.name] = [
                self._operand(solution, op, seen) for seen in self.origins.seen(op)
            ]
            if op.name not in self.origins.views:
                self._accesses(solution, op)
        return solution

    def beside(self, src: str, dst: str, distance: int) -> bool:
        """Whether both are issued by one agent in the same step of the kernel."""
        same = self.agent_of[src] == self.agent_of[dst]
        return same and self.plan.steps(src, dst, distance) == 0

    # Register values --------------------------------------------------------------------------

    def _operand(self, solution: Solution, op: Op, seen: Seen) -> Source | Piped:
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
        skeleton = self._emit(solution, raw, op.name, seen.path.distance, seen.path)
        return Piped(seen.path, skeleton)

    def _direct(self, consumer: str, path: Path) -> Direct | None:
        """The nearest maker along the path that stands beside the consumer."""
        distance = 0
        for n, value in enumerate(path.values):
            distance += path.distances[n]
            maker = self.plan.loop.producers.get(value)
            if maker is not None and self.beside(maker, consumer, distance):
                reader = consumer if n == 0 else path.views[n - 1]
                latency = self.flow(maker, reader, path.distances[n]) or 0
                cut = Path(path.values[: n + 1], path.distances[: n + 1], path.views[:n])
                return Direct(cut, maker, latency)
        return None

    def flow(self, src: str, dst: str, distance: int) -> int | None:
        """The latency of the data that flows from one operation to another, if any does."""
        found = [
            d.latency
            for d in self.plan.between.get((src, dst), ())
            if d.distance == distance and d.kind in ("flow", "memory")
        ]
        return max(found, default=None)

    # Storages ---------------------------------------------------------------------------------

    def _accesses(self, solution: Solution, op: Op) -> None:
        views: dict[tuple[str, int], list[str]] = {}
        reads = self.plan.loop.reads[op.name]
        for seen in self.origins.seen(op):
            if seen.kind == "stored":
                read = reads[seen.read]
                views.setdefault((read.storage, read.distance), []).extend(seen.path.views)
        for read in dict.fromkeys(reads):
            through = tuple(dict.fromkeys(views.get((read.storage, read.distance), ())))
            raw = Raw("storage", read.storage)
            path = Path((read.storage,), (read.distance,), through)
            self._emit(solution, raw, op.name, read.distance, path)

    # Both -------------------------------------------------------------------------------------

    def _emit(
        self, solution: Solution, raw: Raw, consumer: str, distance: int, path: Path
    ) -> tuple[object, ...]:
        """A skeleton for each group of producers; the key of the one that has the newest data."""
        grouping = Grouping(self.plan, self.origins)
        groups = grouping.groups(raw, consumer, distance, path.views)
        key: tuple[object, ...] = ()
        for group in groups:
            latency = self._latency(raw, group, consumer, path)
            if raw.kind == "storage" and self.beside(group.commits, consumer, group.distance):
                token = After(group.commits, group.distance, latency)
                solution.tokens.setdefault(consumer, []).append(token)
                continue
            reader = Consumer(consumer, group.distance)
            skeleton = Skeleton(raw, group, (reader,), latency)
            solution.add(skeleton)
            key = skeleton.key
        if not groups and not self._own(raw, consumer):
            skeleton = Skeleton(raw, None, (Consumer(consumer, distance),), 0)
            solution.add(skeleton)
            key = skeleton.key
        return key

    def _own(self, raw: Raw, consumer: str) -> bool:
        """Whether the consumer alone makes the raw value."""
        return raw.kind == "storage" and raw.name in self.plan.ops[consumer].writes

    def _latency(self, raw: Raw, group: Group, consumer: str, path: Path) -> int:
        """When the committing producer's data may be read, after its start."""
        commits = group.commits
        if raw.kind == "value":
            reader = path.views[-1] if path.views else consumer
            return self.flow(commits, reader, path.distances[-1]) or 0
        stated = self.flow(commits, consumer, group.distance)
        if stated is not None:
            return stated
        # No dependence of its own, since others imply it: no later than the schedule allows.
        room = self.plan.slack(commits, consumer, group.distance)
        return max(0, min(self.plan.ops[commits].ready, room))


def payload(plan: Plan, raw: Raw) -> tuple[Payload, Flavour]:
    """What a slot carries, and whether that is a tile."""
    if raw.kind == "storage":
        storage = plan.loop.storage(raw.name)
        held = [v for v in plan.loop.values if v.storage == raw.name and v.type is not None]
        made = next((v.type for v in held), None)
        return Payload(raw.name, made, storage.bytes, storage.space), "tile"
    value: Value = next(v for v in plan.loop.values if v.name == raw.name)
    size = value.type.bytes if value.type is not None else 0
    tile = value.type is not None and value.type.elements > 1
    return Payload(raw.name, value.type, size, REGISTERS), "tile" if tile else "scalar"
