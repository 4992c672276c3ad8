"""One block of a kernel whose threads load, its instructions in program order.

    load load load ─── wait for the last ── work ── load ── wait ── work ── meet ─ ...

A wait ends when the last of what a warp has on its way is there; where warps meet, and at the end,
it is the last of what all of them have. What other blocks of the SM take of its schedulers and its
cache, a block waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from stretto.kernel import Operation
from stretto.machine import Machine
from stretto.materialization import Program
from stretto.ops.opcodes import opcode
from stretto.prediction.blocks import through_views
from stretto.prediction.engine import Outcome, between_marks
from stretto.prediction.flow import tensor_cycles
from stretto.prediction.issuing import START, Issuing, makes_data
from stretto.prediction.memory import Memory
from stretto.prediction.score import AgentScore, Around, Beat, LoopScore, Part

Spent = dict[str, float]
WAITING = "wait for loads"
GOES_ON = "more trips"
"""Of turns of a loop that are not laid out."""
MOST = 64
"""Trips of a loop that are laid out; more go at the pace of the last."""
SMALL, UNROLLED = 64, (4, 2, 1)
"""Instructions of a step up to which the assembler writes it several times, and how often: four
times in a loop, twice for two steps that are left over, and once."""
AHEAD = 16
"""Loads of a thread that the assembler has on their way before it uses the first."""
REDUCES = "reduce."


@dataclass(frozen=True)
class Block:
    """What a block does."""

    score: AgentScore
    programs: Sequence[Program]
    issuing: Issuing
    machine: Machine
    meetings: int
    """Reductions outside of its loops."""


@dataclass(frozen=True)
class Crowd:
    """Parts of an SM that its other blocks take."""

    slots: float
    """Of the schedulers."""
    lanes: float
    """Of what its own cache gives in a cycle."""


@dataclass(frozen=True)
class Latency:
    """Of a load: what is the same for all, and what is longer for the last of many; and that of
    loads that an SM's own cache has, which is a part of them."""

    each: float
    last: float
    own: float = 0.0
    hits: float = 0.0

    def of(self, many: float, memory: Memory) -> float:
        """Until the last of so many is there: a miss, if there is one among them."""
        missed = 1 - self.hits**many
        return missed * (self.each + self.last * memory.late(many)) + (1 - missed) * self.own


@dataclass
class Timeline:
    """The block where loads take so long, and others crowd it."""

    block: Block
    latency: Mapping[Operation, Latency]
    crowd: Crowd
    often: Callable[[LoopScore | Around], int]
    now: float = 0.0
    there: dict[tuple[str, int], float] = field(default_factory=dict[tuple[str, int], float])
    """When what was loaded, by name and iteration, may be used."""
    flying: float = 0.0
    """Loads of a thread since it last waited."""
    behind: float = 0.0
    """How much later the last warp has these than one of them."""
    lag: float = 0.0
    """The same of all before, for which warps wait when they meet, or the block when it ends."""
    tensor: float = 0.0
    """When the tensor core is free."""
    busy: float = 0.0
    steps: dict[int, list[float]] = field(default_factory=dict[int, list[float]])
    marks: dict[int, tuple[Spent, Spent]] = field(default_factory=dict[int, "tuple[Spent, Spent]"])
    """What had been spent when the steps of each loop began, and when they ended."""
    spent: dict[str, float] = field(default_factory=dict[str, float])
    seen: dict[int, dict[str, str]] = field(default_factory=dict[int, dict[str, str]])

    def outcome(self) -> Outcome:
        """Clocks of its steps, and what its cycles are spent on."""
        block = self.block
        self._spend(block.issuing.cycles(START, self.crowd.slots), "work")
        self._parts(block.score.parts)
        memory = block.issuing.memory
        self._spend(self.lag + self.behind, WAITING)
        self._spend(block.meetings * memory.meeting(block.issuing.warps), "work")
        name = block.score.agent
        parts = {
            loop: between_marks(*marks, max(1, len(self.steps[loop]) - 1))
            for loop, marks in self.marks.items()
        }
        return Outcome(self.now, {name: self.now}, {name: self.steps}, {name: parts}, self.busy)

    def _parts(self, parts: Sequence[Part]) -> None:
        for part in parts:
            if isinstance(part, LoopScore):
                self._loop(part)
            elif isinstance(part, Around):
                for _ in range(self.often(part)):
                    self._parts(part.body)
            elif part.operation is not None and part.operation in self.latency:
                self._wait(self.now + self._lasts(part.operation))

    def _loop(self, loop: LoopScore) -> None:
        trips = self.often(loop)
        some = min(trips, MOST)
        self.there.clear()
        steps = self.steps.setdefault(loop.number, [])
        if loop.together:
            self._begin(loop.number, steps)
            for begun, many in loop.groups(some):
                for step, beats in loop.group(many):
                    self._step(loop, beats, begun + step)
                between = (self.now - steps[-1]) / many
                steps += [steps[-1] + between * n for n in range(1, many + 1)]
            self._end(loop.number)
            if trips > some:
                self._go_on(trips - some, steps)
        elif some < loop.needed:
            self._begin(loop.number, steps)
            self._unrolled(loop, loop.singly, 0, some, steps)
            self._end(loop.number)
        else:
            for step, beats in loop.prologue:
                self._step(loop, beats, step)
            self._begin(loop.number, steps)
            left = some + loop.ahead - loop.first
            self._unrolled(loop, loop.kernel, loop.first, left, steps)
            self._end(loop.number)
            if trips > some:
                self._go_on(trips - some, steps)
            for step, beats in loop.epilogue:
                self._step(loop, beats, some + step)

    def _begin(self, loop: int, steps: list[float]) -> None:
        steps.append(self.now)
        self.marks.setdefault(loop, (dict(self.spent), {}))

    def _end(self, loop: int) -> None:
        self.marks[loop] = (self.marks[loop][0], dict(self.spent))

    def _unrolled(
        self, loop: LoopScore, beats: Sequence[Beat], step: int, left: int, steps: list[float]
    ) -> None:
        """Steps of a loop that the assembler writes several times, where they are small."""
        alone = beats is loop.singly or loop.first == loop.ahead
        touched = [
            self.block.issuing.touched.get(b.operation) for b in beats if b.operation is not None
        ]
        loads: list[Beat] = []
        if alone and not any(access is not None and access.stores for access in touched):
            # Nothing is stored that a load might read: the assembler has all loads first.
            loads = [beat for beat in beats if beat.operation in self.latency]
        rest = [beat for beat in beats if beat not in loads]
        for at_once in UNROLLED if self.block.issuing.step(loop) <= SMALL else (1,):
            for _ in range(left // at_once):
                for n in range(at_once):
                    self._step(loop, loads, step + n, staged=False)
                for _ in range(at_once):
                    self._step(loop, rest, step, staged=not alone)
                    steps.append(self.now)
                    step += 1
                if not alone:
                    self._moved(step - (1 if at_once == 1 else 2))
                steps[-1] = self.now
            left %= at_once

    def _go_on(self, trips: int, steps: Sequence[float]) -> None:
        """So many trips more, at the pace of the last."""
        half = len(steps) // 2
        pace = (steps[-1] - steps[half]) / max(1, len(steps) - 1 - half)
        self._spend(pace * trips, GOES_ON)
        self.there.clear()

    def _moved(self, step: int) -> None:
        """What was loaded up to a step is moved to other registers, and so has to be there."""
        for (_, turn), late in self.there.items():
            if turn <= step:
                self._wait(late)

    def _views(self, number: int) -> dict[str, str]:
        if number not in self.seen:
            self.seen[number] = through_views(self.block.programs[number].loop)
        return self.seen[number]

    def _spend(self, cycles: float, what: str) -> None:
        self.spent[what] = self.spent.get(what, 0.0) + cycles
        self.now += cycles

    def _wait(self, until: float) -> None:
        """For something that was loaded."""
        if until > self.now:
            self._spend(until - self.now, WAITING)
            self.lag += self.behind
            self.flying = self.behind = 0.0

    def _lasts(self, load: Operation) -> float:
        """Cycles of a load behind those that are on their way."""
        issuing, took = self.block.issuing, self.latency[load]
        count = issuing.accesses(issuing.touched[load])
        if self.flying and self.flying + count > AHEAD:
            self._wait(max(self.there.values(), default=self.now))
        self.flying += count
        alone = took.of(self.flying, issuing.memory)
        self.behind = took.of(issuing.warps * self.flying, issuing.memory) - alone
        return alone

    def _step(
        self, score: LoopScore, beats: Sequence[Beat], step: int, *, staged: bool = True
    ) -> None:
        block = self.block
        issuing, loop = block.issuing, block.programs[score.number].loop
        for beat in beats:
            if not beat.op:
                continue
            turn = step - (beat.stage if staged else 0)
            op = loop.op(beat.op)
            for operand in op.operands:
                value = self._views(score.number).get(operand.value, operand.value)
                self._wait(self.there.get((value, turn - operand.distance), 0.0))
            made = beat.operation
            issued = issuing.cycles(issuing.instructions(beat, score), self.crowd.slots)
            if made is not None and made in issuing.touched:
                size = issuing.touched[made].bytes / issuing.memory.own[1]
                self._spend(max(issued, size / (1 - self.crowd.lanes)), "issue")
                if made in self.latency:
                    ready = self.now + self._lasts(made)
                    self.there.update({(name, turn): ready for name in op.results})
            elif beat.kind == "product":
                cycles = tensor_cycles(op, block.machine)
                self.tensor = max(self.now, self.tensor) + cycles
                self.busy += cycles
            elif beat.kind == "settle":
                self._spend(max(0.0, self.tensor - self.now), "wait for products")
            elif beat.kind == "work" and makes_data(beat.op, score):
                met = issuing.memory.meeting(issuing.warps) if op.kind.startswith(REDUCES) else 0.0
                self._spend(issued + met, "work")
            elif beat.kind == "work" and opcode(op.kind).destination is not None:
                self._spend(float(max((u.duration for u in op.uses or ()), default=0)), "work")
