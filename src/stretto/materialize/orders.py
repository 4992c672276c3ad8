"""Orders that data does not carry: tokens inside an agent, mutexes between agents.

    read ──► next write          same agent: the write takes the read's token
                                 two agents: a mutex, unless pipes already imply it

An order is implied when a chain of waits leads from the one operation to the other: the first wait
must last until the first operation has come far enough, the others may be waits of any kind or an
agent's own sequence. Only iterations that exist for every trip count may stand in the chain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stretto.materialize.plan import Plan


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


@dataclass
class Orders:
    """What is ordered so far, and what follows from it."""

    plan: Plan
    agent_of: Mapping[str, str]
    sequence: Sequence[str]
    known: dict[str, list[Order]] = field(default_factory=dict[str, list[Order]])

    def __post_init__(self) -> None:
        self._position = {op: n for n, op in enumerate(self.sequence)}
        self._ops: dict[str, list[str]] = {}
        for op in self.sequence:
            self._ops.setdefault(self.agent_of[op], []).append(op)

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
            agent, point = self.agent_of[op], self._point(op, offset)
            if agent not in best or point < best[agent]:
                best[agent] = point
                work.append(agent)

        def follow(known: Order, offset: int) -> None:
            """Along a wait that begins `offset` iterations after the order does."""
            offset = max(offset, known.since - since, low - known.distance)
            if offset <= high and offset + known.distance <= high:
                reach(known.dst, offset + known.distance)

        for known in self.known.get(order.src, ()):
            if known.latency >= order.latency:
                follow(known, 0)
        if order.latency == 0:
            reach(order.src, 0)
        home = self.agent_of[order.dst]
        while work:
            agent = work.pop()
            point = best[agent]
            if home in best and best[home] <= goal:
                return True
            for op in self._ops[agent]:
                offset = max(low, point[0] - self.plan.stage[op])
                if self._point(op, offset) < point:
                    offset += 1
                for known in self.known.get(op, ()):
                    follow(known, offset)
        return home in best and best[home] <= goal

    def _point(self, op: str, offset: int) -> tuple[int, int]:
        """Where an operation's iteration stands in its agent's stream."""
        return offset + self.plan.stage[op], self._position[op]

    def steps(self, order: Order) -> tuple[int, int, int, int]:
        """Nearest first, so that far orders follow from near ones."""
        steps = self.plan.steps(order.src, order.dst, order.distance)
        at = self.plan.program_index
        gap = self.plan.slack(order.src, order.dst, order.distance)
        return steps, gap, at[order.src], at[order.dst]
