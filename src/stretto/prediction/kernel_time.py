"""A whole kernel: one block from its first instruction to its last, then all blocks over the SMs.

    block    start │ fill │ iterations ........ │ drain │ store
    SM 0     ████████████████ ████████████████ ██████████
    SM 1     ████████████████ ████████████████            tail

A loop is run for a few dozen trips; what is left of it goes at the pace of its last steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from heapq import heapify, heapreplace
from math import ceil, prod
from typing import Any

from stretto.errors import StrettoError
from stretto.kernel import Operation, Value
from stretto.kernel.tree import kind_of
from stretto.kernel.types import Scalar
from stretto.limits import BLOCKS_WALKED
from stretto.machine import Machine
from stretto.ops.spaces import STAGING
from stretto.prediction.bound import CODED, OTHER, bound_of, kinds_of, units_of
from stretto.prediction.code.costs import CodeCosts, code_costs
from stretto.prediction.code.listing import read_listing
from stretto.prediction.code.pacing import moving, paced
from stretto.prediction.copying import loads, sources
from stretto.prediction.engine import Outcome
from stretto.prediction.flow import Costing, products_of
from stretto.prediction.issuing import QUARTERS
from stretto.prediction.memory import memory_of
from stretto.prediction.numbers import Grid, Number, Numbers, arguments, trips_of_turns
from stretto.prediction.prediction import LoopTime, Prediction
from stretto.prediction.running import TRIPS, TURNS, Programs, Subject, loops_of, pace, run, watch
from stretto.prediction.score import Around, LoopScore
from stretto.prediction.stock import Stock, steps_of
from stretto.prediction.threads import Threads, mean, registers_of
from stretto.prediction.timeline import REDUCES
from stretto.prediction.timings import clock_of, timings_of
from stretto.prediction.touching import accesses
from stretto.simulation.kernels.interpreter import launched_grid

WARP = 32
TOGETHER = 8
"""Blocks that are run together on an SM, at most."""
BLOCKS = 32
"""Blocks that an SM may have at a time."""
RESERVED = 1024
"""Bytes of shared memory that CUDA takes of each block."""
REGISTERS, GRAIN = 255, 8
"""Of a thread at most, and by how many they are given out."""
ASSUMED = 8
"""Trips of a loop of which nobody tells."""
FIRST = 0
"""The loop in which kernels read clocks."""
CHANGING_TRIPS = 12
"""Trips of a loop that are run where they change from tile to tile: every number is run."""
UNCROWDED = 2
"""Consumers that an SM has without being crowded."""
LEFT_OUT = 0.5
"""Cycles of a step from which on a part is told."""
COPIES_AND_ONE = 2
"""Agents of a kernel in which only one does more than to copy."""

Trips = tuple[int, ...]
Tiles = tuple[Trips, ...]


@dataclass(frozen=True)
class Timed:
    """A tile of a block, or all of it where no loop is around others."""

    alone: float
    """Cycles of a block that has no other."""
    further: float
    """Cycles more behind another, whose end its own beginning overlaps."""
    steady: float
    """Of them, those in steady parts of loops."""
    outcome: Outcome
    """The run that tells them."""


def predict_kernel(
    subject: Subject,
    machine: Machine,
    grid: tuple[int, ...],
    given: Mapping[str, Number | tuple[int, ...]],
    clock: float | None = None,
    shared: dict[Operation, float] | None = None,
) -> Prediction:
    """How long a kernel takes on a grid; StrettoError where the arguments do not tell.

    `shared` is kept by the caller, empty at first, for all predictions of one kernel and grid.
    """
    return _Whole(subject, machine, grid, given, clock, shared).found()


def predict_stock(
    subject: Subject,
    stock: Stock,
    machine: Machine,
    grid: tuple[int, ...],
    given: Mapping[str, Number | tuple[int, ...]],
    clock: float | None = None,
) -> Prediction:
    """How long Triton's own kernel takes where `subject` is ours of the same; StrettoError where
    its machine code is not recognized, or the arguments do not tell."""
    return _Whole(subject, machine, grid, given, clock, stock=stock).found()


@dataclass(frozen=True)
class Pace:
    """How fast a kernel is whose threads load."""

    cycles: float
    """Of an SM for a block."""
    alone: float
    """Of the block itself if only latencies counted, which says how much there is to spare."""
    resident: int
    """Blocks that an SM has."""


def pace_of_threads(subject: Subject, machine: Machine) -> Pace | None:
    """How fast a kernel is whose threads load, where nobody says how it runs.

    Loops whose trips are not told go round a few times, and there are blocks for every place; None
    where threads do not load, or the machine does not tell of loads.
    """
    if not machine.timings:
        return None
    sms = timings_of(machine).sms
    whole = _Whole(subject, machine, (sms * BLOCKS,), {}, None, assumed=ASSUMED)
    return whole.pace()


@dataclass(frozen=True)
class Watched:
    """A block of a kernel with the clocks of its instructions, and what they were timed by."""

    outcome: Outcome
    programs: Programs
    steps: Mapping[str, int]
    """Of each agent: steps in the steady part of the first loop."""
    costing: Costing


def watch_kernel(
    subject: Subject,
    machine: Machine,
    grid: tuple[int, ...],
    given: Mapping[str, Number | tuple[int, ...]],
    clock: float | None = None,
) -> Watched:
    """The first block of a kernel, instruction by instruction."""
    return _Whole(subject, machine, grid, given, clock).watched()


class _Whole:
    def __init__(
        self,
        subject: Subject,
        machine: Machine,
        grid: tuple[int, ...],
        given: Mapping[str, Number | tuple[int, ...]],
        clock: float | None,
        shared: dict[Operation, float] | None = None,
        *,
        assumed: int | None = None,
        stock: Stock | None = None,
    ) -> None:
        self._subject, self._stock = subject, stock
        self._assumed = assumed
        self._machine = machine
        self._timings = timings_of(machine)
        self._clock = clock_of(self._timings, clock)
        if not 1 <= len(grid) <= 3 or min(grid) < 1:
            raise StrettoError(
                f"grid is {grid}; one to three axes of at least 1 block are possible"
            )
        x, y, z = (*grid, 1, 1)[:3]
        self._asked: Grid = (x, y, z)
        self._grid = launched_grid(subject.kernel, self._asked)
        self._blocks = prod(self._grid)
        self._given = arguments(subject.kernel, given)
        self._maker: dict[Value, Operation] = {
            result: op for op in subject.kernel.walk() for result in op.results
        }
        self._loops = loops_of(subject.score[0].parts)
        self._around: tuple[Around, bool] | None = None
        if assumed is None:
            self._require_trips(given)
        self._runs: dict[Trips, tuple[Outcome, Outcome]] = {}
        self._lengths: dict[Trips, tuple[float, Outcome]] = {}
        self._tiles: dict[int, Tiles] = {}
        self._timings_of: dict[Trips, Timed] = {}
        self._memory = memory_of(machine, self._clock)
        self._resident = self._residents()
        self._threads = self._loading()
        if self._threads is None:
            self._around = self._outermost()
            self._tiles.clear()
        costs, copies = sources(
            subject.kernel,
            subject.score,
            lambda loop: products_of(subject.programs[loop].loop, machine),
            self._turns,
            self._timings,
            self._blocks,
            self._numbers,
            self._clock,
            shared,
        )
        timings = replace(self._timings, costs=costs)
        self._costing = Costing(machine, timings, subject.programs, copies)
        self._moving: dict[int, float] = {}
        self._coded = self._by_code()

    def _by_code(self) -> dict[int, float]:
        """Cycles of a step of loops whose machine code is known, and recognized."""
        subject, costs = self._subject, code_costs(self._machine)
        if self._stock is not None:
            return self._by_code_of(self._stock, costs)
        if subject.assembled is None or costs is None:
            return {}
        listing = read_listing(subject.assembled.listing)
        found: dict[int, float] = {}
        score = subject.score
        for loop in self._loops:
            if isinstance(loop, LoopScore):
                moves = moving(listing, score, loop.number, costs, self._resident)
                self._moving[loop.number] = moves
                cycles = paced(
                    listing, score, loop.number, subject.depths,
                    self._costing.sources, (costs, self._costing.timings.costs), self._resident,
                )  # fmt: skip
                found |= {} if cycles is None else {loop.number: cycles}
        return found

    def _by_code_of(self, stock: Stock, costs: CodeCosts | None) -> dict[int, float]:
        """The same of Triton's own kernel; StrettoError where it is not recognized."""
        loops = [loop for loop in self._loops if isinstance(loop, LoopScore)]
        name = self._subject.kernel.name
        if costs is None or self._threads is not None:
            raise StrettoError(f"what Triton makes of `{name}` cannot be predicted: threads load")
        score = self._subject.score
        copied = dict(pair for one in score for pair in loads(one.parts) if pair[1])
        copies = [copied.get(loop.number, []) for loop in loops]
        found = steps_of(
            stock, copies, self._costing.sources, (costs, self._costing.timings.costs),
            self._resident,
        )  # fmt: skip
        if found is None:
            raise StrettoError(f"the loops of what Triton makes of `{name}` are not recognized")
        return {loop.number: step for loop, step in zip(loops, found, strict=True)}

    def _pace(self, outcome: Outcome, loop: int) -> float:
        """Cycles of a step: by machine code, or else by what agents do, tile by tile.

        How several agents share an SM neither tells for sure, and each is off in a way of its own:
        there the mean is told. To tiles is added what only the assembler knows of.
        """
        coded, tiles = self._coded.get(loop), pace(outcome, loop)
        if coded is None:
            return tiles
        if self._stock is not None or not tiles:
            return coded
        alone = self._resident == 1 and len(self._subject.score) <= COPIES_AND_ONE
        return coded if alone else (coded + tiles + self._moving[loop]) / 2

    def _require_trips(self, given: Mapping[str, object]) -> None:
        numbers = self._numbers(0)
        for part in self._loops:
            if isinstance(part, Around) and part.counter is not None and part.lower is not None:
                numbers.bind(part.counter, numbers.of(part.lower))
        if all(numbers.trips(p.lower, p.upper, p.step) is not None for p in self._loops):
            return
        first = {p.name: p.value for p in reversed(self._subject.kernel.parameters)}
        names = dict.fromkeys(p.name for p in self._subject.kernel.parameters)
        wanted = [n for n in names if isinstance(first[n].type, Scalar) and n not in given]
        told = f"how often a loop of `{self._subject.kernel.name}` goes round is not known"
        if any(p.lower is None for p in self._loops):
            raise StrettoError(f"{told} before it runs: it is a `while`; run it and measure")
        hint = " ".join(f"{name}=N" for name in wanted)
        raise StrettoError(f"{told}; give the numbers that it is launched with: {hint}")

    def _outermost(self) -> tuple[Around, bool] | None:
        """A loop around others, and whether how often those go round changes with its turns."""
        around = next((p for p in self._loops if isinstance(p, Around)), None)
        if around is None:
            return None
        inner = (b for p in loops_of(around.body) for b in (p.lower, p.upper, p.step) if b)
        return around, any(self._follows(bound, around.counter) for bound in inner)

    def _follows(self, value: Value, counter: Value | None) -> bool:
        """Whether a number is worked out from another."""
        made = self._maker.get(value)
        if value is counter or made is None:
            return value is counter
        return any(self._follows(operand, counter) for operand in made.operands)

    def _numbers(self, block: int) -> Numbers:
        x, y, _ = self._grid
        at = (block % x, block // x % y, block // (x * y))
        return Numbers(self._maker, self._given, self._grid, at, self._asked)

    def _residents(self, *, memory: bool = True) -> int:
        """Blocks that an SM has room for, and the grid has for it; in shared `memory` too."""
        if self._stock is not None:
            of_each = self._stock.residents(self._timings, self._machine.budget(STAGING))
            return max(1, min(of_each, -(-self._blocks // self._timings.sms)))
        emitted = self._subject.emitted
        warps = sum(score.warps for score in self._subject.score)
        if len(self._subject.score) > 1:
            warps = -(-warps // 4) * 4
        limits = [self._timings.threads // (warps * WARP), BLOCKS]
        budget = self._machine.budget(STAGING)
        if memory and emitted.smem and budget is not None and budget.bytes:
            limits.append((budget.bytes + RESERVED) // (emitted.smem + RESERVED))
        if emitted.maxnreg:
            limits.append(self._timings.registers // (emitted.maxnreg * warps * WARP))
        elif self._memory is not None:
            given = max(GRAIN, min(REGISTERS, -(-self._registers // GRAIN) * GRAIN))
            # Each scheduler has a fourth of the registers, and its warps theirs from there.
            of_each = self._timings.registers // QUARTERS // (given * WARP)
            limits.append(of_each * QUARTERS // warps)
        return max(1, min(*limits, -(-self._blocks // self._timings.sms)))

    @property
    def _registers(self) -> int:
        """Of a thread of a kernel of one agent: the assembler's, or by our count."""
        if self._subject.registers is not None:
            return self._subject.registers
        if self._memory is None or len(self._subject.score) != 1:
            return 0
        (score,) = self._subject.score
        return ceil(registers_of(score, self._subject.programs, self._memory))

    def _loading(self) -> Threads | None:
        """The kernel as one whose threads load, if it is such, and its machine tells of those."""
        scores = self._subject.score
        if len(scores) != 1 or self._memory is None:
            return None
        (score,) = scores
        if any(copied for _, copied in loads(score.parts)):
            return None
        wave = range(min(self._blocks, self._timings.sms))
        touched = accesses(self._subject.kernel, wave, self._numbers)
        if all(access.stores for access in touched.values()):
            return None
        met = [op for op in self._subject.kernel.body.operations if kind_of(op).startswith(REDUCES)]
        return Threads(
            score, self._subject.programs, touched, self._memory, self._machine, self._resident,
            len(met),
        )  # fmt: skip

    def _turns(self, loop: int | None) -> float:
        """How often a loop goes round in a block, with those around it, on average of a few."""
        last = self._blocks - 1
        some = [self._work(block) for block in sorted({0, last // 3, last // 2, last})]
        if loop is None:
            return sum(map(len, some)) / len(some)
        at = [p.number if isinstance(p, LoopScore) else None for p in self._loops].index(loop)
        return sum(tile[at] for tiles in some for tile in tiles) / len(some)

    # One block -----------------------------------------------------------------------------------

    def _work(self, block: int) -> Tiles:
        """What a block goes over: of each turn of the loop around others, if there is one, how
        often each loop goes round."""
        if block not in self._tiles and not self._told_at_once():
            self._tiles[block] = tuple(self._walked(block))
        return self._tiles[block]

    def _told_at_once(self) -> bool:
        """Whether what all blocks go over can be told together, and is from now on."""
        if self._around is None or not self._around[1] or self._grid != (self._blocks, 1, 1):
            return False
        around = self._around[0]
        bounds = [None if p is around else (p.lower, p.upper, p.step) for p in self._loops]
        told = [b for b in (*bounds, (around.lower, around.upper, around.step)) if b is not None]
        if around.counter is None or any(value is None for one in told for value in one):
            return False

        def numbers_at(blocks: Any) -> Numbers:
            at = (blocks, 0, 0)
            return Numbers(self._maker, self._given, self._grid, at, self._asked)

        *loops, outer = (one and [v for v in one if v is not None] for one in (*bounds, told[-1]))
        assert outer is not None
        every = trips_of_turns(numbers_at, outer, around.counter, loops, self._blocks)
        if every is None:
            return False
        self._tiles = {block: tuple(tiles) for block, tiles in enumerate(every)}
        return True

    def _walked(self, block: int) -> Iterator[Trips]:
        numbers = self._numbers(block)
        if self._around is None:
            yield self._trips(numbers)
            return
        around, varies = self._around
        turns = self._told_trips(numbers, around)
        first = None if around.lower is None else numbers.of(around.lower)
        step = None if around.step is None else numbers.of(around.step)
        if around.counter is None or first is None or step is None or not varies:
            yield from (self._trips(numbers),) * turns
            return
        for turn in range(turns):
            numbers.bind(around.counter, first + turn * step)
            yield self._trips(numbers)

    def _trips(self, numbers: Numbers) -> Trips:
        """Of each loop, in the present turn of the one around it."""
        around = None if self._around is None else self._around[0]
        return tuple(1 if p is around else self._told_trips(numbers, p) for p in self._loops)

    def _told_trips(self, numbers: Numbers, part: LoopScore | Around) -> int:
        trips = numbers.trips(part.lower, part.upper, part.step)
        return (self._assumed or 0) if trips is None else trips

    def _length(self, tiles: Tiles) -> float:
        """Cycles of a block that goes over these: those behind the first begin while the one before
        ends."""
        if not tiles:
            return self._timings.block
        first, *others = tiles
        return self._timed(first).alone + sum(self._timed(tile).further for tile in others)

    def _timed(self, trips: Trips) -> Timed:
        """A tile, alone in a block and behind another."""
        if trips not in self._timings_of:
            if self._threads is not None:
                cycles, outcome = self._loaded(self._threads, trips)
                found = Timed(cycles, cycles, self._steady(trips, outcome), outcome)
            else:
                found = self._tile(trips)
            self._timings_of[trips] = found
        return self._timings_of[trips]

    def _tile(self, trips: Trips) -> Timed:
        longest = CHANGING_TRIPS if self._around is not None and self._around[1] else TRIPS
        most = tuple(longest if isinstance(p, LoopScore) else TURNS for p in self._loops)
        short = tuple(min(pair) for pair in zip(trips, most, strict=True))
        outcome, twice = self._run(short)
        left = 0.0
        for loop, all_of, some in zip(self._loops, trips, short, strict=True):
            if isinstance(loop, LoopScore):
                step = self._pace(outcome, loop.number)
                # Steps that were run went tile by tile.
                ran = pace(outcome, loop.number)
                ran_otherwise = step - ran if ran else 0.0
                left += step * (all_of - some) + ran_otherwise * max(0, some - loop.first)
        alone = self._timings.block + outcome.cycles + left
        further = twice.cycles - outcome.cycles + left
        crowded = self._crowded(trips)
        alone, further = alone + crowded, further + crowded
        return Timed(alone, further, self._steady(trips, outcome), outcome)

    def _crowded(self, trips: Trips) -> float:
        """Cycles in which more than two consumers get into their loops, and out of them."""
        known = self._timings.crowded
        if not known or self._subject.consumers <= UNCROWDED or self._stock is not None:
            return 0.0
        cycles = known[min(self._subject.consumers - UNCROWDED, len(known)) - 1]
        return cycles * sum(
            n > 0 and any(beat.kind == "product" for beat in loop.kernel)
            for score in self._subject.score[:1]
            for loop, n in zip(loops_of(score.parts), trips, strict=True)
            if isinstance(loop, LoopScore)
        )

    def _steady(self, trips: Trips, outcome: Outcome) -> float:
        """Cycles of the steady parts of a tile's loops."""
        threads = self._threads is not None
        return sum(
            (mean(outcome, p.number) if threads else self._pace(outcome, p.number))
            * max(0, n - p.first)
            for p, n in zip(self._loops, trips, strict=True)
            if isinstance(p, LoopScore)
        )

    def _loaded(self, threads: Threads, trips: Trips) -> tuple[float, Outcome]:
        """Cycles of a block where threads load, and the run that tells them."""
        if trips not in self._lengths:
            turns = dict(zip(map(_key, self._loops), trips, strict=True))
            self._lengths[trips] = threads.length(lambda part: turns[_key(part)])
        return self._lengths[trips]

    def _run(self, short: Trips) -> tuple[Outcome, Outcome]:
        """A run of so many trips, and one that makes them twice, if a loop is around them."""
        if short not in self._runs:
            by_number = {
                loop.number: n
                for loop, n in zip(self._loops, short, strict=True)
                if isinstance(loop, LoopScore)
            }

            def going(turns: int) -> Outcome:
                def often(part: LoopScore | Around) -> int:
                    if isinstance(part, LoopScore):
                        return by_number[part.number]
                    outer = self._around is not None and _same(part, self._around[0])
                    return turns if outer else TURNS

                together = min(self._resident, TOGETHER)
                return run(self._subject, self._costing, often, together)

            once = going(1)
            self._runs[short] = (once, once if self._around is None else going(TURNS))
        return self._runs[short]

    def watched(self) -> Watched:
        (trips, *_) = self._work(0)

        def often(part: LoopScore | Around) -> int:
            if isinstance(part, Around):
                return TURNS
            return by_number[part.number]

        by_number = {
            loop.number: min(n, TRIPS)
            for loop, n in zip(self._loops, trips, strict=True)
            if isinstance(loop, LoopScore)
        }
        together = min(self._resident, TOGETHER)
        outcome, programs = watch(self._subject, self._costing, often, together)
        steps: dict[str, int] = {}
        for score in self._subject.score:
            for loop in loops_of(score.parts):
                if isinstance(loop, LoopScore) and loop.number == FIRST:
                    steps[score.agent] = by_number[FIRST] + loop.ahead - loop.first
        return Watched(outcome, programs, steps, self._costing)

    # All of them ---------------------------------------------------------------------------------

    def pace(self) -> Pace | None:
        """Of a kernel whose threads load."""
        if self._threads is None:
            return None
        (trips, *_) = self._work(0)
        cycles, _ = self._loaded(self._threads, trips)
        turns = dict(zip(map(_key, self._loops), trips, strict=True))
        alone = self._threads.unhindered(lambda part: turns[_key(part)], cycles)
        # What has no register is stored and loaded again: the more there is, the worse.
        worse = max(1.0, self._registers / REGISTERS)
        return Pace(cycles * worse / self._resident, alone * worse, self._resident)

    def found(self) -> Prediction:
        last = self._blocks - 1
        same = len({self._work(block) for block in (0, last // 3, last // 2, last)}) == 1
        same = same and self._around is None
        if self._blocks > BLOCKS_WALKED and not same:
            told = f"{self._blocks:,} blocks, whose loops go round differently often"
            raise StrettoError(f"{told}; give a grid of at most {BLOCKS_WALKED:,}")
        ordered = [self._work(block) for block in range(1 if same else self._blocks)]
        lengths = {tiles: self._length(tiles) for tiles in dict.fromkeys(ordered)}
        places = self._timings.sms * self._resident
        # Where threads load, a block's length has what passes until the next one begins.
        gap = self._memory.follow[0] if self._memory and self._threads is None else 0.0
        if len(self._subject.score) > 1 and self._stock is None:
            gap = max(gap, self._timings.follow)
        busy = [0.0] * min(places, self._blocks)
        if same:
            most, fewest = -(-self._blocks // places), max(1, self._blocks // places)
            busy = [n * (lengths[ordered[0]] + gap) - gap for n in (fewest, most)]
        heapify(busy)
        for tiles in () if same else ordered:
            heapreplace(busy, busy[0] + lengths[tiles] + (gap if busy[0] else 0.0))
        cycles = self._ended(max(busy), ordered[0][0]) if same else max(busy)
        middle = sorted(ordered, key=lambda tiles: lengths[tiles])[len(ordered) // 2]
        steady = sum(self._timed(tile).steady for tile in middle)
        trips = sorted(middle)[len(middle) // 2]
        outcome = self._timed(trips).outcome
        loops = tuple(
            self._told(loop, n, outcome)
            for loop, n in zip(self._loops, trips, strict=True)
            if isinstance(loop, LoopScore)
        )
        return Prediction(
            kernel=self._subject.kernel.name,
            machine=self._machine.name,
            mode=self._subject.mode,
            consumers=self._subject.consumers,
            rings=dict(self._subject.depths),
            grid=self._asked,
            loops=loops,
            block=lengths[middle],
            fill=max(0.0, lengths[middle] - steady),
            resident=self._resident,
            crowd=self._residents(memory=False),
            waves=self._blocks / places,
            cycles=cycles,
            tail=cycles - min(busy) if self._blocks >= places else 0.0,
            clock=self._clock,
            seconds=cycles / (self._clock * 1e6) + self._timings.launch * 1e-9,
            flops=sum(map(self._flops, ordered)) * (self._blocks if same else 1),
            spilled=self._spilled(),
            assembled=self._subject.assembled is not None,
        )

    def _spilled(self) -> int:
        """Registers of a thread that are too many, or bytes that the assembler stores for them."""
        assembled = self._subject.assembled
        return max(0, self._registers - REGISTERS) if assembled is None else assembled.spilled

    def _ended(self, cycles: float, trips: Trips) -> float:
        """The same where threads load: the last blocks of an SM are fewer, and so the faster."""
        sms = self._timings.sms
        full, left = divmod(self._blocks, sms * self._resident)
        if self._threads is None or not full or not left:
            return cycles
        few = replace(self._threads, resident=-(-left // sms))
        turns = dict(zip(map(_key, self._loops), trips, strict=True))
        length, _ = few.length(lambda part: turns[_key(part)])
        return min(cycles, full * self._timed(trips).alone + length)

    def _flops(self, tiles: Tiles) -> float:
        """Of a block."""
        total = 0.0
        for trips in tiles:
            often = list(zip(self._loops, trips, strict=True))
            turns = prod(n for part, n in often if isinstance(part, Around))
            total += turns * sum(
                self._costing.flops(p.number) * n for p, n in often if isinstance(p, LoopScore)
            )
        return total

    def _told(self, loop: LoopScore, trips: int, outcome: Outcome) -> LoopTime:
        program = self._subject.programs[loop.number]
        alone = self._threads is None
        step = self._pace(outcome, loop.number) if alone else mean(outcome, loop.number)
        cycles = step or program.ii
        coded = loop.number in self._coded
        spent = {
            agent: _whole_step(loops[loop.number], cycles, CODED if coded else OTHER)
            for agent, loops in outcome.parts.items()
            if step and loop.number in loops
        }
        units = units_of(loop.number, self._subject.score, self._costing)
        agent, kinds = kinds_of(spent)
        return LoopTime(
            program.loop.name, program.ii, program.stage_count, cycles, trips, units, spent,
            bound_of(cycles, units, kinds), agent, kinds, coded,
        )  # fmt: skip


def _whole_step(parts: Mapping[str, float], cycles: float, rest: str) -> dict[str, float]:
    """Parts of a step that add up to it: what agents do, tile by tile, and what that leaves out."""
    left = cycles - sum(parts.values())
    return {**parts, rest: left} if abs(left) >= LEFT_OUT else dict(parts)


def _same(part: Around, other: Around) -> bool:
    """Whether agents go round together: each has the loop in a form of its own."""
    same = part.lower is other.lower and part.upper is other.upper
    return same and part.step is other.step


def _key(loop: LoopScore | Around) -> object:
    return loop.number if isinstance(loop, LoopScore) else id(loop)
