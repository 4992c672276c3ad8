"""A block, or several that share an SM, for a few turns of each loop.

score ──► instructions of each agent ──► engine ──► when each step ended, who waited for what
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from stretto.emission import Emitted
from stretto.errors import StrettoError
from stretto.kernel import Kernel
from stretto.materialization import Program
from stretto.prediction import engine
from stretto.prediction.flow import Costing, Flow
from stretto.prediction.instructions import Instruction
from stretto.prediction.score import AgentScore, Around, Beat, LoopScore, Part, scores_of

TRIPS = 32
"""Trips of a loop that are run; more are told from the last of them."""
TURNS = 2
"""Turns of a loop around others that are run."""


class Assembled(Protocol):
    """What the assembler made of a kernel."""

    @property
    def registers(self) -> int:
        """Of a thread."""
        ...

    @property
    def spilled(self) -> int:
        """Bytes that are stored because registers do not do."""
        ...

    @property
    def clean(self) -> bool:
        """Whether it runs as it was scheduled."""
        ...

    @property
    def smem(self) -> int:
        """Bytes of shared memory, of which the compiler takes some by itself."""
        ...

    @property
    def overwritten(self) -> bool:
        """Whether it overwrites a factor that it still needs, and so is wrong."""
        ...

    @property
    def listing(self) -> str:
        """Machine code, as nvdisasm prints it; empty where that is not at hand."""
        ...


class StuckError(StrettoError):
    """Agents wait for each other."""


@dataclass(frozen=True)
class Subject:
    """What is predicted: a kernel as it is emitted, and the programs of its loops."""

    kernel: Kernel
    emitted: Emitted
    programs: tuple[Program, ...]
    depths: Mapping[str, int]
    """Slots of each ring."""
    registers: int | None = None
    """Of a thread, where the assembler was asked."""
    assembled: Assembled | None = None
    """What else it made of the kernel, where it was asked for all."""
    consumers: int = 1
    """Groups of warps that its rows are split between."""
    mode: str = "specialized"
    """How it was emitted: even a specialized kernel may have one agent, where none copies."""

    @cached_property
    def score(self) -> tuple[AgentScore, ...]:
        """What its agents do, as far as it takes time."""
        return scores_of(self.emitted.program)


def run(
    subject: Subject, costing: Costing, trips: Callable[[LoopScore | Around], int], resident: int
) -> engine.Outcome:
    """All agents of so many blocks on one SM; StuckError where they cannot go on."""
    return watch(subject, costing, trips, resident, watched=False)[0]


Programs = dict[str, tuple[int, Sequence[Instruction]]]
"""Of each agent: its warps, and what it does."""


def watch(
    subject: Subject,
    costing: Costing,
    trips: Callable[[LoopScore | Around], int],
    resident: int,
    *,
    watched: bool = True,
) -> tuple[engine.Outcome, Programs]:
    """The same with the clocks of all instructions, and the instructions."""
    programs: Programs = {}
    rings: dict[str, engine.Ring] = {}
    for number in range(resident):
        prefix = f"{number}:" if resident > 1 else ""
        for score in subject.score:
            flow = Flow(costing, score, trips, prefix)
            programs[prefix + score.agent] = (score.warps, flow.instructions())
        for name, count in _readers(subject.score).items():
            depth = subject.emitted.turns.get(name, subject.depths.get(name, 1))
            rings[prefix + name] = engine.Ring(depth, count)
    outcome = engine.run(programs, rings, costing.timings.costs, watched=watched)
    if outcome.stuck:
        raise StuckError(
            f"the agents of `{subject.kernel.name}` wait for each other: {outcome.stuck}"
        )
    return outcome, programs


def pace(outcome: engine.Outcome, loop: int) -> float:
    """Cycles of a step of a loop, in the last third of those that were run: of one turn of it."""
    found = 0.0
    for steps in outcome.steps.values():
        times = steps.get(loop, [])
        some = engine.steady(times)
        if some:
            found = max(found, (times[-1] - times[-1 - some]) / some)
    return found


def loops_of(parts: Iterable[Part]) -> list[LoopScore | Around]:
    """All loops of a score, the outer before the inner."""
    found: list[LoopScore | Around] = []
    for part in parts:
        if isinstance(part, LoopScore):
            found.append(part)
        elif isinstance(part, Around):
            found += [part, *loops_of(part.body)]
    return found


def _readers(scores: Iterable[AgentScore]) -> dict[str, int]:
    """Of each ring and tile: how many agents say when they are done with it."""
    found: dict[str, set[str]] = {}
    for score in scores:
        for beat in _beats(score.parts):
            if beat.thing and beat.kind in ("full", "free", "copy", "arrive", "turn", "hand"):
                found.setdefault(beat.thing, set())
            if beat.kind == "arrive":
                found[beat.thing].add(score.agent)
    return {name: len(agents) for name, agents in found.items()}


def _beats(parts: Iterable[Part]) -> list[Beat]:
    found: list[Beat] = []
    for part in parts:
        if isinstance(part, Beat):
            found.append(part)
        elif isinstance(part, Around):
            found += _beats(part.body)
        else:
            found += [beat for _, step in (*part.prologue, *part.epilogue) for beat in step]
            found += part.kernel
    return found
