"""One of an SM's schedulers, instruction by instruction: a warp of each group of four.

    warp of compute     FMNMX ─4─ FMNMX ─4─ SHFL ....... FMUL FADD FFMA ── MUFU ─8─ MUFU
    warp of compute.1   HGMMA ─12─ HGMMA ─ .. waits for the tensor core ..  DEPBAR
    port to registers   ▁▁▁▁ 0.31 results a cycle while a product runs ▁▁▁▁ 1 else

A warp issues in order: when the stall of its last instruction is over, the barriers that it waits
for are released and the pipe is free. One instruction a cycle is issued; of warps that both can,
the one that issued last goes on. Products of an agent run in the order of issue, those of another
behind them, and who has waited longer comes first. While one runs, most of what may be written to
registers a cycle is its own: everybody else's results pass through what is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from stretto.prediction.code.costs import WRITES, CodeCosts, Kind
from stretto.prediction.code.listing import BARRIERS
from stretto.prediction.code.steps import AgentCode, Issue
from stretto.prediction.instructions import between

NEVER = float("inf")
SOON = 1e-9
QUEUED = 1
"""Special functions that may be issued before the unit is free."""
RECENT = 50.0
"""Cycles: a tensor core that has been idle for longer costs nobody a turn."""
PIPES = {
    Kind.ARITHMETIC: (Kind.ARITHMETIC, 1),
    Kind.WIDE: (Kind.ARITHMETIC, 2),
    Kind.INTEGERS: (Kind.INTEGERS, 1),
    Kind.PREDICATE: (Kind.INTEGERS, 1),
}
"""The pipe of a kind that is done with it soon, and how often it takes it."""
LOOKED_BACK = 8
"""Products of a warp that are remembered."""


class Tiles(Protocol):
    """What other agents do: copies that fill rings."""

    def there(self, ring: str, turn: int) -> float | None:
        """When a tile has come, if that is known."""
        ...

    def handed(self, ring: str, turn: int, at: float) -> None:
        """An agent has read a tile."""
        ...


@dataclass(slots=True, eq=False)
class _Warp:
    agent: _Agent
    code: Sequence[Issue]
    ready: float
    """When the stall of its last instruction is over."""
    step: int
    at: int = 0
    issued: float = 0.0
    """When it issued last."""
    released: list[float] = field(default_factory=lambda: [0.0] * BARRIERS)
    looks: list[tuple[str, int, float] | None] = field(default_factory=lambda: [None] * BARRIERS)
    """Of each barrier: the tile that is looked for, and since when."""
    done: list[float] = field(default_factory=list[float])
    """When its products are done, the last of them."""
    inside: bool = False
    """Whether a product of the loop is half issued."""
    asked: float | None = None
    """Since when it waits for the tensor core."""
    met: float | None = None
    """When it came to where the warps of its agent meet."""
    steps: list[float] = field(default_factory=list[float])


@dataclass(slots=True, eq=False)
class _Agent:
    name: str
    warps: list[_Warp] = field(default_factory=list[_Warp])
    arrived: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])


@dataclass(slots=True)
class _Port:
    """Results that may be written to registers: they are saved up to a few."""

    costs: CodeCosts
    saved: float
    since: float = 0.0

    def now(self, at: float, busy_until: float) -> float:
        """How many may be written at some time."""
        busy = max(0.0, min(at, busy_until) - self.since)
        idle = max(0.0, at - self.since - busy)
        return min(self.costs.saved, self.saved + busy * self.costs.left + idle)

    def when(self, at: float, least: float, busy_until: float) -> float:
        """From when on there are so many."""
        missing = least - self.now(at, busy_until)
        if missing <= SOON:
            return at
        coming = max(0.0, busy_until - at) * self.costs.left
        if coming >= missing:
            return at + missing / self.costs.left
        return max(at, busy_until) + missing - coming

    def take(self, at: float, busy_until: float, results: float) -> None:
        """Write them."""
        self.saved = self.now(at, busy_until) - results
        self.since = at


class Scheduler:
    """Warps of some agents, and the tiles that come for them."""

    def __init__(
        self, agents: Sequence[AgentCode], tiles: Tiles, costs: CodeCosts, apart: float
    ) -> None:
        """Agents begin some cycles apart from each other."""
        self._tiles, self._costs = tiles, costs
        self._warps: list[_Warp] = []
        for number, code in enumerate(agents):
            agent = _Agent(code.agent)
            for _ in range(code.groups):
                warp = _Warp(agent, code.issues, number * apart, code.first)
                agent.warps.append(warp)
                self._warps.append(warp)
        self._free = [0.0] * 4
        """When each pipe takes the next instruction."""
        self._issued = 0.0
        """When the next instruction may be issued."""
        self._latest: _Warp | None = None
        self._busy = 0.0
        """Until when the tensor core has something to do."""
        self._owner: _Agent | None = None
        """Whose products it has."""
        self._reads = 0.0
        """Bytes a cycle that they read of shared memory."""
        self._port = _Port(costs, costs.saved)
        self._chance = Random(0)
        """Always the same: warps of an agent are not quite together, now more, now less."""

    def run(self, trips: int) -> Mapping[str, Sequence[float]] | None:
        """When steps of each agent ended, until all have had so many; None: they are stuck."""
        warps = self._warps
        while any(len(warp.steps) < trips for warp in warps):
            best, first = None, NEVER
            for warp in warps:
                at = self._earliest(warp)
                if at < first - SOON or (at < first + SOON and self._before(warp, best)):
                    best, first = warp, at
            if best is None or first == NEVER:
                return None
            self._issue(best, first)
        return {warp.agent.name: warp.steps for warp in warps}

    def _before(self, warp: _Warp, other: _Warp | None) -> bool:
        """Of two that can: the one that issued last goes on, else who has waited longer."""
        if other is None or self._latest in (warp, other):
            return warp is self._latest
        return warp.issued < other.issued

    # When ----------------------------------------------------------------------------------------

    def _earliest(self, warp: _Warp) -> float:
        issue = warp.code[warp.at]
        at = warp.ready
        for barrier in issue.waits:
            if warp.looks[barrier] is not None:
                self._look(warp, barrier)
            at = max(at, warp.released[barrier])
        if at == NEVER:
            return at
        kind = issue.kind
        if kind in PIPES:
            at = max(at, self._free[PIPES[kind][0]])
        elif kind is Kind.SPECIAL:
            at = max(at, self._free[kind] - QUEUED * self._costs.pipes[kind])
        elif kind is Kind.SHARED:
            at = max(at, self._free[kind])
        elif kind is Kind.PRODUCT:
            at = self._its_turn(warp, at)
        elif kind is Kind.SETTLE and len(warp.done) > issue.left:
            at = max(at, warp.done[-1 - issue.left] + self._costs.product)
        at = max(at, self._issued)
        if kind in WRITES and at < NEVER:
            arithmetic = kind is Kind.ARITHMETIC
            lent = self._costs.lent[0 if arithmetic else 1]
            passed = self._port.when(at, 1.0 - lent, self._busy)
            # Arithmetic that waits for long takes what a product would have had.
            at = min(passed, at + self._costs.taken[0]) if arithmetic else passed
        return at

    def _look(self, warp: _Warp, barrier: int) -> None:
        """A tile that was looked for: has it come?"""
        look = warp.looks[barrier]
        assert look is not None
        ring, turn, since = look
        there = self._tiles.there(ring, turn)
        if there is None:
            warp.released[barrier] = NEVER
            return
        late = there + self._costs.wake if there > since else 0.0
        warp.released[barrier] = max(since + self._costs.looked, late)
        warp.looks[barrier] = None

    def _its_turn(self, warp: _Warp, at: float) -> float:
        """When the tensor core takes a product of a warp."""
        owner = self._owner
        if owner is not None and owner is not warp.agent:
            half = any(other.inside for other in owner.warps)
            if warp.asked is None and (half or self._busy > at):
                warp.asked = max(at, self._issued)
            return NEVER if half else max(at, self._busy)
        if not warp.inside and any(
            other.agent is not warp.agent and other.asked is not None and other.asked <= at
            for other in self._warps
        ):
            return NEVER
        return at

    # What ----------------------------------------------------------------------------------------

    def _issue(self, warp: _Warp, at: float) -> None:
        issue = warp.code[warp.at]
        kind = issue.kind
        self._issued, self._latest = at + 1.0, warp
        warp.issued, warp.ready = at, at + issue.stall
        if kind in WRITES:
            self._write(kind, at)
        made, read = at, at + self._costs.operands[1]
        if kind is Kind.SPECIAL or kind is Kind.SHARED:
            made, read = self._long(issue, at)
        elif kind in PIPES:
            pipe, times = PIPES[kind]
            self._free[pipe] = at + times * self._pipes(at)[pipe]
        elif kind is Kind.PRODUCT:
            self._multiply(warp, issue, at)
        elif kind is Kind.UNIFORM:
            made = at + self._costs.uniform
        else:
            self._synchronize(warp, issue, at)
        if issue.made is not None:
            warp.released[issue.made] = max(warp.released[issue.made], made)
        if issue.read is not None:
            warp.released[issue.read] = max(warp.released[issue.read], read)
        warp.at += 1
        if warp.at == len(warp.code):
            warp.at = 0
            warp.step += 1
            warp.steps.append(at)

    def _synchronize(self, warp: _Warp, issue: Issue, at: float) -> None:
        """What concerns other warps, and the way back to the beginning."""
        if issue.kind is Kind.FULL and issue.made is not None:
            warp.looks[issue.made] = (issue.ring, warp.step - issue.stage, at)
        elif issue.kind is Kind.ARRIVE:
            self._arrive(warp, issue, at)
        elif issue.kind is Kind.MEET:
            self._meet(warp, at)
        elif issue.kind is Kind.BRANCH and issue.last:
            warp.ready += self._costs.branch

    def _write(self, kind: Kind, at: float) -> None:
        """A result goes into registers; a running product may have to wait for it."""
        least = 1.0 - self._costs.lent[0]
        if kind is Kind.ARITHMETIC and self._port.now(at, self._busy) < least - SOON:
            later = self._costs.taken[1]
            for warp in self._warps:
                warp.done = [done + later if done > at else done for done in warp.done]
            self._port.take(at, self._busy, 0.0)
            self._busy += later
        else:
            self._port.take(at, self._busy, 1.0)

    def _pipes(self, at: float) -> tuple[float, ...]:
        return self._costs.beside if self._busy > at else self._costs.pipes

    def _long(self, issue: Issue, at: float) -> tuple[float, float]:
        """Of a special function or a shuffle: when its result is there, and its operand read."""
        costs, kind = self._costs, issue.kind
        begun = max(at, self._free[kind])
        busy = self._busy > at
        if kind is Kind.SPECIAL:
            self._free[kind] = begun + self._pipes(at)[kind]
            late = costs.special_beside if busy else costs.special
            return begun + late, begun + costs.operands[0]
        each = between(costs.crowd, self._reads) if busy else costs.pipes[kind]
        self._free[kind] = begun + each
        late = costs.shuffled if issue.shuffle else costs.loaded
        more = between(costs.longer, self._reads) if busy else 0.0
        return begun + late + more, at + costs.operands[1]

    def _multiply(self, warp: _Warp, issue: Issue, at: float) -> None:
        cycles = max(issue.cycles, issue.bytes / self._costs.read)
        self._reads = issue.bytes / cycles
        self._port.take(at, self._busy, 0.0)
        if self._owner not in (None, warp.agent) and at - self._busy < RECENT:
            cycles += self._costs.turn
        self._busy = max(self._busy, at) + cycles
        self._owner, warp.asked, warp.inside = warp.agent, None, not issue.last
        if issue.last:
            warp.done = [*warp.done[1 - LOOKED_BACK :], self._busy]

    def _arrive(self, warp: _Warp, issue: Issue, at: float) -> None:
        """A tile is handed back by the last warp of an agent."""
        agent, key = warp.agent, (issue.ring, warp.step - issue.stage)
        agent.arrived[key] = agent.arrived.get(key, 0) + 1
        if agent.arrived[key] == len(agent.warps):
            del agent.arrived[key]
            self._tiles.handed(*key, at)

    def _meet(self, warp: _Warp, at: float) -> None:
        warp.met = at
        came = [other.met for other in warp.agent.warps]
        warp.ready = NEVER
        if None not in came:
            meet, more = self._costs.meet
            chance = self._chance.uniform(-1.0, 1.0) * self._costs.spread[0]
            late = meet + more * (len(came) - 1) + chance
            go_on = max(t for t in came if t is not None) + late
            for other in warp.agent.warps:
                other.met, other.ready = None, go_on
