"""Kernels whose threads load for themselves: how long a block takes, and how many an SM has.

    block 0   load load load ─── wait ── work load ── wait ─ ...      a timeline in program order
    block 6        load load load ─── wait ── work ...

A load takes as long as the memory is loaded: its latency was measured at several rates, all SMs
loading. Blocks of which an SM has several ask for a rate, the rate sets the latency, and that the
length of a block: the three agree at one length, which is sought. So it is with the slots in which
warps issue and with an SM's own cache: what other blocks take of them a block has to wait for.
Nothing here is exact to the cycle: warps of a block are taken as one, and what the compiler hoists
is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from stretto.kernel import Operation
from stretto.machine import Machine
from stretto.materialization import Program
from stretto.prediction.engine import Outcome
from stretto.prediction.flow import tensor_cycles
from stretto.prediction.issuing import MEETING, START, Issuing, makes_data
from stretto.prediction.memory import Memory
from stretto.prediction.score import AgentScore, Around, LoopScore, Part, loops_in
from stretto.prediction.timeline import WAITING, Block, Crowd, Latency, Timeline
from stretto.prediction.touching import Access

WARP = 32
STARVED = "wait for memory"
FULL = 0.9
"""Part of the bytes a cycle that there are, from which on it is these that loads wait for."""
STEPS = 40
"""Of the search for the length at which rate, latency and length agree."""
CLOSE = 0.002
"""Of a length: when it is found."""
HALVES = 2
"""What is stored, against all that memory moves, where latency beside stores was measured."""


def registers_of(score: AgentScore, programs: Sequence[Program], memory: Memory) -> float:
    """Registers of a thread: what loops carry and what stages hold, and what addresses take.

    Neighbouring elements have neighbouring addresses, so these are few; and what a step makes and
    uses at once flows through, a few elements at a time.
    """
    most = 0.0
    for part in loops_in(score.parts):
        loop = programs[part.number].loop
        types = {value.name: value.type for value in loop.values}
        places = {beat.op: (beat.stage, n) for n, beat in enumerate(part.kernel) if beat.op}
        held = 0.0
        for op in loop.ops:
            for name in op.results:
                type = types[name]
                if type is None or op.name not in places or not makes_data(op.name, part):
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


@dataclass(frozen=True)
class Traffic:
    """What a block asks for."""

    far: float
    """Bytes of memory."""
    stored: float
    """Those of them that it stores."""
    near: float
    """Bytes of the shared cache."""
    lanes: float
    """Cycles of its SM's own cache, for the bytes of all lanes."""
    slots: float
    """Cycles of the schedulers."""
    tensor: float
    """Cycles of the tensor core."""


@dataclass(frozen=True)
class Threads:
    """A kernel of one agent whose threads load."""

    score: AgentScore
    programs: Sequence[Program]
    touched: Mapping[Operation, Access]
    memory: Memory
    machine: Machine
    resident: int
    meetings: int
    """Reductions of a block outside of its loops."""

    @cached_property
    def block(self) -> Block:
        """What a block is, however long it takes."""
        issuing = Issuing(self.score.warps, self.touched, self.memory)
        return Block(self.score, self.programs, issuing, self.machine, self.meetings)

    def length(self, often: Callable[[LoopScore | Around], int]) -> tuple[float, Outcome]:
        """Cycles of a block's place until the next one has it, and the block itself."""
        traffic = self._traffic(often)
        memory, several = self.memory, self.resident
        far, near = several * traffic.far / self._most(traffic), several * traffic.near
        least = max(
            far,
            near / memory.shared.most,
            several * traffic.lanes,
            several * traffic.slots,
            several * traffic.tensor,
            several * memory.passing[1],
        )

        def laid_out(cycles: float, more: float = 0.0) -> Outcome:
            return self._laid_out(often, traffic, cycles, more)

        follow = memory.passing[0]
        longest = max(least, laid_out(least).cycles + follow)
        cycles = _agreed(least, longest, lambda n: laid_out(n).cycles + follow - n)
        found = laid_out(cycles)
        if cycles - found.cycles - follow > CLOSE * cycles and far == least:
            # Memory has no more to give: what loads wait for is what is left.
            more = _agreed(0.0, cycles, lambda n: cycles - laid_out(cycles, n).cycles - follow)
            found = laid_out(cycles, more)
        found = _stretched(found, cycles - follow)
        full = cycles * FULL < max(far, near / memory.shared.most, least)
        return cycles, _named(found, STARVED) if full else found

    def unhindered(self, often: Callable[[LoopScore | Around], int], cycles: float) -> float:
        """Cycles of a block's place at the latencies of such a length, were there bytes enough."""
        return self._laid_out(often, self._traffic(often), cycles).cycles + self.memory.passing[0]

    def _most(self, traffic: Traffic) -> float:
        """Bytes a cycle that memory has for loads and stores of such parts."""
        part = self._stored(traffic)
        return (1 - part) * self.memory.far.most + part * self.memory.mixed

    def _stored(self, traffic: Traffic) -> float:
        """How much of what was measured beside stores is to be counted with: all at a half."""
        return min(1.0, HALVES * traffic.stored / traffic.far) if traffic.far else 0.0

    def _laid_out(
        self,
        often: Callable[[LoopScore | Around], int],
        traffic: Traffic,
        cycles: float,
        more: float = 0.0,
    ) -> Outcome:
        """A block where its place is taken for so many cycles, and memory takes some more."""
        loaded = self._latencies(often, traffic, self.resident / cycles, more)
        others = (self.resident - 1) / cycles
        crowd = Crowd(others * traffic.slots, others * traffic.lanes)
        return Timeline(self.block, loaded, crowd, often).outcome()

    def _again(self, often: Callable[[LoopScore | Around], int]) -> tuple[float, float]:
        """Parts of what is loaded again, or by all, that an SM's cache has, and the shared one.

        Whatever blocks touch between the first time and the second takes room there: about half
        of what they touch, and what is the same for all.
        """
        own = common = 0.0
        for access, times in self._times(often):
            if access.common:
                common += access.bytes * times
            elif not access.again:
                own += access.bytes * times
        held, sms = self.resident * own / 2 + common, float((self.machine.timing("sms") or (1,))[0])
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

    def _traffic(self, often: Callable[[LoopScore | Around], int]) -> Traffic:
        close, kept = self._again(often)
        far = stored = near = lanes = 0.0
        for access, times in self._times(often):
            size = access.bytes * times
            lanes += size
            if access.stores:
                far, near, stored = far + size, near + size, stored + size
            elif access.again or access.common:
                near += size * (1 - close)
                far += size * (1 - close) * (1 - kept) if access.again else 0.0
            else:
                near += size
                far += size / access.sharing
        issued, tensor = START + self.meetings * float(MEETING), 0.0
        for part in loops_in(self.score.parts):
            loop = self.programs[part.number].loop
            issued += often(part) * self.block.issuing.step(part)
            for beat in part.kernel:
                if beat.kind == "product":
                    tensor += often(part) * tensor_cycles(loop.op(beat.op), self.machine)
        slots = self.block.issuing.slots(issued)
        return Traffic(far, stored, near, lanes / self.memory.own[1], slots, tensor)

    def _latencies(
        self,
        often: Callable[[LoopScore | Around], int],
        traffic: Traffic,
        blocks: float,
        more: float,
    ) -> dict[Operation, Latency]:
        """Of each load, where so many blocks begin in a cycle."""
        memory = self.memory
        close, kept = self._again(often)
        rate, part = blocks * traffic.far, self._stored(traffic)
        far = (1 - part) * memory.far.latency(rate) + more
        late = part * memory.beside.latency(rate)
        near = memory.shared.latency(blocks * traffic.near)
        again = Latency(kept * near + (1 - kept) * far, (1 - kept) * late, memory.own[0], close)
        return {
            op: again if access.again or access.common else Latency(far, late)
            for op, access in self.touched.items()
            if not access.stores
        }


def _agreed(low: float, high: float, over: Callable[[float], float]) -> float:
    """Where what falls as a number grows comes to nothing."""
    for _ in range(STEPS):
        if high - low <= CLOSE * high:
            break
        middle = (low + high) / 2
        low, high = (middle, high) if over(middle) > 0 else (low, middle)
    return high


def mean(outcome: Outcome, loop: int) -> float:
    """Cycles of a step of a loop; 0 where it has none."""
    (steps,) = outcome.steps.values() if len(outcome.steps) == 1 else ({loop: list[float]()},)
    ends = steps.get(loop, [])
    return (ends[-1] - ends[0]) / (len(ends) - 1) if len(ends) > 1 else 0.0


def _named(outcome: Outcome, waiting: str) -> Outcome:
    """The same with another word for what loads wait for."""
    parts = {
        agent: {
            loop: {waiting if what == WAITING else what: of for what, of in by.items()}
            for loop, by in loops.items()
        }
        for agent, loops in outcome.parts.items()
    }
    return replace(outcome, parts=parts)


def _stretched(outcome: Outcome, cycles: float) -> Outcome:
    """The same block where it takes longer, since all of them wait for the memory's rate."""
    longer = cycles / outcome.cycles if outcome.cycles else 1.0
    if longer <= 1:
        return outcome
    steps = {
        agent: {loop: [at * longer for at in ends] for loop, ends in by.items()}
        for agent, by in outcome.steps.items()
    }
    parts = {
        agent: {
            loop: by | {WAITING: by.get(WAITING, 0.0) + (longer - 1) * sum(by.values())}
            for loop, by in loops.items()
        }
        for agent, loops in outcome.parts.items()
    }
    return replace(outcome, cycles=cycles, steps=steps, parts=parts)
