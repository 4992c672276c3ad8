"""A whole kernel: one block from its first instruction to its last, then all blocks over the SMs.

    block    start │ fill │ iterations ........ │ drain │ store
    SM 0     ████████████████ ████████████████ ██████████
    SM 1     ████████████████ ████████████████            tail

A loop is run for a few dozen trips; what is left of it goes at the pace of its last steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from heapq import heapify, heapreplace

from stretto.emit.gluon import Emitted
from stretto.emit.score import AgentScore, Around, Beat, LoopScore, Part
from stretto.errors import StrettoError
from stretto.kernel import Kernel, Operation, Value
from stretto.kernel.types import Scalar
from stretto.machine import Machine
from stretto.materialize import Program
from stretto.predict import engine
from stretto.predict.flow import Costing, Flow, loads
from stretto.predict.numbers import Grid, Number, Numbers, arguments
from stretto.predict.timings import rate, timings_of

TRIPS = 36
"""Trips of a loop that are run; more are told from the last of them."""
TURNS = 2
"""Turns of a loop around others that are run."""
WARP = 32
RESIDENT = 8
"""Blocks that are run together on an SM, at most."""


class Stuck(StrettoError):
    """Agents wait for each other."""


@dataclass(frozen=True)
class LoopTime:
    """One loop of a kernel, in its steady part."""

    name: str
    cycles: float
    """An iteration."""
    tensor: float
    """Of them, cycles in which the tensor core is busy."""
    bound: str
    """What it is bound by."""
    spent: Mapping[str, Mapping[str, float]]
    """Of each agent: cycles of an iteration by what they go to."""


@dataclass(frozen=True)
class Whole:
    """A kernel on a grid."""

    loops: tuple[LoopTime, ...]
    block: float
    """Cycles of a middling block."""
    fill: float
    """Of them, before the first loop's steady part and behind the last one's."""
    waves: float
    """Blocks for each place on an SM."""
    resident: int
    cycles: float
    """Of all, from the first block to the last."""
    tail: float
    """Of them, cycles in which some SM has nothing left to do."""
    seconds: float
    clock: float


@dataclass(frozen=True)
class Subject:
    """What is predicted: a kernel as it is emitted, and the programs of its loops."""

    kernel: Kernel
    emitted: Emitted
    programs: tuple[Program, ...]


def predict_whole(
    subject: Subject,
    machine: Machine,
    grid: tuple[int, ...],
    given: Mapping[str, Number | tuple[int, ...]],
    clock: float | None = None,
) -> Whole:
    """How long a kernel takes on a grid; StrettoError where the arguments do not tell."""
    return _Whole(subject, machine, grid, given, clock).found()


def predict_loop(subject: Subject, machine: Machine, trips: int = TRIPS) -> float:
    """Cycles an iteration of the first loop, of whatever trip count it is."""
    timings = timings_of(machine)
    sources = {b.operation: "hbm" for s in subject.emitted.score for p in s.parts
               for b in loads(p) if b.operation is not None}  # fmt: skip
    costing = Costing(machine, timings, subject.programs, sources)
    outcome = _run(subject, costing, lambda part: trips if isinstance(part, LoopScore) else 1, 1)
    return _pace(outcome, 0)


def _run(
    subject: Subject, costing: Costing, trips: Callable[[LoopScore | Around], int], resident: int
) -> engine.Outcome:
    programs: dict[str, tuple[int, list[engine.Instruction]]] = {}
    rings: dict[str, engine.Ring] = {}
    depths = subject.emitted.rings
    for number in range(resident):
        prefix = f"{number}:" if resident > 1 else ""
        for score in subject.emitted.score:
            flow = Flow(costing, score, trips, prefix)
            programs[prefix + score.agent] = (score.warps, flow.instructions())
        for name, count in _readers(subject.emitted.score).items():
            rings[prefix + name] = engine.Ring(depths.get(name, 1), count)
    outcome = engine.run(programs, rings, costing.timings.costs)
    if outcome.stuck:
        raise Stuck(f"the agents of `{subject.kernel.name}` wait for each other: {outcome.stuck}")
    return outcome


def _readers(scores: tuple[AgentScore, ...]) -> dict[str, int]:
    """Of each ring and tile: how many agents say when they are done with it."""
    found: dict[str, set[str]] = {}

    def visit(agent: str, part: Part) -> None:
        if isinstance(part, Beat):
            if part.thing and part.kind in ("full", "free", "copy", "arrive"):
                found.setdefault(part.thing, set())
            if part.kind == "arrive":
                found[part.thing].add(agent)
            return
        inner: list[Part] = []
        if isinstance(part, Around):
            inner += part.body
        else:
            inner += [b for _, step in (*part.prologue, *part.epilogue) for b in step]
            inner += [*part.kernel, *part.singly]
        for one in inner:
            visit(agent, one)

    for score in scores:
        for part in score.parts:
            visit(score.agent, part)
    return {name: len(agents) for name, agents in found.items()}


def _pace(outcome: engine.Outcome, loop: int) -> float:
    """Cycles of a step of a loop, in the second half of those that were run."""
    found = 0.0
    for steps in outcome.steps.values():
        times = steps.get(loop, [])
        if len(times) >= 4:
            half = len(times) // 2
            found = max(found, (times[-1] - times[half]) / (len(times) - 1 - half))
    return found


class _Whole:
    def __init__(
        self,
        subject: Subject,
        machine: Machine,
        grid: tuple[int, ...],
        given: Mapping[str, Number | tuple[int, ...]],
        clock: float | None,
    ) -> None:
        self._subject = subject
        self._machine = machine
        self._timings = timings_of(machine)
        self._clock = clock or self._timings.clock
        x, y, z = (*grid, 1, 1)[:3]
        self._grid: Grid = (x, y, z)
        self._given = arguments(subject.kernel, given)
        self._maker: dict[Value, Operation] = {
            result: op for op in subject.kernel.walk() for result in op.results
        }
        self._missing(given)
        self._times: dict[tuple[int, ...], tuple[float, float, engine.Outcome]] = {}
        self._resident = self._residents()
        costs, sources = self._copies()
        timings = replace(self._timings, costs=costs)
        self._costing = Costing(machine, timings, subject.programs, sources)

    def _missing(self, given: Mapping[str, object]) -> None:
        numbers = self._numbers(0)
        for loop in self._loops():
            if numbers.trips(loop.lower, loop.upper, loop.step) is None:
                wanted = [
                    p.name
                    for p in self._subject.kernel.parameters
                    if isinstance(p.value.type, Scalar) and p.name not in given
                ]
                told = f"how often a loop of `{self._subject.kernel.name}` goes round is not known"
                hint = ", ".join(f"{name}=..." for name in dict.fromkeys(wanted))
                raise StrettoError(f"{told}; give its arguments: {hint}")

    def _loops(self) -> list[LoopScore | Around]:
        found: list[LoopScore | Around] = []

        def visit(part: Part) -> None:
            if isinstance(part, LoopScore):
                found.append(part)
            elif isinstance(part, Around):
                found.append(part)
                for inner in part.body:
                    visit(inner)

        for score in self._subject.emitted.score[:1]:
            for part in score.parts:
                visit(part)
        return found

    def _numbers(self, block: int) -> Numbers:
        x, y, _ = self._grid
        at = (block % x, block // x % y, block // (x * y))
        return Numbers(self._maker, self._given, self._grid, at)

    # How blocks share an SM and the memory -------------------------------------------------------

    def _residents(self) -> int:
        emitted = self._subject.emitted
        warps = sum(score.warps for score in emitted.score)
        threads = -(-warps // 4) * 4 * WARP if len(emitted.score) > 1 else warps * WARP
        budget = self._machine.budget("smem")
        limits = [self._timings.threads // threads, 32]
        if emitted.smem and budget is not None and budget.bytes:
            limits.append(budget.bytes // (emitted.smem + 1024))
        if emitted.maxnreg:
            limits.append(self._timings.registers // (emitted.maxnreg * threads))
        blocks = self._grid[0] * self._grid[1] * self._grid[2]
        most = max(1, min(limits))
        return max(1, min(most, -(-blocks // self._timings.sms)))

    def _copies(self) -> tuple[engine.Costs, dict[Operation, str]]:
        """Where each copy comes from, by how many blocks of a wave load the same tile."""
        costs = self._timings.costs
        sources: dict[Operation, str] = {}
        latency, rates = dict(costs.latency), dict(costs.rate)
        blocks = self._grid[0] * self._grid[1] * self._grid[2]
        wave = range(min(blocks, self._timings.sms))
        beats = [b for s in self._subject.emitted.score for p in s.parts for b in loads(p)]
        for beat in beats:
            operation = beat.operation
            if operation is None or operation in sources:
                continue
            tiles: set[tuple[Number | None, ...]] = set()
            for block in wave:
                numbers = self._numbers(block)
                self._first(numbers)
                at = [v for v in operation.operands[1:-1] if isinstance(v.type, Scalar)]
                tiles.add(tuple(numbers.of(v) for v in at))
            sharing = len(wave) / max(1, len(tiles))
            name = f"hbm shared by {sharing:.1f}"
            sources[operation] = name
            latency[name] = costs.latency["hbm"]
            rates[name] = rate(self._timings.shares["hbm"], sharing)
        return replace(costs, latency=latency, rate=rates), sources

    def _first(self, numbers: Numbers) -> None:
        """Counters of all loops at their beginning."""
        for operation in self._subject.kernel.walk():
            if operation.name == "scf.for":
                lower = numbers.of(operation.operands[0])
                numbers.bind(operation.regions[0].arguments[0], lower)

    # Blocks --------------------------------------------------------------------------------------

    def _key(self, block: int) -> tuple[int, ...]:
        numbers = self._numbers(block)
        trips = (numbers.trips(loop.lower, loop.upper, loop.step) for loop in self._loops())
        return tuple(n or 0 for n in trips)

    def _timed(self, key: tuple[int, ...]) -> tuple[float, float, engine.Outcome]:
        """Cycles of a block with these trips, cycles outside of steady parts, and its run."""
        loops = self._loops()
        cut = tuple(
            min(n, TRIPS if isinstance(loop, LoopScore) else TURNS)
            for n, loop in zip(key, loops, strict=True)
        )
        outcome, once = self._cut(cut)
        cycles = outcome.cycles + self._timings.block
        around = [(n, c) for n, c, p in zip(key, cut, loops, strict=True) if isinstance(p, Around)]
        turns, ran = around[0] if around else (1, 1)
        steady = 0.0
        for loop, trips, short in zip(loops, key, cut, strict=True):
            if isinstance(loop, LoopScore):
                pace = _pace(outcome, loop.number)
                steady += pace * max(0, trips - loop.first) * max(turns, 1)
                cycles += pace * (trips - short) * max(ran, 1)
        if turns > ran:
            more = (cycles - once - self._timings.block) / max(1, ran - 1) if ran > 1 else cycles
            for loop, trips, short in zip(loops, key, cut, strict=True):
                if isinstance(loop, LoopScore) and ran > 1:
                    more -= _pace(outcome, loop.number) * (trips - short) / max(1, ran - 1)
            cycles += more * (turns - ran)
        return cycles, max(0.0, cycles - steady), outcome

    def _cut(self, cut: tuple[int, ...]) -> tuple[engine.Outcome, float]:
        """A run of so many trips, and how long it takes with one turn around less."""
        if cut not in self._times:
            loops = self._loops()
            by_number = {
                loop.number: n for loop, n in zip(loops, cut, strict=True)
                if isinstance(loop, LoopScore)
            }  # fmt: skip
            arounds = [n for loop, n in zip(loops, cut, strict=True) if isinstance(loop, Around)]
            turns = arounds[0] if arounds else 1

            def run(around: int) -> engine.Outcome:
                def trips(part: LoopScore | Around) -> int:
                    return by_number[part.number] if isinstance(part, LoopScore) else around

                return _run(self._subject, self._costing, trips, min(self._resident, RESIDENT))

            outcome = run(turns)
            once = run(turns - 1).cycles if arounds and turns > 1 else 0.0
            self._times[cut] = (outcome.cycles, once, outcome)
        _, once, outcome = self._times[cut]
        return outcome, once

    # All of them ---------------------------------------------------------------------------------

    def found(self) -> Whole:
        blocks = self._grid[0] * self._grid[1] * self._grid[2]
        keys: dict[tuple[int, ...], list[int]] = {}
        ordered: list[tuple[int, ...]] = []
        varied = any(
            self._key(b) != self._key(0) for b in (1, blocks // 2, blocks - 1) if b < blocks
        )
        for block in range(blocks) if varied else (0,):
            key = self._key(block)
            keys.setdefault(key, []).append(block)
            ordered.append(key)
        lengths = {key: self._timed(key)[0] for key in keys}
        places = self._timings.sms * self._resident
        each = [lengths[key] for key in ordered] if varied else [lengths[ordered[0]]] * blocks
        busy = [0.0] * min(places, blocks)
        heapify(busy)
        for length in each:
            heapreplace(busy, busy[0] + length)
        cycles = max(busy)
        tail = cycles - min(busy) if blocks >= places else cycles
        middle = sorted(ordered)[len(ordered) // 2]
        length, outside, outcome = self._timed(middle)
        seconds = cycles / (self._clock * 1e6) + self._timings.launch * 1e-9
        return Whole(
            self._told(middle, outcome),
            length,
            outside,
            blocks / places,
            self._resident,
            cycles,
            tail,
            seconds,
            self._clock,
        )

    def _told(self, key: tuple[int, ...], outcome: engine.Outcome) -> tuple[LoopTime, ...]:
        found: list[LoopTime] = []
        scores = [loop for loop in self._loops() if isinstance(loop, LoopScore)]
        for loop in scores:
            program = self._subject.programs[loop.number]
            pace = _pace(outcome, loop.number)
            steps = max((len(s.get(loop.number, ())) for s in outcome.steps.values()), default=1)
            spent = {
                agent: {what: cycles / max(1, steps) for what, cycles in of.items()}
                for agent, of in outcome.spent.items()
            }
            tensor = sum(
                self._costing.product(loop.number, b.op)[0]
                for score in self._subject.emitted.score
                for part in _inner(score.parts)
                if isinstance(part, LoopScore) and part.number == loop.number
                for b in part.kernel
                if b.kind == "product"
            )
            found.append(
                LoopTime(program.loop.name, pace, tensor, _bound(pace, tensor, spent), spent)
            )
        return tuple(found)


def _inner(parts: tuple[Part, ...]) -> list[Part]:
    found: list[Part] = []
    for part in parts:
        found.append(part)
        if isinstance(part, Around):
            found += _inner(part.body)
    return found


def _bound(pace: float, tensor: float, spent: Mapping[str, Mapping[str, float]]) -> str:
    """What a loop is bound by."""
    if pace <= 0:
        return "nothing"
    if tensor / pace > 0.97:
        return "tensor core"
    return "latency"
