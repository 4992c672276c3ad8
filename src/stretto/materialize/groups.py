"""Who makes a raw value, as one consumer sees it: candidates, the live ones, and their groups.

    writers of `o_acc`:  store_o, then pv in place     consumer: load_o of the next iteration
    live at it:          store_o, pv                   pv's operand comes from store_o:
    groups:              {store_o, pv}                 owner store_o, pv commits

No cost, no resource row and no interval is looked at here: producers have their stage and order,
and that is all that ranks them.
"""

from __future__ import annotations

from dataclasses import dataclass

from stretto.materialize.origins import Origins, Raw
from stretto.materialize.plan import Plan


@dataclass(frozen=True, slots=True)
class Info:
    """What the solve knows of a candidate."""

    stage: int
    order: int
    owner: str
    """The outermost operation whose region encloses it, or itself."""


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


@dataclass(frozen=True)
class Grouping:
    """The producer side of a loop."""

    plan: Plan
    origins: Origins

    def candidates(self, raw: Raw, views: tuple[str, ...]) -> tuple[str, ...]:
        """Every operation that may produce a raw value, by (stage, order)."""
        loop = self.plan.loop
        if raw.kind == "value":
            maker = loop.producers.get(raw.name)
            makers = [] if maker is None else [maker]
        else:
            makers = [op.name for op in loop.ops if raw.name in op.writes]
        return tuple(sorted(dict.fromkeys((*makers, *views)), key=self.plan.rank))

    def info(self, work: tuple[str, ...]) -> dict[str, Info]:
        """Stage, order and owner of each candidate."""
        return {op: Info(*self.plan.rank(op), self._outermost(op)) for op in work}

    def _outermost(self, op: str) -> str:
        parent = self.plan.ops[op].parent
        while parent is not None:
            op, parent = parent, self.plan.ops[parent].parent
        return op

    def live(self, raw: Raw, consumer: str, distance: int, work: tuple[str, ...]) -> dict[str, int]:
        """Producers whose data the consumer sees, oldest first, each with its distance.

        Writers may write a part: what an earlier one left is still there beneath the last one.
        """
        if raw.kind == "value":
            maker = self.plan.loop.producers.get(raw.name)
            return {} if maker is None else {maker: distance}
        makers = [op for op in work if op not in self.origins.views]
        at = self.plan.program_index
        writers = sorted(makers, key=lambda op: at[op])
        before = [op for op in writers if at[op] < at[consumer]]
        if self.plan.loop.storage(raw.name).fixed:
            if before:
                return dict.fromkeys(before, 0)
            # Only itself, updating in place: it is pipelined inside, and waits for nobody.
            return {} if writers == [consumer] else dict.fromkeys(writers, 1)
        return dict.fromkeys(writers, distance) if distance else dict.fromkeys(before, 0)

    def groups(
        self, raw: Raw, consumer: str, distance: int, views: tuple[str, ...]
    ) -> tuple[Group, ...]:
        """Producers that share the original value, joined; none where nothing is live."""
        work = self.candidates(raw, views)
        info = self.info(work)
        live = self.live(raw, consumer, distance, work)
        members = [*live, *(op for op in work if op in self.origins.views and op not in live)]
        root = {op: op for op in members}

        def find(op: str) -> str:
            while root[op] != op:
                root[op] = root[root[op]]
                op = root[op]
            return op

        for op in members:
            for other in self._defines(raw, op):
                if other in root:
                    root[find(op)] = find(other)
        joined: dict[str, list[str]] = {}
        for op in members:
            joined.setdefault(find(op), []).append(op)
        found: list[Group] = []
        for group in joined.values():
            producers = tuple(op for op in group if op in live)
            if producers:
                owner = min(producers, key=lambda op: (info[op].stage, info[op].order))
                aliases = tuple(op for op in group if op not in live)
                found.append(Group(producers, owner, aliases, live[producers[-1]]))
        return tuple(found)

    def _defines(self, raw: Raw, op: str) -> list[str]:
        """Operations that defined what `op` takes of the raw value."""
        loop, operation = self.plan.loop, self.plan.ops[op]
        found = [
            loop.producers[operand.value]
            for operand in operation.operands
            if operand.value in loop.producers and self._origin(operand.value) == raw
        ]
        if raw.kind == "storage" and any(read.storage == raw.name for read in loop.reads[op]):
            at = self.plan.program_index
            writers = [w.name for w in loop.ops if raw.name in w.writes and at[w.name] < at[op]]
            found += writers[-1:]
        return found

    def _origin(self, value: str) -> Raw:
        home = next((v.storage for v in self.plan.loop.values if v.name == value), None)
        if home is not None:
            return Raw("storage", home)
        while True:
            maker = self.plan.loop.producers.get(value)
            view = self.origins.views.get(maker) if maker is not None else None
            if view is None or view.operand.value == value:
                return Raw("value", value)
            value = view.operand.value
