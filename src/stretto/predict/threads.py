"""Kernels whose threads load for themselves: how long a block takes, and how many an SM has.

    block 0   load load load ─── wait ── work load ── wait ─ ...      a timeline in program order
    block 6        load load load ─── wait ── work ...

A load takes as long as the memory is loaded: its latency was measured at several rates, all SMs
loading. Blocks of which an SM has several ask for a rate, the rate sets the latency, and that the
length of a block: the three agree at one length, which is sought. Nothing here is exact to the
cycle: warps of a block are taken as one, and what the compiler hoists is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from stretto.emit.score import AgentScore, Around, Beat, LoopScore, Part
from stretto.kernel import Operation
from stretto.kernel.types import Scalar, Tile
from stretto.loop import Loop
from stretto.machine import Machine
from stretto.materialize import Program
from stretto.predict.blocks import through_views
from stretto.predict.engine import Outcome
from stretto.predict.flow import tensor_cycles
from stretto.predict.memory import Memory
from stretto.predict.touching import Access
from stretto.vocabulary.opcodes import opcode

WARP = 32
WAITING, STARVED = "wait for loads", "wait for memory"
FULL = 0.9
"""Part of the bytes a cycle that there are, from which on it is these that loads wait for."""
QUARTERS = 4
"""Schedulers of an SM: fewer warps leave some of them idle."""
MOST = 64
"""Trips of a loop that are laid out; more go at the pace of the last."""
STEPS = 40
"""Of the search for the length at which rate, latency and length agree."""
SMALL, UNROLLED = 64, (4, 2, 1)
"""Instructions of a step up to which the assembler writes it several times, and how often: four
times in a loop, twice for two steps that are left over, and once."""
WIDE = 16
"""Bytes that a thread loads at once."""
CLOSE = 0.002
"""Of a length: when it is found."""


def registers_of(score: AgentScore, programs: Sequence[Program], memory: Memory) -> float:
    """Registers of a thread: what loops carry and what stages hold, and what addresses take.

    Neighbouring elements have neighbouring addresses, so these are few; and what a step makes and
    uses at once flows through, a few elements at a time.
    """
    most = 0.0
    for part in _loops(score.parts):
        loop = programs[part.number].loop
        types = {value.name: value.type for value in loop.values}
        places = {beat.op: (beat.stage, n) for n, beat in enumerate(part.kernel) if beat.op}
        held = 0.0
        for op in loop.ops:
            for name in op.results:
                type = types[name]
                if type is None or op.name not in places or not _is_data(op.name, part):
                    continue
                copies = 0
                stage, at = places[op.name]
                for reader in loop.ops:
                    for operand in reader.operands:
                        if operand.value != name or reader.name not in places:
                            continue
                        later, there = places[reader.name]
                        apart = later - stage + operand.distance
                        copies = max(copies, apart + (at < there) if apart else 0)
                held += copies * type.bytes
        most = max(most, held)
    return most / (4 * WARP * score.warps) + memory.registers


def _is_data(name: str, loop: LoopScore) -> bool:
    """Whether an operation makes numbers with a fraction: whatever else there is are addresses."""
    for beat in loop.kernel:
        if beat.op == name and beat.operation is not None and beat.operation.results:
            type = beat.operation.results[0].type
            element = type.element if isinstance(type, Tile) else type
            return isinstance(element, Scalar) and element.is_float
    return False


def _loops(parts: Sequence[Part]) -> list[LoopScore]:
    found: list[LoopScore] = []
    for part in parts:
        if isinstance(part, LoopScore):
            found.append(part)
        elif isinstance(part, Around):
            found += _loops(part.body)
    return found


@dataclass(frozen=True)
class Threads:
    """A kernel of one agent whose threads load."""

    score: AgentScore
    programs: Sequence[Program]
    touched: Mapping[Operation, Access]
    memory: Memory
    machine: Machine
    pipes: tuple[str, ...]
    """Slots of pipes that all blocks of an SM share."""
    resident: int

    def length(self, often: Callable[[LoopScore | Around], int]) -> tuple[float, Outcome]:
        """Cycles of a block's place until the next one has it, and the block itself."""
        traffic = self._traffic(often)
        memory, several = self.memory, self.resident
        far, near, lanes, busy = (several * of for of in traffic)
        stores = any(access.stores for access in self.touched.values())
        least = max(
            far / (memory.mixed if stores else memory.far.most),
            near / memory.shared.most,
            lanes / memory.own[1],
            busy,
            several * memory.follow[1],
        )

        def laid_out(cycles: float) -> Outcome:
            return self._laid_out(often, far / cycles, near / cycles)

        found = laid_out(least)
        low, high = least, max(least, found.cycles + memory.follow[0])
        for _ in range(STEPS):
            if high - low <= CLOSE * high:
                break
            middle = (low + high) / 2
            if laid_out(middle).cycles + memory.follow[0] > middle:
                low = middle
            else:
                high = middle
        found = _stretched(laid_out(high), high - memory.follow[0])
        full = high * FULL < max(far / memory.far.most, near / memory.shared.most, least)
        return high, _named(found, STARVED) if full else found

    def unhindered(self, often: Callable[[LoopScore | Around], int], cycles: float) -> float:
        """Cycles of a block's place at the latencies of such a length, were there bytes enough."""
        far, near, _, _ = (self.resident * of / cycles for of in self._traffic(often))
        return self._laid_out(often, far, near).cycles + self.memory.follow[0]

    def _laid_out(
        self, often: Callable[[LoopScore | Around], int], far: float, near: float
    ) -> Outcome:
        """A block at so many bytes a cycle of memory and of the shared cache."""
        memory = self.memory
        loaded = self._latencies(memory.far.latency(far), memory.shared.latency(near), often)
        return _Timeline(self, loaded, often).outcome()

    def _again(self, often: Callable[[LoopScore | Around], int]) -> tuple[float, float]:
        """Parts of what is loaded again, or by all, that an SM's cache has, and the shared one.

        Whatever a block touches takes room there, for as long as the block runs.
        """
        own = common = 0.0
        for access, times in self._times(often):
            if access.common:
                common += access.bytes * times
            elif not access.again:
                own += access.bytes * times
        held, sms = self.resident * own + common, float((self.machine.timing("sms") or (1,))[0])
        # What all blocks load is loaded all the time, and so stays.
        room = max(0.0, self.memory.cache - common)
        return self.memory.hits(held), min(1.0, room / (sms * self.resident * own)) if own else 1.0

    def _times(self, often: Callable[[LoopScore | Around], int]) -> list[tuple[Access, float]]:
        """Each access, and how often a block does it."""
        found: list[tuple[Access, float]] = []

        def walk(parts: Sequence[Part], times: float) -> None:
            for part in parts:
                if isinstance(part, LoopScore):
                    inner = [(beat, times * often(part)) for beat in part.kernel]
                elif isinstance(part, Around):
                    walk(part.body, times * often(part))
                    continue
                else:
                    inner = [(part, times)]
                for beat, turns in inner:
                    if beat.operation is not None and beat.operation in self.touched:
                        found.append((self.touched[beat.operation], turns))

        walk(self.score.parts, 1.0)
        return found

    def _traffic(
        self, often: Callable[[LoopScore | Around], int]
    ) -> tuple[float, float, float, float]:
        """Of a block: bytes of memory, of the shared cache, of all lanes; cycles of a pipe."""
        close, kept = self._again(often)
        far = near = lanes = 0.0
        for access, times in self._times(often):
            size = access.bytes * times
            lanes += size
            if access.stores:
                far, near = far + size, near + size
            elif access.again or access.common:
                near += size * (1 - close)
                far += size * (1 - close) * (1 - kept) if access.again else 0.0
            else:
                near += size
                far += size / access.sharing
        busy = tensor = 0.0
        for part in _loops(self.score.parts):
            loop = self.programs[part.number].loop
            for beat in part.kernel:
                if beat.kind == "product":
                    tensor += often(part) * tensor_cycles(loop.op(beat.op), self.machine)
                elif beat.kind == "work" and _is_data(beat.op, part):
                    busy += often(part) * _pipe(loop, beat.op, self.pipes)
        return far, near, lanes, max(busy, tensor)

    def _latencies(
        self, far: float, near: float, often: Callable[[LoopScore | Around], int]
    ) -> dict[Operation, float]:
        """Of each load."""
        close, kept = self._again(often)
        own = self.memory.own[0]
        again = close * own + (1 - close) * (kept * near + (1 - kept) * far)
        return {
            op: again if access.again or access.common else far
            for op, access in self.touched.items()
            if not access.stores
        }


def mean(outcome: Outcome, loop: int) -> float:
    """Cycles of a step of a loop; 0 where it has none."""
    (steps,) = outcome.steps.values() if len(outcome.steps) == 1 else ({loop: list[float]()},)
    ends = steps.get(loop, [])
    return (ends[-1] - ends[0]) / (len(ends) - 1) if len(ends) > 1 else 0.0


def _named(outcome: Outcome, waiting: str) -> Outcome:
    """The same with another word for what loads wait for."""
    spent = {
        agent: {waiting if what == WAITING else what: of for what, of in by.items()}
        for agent, by in outcome.spent.items()
    }
    return replace(outcome, spent=spent)


def _stretched(outcome: Outcome, cycles: float) -> Outcome:
    """The same block where it takes longer, since all of them wait for the memory's rate."""
    longer = cycles / outcome.cycles if outcome.cycles else 1.0
    if longer <= 1:
        return outcome
    steps = {
        agent: {loop: [at * longer for at in ends] for loop, ends in by.items()}
        for agent, by in outcome.steps.items()
    }
    spent = {agent: dict(by) for agent, by in outcome.spent.items()}
    for by in spent.values():
        by[WAITING] = by.get(WAITING, 0.0) + cycles - outcome.cycles
    return replace(outcome, cycles=cycles, steps=steps, spent=spent)


def _pipe(loop: Loop, op: str, pipes: Sequence[str]) -> float:
    """Cycles that an operation holds a pipe that all blocks share."""
    uses = loop.op(op).uses or ()
    return float(max((use.duration for use in uses if use.slot in pipes), default=0))


@dataclass
class _Timeline:
    """One block, its instructions in program order."""

    threads: Threads
    latency: Mapping[Operation, float]
    often: Callable[[LoopScore | Around], int]
    now: float = 0.0
    there: dict[tuple[str, int], float] = field(default_factory=dict[tuple[str, int], float])
    """When what was loaded, by name and iteration, may be used."""
    tensor: float = 0.0
    """When the tensor core is free."""
    busy: float = 0.0
    steps: dict[int, list[float]] = field(default_factory=dict[int, list[float]])
    spent: dict[str, float] = field(default_factory=dict[str, float])
    seen: dict[int, dict[str, str]] = field(default_factory=dict[int, dict[str, str]])

    def outcome(self) -> Outcome:
        self._parts(self.threads.score.parts)
        name = self.threads.score.agent
        return Outcome(
            self.now, {name: self.now}, {name: self.steps}, {name: self.spent}, self.busy
        )

    def _parts(self, parts: Sequence[Part]) -> None:
        for part in parts:
            if isinstance(part, LoopScore):
                self._loop(part)
            elif isinstance(part, Around):
                for _ in range(self.often(part)):
                    self._parts(part.body)
            elif part.operation is not None and part.operation in self.latency:
                self._spend(self.latency[part.operation], WAITING)

    def _loop(self, loop: LoopScore) -> None:
        trips = self.often(loop)
        some = min(trips, MOST)
        self.there.clear()
        steps = self.steps.setdefault(loop.number, [])
        if loop.together:
            steps.append(self.now)
            for begun, many in loop.groups(some):
                for step, beats in loop.group(many):
                    self._step(loop, beats, begun + step)
                between = (self.now - steps[-1]) / many
                steps += [steps[-1] + between * n for n in range(1, many + 1)]
            if trips > some:
                self._go_on(trips - some, steps)
        elif some < loop.needed:
            steps.append(self.now)
            self._unrolled(loop, loop.singly, 0, some, steps)
        else:
            for step, beats in loop.prologue:
                self._step(loop, beats, step)
            steps.append(self.now)
            left = some + loop.ahead - loop.first
            self._unrolled(loop, loop.kernel, loop.first, left, steps)
            if trips > some:
                self._go_on(trips - some, steps)
            for step, beats in loop.epilogue:
                self._step(loop, beats, some + step)

    def _unrolled(
        self, loop: LoopScore, beats: Sequence[Beat], step: int, left: int, steps: list[float]
    ) -> None:
        """Steps of a loop that the assembler writes several times, where they are small."""
        alone = beats is loop.singly or loop.first == loop.ahead
        touched = [self.threads.touched.get(b.operation) for b in beats if b.operation is not None]
        loads: list[Beat] = []
        if alone and not any(access is not None and access.stores for access in touched):
            # Nothing is stored that a load might read: the assembler has all loads first.
            loads = [beat for beat in beats if beat.operation in self.latency]
        rest = [beat for beat in beats if beat not in loads]
        for at_once in UNROLLED if self._instructions(loop) <= SMALL else (1,):
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
        self.now += pace * trips
        self.there.clear()

    def _instructions(self, loop: LoopScore) -> float:
        """Of a thread in a step: what it computes, loads and stores, and moves to the next."""
        threads = self.threads
        lanes = WARP * threads.score.warps
        found = 0.0
        for beat in loop.kernel:
            made = beat.operation
            if made is not None and made in threads.touched:
                size = threads.touched[made].bytes / lanes
                found += max(1.0, size / WIDE) + (0 if threads.touched[made].stores else size / 2)
            elif made is not None and made.results and _is_data(beat.op, loop):
                type = made.results[0].type
                found += type.elements / lanes if isinstance(type, Tile) else 1.0
        return found

    def _moved(self, step: int) -> None:
        """What was loaded up to a step is moved to other registers, and so has to be there."""
        for (_, turn), late in self.there.items():
            if turn <= step and late > self.now:
                self._spend(late - self.now, WAITING)

    def _views(self, number: int) -> dict[str, str]:
        if number not in self.seen:
            self.seen[number] = through_views(self.threads.programs[number].loop)
        return self.seen[number]

    def _spend(self, cycles: float, what: str) -> None:
        self.spent[what] = self.spent.get(what, 0.0) + cycles
        self.now += cycles

    def _step(
        self, score: LoopScore, beats: Sequence[Beat], step: int, *, staged: bool = True
    ) -> None:
        threads = self.threads
        loop = threads.programs[score.number].loop
        idle = max(1.0, QUARTERS / threads.score.warps)
        for beat in beats:
            if not beat.op:
                continue
            turn = step - (beat.stage if staged else 0)
            op = loop.op(beat.op)
            for operand in op.operands:
                value = self._views(score.number).get(operand.value, operand.value)
                late = self.there.get((value, turn - operand.distance))
                if late is not None and late > self.now:
                    self._spend(late - self.now, WAITING)
            made = beat.operation
            if made is not None and made in threads.touched:
                size = threads.touched[made].bytes
                self._spend(size / threads.memory.own[1] * idle, "issue")
                if made in self.latency:
                    ready = self.now + self.latency[made]
                    self.there.update({(name, turn): ready for name in op.results})
            elif beat.kind == "product":
                cycles = tensor_cycles(op, threads.machine)
                self.tensor = max(self.now, self.tensor) + cycles
                self.busy += cycles
            elif beat.kind == "settle":
                self._spend(max(0.0, self.tensor - self.now), "wait for products")
            elif beat.kind == "work" and _is_data(beat.op, score):
                self._spend(_pipe(loop, beat.op, threads.pipes) * idle, "work")
            elif beat.kind == "work" and opcode(op.kind).destination is not None:
                self._spend(float(max((u.duration for u in op.uses or ()), default=0)), "work")
