"""One SM, event by event: agents in program order, a tensor core, copies, rings.

    copy     wait free ─ copy ───────────┐ lands: full
    compute  wait full ─ product ─ work ─┴─ settle ─ arrive ─ ...
    TC       ▓▓▓▓▓▓▓▓ in the order of issue

Work is a fluid: stretches that run at the same time share the arithmetic pipes and the special
function units, of which a running product leaves only a part. All else happens at times that are
known when it is asked for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stretto.prediction.instructions import (
    Arrive,
    Copy,
    Costs,
    Delay,
    Free,
    Full,
    Hand,
    Instruction,
    Landing,
    Product,
    Settle,
    Step,
    Work,
    between,
    both,
)

ENDLESS = float("inf")
LEAST = 4
"""Steps of a loop from which on a pace can be told."""
Span = tuple[float, float]


@dataclass
class Ring:
    """Slots, and when each turn of them was filled and freed."""

    depth: int
    readers: int
    full: dict[int, float] = field(default_factory=dict[int, float])
    freed: dict[int, list[float]] = field(default_factory=dict[int, list[float]])


@dataclass
class _Agent:
    name: str
    program: Sequence[Instruction]
    warps: int
    at: int = 0
    until: float = 0.0
    """When its present instruction ends, where that is known."""
    left: float = 0.0
    """Of its present work, in cycles alone."""
    work: Work | None = None
    asked: list[float] = field(default_factory=lambda: [0.0, 0.0])
    """Cycles of the arithmetic pipes and of the special function units that it asked for so far."""
    since: float = 0.0
    products: list[float] = field(default_factory=list[float])
    """When its products are done, those that it has not waited for."""
    steps: dict[int, list[float]] = field(default_factory=dict[int, list[float]])
    marks: dict[int, list[dict[str, float]]] = field(
        default_factory=dict[int, list[dict[str, float]]]
    )
    """What had been spent when each of these steps ended."""
    spent: dict[str, float] = field(default_factory=dict[str, float])
    """Cycles by what they went to."""
    clocks: dict[int, Span] = field(default_factory=dict[int, Span])
    """Of instructions by number, where that is asked for: from when to when."""


@dataclass(frozen=True, slots=True)
class _Running:
    """Work that goes on."""

    agent: _Agent
    rate: float
    """Of its cycles alone, in a cycle."""
    asked: tuple[float, float]
    """Cycles of both kinds of pipes that it asks for in a cycle."""


@dataclass(frozen=True)
class Outcome:
    """What became of a run."""

    cycles: float
    """When the last agent was done."""
    ends: dict[str, float]
    steps: dict[str, dict[int, list[float]]]
    """Of each agent and loop: when each step ended."""
    parts: dict[str, dict[int, dict[str, float]]]
    """Of each agent and loop: cycles of a steady step by what they went to."""
    tensor: float
    """Cycles in which the tensor core was busy."""
    stuck: str = ""
    """Who waits for what, where nobody can go on."""
    clocks: dict[str, dict[int, Span]] = field(default_factory=dict[str, dict[int, Span]])
    """Of each agent's instructions that are no work, where asked for: from when to when."""


def steady(steps: Sequence[object]) -> int:
    """How many of a loop's steps, the last of them, count as steady; 0: they are too few."""
    return max(1, len(steps) // 3) if len(steps) >= LEAST else 0


def between_marks(
    first: Mapping[str, float], last: Mapping[str, float], steps: int
) -> dict[str, float]:
    """What was spent from one mark to another, a step."""
    found = {what: (of - first.get(what, 0.0)) / steps for what, of in last.items()}
    return {what: of for what, of in found.items() if of}


def run(
    programs: Mapping[str, tuple[int, Sequence[Instruction]]],
    rings: dict[str, Ring],
    costs: Costs,
    *,
    watched: bool = False,
) -> Outcome:
    """All agents, from their first instruction to their last; `watched`, with their clocks."""
    return _Run(programs, rings, costs, watched).run()


def _parts(agent: _Agent) -> dict[int, dict[str, float]]:
    """Cycles of a steady step of each loop that has any."""
    found: dict[int, dict[str, float]] = {}
    for loop, marks in agent.marks.items():
        some = steady(marks)
        if some:
            found[loop] = between_marks(marks[-1 - some], marks[-1], some)
    return found


class _Run:
    def __init__(
        self,
        programs: Mapping[str, tuple[int, Sequence[Instruction]]],
        rings: dict[str, Ring],
        costs: Costs,
        watched: bool,
    ) -> None:
        self._watched = watched
        self._agents = [_Agent(name, program, warps) for name, (warps, program) in programs.items()]
        self._rings = rings
        self._costs = costs
        self._now = 0.0
        self._first = ENDLESS
        """When the first of them had work."""
        self._tensor_free = 0.0
        self._tensor_busy = 0.0
        self._owner: _Agent | None = None
        """Whose product was issued last."""
        self._queue: deque[tuple[float, float]] = deque()
        """Products that are not done: when they will be, and bytes a cycle."""
        self._landing = Landing(costs)

    def run(self) -> Outcome:
        agents = self._agents
        while True:
            moved = True
            while moved:
                moved = False
                for agent in agents:
                    if self._go_on(agent):
                        moved = True
            next_at = self._next()
            if next_at == ENDLESS:
                break
            self._advance(next_at)
        stuck = [a for a in agents if a.at < len(a.program)]
        told = "; ".join(f"{a.name} at {a.program[a.at]}" for a in stuck)
        return Outcome(
            max((max(a.until, a.since) for a in agents), default=0.0),
            {a.name: max(a.until, a.since) for a in agents},
            {a.name: a.steps for a in agents},
            {a.name: _parts(a) for a in agents},
            self._tensor_busy,
            told,
            {a.name: a.clocks for a in agents},
        )

    # One agent -----------------------------------------------------------------------------------

    def _go_on(self, agent: _Agent) -> bool:
        """Whether an agent did anything at this time."""
        moved = False
        program, now = agent.program, self._now
        while agent.at < len(program):
            if agent.work is not None:
                if agent.left > 1e-9:
                    return moved
                self._spend(agent, "work")
                agent.work = None
                agent.at += 1
                moved = True
                continue
            if agent.until > now + 1e-9:
                return moved
            instruction = program[agent.at]
            begun = self._begin(agent, instruction)
            if begun is None:  # it cannot: somebody else has to act first
                return moved
            moved = True
            if not begun:
                return moved
        return moved

    def _spend(self, agent: _Agent, what: str) -> None:
        agent.spent[what] = agent.spent.get(what, 0.0) + self._now - agent.since
        agent.since = self._now

    def _takes(self, agent: _Agent, cycles: float, what: str) -> bool:
        """The present instruction ends after so many cycles; whether that is now."""
        agent.until = self._now + cycles
        if self._watched:
            agent.clocks[agent.at] = (agent.since, agent.until)
        agent.spent[what] = agent.spent.get(what, 0.0) + agent.until - agent.since
        agent.since = agent.until
        agent.at += 1
        return cycles <= 0

    def _begin(self, agent: _Agent, instruction: Instruction) -> bool | None:
        now = self._now
        match instruction:
            case Work():
                agent.work, agent.left, agent.since = instruction, instruction.cycles, now
                return instruction.cycles <= 0
            case Delay(cycles, why):
                return self._takes(agent, cycles, why)
            case Full(name, turn):
                there = self._rings[name].full.get(turn)
                return None if there is None else self._wait(agent, there, f"wait for {name}")
            case Free(name, turn):
                ring = self._rings[name]
                told = f"wait for room in {name}"
                if turn < ring.depth:
                    return self._wait(agent, -ENDLESS, told)
                freed = ring.freed.get(turn - ring.depth, ())
                return None if len(freed) < ring.readers else self._wait(agent, max(freed), told)
            case Copy():
                return self._copy(agent, instruction)
            case Arrive():
                return self._arrive(agent, instruction)
            case Hand(name, turn):
                ready = self._takes(agent, self._costs.arrive, "turns")
                self._rings[name].full[turn] = agent.until
                return ready
            case Product():
                return self._product(agent, instruction)
            case Settle(left):
                done = agent.products[: len(agent.products) - left]
                agent.products = agent.products[len(agent.products) - left :] if left else []
                late = max(0.0, max(done) - now) if done else 0.0
                return self._takes(agent, late, "wait for products")
            case Step(key):
                agent.steps.setdefault(key, []).append(now)
                agent.marks.setdefault(key, []).append(dict(agent.spent))
                agent.at += 1
                return True

    def _wait(self, agent: _Agent, there: float, what: str) -> bool:
        """For what is there from some time on."""
        costs = self._costs
        least = costs.wait + costs.wait_warp * (agent.warps - 4)
        return self._takes(agent, max(least, there + costs.wake - self._now), what)

    def _arrive(self, agent: _Agent, arrive: Arrive) -> bool:
        costs = self._costs
        cycles = costs.arrive + costs.arrive_warp * (agent.warps - 4)
        if agent.at and isinstance(agent.program[agent.at - 1], Settle):
            cycles += costs.settle
        ready = self._takes(agent, cycles, "arrive")
        self._rings[arrive.ring].freed.setdefault(arrive.turn, []).append(agent.until)
        return ready

    def _copy(self, agent: _Agent, copy: Copy) -> bool:
        costs = self._costs
        ready = self._takes(agent, costs.expect + costs.copy_issue, "issue")
        there = self._landing.lands(agent.until, copy.bytes, copy.source)
        self._rings[copy.ring].full[copy.turn] = there
        return ready

    def _product(self, agent: _Agent, product: Product) -> bool:
        begin = max(self._now, self._tensor_free)
        # Instructions queue up behind those of their own agent, but not behind another's.
        blocked = begin - self._now if self._owner is not agent else 0.0
        self._owner = agent
        self._tensor_free = begin + product.cycles
        self._tensor_busy += product.cycles
        self._queue.append((self._tensor_free, product.smem))
        if product.rest:
            agent.products.pop()
        agent.products.append(self._tensor_free + self._costs.product_latency)
        return self._takes(agent, blocked + product.issue, "issue")

    # All together --------------------------------------------------------------------------------

    def _rates(self) -> list[_Running]:
        """How fast work goes on. Agents are not in step for long (each of four schedulers has warps
        of its own, and copies come when they come), so each meets what others ask for on average.
        """
        active = [a for a in self._agents if a.work is not None]
        if not active:
            return []
        costs = self._costs
        while self._queue and self._queue[0][0] <= self._now + 1e-9:
            self._queue.popleft()
        room, units, extra = 1.0, 1.0, 0.0
        if self._queue:
            room, units = costs.beside, costs.special
            extra = between(costs.meeting, self._queue[0][1])
        # How long each would take were it alone with the product.
        spans = [
            w.idle + both(w.arithmetic / room, w.special / units) for a in active if (w := a.work)
        ]
        self._first = min(self._first, self._now)
        so_far = max(1.0, self._now - self._first)
        every = [sum(a.asked[n] for a in self._agents) for n in (0, 1)]
        found: list[_Running] = []
        for agent, span in zip(active, spans, strict=True):
            work = agent.work
            assert work is not None
            asked = work.arithmetic / span, work.special / span
            others = [(every[n] - agent.asked[n]) / so_far for n in (0, 1)]
            crowd = both((asked[0] + others[0]) / room, (asked[1] + others[1]) / units)
            pace = max(1.0, crowd) if work.arithmetic or work.special else 1.0
            rate = work.cycles / (span * pace + work.meetings * extra)
            found.append(_Running(agent, rate, asked))
        return found

    def _next(self) -> float:
        times = [a.until for a in self._agents if a.until > self._now + 1e-9]
        self._running = self._rates()
        times += [self._now + one.agent.left / one.rate for one in self._running]
        if self._running and self._queue:
            times.append(self._queue[0][0])
        return min(times, default=ENDLESS)

    def _advance(self, to: float) -> None:
        span = to - self._now
        for one in self._running:
            one.agent.left -= span * one.rate
            for n in (0, 1):
                one.agent.asked[n] += span * one.asked[n]
            if one.agent.left < 1e-6:
                one.agent.left = 0.0
        self._now = to
