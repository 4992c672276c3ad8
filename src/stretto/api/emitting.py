"""Kernels out: from the files their users have to source that runs on a GPU.

kernel.ttir ──► split between replicas ──► lowered ──┬► scheduled ──► programs ──► Gluon
kernel.mlir ─────────────────────────────────────────┘
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import log
from os import PathLike
from typing import Any, Literal

from stretto.api import deadline_of, fields_of
from stretto.api.checking import legal
from stretto.api.iterations import one_at_a_time
from stretto.api.kernels import is_kernel, kernels_of, machine_of
from stretto.api.overlap import Overlap, overlap_of
from stretto.api.overlapping import overlapped
from stretto.api.read_write import is_mlir, path_of, read_input
from stretto.api.shortening import shortened
from stretto.api.solving import ScheduleResult, schedule
from stretto.deadline import NEVER, Deadline, OverdueError, cut_off
from stretto.emit import EmitError, Emitted, emit_gluon
from stretto.errors import DocumentError, StrettoError, listed
from stretto.generate import SERIAL
from stretto.generate.problem import RETRIES, TIES
from stretto.ir import read_schedules
from stretto.ir.diagnostics import MlirError
from stretto.ir.kernels.running import (
    RunnableKernel,
    RunnableLoop,
    runnable_kernels,
    runnable_text,
)
from stretto.ir.passes.published import PublishedLoop
from stretto.kernel import Kernel, Operation, Value
from stretto.kernel.configuration import DEFAULT, Blocks, Configuration
from stretto.kernel.errors import KernelError
from stretto.kernel.lowering.held import GROUP_ROWS, groups_of
from stretto.kernel.partition import ONE_CONSUMER
from stretto.kernel.tree import kind_of
from stretto.kernel.types import Buffer, Tile, shape_of
from stretto.kernel.wiring import LoopWiring
from stretto.kinds import checked
from stretto.loop import Loop, LoopError
from stretto.machine import Machine, load_machine
from stretto.machine.choice import ASKED, KERNELS, NAMED, chosen_for_kernel
from stretto.machine.machine import REGISTER_BYTES
from stretto.materialize import Program, materialize
from stretto.ops.opcodes import opcode
from stretto.ops.spaces import STAGING
from stretto.predict.running import Assembled, Subject
from stretto.predict.whole import Pace, pace_of_threads
from stretto.problem.registers import Registers
from stretto.program.builder import Looped, SharedMemoryError, Worker
from stretto.program.builder.scratch import with_scratch
from stretto.program.errors import ALONE
from stretto.program.traces import Tracing
from stretto.resources.prepare import Prepared, prepare
from stretto.solution import counted
from stretto.solve.scheduling import lifted
from stretto.verify import verify as violations_of

EmitMode = Literal["specialized", "unspecialized"]
SCHEMA = "stretto.emitted/1"
GROUP_WARPS = 4
SUM_COLUMNS = 128
"""Columns of a sum in tensor memory that one group of warps has registers for."""
STAGES: dict[EmitMode, tuple[int, ...]] = {"specialized": (6, 4, 3, 2), "unspecialized": (3, 2)}
"""Stages that are tried: each writes every operation once more, and holds registers for longer."""
DRAINED = (1, 2, 4, 8)
"""Iterations of a loop that may run together where threads load, each to its end before others."""
TOLD = 0.01
"""Of a predicted pace or an II: what two kernels differ by at least before one is said to be
faster; each stage more holds registers for longer."""
NEAR = 1.15
"""Of the best pace: up to which the assembler is asked for the registers of a kernel."""
ONCE = (RETRIES, TIES)
"""Left out of schedules: several numbers of stages are tried here, and the solver has its turn.
With members of groups held together IIs are smaller by up to 18 %; on an H200 that made 9 of 21
kernels faster, by up to 21 %, and 7 slower, by up to 13 %: so what was measured stays."""
SOLVED_STAGES = 3
"""Stages of a schedule that the solver is asked for: copies, and two iterations that meet."""
SOLVED_WORK = 2.0
"""Units of the solver's deterministic work for an II; 0: it is not asked."""
OVERLAPPED_STAGES = 4
"""Stages of a schedule in which consumers overlap their products."""
APART = 2
"""Consumers up to which a search overlaps products of each by itself."""
MOST = 255
"""Registers that a thread may have."""
BARRIERS = 1024
"""Bytes of shared memory that barriers take at most."""


@dataclass(frozen=True)
class EmittedKernel:
    """Source, and the schedules that it runs by."""

    emitted: Emitted
    analyses: tuple[ScheduleResult, ...]
    consumers: int
    mode: EmitMode
    notes: tuple[str, ...] = ()
    kernel: Kernel | None = field(default=None, repr=False, compare=False)
    """Lowered, as it was emitted."""
    looped: tuple[Looped, ...] = field(default=(), repr=False, compare=False)
    """Its loops, in their order."""
    over: int = 0
    """Registers of a thread that are too many, by our count."""
    pace: Pace | None = field(default=None, repr=False, compare=False)
    """Where threads load: how fast that is predicted to be."""
    registers: int | None = field(default=None, repr=False, compare=False)
    """Of a thread, where the assembler was asked."""
    assembled: Assembled | None = field(default=None, repr=False, compare=False)
    """What else the assembler made of it, where it was asked for all."""
    stopped: bool = False
    """Whether a time limit came before all was tried."""
    machine: str = ""
    machine_why: str = ""
    """Why it is emitted for this machine."""

    @property
    def subject(self) -> Subject:
        """What is predicted of it."""
        assert self.kernel is not None
        made = self.emitted
        return Subject(
            self.kernel, made, self.programs, made.rings, self.registers, self.assembled,
            self.consumers, self.mode,
        )  # fmt: skip

    @property
    def programs(self) -> tuple[Program, ...]:
        """Of its loops, in their order."""
        return tuple(loop.program for loop in self.looped)

    @property
    def overlap(self) -> Overlap:
        """What of it runs beside something else; nothing if empty."""
        return overlap_of(self.looped, self.analyses, self.mode == "specialized")

    @property
    def slots(self) -> int:
        """Of the longest ring in shared memory, by its schedules alone."""
        uses = [use for analysis in self.analyses for use in analysis.storages]
        return max((use.ring_depth for use in uses if use.space == STAGING), default=0)

    @property
    def source(self) -> str:
        """The Gluon source."""
        return self.emitted.source

    def to_text(self) -> list[str]:
        """The source, line by line."""
        return self.source.rstrip("\n").split("\n")

    def to_json(self) -> dict[str, Any]:
        """For programs: the source, and what it was made by."""
        made = self.emitted
        return {
            "schema": SCHEMA,
            "success": True,
            "kernel": made.name,
            "machine": self.machine,
            "machine_why": self.machine_why,
            "mode": self.mode,
            "consumers": self.consumers,
            "warps": made.warps,
            "maxnreg": made.maxnreg,
            "bytes": made.smem,
            "rings": dict(made.rings),
            "loops": [
                {"name": a.loop, "ii": a.ii, "stage_count": a.stage_count} for a in self.analyses
            ],
            "source": self.source,
            "notes": list(self.notes),
            "stopped": self.stopped,
        }

    @property
    def length(self) -> int:
        """Cycles an iteration, of all its loops."""
        return sum(analysis.ii or 0 for analysis in self.analyses)

    @property
    def order(self) -> tuple[float, ...]:
        """What is smaller is faster: the pace where threads load, and at one pace loops that go on,
        by their II, before those that are drained, by blocks that an SM has, whose rows share its
        cache, and then by what they have to spare; else the II, at one II stages, and consumers."""
        if self.pace is None:
            stages = max((a.stage_count or 0 for a in self.analyses), default=0)
            return round(log(max(1, self.length)) / TOLD), stages, self.length, -self.consumers
        first = round(log(self.pace.cycles) / TOLD)
        if not any(loop.drained for loop in self.looped):
            return first, False, self.length
        return first, True, self.pace.resident, self.pace.alone

    def fits(self, consumers: int, stages: int) -> bool:
        """Whether it has so many consumers, and no loop of it more stages."""
        most = max((a.stage_count or 0 for a in self.analyses), default=0)
        return self.consumers == consumers and most <= stages

    @property
    def short(self) -> bool:
        """Whether no loop can be shorter, by its bounds."""
        return all(a.bounds is not None and (a.ii or 0) <= a.bounds.mii for a in self.analyses)

    @property
    def schedules(self) -> tuple[object, ...]:
        """What tells it from another of the same kernel."""
        drained = tuple(loop.drained for loop in self.looped)
        return self.consumers, tuple((a.ii, a.starts) for a in self.analyses), drained


@checked
def emit(
    kernel: str | PathLike[str] | Kernel,
    machine: Machine | str | None = None,
    *,
    mode: EmitMode | None = None,
    consumers: int | None = None,
    depth: int | None = None,
    blocks: Blocks | None = None,
    agents: Mapping[str, str] | None = None,
    seed: int = 0,
    assemble: Assemble | None = None,
    tracing: Tracing | None = None,
    time_limit: float | Deadline | None = None,
) -> EmittedKernel:
    """A Triton or cuTile kernel as Gluon source, pipelined by its schedules.

    A kernel that `stretto import` has lowered to MLIR is taken as it is: its machine, its agents,
    and the schedules that stand on its loops, if they are legal.

    `consumers` is how many groups of warps compute, each on its part of the rows; left out, as many
    as the machine has and the kernel can be split between, whichever gives the smaller II.
    A kernel without products runs in one group of warps that does everything, as does one for
    which `mode` is ``unspecialized``. Rings have at most `depth` slots; left out, as many as shared
    memory has room for.
    `blocks` are those that a launch has (``given``, as it is left out), the same in an order in
    which those that have most to do come first (``longest``), or one for each SM, which goes over
    several tiles (``persistent``). More consumers than are tried are had by asking, as many as the
    machine has registers for: each then overlaps its products.
    `agents` says of operations of loops, by name, which agent issues them: ``{"k": "compute"}`` has
    the group of warps that computes issue a copy; the others stand where the machine says.

    Schedules of several stage counts are tried. Taken is the smallest II whose registers do not
    spill by our count. Where threads load and nothing is multiplied, the II tells little: taken is
    what is predicted to be fastest, with loops that go round eight times where nobody tells.
    `assemble` compiles a kernel (`stretto.launching.compiling.compile_emitted`, which needs Triton
    and no GPU): then taken is the first that fits shared memory and runs as it was scheduled, by
    the compiler's own figures, else of those that fit the one that spills the fewest bytes.
    EmitError where none fits.
    With `tracing`, the kernel takes one argument more, `trace`, to which it writes clocks.
    After `time_limit` seconds no more is tried: the answer is the best so far, `stopped`; at
    least, loops one iteration after the other.
    """
    deadline = deadline_of(time_limit)
    with cut_off(deadline):
        emitter = Emitter(
            kernel, machine, mode=mode, blocks=blocks, seed=seed, tracing=tracing,
            deadline=deadline,
        )  # fmt: skip
    made = emitter.candidates(consumers, depth, agents)
    return emitter.told(emitter.chosen(made, assemble))


Assemble = Callable[[Emitted], Assembled]
"""Compiles a kernel."""


_Solved = tuple[int, Sequence[Looped], Sequence[ScheduleResult]]
"""A number of consumers, loops with their programs, and the schedules of those."""


class Emitter:
    """Emits one kernel in several configurations; what they share is worked out once."""

    def __init__(
        self,
        kernel: str | PathLike[str] | Kernel,
        machine: Machine | str | None = None,
        *,
        mode: EmitMode | None = None,
        blocks: Blocks | None = None,
        seed: int = 0,
        tracing: Tracing | None = None,
        effort: str = "normal",
        deadline: Deadline = NEVER,
    ) -> None:
        self._kernel = kernel
        self._given = _read(kernel, machine, blocks or DEFAULT.blocks)
        self.machine, self.machine_why = self._given.machine, self._given.machine_why
        self.name = self._given.name
        if not self.machine.agents:
            told = f"machine {self.machine.name} does not say who issues what"
            raise StrettoError(f"{told}; emit for one with agents, such as {KERNELS}")
        if mode is not None and mode not in STAGES:
            raise StrettoError(f"mode {mode!r}; known: {', '.join(STAGES)}")
        products = self._given.has_products
        self.mode: EmitMode = mode or ("specialized" if products else "unspecialized")
        self._asked: EmitMode | None = mode
        self._seed = seed
        self._tracing: Tracing | None = tracing
        self._effort = effort
        self._deadline = deadline
        self._until = deadline
        """When the search for one schedule ends."""
        self._stopped = False
        """Whether the deadline came before all was tried."""
        self._drafted: set[object] = set()
        """Of what there is source, by the number of consumers and the agents that were given."""
        self._ready: dict[int, RunnableKernel] = {}
        self._rooms: dict[tuple[int, str, int], Machine] = {}
        self._scratch: dict[int, int] = {}
        """Bytes of shared memory that Triton takes by itself, with so many consumers."""
        self._counted = True
        """Whether schedules keep to the registers of agents; not, where none does."""
        self._made: dict[tuple[int, int], list[tuple[int, EmittedKernel]]] = {}
        self._draws: list[EmittedKernel] | None = None
        self._known: dict[tuple[str, int], tuple[Loop, ScheduleResult]] = {}
        self._paces: dict[str, EmittedKernel] = {}

    @property
    def counts(self) -> tuple[int, ...]:
        """Numbers of consumers that it may have."""
        return self._given.counts(self.mode, None)

    def candidates(
        self,
        consumers: int | None = None,
        depth: int | None = None,
        agents: Mapping[str, str] | None = None,
        stages: Sequence[int] = (),
    ) -> list[EmittedKernel]:
        """A kernel for each number of consumers and of stages that differs from the others.

        StrettoError where there is none. Where no schedule keeps to the registers of agents, those
        that do not are taken: such a kernel spills, and runs.
        """
        self._crowd(consumers or 1)
        _require(self.machine, self._asked, consumers, depth)
        counts = self._given.counts(self.mode, consumers)
        if agents and len(counts) > 1:
            hint = "operations are named once rows are split: say how many consumers there are"
            told = f"agents are given, and 1 to {counts[-1]} consumers are tried"
            raise StrettoError(f"{told}; {hint}")
        unprintable: list[StrettoError] = []
        counts = self._printable(counts, agents or {}, unprintable)
        refused: list[StrettoError] = []
        made = self._tried(counts, depth, agents or {}, stages, refused)
        if not made and counts and not self._deadline.over:
            self._counted = False
            self._known.clear()
            made = self._tried(counts, depth, agents or {}, stages, refused)
            self._counted = True
            self._known.clear()
        if not made and self._stopped:
            made = self._tried(counts, depth, agents or {}, (1,), refused, serial=True)
        if not made:
            why = self._reason(
                refused or unprintable
            )  # that one number of several cannot be is none
            return self._alone(consumers, depth, agents, stages, why)
        if self._given.has_products or agents:
            return made
        made = [self._paced(one) for one in made]
        if made[0].pace is None or stages or self._late:
            return made
        if self._draws is None:
            self._draws = self._draining()
        return made + [one for one in self._draws if _differs(one, made)]

    def _crowd(self, consumers: int) -> None:
        """Have as many replicas as are asked for, where the machine allows more than it has."""
        machine = self.machine.crowded(consumers)
        if machine is not self.machine and isinstance(self._given, _Tiles):
            self._given = replace(self._given, machine=machine)
            self.machine = machine

    def _reason(self, refused: Sequence[StrettoError]) -> StrettoError:
        """Why there is no kernel; where what its hint names is refused too, why that is."""
        if not refused:
            return EmitError(f"no loop of `{self.name}` has a schedule")
        told = refused[0]
        hint = told.hint if isinstance(told, EmitError | KernelError) else ""
        if ONE_CONSUMER in hint:
            try:
                self._draft(1, {})
            except (EmitError, KernelError) as error:
                return error
        return told

    def _alone(
        self,
        consumers: int | None,
        depth: int | None,
        agents: Mapping[str, str] | None,
        stages: Sequence[int],
        why: StrettoError,
    ) -> list[EmittedKernel]:
        """The kernel in one group of warps, where agents cannot have it; the StrettoError that
        says why not, where that cannot be either: that of the way which a hint names, if one."""
        if self._asked is not None or self.mode == "unspecialized" or consumers not in (None, 1):
            raise why
        if agents or self._deadline.over:
            raise why
        alone = Emitter(
            self._kernel, self.machine, mode="unspecialized", seed=self._seed,
            tracing=self._tracing, effort=self._effort, deadline=self._deadline,
        )  # fmt: skip
        try:
            made = alone.candidates(None, depth, None, stages)
        except StrettoError as error:
            hint = why.hint if isinstance(why, EmitError | KernelError) else ""
            raise (error if ALONE in hint else why) from error
        self._stopped = self._stopped or alone._stopped
        note = f"in one group of warps, since agents cannot have it: {why}"
        return [replace(one, notes=(*one.notes, note)) for one in made]

    @property
    def _late(self) -> bool:
        """Whether the deadline has come; then something is left untried."""
        self._stopped = self._stopped or self._deadline.over
        return self._deadline.over

    def told(self, made: EmittedKernel) -> EmittedKernel:
        """With what the deadline left untried."""
        if not self._stopped:
            return made
        note = f"the time limit of {self._deadline.seconds:g} s came before all was tried"
        return replace(made, stopped=True, notes=(*made.notes, note))

    def _printable(
        self, counts: Sequence[int], placed: Mapping[str, str], refused: list[StrettoError]
    ) -> list[int]:
        """Numbers of consumers with which there is source for the kernel: found out before any
        search, by writing it with its loops one iteration after the other."""
        found: list[int] = []
        for count in counts:
            try:
                self._draft(count, placed)
            except (EmitError, KernelError) as error:
                refused.append(error)
            else:
                found.append(count)
        return found

    def _draft(self, consumers: int, placed: Mapping[str, str]) -> None:
        """Write the kernel with loops in order and rings of one slot, the least that it takes;
        EmitError where it cannot be written, or does not fit."""
        key = (consumers, tuple(sorted(placed.items())))
        if key in self._drafted:
            return
        ready, endless = self._placed(consumers, placed), _endless(self.machine)
        looped: list[Looped] = []
        for loop in ready.loops:
            found = schedule(loop.wiring.loop, endless, SERIAL)
            if not found.success:
                return
            problem = found.problem
            program = materialize(problem.loop, problem.machine, found, self.mode)
            looped.append(Looped(loop.operation, loop.wiring, program))
        agents = self.machine.replicas_of_products(consumers)
        workers = _workers(ready, self.machine, agents, self.mode, placed.values())
        made = emit_gluon(ready.kernel, looped, endless, workers, depth=1)
        budget = self.machine.budget(STAGING)
        if budget is not None and budget.bytes is not None and made.smem > budget.bytes:
            raise SharedMemoryError(made.smem, made.scratch, budget.bytes, self.machine.name)
        self._drafted.add(key)
        self._scratch[consumers] = max(self._scratch.get(consumers, 0), made.scratch)

    def _tried(
        self,
        counts: Sequence[int],
        depth: int | None,
        agents: Mapping[str, str],
        stages: Sequence[int],
        refused: list[StrettoError],
        serial: bool = False,
    ) -> list[EmittedKernel]:
        """A kernel for each number of consumers and of stages, where there is one."""
        made: list[EmittedKernel] = []
        asked = list(itertools.product(counts, stages or STAGES[self.mode]))
        for number, (count, limit) in enumerate(asked):
            if self._late and not serial:
                return made
            if self._effort == "quick" and any(one.fits(count, limit) for one in made):
                continue  # a looser limit was kept to already
            self._until = self._deadline.share(1 / (len(asked) - number))
            try:
                if self._effort == "quick" and depth is not None and not agents:
                    found = self._quickly(count, limit, depth)
                else:
                    found = self._emitted(count, limit, depth, agents, serial=serial)
            except (EmitError, KernelError, LoopError, OverdueError) as error:
                self._stopped = self._stopped or isinstance(error, OverdueError)
                refused.append(error)
                continue
            if found is not None and all(found.schedules != other.schedules for other in made):
                made.append(found)
        if self._late or not counts:
            return made
        return made + self._solved(made, max(counts), depth, agents, stages)

    def _paced(self, made: EmittedKernel) -> EmittedKernel:
        """With what is predicted of it, where threads load."""
        if made.source not in self._paces:
            paced = replace(made, pace=pace_of_threads(made.subject, self.machine))
            self._paces[made.source] = paced
        return self._paces[made.source]

    def chosen(
        self, made: Sequence[EmittedKernel], assemble: Assemble | None = None
    ) -> EmittedKernel:
        """The candidate that is emitted, and so the one that is predicted."""
        if assemble is not None:
            return self.settled(made, assemble)
        best = _best_pace(made)
        return min(made, key=lambda one: (one.over, *_worth(one, best)))

    def settled(self, made: Sequence[EmittedKernel], assemble: Assemble) -> EmittedKernel:
        """The first that fits shared memory and that the assembler keeps to, else of those that
        fit the one that spills the fewest bytes; EmitError where none fits, and what the compiler
        raises where it takes none."""
        best = _best_pace(made)
        failed: list[Exception] = []
        near = [
            self._repaced(one)
            for one in self._compiled(
                (one for one in made if _is_near(one, best)), assemble, failed
            )
        ]
        near += [one for one in made if not _is_near(one, best)]
        best = _best_pace(near)
        spilling: list[tuple[int, EmittedKernel]] = []
        refused: list[EmitError] = []
        for one in sorted(near, key=lambda one: _worth(one, best)):
            for known in self._compiled((one,), assemble, failed):
                try:
                    assembled = self.require(known)
                except EmitError as error:
                    refused.append(error)
                    continue
                if assembled.clean:
                    return known
                spilling.append((assembled.spilled, known))
        if not spilling:
            raise (*refused, *failed)[0]
        return min(spilling, key=lambda pair: pair[0])[1]

    def _compiled(
        self, made: Iterable[EmittedKernel], assemble: Assemble, failed: list[Exception]
    ) -> Iterator[EmittedKernel]:
        """Those that the compiler takes, with what the assembler made of them; whatever it raises
        of another is put with what failed, since the next may do."""
        for one in made:
            if one.assembled is not None:
                yield one
                continue
            try:
                known = self.assembled(one, assemble)
            except Exception as error:
                failed.append(error)
            else:
                yield known

    def assembled(self, made: EmittedKernel, assemble: Assemble) -> EmittedKernel:
        """With what the assembler made of it."""
        assembled = assemble(made.emitted)
        return replace(made, registers=assembled.registers, assembled=assembled)

    def require(self, made: EmittedKernel) -> Assembled:
        """What the assembler made of it; EmitError where that cannot run."""
        assembled, budget = made.assembled, self.machine.budget(STAGING)
        assert assembled is not None
        room = None if budget is None else budget.bytes
        if room is not None and assembled.smem > room:
            told = f"`{self.name}` takes {assembled.smem:,} bytes of shared memory once compiled"
            hint = "smaller tiles, or --depth for shorter rings"
            raise EmitError(f"{told}, {self.machine.name} has {room:,}", hint=hint)
        if assembled.overwritten:
            told = f"`{self.name}` overwrites a factor that it still needs once compiled"
            raise EmitError(told, hint="another --depth or number of consumers may do")
        return assembled

    def _repaced(self, made: EmittedKernel) -> EmittedKernel:
        """With the pace that it has by its registers."""
        return replace(made, pace=pace_of_threads(made.subject, self.machine))

    def drained(self, together: Sequence[int]) -> EmittedKernel:
        """The kernel with at most so many iterations of each loop together, each to its end.

        EmitError where a loop cannot be.
        """
        made = self._emitted(1, together, None, {}, drained=True)
        if made is None:
            raise EmitError(f"no loop of `{self.name}` has a schedule of {together} stages")
        return self._paced(made)

    def _draining(self) -> list[EmittedKernel]:
        """Kernels whose loops are drained: all alike, then loop by loop from the best so far."""
        self._until = self._deadline
        loops = range(len(self.lowered(1).loops))
        found: dict[tuple[int, ...], EmittedKernel] = {}

        def look(together: tuple[int, ...]) -> None:
            if together not in found and not self._late:
                with suppress(EmitError, KernelError, OverdueError):
                    found[together] = self.drained(together)

        for many in DRAINED:
            look((many,) * len(loops))
        for loop in loops if found else ():
            best = min(found, key=lambda together: found[together].order)
            for many in DRAINED:
                look((*best[:loop], many, *best[loop + 1 :]))
        return list(found.values())

    def _solved(
        self,
        made: Sequence[EmittedKernel],
        consumers: int,
        depth: int | None,
        agents: Mapping[str, str],
        stages: Sequence[int],
    ) -> list[EmittedKernel]:
        """The kernel by the solver's schedules, where the generators' are longer than they must."""
        mine = [one for one in made if one.consumers == consumers]
        if self._effort == "quick" or self.mode != "specialized" or not SOLVED_WORK:
            return []
        self._until = self._deadline
        if any(one.short for one in mine):
            return []
        limit = max([n for n in stages if n <= SOLVED_STAGES], default=SOLVED_STAGES)
        try:
            found = self._emitted(consumers, limit, depth, agents, solve=True)
        except (EmitError, KernelError, LoopError):
            return []
        except OverdueError:
            self._stopped = True
            return []
        if found is None or any(found.schedules == other.schedules for other in made):
            return []
        return [found]

    def lowered(self, consumers: int) -> RunnableKernel:
        """The kernel, split between consumers and lowered."""
        if consumers not in self._ready:
            agents = self.machine.replicas_of_products(consumers)
            ready = self._given.ready(consumers)
            warps = _workers(ready, self.machine, agents, self.mode, ())[0].warps
            known = self._given.schedules  # legal as they were told, without scratch
            loops = tuple(
                loop
                if loop.wiring.loop.name in known
                else replace(loop, wiring=with_scratch(loop.wiring, ready.kernel, warps))
                for loop in ready.loops
            )
            self._ready[consumers] = replace(ready, loops=loops)
        return self._ready[consumers]

    def _quickly(self, consumers: int, stages: int, depth: int) -> EmittedKernel | None:
        """As `_emitted`; what was scheduled for longer rings, and needs none of them, stands."""
        known = self._made.setdefault((consumers, stages), [])
        for cap, one in known:
            if cap < depth or one.slots > depth:
                continue
            if max(one.emitted.rings.values(), default=0) <= depth:
                return one
            solved = (consumers, one.looped, one.analyses)
            known.append((depth, self._written(self.lowered(consumers), solved, depth, ())))
            return known[-1][1]
        found = self._emitted(consumers, stages, depth, {})
        if found is not None:
            known.append((depth, found))
        return found

    def _emitted(
        self,
        consumers: int,
        stages: int | Sequence[int],
        depth: int | None,
        placed: Mapping[str, str],
        *,
        solve: bool = False,
        drained: bool = False,
        serial: bool = False,
    ) -> EmittedKernel | None:
        """The kernel by schedules of so many stages, of the generators or of the solver.

        `stages` are those of all loops, or of each. `serial` has no loop searched.
        """
        ready = self._placed(consumers, placed)
        looped: list[Looped] = []
        analyses: list[ScheduleResult] = []
        for number, loop in enumerate(ready.loops):
            most = stages if isinstance(stages, int) else stages[number]
            room = self._room(consumers, loop)
            if not self._counted or serial or self.mode == "unspecialized":
                room = lifted(room)  # one group of warps has no agents
            known = self._given.schedules.get(loop.wiring.loop.name)
            capped = known is None and depth is not None
            wiring = _capped(loop.wiring, depth) if capped and depth else loop.wiring
            if known is None and serial:
                analysis = schedule(wiring.loop, room, SERIAL)
            elif known is None and solve:
                wiring, analysis = self._solve(wiring, consumers, room, most)
            elif known is None:
                analysis = self._scheduled(wiring.loop, room, most)
            else:
                stated = replace(room, agents=self.machine.agents)  # where it was found legal
                analysis = _kept(known, prepare(wiring.loop, stated))
            self._stopped = self._stopped or analysis.overdue
            if not analysis.success or analysis.spilled:
                return None
            if consumers > APART and known is None and not serial:
                analysis = self._overlapped(wiring, consumers, room, analysis)
            prepared = analysis.problem
            program = materialize(prepared.loop, prepared.machine, analysis, self.mode)
            looped.append(Looped(loop.operation, wiring, program, drained))
            analyses.append(analysis)
        try:
            return self._written(ready, (consumers, looped, analyses), depth, placed.values())
        except SharedMemoryError as error:
            if error.scratch <= self._scratch.get(consumers, 0):
                raise
            self._scratch[consumers] = error.scratch  # more than with loops in order: anew
            self._known.clear()
        return self._emitted(
            consumers, stages, depth, placed, solve=solve, drained=drained, serial=serial
        )

    def _placed(self, consumers: int, placed: Mapping[str, str]) -> RunnableKernel:
        """The kernel, lowered, with operations given to agents."""
        ready = self.lowered(consumers)
        if not placed:
            return ready
        agents = self.machine.replicas_of_products(consumers)
        return _with_agents(ready, placed, self.machine, agents)

    def _scheduled(self, loop: Loop, room: Machine, stages: int) -> ScheduleResult:
        """A loop by the generators; kernels of several loops have some of them in common."""
        known = self._known.get((loop.name, stages))
        if known is None or known[0] is not loop:
            made = schedule(
                loop, room, seed=self._seed, max_stages=stages, effort=self._effort,
                without=ONCE, time_limit=self._until,
            )  # fmt: skip
            known = self._known[loop.name, stages] = (loop, made)
        return known[1]

    def _solve(
        self, wiring: LoopWiring, consumers: int, room: Machine, stages: int
    ) -> tuple[LoopWiring, ScheduleResult]:
        """A loop by the solver, one iteration at a time, where that is shorter."""
        generated = schedule(
            wiring.loop, room, seed=self._seed, max_stages=stages, effort=self._effort,
            without=ONCE, time_limit=self._until,
        )  # fmt: skip
        agents = self.machine.replicas_of_products(consumers)
        if generated.bounds is None or generated.ii is None:
            return wiring, generated
        for apart in one_at_a_time(wiring, agents, generated.problem.loop):
            found = shortened(
                apart.loop, room, generated.bounds.ungrouped, generated.ii,
                max_stages=stages, work=SOLVED_WORK, seed=self._seed, deadline=self._until,
            )  # fmt: skip
            if found is not None:
                return apart, replace(found, bounds=generated.bounds)
        return wiring, generated

    def _overlapped(
        self, wiring: LoopWiring, consumers: int, room: Machine, found: ScheduleResult
    ) -> ScheduleResult:
        """A loop whose consumers all overlap their products, where there is such a schedule."""
        agents = self.machine.replicas_of_products(consumers)
        made = overlapped(
            wiring, room, agents, found.ii or 1,
            max_stages=OVERLAPPED_STAGES, seed=self._seed, deadline=self._until,
        )  # fmt: skip
        return made or found

    def _room(self, consumers: int, loop: RunnableLoop) -> Machine:
        """The machine with what the rest of the kernel leaves to a loop, and its warps."""
        scratch = self._scratch.get(consumers, 0)
        key = (consumers, loop.wiring.loop.name, scratch)
        if key not in self._rooms:
            ready, agents = self.lowered(consumers), self.machine.replicas_of_products(consumers)
            workers = _workers(ready, self.machine, agents, self.mode, ())
            beside = _beside(ready, loop.operation, self.machine, scratch)
            self._rooms[key] = _staffed(beside, workers, consumers)
        return self._rooms[key]

    def _over(self, consumers: int, analyses: Sequence[ScheduleResult]) -> int:
        """Registers of a thread that are too many, by the rule `registers`."""
        found = 0
        loops = self.lowered(consumers).loops if self.mode == "specialized" else ()
        for loop, analysis in zip(loops, analyses, strict=False):
            prepared = analysis.problem.loop
            starts = [analysis.starts[op.name] for op in prepared.ops]
            for peak in Registers(prepared, self._room(consumers, loop)).peaks(
                analysis.ii or 1, starts
            ):
                over = peak.bytes - peak.most
                found = max(found, -(-over // (peak.threads * REGISTER_BYTES)))
        return found

    def _written(
        self, ready: RunnableKernel, solved: _Solved, depth: int | None, placed: Iterable[str]
    ) -> EmittedKernel:
        consumers, looped, analyses = solved
        agents = self.machine.replicas_of_products(consumers)
        emitted = emit_gluon(
            ready.kernel,
            looped,
            self.machine,
            _workers(ready, self.machine, agents, self.mode, placed),
            depth=depth,
            title=_title(ready.kernel, self.machine, analyses, consumers),
            tracing=self._tracing,
        )
        return EmittedKernel(
            emitted,
            tuple(analyses),
            consumers,
            self.mode,
            ready.notes,
            ready.kernel,
            tuple(looped),
            self._over(consumers, analyses),
            machine=self.machine.name,
            machine_why=self.machine_why,
        )


def _require(
    machine: Machine, mode: EmitMode | None, consumers: int | None, depth: int | None
) -> None:
    """That what is asked for can be; StrettoError where it cannot."""
    if consumers is not None:
        machine.replicas_of_products(consumers)
    if consumers not in (None, 1) and mode == "unspecialized":
        told = f"{consumers} consumers in mode {mode}"
        raise StrettoError(f"{told}, in which one group of warps does everything")
    if depth is not None and depth < 1:
        raise StrettoError(f"rings of {depth} slots; at least 1 is needed")


def multiplies(kernel: Kernel) -> bool:
    """Whether a kernel of tiles has products, which groups of warps of their own compute."""
    return any(op.name == "tile.dot" for op in kernel.walk())


def _differs(made: EmittedKernel, others: Iterable[EmittedKernel]) -> bool:
    return all(made.schedules != other.schedules for other in others)


# What is given ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Tiles:
    """A kernel of tiles, which is split and lowered as often as it is tried."""

    kernel: Kernel
    machine: Machine
    machine_why: str
    blocks: Blocks = DEFAULT.blocks
    schedules: Mapping[str, PublishedLoop] = field(default_factory=dict[str, PublishedLoop])

    @property
    def name(self) -> str:
        return self.kernel.name

    @property
    def has_products(self) -> bool:
        return multiplies(self.kernel)

    def counts(self, mode: EmitMode, consumers: int | None) -> tuple[int, ...]:
        if mode == "unspecialized":
            return (1,)
        most = self.machine.agents_of_products().replicas
        return (consumers,) if consumers else tuple(range(1, most + 1))

    def ready(self, consumers: int) -> RunnableKernel:
        file, wanted = self.kernel.location.file, Configuration(consumers, self.blocks)
        (ready,) = runnable_kernels(file, (self.kernel,), self.machine, wanted)
        return replace(ready, kernel=replace(ready.kernel, warps=self.kernel.warps))


@dataclass(frozen=True)
class _Lowered:
    """A kernel that is lowered and split already, and the schedules that stand on its loops."""

    file: str
    kernel: RunnableKernel
    machine: Machine
    machine_why: str
    schedules: Mapping[str, PublishedLoop]

    @property
    def name(self) -> str:
        return self.kernel.kernel.name

    @property
    def has_products(self) -> bool:
        return any(opcode(kind_of(op)).accumulator for op in self.kernel.kernel.walk())

    def counts(self, mode: EmitMode, consumers: int | None) -> tuple[int, ...]:
        compute = self.machine.agents_of_products()
        named = {op.text("agent") for op in self.kernel.kernel.walk()}
        split = max(n + 1 for n in range(compute.replicas) if not n or compute.replica(n) in named)
        if consumers not in (None, split):
            hint = f"stretto import --consumers {consumers} splits it between {consumers}"
            told = f"has its rows in {counted(split, 'part')}, not in {consumers}"
            raise DocumentError(self.file, "", told, hint)
        return (1,) if mode == "unspecialized" else (split,)

    def ready(self, _: int) -> RunnableKernel:
        return self.kernel


_Given = _Tiles | _Lowered


def _read(
    kernel: str | PathLike[str] | Kernel, machine: Machine | str | None, blocks: Blocks
) -> _Given:
    if isinstance(kernel, Kernel):
        return _Tiles(kernel, *machine_of(kernel.location.file, kernel, machine), blocks)
    file, text = read_input(path_of(kernel, "a kernel, or the path of one,"))
    if is_kernel(file, text):
        found = kernels_of(file, text)
        if len(found) != 1:
            raise _several(file, len(found))
        return _Tiles(found[0], *machine_of(file, found[0], machine), blocks)
    if not is_mlir(text):
        hint = "expected a .ttir or a .tileirbc file, or a kernel that stretto import wrote"
        raise DocumentError(file, "", "is no kernel that can be emitted", hint)
    target = None if machine is None else load_machine(machine)
    return _read_lowered(file, text, target)


def _several(file: str, count: int) -> DocumentError:
    told = f"has {counted(count, 'kernel')}" if count else "has no kernel"
    return DocumentError(file, "", told, "give one at a time" if count else "")


def _read_lowered(file: str, text: str, machine: Machine | None) -> _Lowered:
    found = runnable_text(file, text, machine)
    if len(found) != 1:
        raise _several(file, len(found))
    (kernel,) = found
    own = {
        loop.machine.name: loop.machine
        for loop in kernel.loops
        if loop.wiring.loop.machine is not None
    }
    if machine is None and len(own) > 1:
        told = f"has loops for {listed(own)}"
        raise DocumentError(file, "", told, "say for which it is emitted with --machine")
    why = ASKED if machine is not None else NAMED
    target = machine or next(iter(own.values()), None)
    if target is None:
        name, why = chosen_for_kernel("")
        target = load_machine(name)
    schedules = {
        item.loop.name: item
        for item in read_schedules(file, text, target)
        if item.analysis is not None
    }
    return _Lowered(file, kernel, target, why, schedules)


# Ways to emit it -------------------------------------------------------------------------------


def _capped(wiring: LoopWiring, depth: int) -> LoopWiring:
    """The same loop with rings in shared memory of at most so many slots."""
    storages = tuple(
        s if s.fixed or s.space != STAGING else replace(s, depth=min(depth, s.depth or depth))
        for s in wiring.loop.storages
    )
    return replace(wiring, loop=replace(wiring.loop, storages=storages))


def _with_agents(
    ready: RunnableKernel, placed: Mapping[str, str], machine: Machine, replicas: Sequence[str]
) -> RunnableKernel:
    """Operations of its loops given to agents; StrettoError where there is no such."""
    compute = machine.agents_of_products()
    known = [a.name for a in machine.agents if a is not compute] + list(replicas)
    names = [op.name for loop in ready.loops for op in loop.wiring.loop.ops]
    for op, agent in placed.items():
        if op not in names:
            raise StrettoError(f"no operation `{op}` in a loop; there are: {listed(names)}")
        if agent not in known:
            raise StrettoError(f"no agent `{agent}` for `{op}`; there are: {listed(known)}")
    loops: list[RunnableLoop] = []
    for one in ready.loops:
        loop = one.wiring.loop
        ops = tuple(replace(op, agent=placed.get(op.name, op.agent)) for op in loop.ops)
        loops.append(replace(one, wiring=replace(one.wiring, loop=replace(loop, ops=ops))))
    return replace(ready, loops=tuple(loops))


def _kept(known: PublishedLoop, ready: Prepared) -> ScheduleResult:
    """The schedule that stands on a loop; MlirError, with every violation, where it is not legal.

    Its figures are worked out anew: the rest of the kernel takes shared memory as well.
    """
    assert known.analysis is not None
    wrong = violations_of(ready.loop, ready.machine, known.analysis)
    if wrong:
        raise MlirError([known.diagnose(violation) for violation in wrong])
    found = legal(ready, known.analysis)
    return ScheduleResult(**fields_of(found), problem=ready)


def _best_pace(made: Iterable[EmittedKernel]) -> float:
    """The smallest that is predicted of any; 0 where none is."""
    return min((one.pace.cycles for one in made if one.pace is not None), default=0.0)


def _is_near(made: EmittedKernel, best: float) -> bool:
    """Whether it is predicted to be about as fast as the best."""
    return made.pace is not None and made.pace.cycles <= NEAR * best


def _worth(made: EmittedKernel, best: float) -> tuple[float, ...]:
    """What is smaller is taken: of those that are about as fast as the best, first what overlaps
    something, since all else is what its own framework does anyway; then the pace or the II."""
    return not (made.pace is None or (_is_near(made, best) and made.overlap)), *made.order


def _beside(ready: RunnableKernel, loop: Operation, machine: Machine, scratch: int) -> Machine:
    """The machine with the shared memory that the rest of the kernel leaves to a loop."""
    read = {value for op in loop.regions[0].walk() for value in op.operands}
    # Loops that come one after the other share their rings.
    inside = {op for other in ready.loops for op in other.operation.regions[0].walk()}
    roots: dict[Value, Value] = {}
    taken = BARRIERS + scratch
    for op in ready.kernel.walk():
        if op.results and op.operands and isinstance(op.results[0].type, Buffer):
            last = op.operands[-1] if op.name.endswith(("_load", "_write")) else op.operands[0]
            roots[op.results[0]] = roots.get(last, last)
    for op in ready.kernel.walk():
        if op in inside or not op.results or op.operands:
            continue
        buffer = op.results[0]
        if not isinstance(buffer.type, Buffer) or buffer.type.space != STAGING:
            continue
        if not any(roots.get(v, v) is buffer for v in read):
            taken += Tile(buffer.type.shape, buffer.type.element).elements * (
                buffer.type.element.bits // 8
            )
    budgets = tuple(
        replace(b, bytes=b.bytes - taken) if b.space == STAGING and b.bytes else b
        for b in machine.budgets
    )
    return replace(machine, budgets=budgets)


def _staffed(machine: Machine, workers: Sequence[Worker], consumers: int) -> Machine:
    """The machine with the agents that a kernel has: warps and registers of those that compute."""
    compute = machine.agent_for("simt") or machine.agents_of_products()
    has = next(worker for worker in workers if worker.computes)
    found = replace(compute, warps=has.warps, registers=has.registers, replicas=consumers)
    if compute is not machine.agents_of_products():
        found = replace(found, replicas=1)
    return replace(machine, agents=tuple(found if a is compute else a for a in machine.agents))


def _endless(machine: Machine) -> Machine:
    """The machine with as much shared memory and as many registers as anybody wants."""
    budgets = tuple(replace(b, bytes=None) if b.space == STAGING else b for b in machine.budgets)
    return lifted(replace(machine, budgets=budgets))


def _workers(
    ready: RunnableKernel,
    machine: Machine,
    agents: Sequence[str],
    mode: EmitMode,
    asked: Iterable[str],
) -> list[Worker]:
    multiply = machine.agents_of_products()
    compute = machine.agent_for("simt") or multiply
    made = [
        op.results[0].type
        for op in ready.kernel.walk()
        if op.name == f"nv_tileas.{machine.products[0].opcode}"
    ]
    rows = [type.shape[0] for type in made if isinstance(type, Tile)]
    sums = [type.shape[1] for type in made if isinstance(type, Buffer)]
    held = [op for op in ready.kernel.walk() if opcode(kind_of(op)).multiplies]
    if held and len(agents) > 1:
        least = min(shape_of(op.result.type)[0] for op in held)
        told = f"{counted(len(agents), 'consumer')} would multiply {least} rows each"
        raise EmitError(told, held[0], f"a group of warps multiplies {GROUP_ROWS}: {ONE_CONSUMER}")
    groups = groups_of(min(rows, default=GROUP_ROWS), alone=len(agents) == 1)
    if max(sums, default=0) > SUM_COLUMNS:
        groups = 2
    warps = groups * GROUP_WARPS
    if mode == "unspecialized":
        stated = ready.kernel.warps or GROUP_WARPS
        if sums:  # one group of four warps reads tensor memory, or two
            stated = min(stated, 2 * GROUP_WARPS)
        return [Worker("all", max(warps, stated) if made else stated, MOST)]
    computing = agents if compute is multiply else [compute.name]
    found = [Worker(name, warps, compute.registers or MOST) for name in computing]
    copy = machine.agent_for("tma")
    wanted = {*asked, multiply.name, "" if copy is None else copy.name}
    found += [
        Worker(agent.name, agent.warps, agent.registers or MOST, False, agent is multiply)
        for agent in machine.agents
        if agent.name in wanted and agent is not compute
    ]
    return sorted(found, key=lambda worker: copy is not None and worker.name == copy.name)


def _title(
    kernel: Kernel, machine: Machine, analyses: Sequence[ScheduleResult], consumers: int
) -> str:
    loops = "; ".join(f"{a.loop}: II {a.ii}, {a.stage_count} stages" for a in analyses)
    who = f"{consumers} consumer{'s' if consumers > 1 else ''}"
    return f"{kernel.name} by Stretto for {machine.name}, {who}. {loops}."
