"""Cycles of a step by machine code: schedulers of an SM, and copies as the machine has them.

agents that multiply, as code ─┐
agents that copy, as beats ────┴─► steps end at ... ──► cycles of one, over the later half
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from statistics import mean

from stretto.kernel import Operation
from stretto.prediction.code.costs import CodeCosts, Kind
from stretto.prediction.code.listing import Listing
from stretto.prediction.code.steps import AgentCode, agents_in
from stretto.prediction.code.warps import Scheduler
from stretto.prediction.instructions import Costs, Landing
from stretto.prediction.score import AgentScore, Beat, LoopScore, loops_in

TRIPS = 32
"""Steps that are run."""
BEGINNINGS = (0.0, 0.25, 0.5, 0.75)
"""Parts of a step by which agents begin apart. Whether they multiply in turn or wait for each
other may last: some blocks on a GPU are faster than others of the same kernel. The mean is told."""


def paced(
    listing: Listing,
    scores: Sequence[AgentScore],
    number: int,
    rings: Mapping[str, int],
    sources: Mapping[Operation, str],
    costs: tuple[CodeCosts, Costs],
    resident: int = 1,
) -> float | None:
    """Cycles of a step of a loop, of so many blocks on an SM; None where the code of its agents is
    not recognized, or an agent does other things than copying and multiplying."""
    agents = agents_in(listing, scores, number)
    copying = _copying(scores, number)
    if not agents or copying is None:
        return None
    copied = {beat.thing for loop in copying for beat in loop.kernel}
    if copied != {ring for agent in agents for ring, _ in agent.arrives} or copied - set(rings):
        return None
    found: list[float] = []
    for part in BEGINNINGS:
        every: list[AgentCode] = []
        brought: dict[str, _Block] = {}
        for block in range(resident):
            here = [_of_block(agent, f"{block}:") for agent in agents]
            made = _Block(f"{block}:", here, copying, rings, sources, costs[1], costs[0].spread[1])
            brought |= {f"{block}:{ring}": made for ring in rings}
            every += here
        apart = part * found[0] if found else 0.0
        steps = Scheduler(every, _Tiles(brought), costs[0], apart).run(TRIPS)
        if steps is None:
            return None
        found.append(max(_pace(ends) for ends in steps.values()))
        if len(every) == 1:
            break
    return mean(found)


def moving(
    listing: Listing, scores: Sequence[AgentScore], number: int, costs: CodeCosts, resident: int = 1
) -> float:
    """Cycles of a step in which a scheduler copies registers, which only the assembler knows of."""
    agents = agents_in(listing, scores, number) or []
    moves = sum(agent.groups * agent.moves for agent in agents)
    return moves * resident * costs.pipes[Kind.INTEGERS]


def _pace(ends: Sequence[float]) -> float:
    half = len(ends) // 2
    return (ends[-1] - ends[half]) / (len(ends) - 1 - half)


def _of_block(agent: AgentCode, prefix: str) -> AgentCode:
    issues = tuple(replace(i, ring=prefix + i.ring) if i.ring else i for i in agent.issues)
    arrives = tuple((prefix + ring, stage) for ring, stage in agent.arrives)
    return replace(agent, agent=prefix + agent.agent, issues=issues, arrives=arrives)


def _copying(scores: Sequence[AgentScore], number: int) -> list[LoopScore] | None:
    """Loops of agents that only copy; None where one does something else."""
    found: list[LoopScore] = []
    for score in scores:
        loop = next((one for one in loops_in(score.parts) if one.number == number), None)
        if loop is None:
            return None
        kinds = {beat.kind for beat in loop.kernel}
        if "product" in kinds:
            continue
        if kinds - {"free", "copy"}:
            return None
        found.append(loop)
    return found


@dataclass
class _Copying:
    """An agent that copies, as far as it has come."""

    beats: tuple[Beat, ...]
    at: float = 0.0
    step: int = 0
    beat: int = 0


@dataclass
class _Block:
    """Rings of one block, and the agents that fill them."""

    prefix: str
    agents: Sequence[AgentCode]
    loops: Sequence[LoopScore]
    depths: Mapping[str, int]
    sources: Mapping[Operation, str]
    costs: Costs
    spread: float
    """Cycles by which a copy may take longer, or less."""
    full: dict[tuple[str, int], float] = field(default_factory=dict[tuple[str, int], float])
    freed: dict[tuple[str, int], list[float]] = field(
        default_factory=dict[tuple[str, int], list[float]]
    )

    def __post_init__(self) -> None:
        self.chance = Random(0)
        self.landing = Landing(self.costs)
        self.copying = [_Copying(loop.kernel) for loop in self.loops]
        self.readers: dict[str, int] = {}
        for agent in self.agents:
            for ring in dict.fromkeys(ring for ring, _ in agent.arrives):
                self.readers[ring] = self.readers.get(ring, 0) + 1
            # What was read before its first steady step.
            for ring, stage in agent.arrives:
                for turn in range(agent.first - stage):
                    self.freed.setdefault((ring, turn), []).append(0.0)
        self.go_on()

    def go_on(self) -> None:
        """Copies, as far as there is room for them."""
        for one in self.copying:
            while self._beat(one):
                one.beat += 1
                if one.beat == len(one.beats):
                    one.beat, one.step = 0, one.step + 1

    def _beat(self, one: _Copying) -> bool:
        """Whether an agent did what comes next."""
        beat = one.beats[one.beat]
        turn, ring = one.step - beat.stage, self.prefix + beat.thing
        if turn < 0:
            return True
        if beat.kind == "free":
            before = turn - self.depths.get(beat.thing, 1)
            freed = self.freed.get((ring, before), [])
            if before >= 0 and len(freed) < self.readers.get(ring, 0):
                return False
            late = max(freed) + self.costs.wake if freed else 0.0
            one.at = max(one.at + self.costs.wait, late)
            return True
        self._copy(one, beat, (ring, turn))
        return True

    def _copy(self, one: _Copying, beat: Beat, tile: tuple[str, int]) -> None:
        costs = self.costs
        source = self.sources.get(beat.operation, "hbm") if beat.operation else "hbm"
        one.at += costs.expect + costs.copy_issue
        there = self.landing.lands(one.at, beat.bytes, source)
        self.full[tile] = there + self.chance.uniform(-1.0, 1.0) * self.spread


@dataclass
class _Tiles:
    """Tiles of all blocks."""

    blocks: Mapping[str, _Block]

    def there(self, ring: str, turn: int) -> float | None:
        return self.blocks[ring].full.get((ring, turn))

    def handed(self, ring: str, turn: int, at: float) -> None:
        block = self.blocks[ring]
        block.freed.setdefault((ring, turn), []).append(at)
        block.go_on()
