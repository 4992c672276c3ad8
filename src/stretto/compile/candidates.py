"""A kernel for each number of consumers and of stages: what there is to choose from."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf
from operator import itemgetter
from os import PathLike

from stretto.compile import loop_schedules
from stretto.compile.choice import paced
from stretto.compile.emitted import TOLD, EmitMode, EmittedKernel
from stretto.compile.given import TileKernel, read_given
from stretto.compile.loop_schedules import Known, LoopSchedules
from stretto.compile.rooms import Rooms
from stretto.compile.versions import Versions
from stretto.deadline import NEVER, Deadline, OverdueError
from stretto.emission import EmitError
from stretto.errors import StrettoError
from stretto.extraction.kernels import RunnableKernel
from stretto.kernel import Kernel
from stretto.kernel.configuration import DEFAULT, Blocks
from stretto.kernel.errors import KernelError
from stretto.kernel.lowering.written import COPY, LOAD, TMA_LOAD
from stretto.kernel.partition import ONE_CONSUMER
from stretto.kernel.tree import kind_of
from stretto.kernel.types import Scalar, Tile
from stretto.loop import LoopError
from stretto.lower_bounds import compute_bounds
from stretto.machine import Machine
from stretto.machine.choice import KERNELS
from stretto.machine.machine import REGISTER_BYTES, WARP
from stretto.program.errors import ALONE
from stretto.program.traces import Tracing
from stretto.resources.prepare import prepare

STAGES: dict[EmitMode, tuple[int, ...]] = {"specialized": (6, 4, 3, 2), "unspecialized": (3, 2)}
"""Stages that are tried: each writes every operation once more, and holds registers for longer."""
DRAINED = (1, 2, 4, 8)
"""Iterations of a loop that may run together where threads load, each to its end before others."""
COPIED_STAGES = 4
"""The same, where threads copy tiles into rings, beside those of the mode."""
LOADED = 2
"""What a loop takes whose threads load tiles into registers, against its II: what goes from step to
step in registers is waited for there. On an H200, with copies of the same II, kernels were up to
1.75 times as fast."""
MOST_WARPS = 16
"""Of a kernel whose threads load, where fewer have not the registers."""
SOLVED_STAGES = 3
"""Stages of a schedule that the solver is asked for: copies, and two iterations that meet."""


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
        copies: bool = True,
        known: Known | None = None,
    ) -> None:
        self._kernel = kernel
        self._blocks: Blocks | None = blocks
        self._copies = copies
        """Whether threads may copy tiles into rings."""
        self._wanted: tuple[int | None, int | None, Sequence[int]] = (None, None, ())
        """Consumers, depth and stages that candidates were asked for last."""
        self._left_out: list[tuple[int, int]] = []
        """Consumers and stages with which nothing can be as fast as what was made."""
        given = read_given(kernel, machine, blocks or DEFAULT.blocks, copies=copies)
        self.name = given.name
        if not given.machine.agents:
            told = f"machine {given.machine.name} does not say who issues what"
            raise StrettoError(f"{told}; emit for one with agents, such as {KERNELS}")
        if mode is not None and mode not in STAGES:
            raise StrettoError(f"mode {mode!r}; known: {', '.join(STAGES)}")
        self.mode: EmitMode = mode or ("specialized" if given.has_products else "unspecialized")
        self._asked: EmitMode | None = mode
        self._seed = seed
        self._tracing: Tracing | None = tracing
        self._effort = effort
        self._deadline = deadline
        self._ended = False
        """Whether the deadline came before all was tried."""
        self._rooms = Rooms(given, self.mode)
        self._loops = LoopSchedules(self._rooms, seed, effort, deadline, known)
        self._versions = Versions(self._rooms, self._loops, tracing, given.machine_why)
        self._draws: list[EmittedKernel] | None = None
        self._every = True
        self._paces: dict[str, EmittedKernel] = {}

    @property
    def machine(self) -> Machine:
        """What it is emitted for."""
        return self._rooms.machine

    @property
    def kernel(self) -> Kernel | None:
        """The kernel of tiles that it is made of; None where it was lowered before."""
        given = self._rooms.given
        return given.kernel if isinstance(given, TileKernel) else None

    @property
    def counts(self) -> tuple[int, ...]:
        """Numbers of consumers that it may have."""
        return self._rooms.given.counts(self.mode, None)

    @property
    def more(self) -> tuple[int, ...]:
        """Numbers of consumers beyond, for which the machine has to be crowded."""
        agent = self.machine.agents_of_products()
        specialized = self.mode == "specialized" and self.counts == tuple(
            range(1, agent.replicas + 1)
        )
        return tuple(agent.replicas + n + 1 for n in range(len(agent.crowded) * specialized))

    def candidates(
        self,
        consumers: int | None = None,
        depth: int | None = None,
        agents: Mapping[str, str] | None = None,
        stages: Sequence[int] = (),
        *,
        every: bool = True,
    ) -> list[EmittedKernel]:
        """A kernel for each number of consumers and of stages that differs from the others.

        StrettoError where there is none. Where no schedule keeps to the registers of agents, those
        that do not are taken: such a kernel spills, and runs. Not `every`: what cannot be the
        fastest, by its bounds, is left to `otherwise`.
        """
        self._every = every
        self._rooms.crowd(consumers or 1)
        _require(self.machine, self._asked, consumers, depth)
        self._wanted = (consumers, depth, stages)
        if self._by_threads_alone and not agents and consumers in (None, 1):
            with suppress(StrettoError):
                made = self._another("unspecialized").candidates(None, depth)
                return made + self._loading(made)
        counts = self._rooms.given.counts(self.mode, consumers)
        if agents and len(counts) > 1:
            hint = "operations are named once rows are split: say how many consumers there are"
            told = f"agents are given, and 1 to {counts[-1]} consumers are tried"
            raise StrettoError(f"{told}; {hint}")
        if self.mode == "unspecialized":
            self._require_registers()
        unprintable: list[StrettoError] = []
        counts = self._printable(counts, agents or {}, unprintable)
        refused: list[StrettoError] = []
        made = self._tried(counts, depth, agents or {}, stages, refused)
        if not made and counts and not self._deadline.over:
            self._loops.counted = False
            made = self._tried(counts, depth, agents or {}, stages, refused)
            self._loops.counted = True
        if not made and self._stopped:
            made = self._tried(counts, depth, agents or {}, (1,), refused, serial=True)
        if not made:
            why = self._reason(
                refused or unprintable
            )  # that one number of several cannot be is none
            try:
                made = self._alone(consumers, depth, agents, stages, why)
            except StrettoError:
                made = [] if agents else self._loading(())
                if not made:
                    raise
                return made
            return made + self._loading(made)
        if self._rooms.given.has_products or agents:
            return made if agents else made + self._loading(made)
        made = [self._paced(one) for one in made]
        if made[0].pace is None or stages or self._late:
            return made
        if self._draws is None:
            self._draws = self._draining()
        return made + [one for one in self._draws if _differs(one, made)]

    def _require_registers(self) -> None:
        """That threads have registers for what a step of a loop loads; EmitError where they do not:
        nothing would overlap, and an assembler takes minutes to spill it."""
        ready, most = self._rooms.lowered(1), self.machine.known_limit("thread_registers")
        threads = WARP * self._rooms.workers(1)[0].warps
        for loop in ready.loops:
            for op in loop.operation.walk():
                type = op.results[0].type if op.results else None
                if kind_of(op) != LOAD or not isinstance(type, Tile):
                    continue
                assert isinstance(type.element, Scalar)
                registers = type.elements * type.element.bits // (8 * REGISTER_BYTES * threads)
                if registers > most:
                    told = f"takes {registers:,} registers in each of {threads} threads"
                    hint = "a smaller block, or more num_warps"
                    raise EmitError(f"what is loaded {told}, which have {most}", op, hint)

    def _reason(self, refused: Sequence[StrettoError]) -> StrettoError:
        """Why there is no kernel; where what its hint names is refused too, why that is."""
        if not refused:
            return EmitError(f"no loop of `{self.name}` has a schedule")
        told = refused[0]
        hint = told.hint if isinstance(told, EmitError | KernelError) else ""
        if ONE_CONSUMER in hint:
            try:
                self._versions.draft(1, {})
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
        """The kernel in one warpgroup, where agents cannot have it; the StrettoError that
        says why not, where that cannot be either: that of the way which a hint names, if one."""
        if self._asked is not None or self.mode == "unspecialized" or consumers not in (None, 1):
            raise why
        if agents or self._deadline.over:
            raise why
        alone = self._another("unspecialized")
        try:
            made = alone.candidates(None, depth, None, stages)
        except StrettoError as error:
            hint = why.hint if isinstance(why, EmitError | KernelError) else ""
            raise (error if ALONE in hint else why) from error
        self._ended = self._stopped or alone._stopped
        note = f"in one warpgroup, since agents cannot have it: {why}"
        return [replace(one, notes=(*one.notes, note)) for one in made]

    # Copies by threads ---------------------------------------------------------------------------

    def _another(
        self, mode: EmitMode, *, copies: bool | None = None, kernel: Kernel | None = None
    ) -> Emitter:
        """The same kernel in another way."""
        blocks: Blocks | None = self._blocks if mode == self.mode else None
        return Emitter(
            kernel or self._kernel, self.machine, mode=mode, blocks=blocks, seed=self._seed,
            tracing=self._tracing, effort=self._effort, deadline=self._deadline,
            copies=self._copies if copies is None else copies,
        )  # fmt: skip

    @property
    def _kinds(self) -> set[str]:
        """Operations of the lowered kernel; none where it has no lowering, or threads copy not."""
        with suppress(StrettoError):
            return {kind_of(op) for op in self.lowered(1).kernel.walk()} if self._copies else set()
        return set()

    @property
    def _by_threads_alone(self) -> bool:
        """Whether threads copy in loops and nobody else does: other agents would have nothing to
        do."""
        if self._asked is not None or self.mode == "unspecialized" or self._blocks is not None:
            return False
        if COPY not in self._kinds:
            return False
        loops = self.lowered(1).loops
        return not any(op.kind == TMA_LOAD for loop in loops for op in loop.wiring.loop.ops)

    @property
    def _stages(self) -> tuple[int, ...]:
        """Stages that are tried: copies by threads are asked for as far ahead as TMA's."""
        found = STAGES[self.mode]
        deeper = self.mode == "unspecialized" and COPY in self._kinds
        return (COPIED_STAGES, *found) if deeper else found

    def _least(self, consumers: int, stages: int | None = None) -> int:
        """Cycles that no schedule of its loops is shorter than."""
        found = 0
        for loop in self.lowered(consumers).loops:
            ready = prepare(loop.wiring.loop, self._rooms.room(consumers, loop))
            found += compute_bounds(ready.loop, ready.machine, max_stages=stages).mii
        return found

    @property
    def _least_of_any(self) -> float:
        """The same with any number of consumers."""
        found: list[int] = []
        for count in self.counts:
            with suppress(StrettoError):
                found.append(self._least(count))
        return min(found, default=0)

    def _loading(self, made: Sequence[EmittedKernel]) -> list[EmittedKernel]:
        """A kernel whose threads copy tiles, with loads into registers instead, where that might
        be faster."""
        if self._late or COPY not in self._kinds:
            return []
        consumers, depth, stages = self._wanted
        other = self._another(self.mode, copies=False)
        best = min((one.length for one in made), default=inf)
        with suppress(StrettoError):
            if LOADED * other._least_of_any < best:
                found = other.candidates(consumers, depth, None, stages)
                return [one for one in found if LOADED * one.length < best]
        return []

    def otherwise(self) -> Iterator[EmittedKernel]:
        """What there is where the compiler takes none as it should: what bounds had left out, and
        loads instead of copies by threads, or more warps; made as it is asked for."""
        left, self._left_out = self._left_out, []
        for count, limit in left:
            with suppress(EmitError, KernelError, LoopError, OverdueError):
                found = self._versions.emitted(count, limit, self._wanted[1], {})
                if found is not None:
                    yield found
        yield from self._loading(()) or self._wider()

    def _wider(self) -> list[EmittedKernel]:
        """A kernel whose threads load, with twice the warps, so that each has half of the tiles."""
        given = self._rooms.given
        if self.mode != "unspecialized" or self._late or not isinstance(given, TileKernel):
            return []
        warps = 2 * (self._rooms.workers(1)[0].warps)
        if given.has_products or warps > MOST_WARPS:
            return []
        wider = self._another(self.mode, kernel=replace(given.kernel, warps=warps))
        _, depth, stages = self._wanted
        with suppress(StrettoError):
            note = f"with {warps} warps: threads of fewer have no registers for what is loaded"
            made = [one for one in wider.candidates(None, depth, None, stages) if one.overlap]
            made.sort(key=lambda one: one.order)
            return [replace(one, notes=(*one.notes, note)) for one in made] or wider._wider()
        return []

    @property
    def _stopped(self) -> bool:
        """Whether the deadline came before all was tried."""
        return self._ended or self._loops.overdue

    @property
    def _late(self) -> bool:
        """Whether the deadline has come; then something is left untried."""
        self._ended = self._ended or self._deadline.over
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
                self._versions.draft(count, placed)
            except (EmitError, KernelError) as error:
                refused.append(error)
            else:
                found.append(count)
        return found

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
        told: list[tuple[int, StrettoError]] = []
        asked = list(itertools.product(reversed(counts), stages or self._stages))
        for number, (count, limit) in enumerate(asked):
            if self._late and not serial:
                break
            if self._effort == "quick" and any(one.fits(count, limit) for one in made):
                continue  # a looser limit was kept to already
            if not self._every and self._is_needless(count, limit, made):
                self._left_out.append((count, limit))
                continue
            self._loops.until = self._deadline.share(1 / (len(asked) - number))
            try:
                if self._effort == "quick" and depth is not None and not agents:
                    found = self._versions.in_rings(count, limit, depth)
                else:
                    found = self._versions.emitted(count, limit, depth, agents, serial=serial)
            except (EmitError, KernelError, LoopError, OverdueError) as error:
                self._ended = self._ended or isinstance(error, OverdueError)
                told.append((count, error))
                continue
            if found is not None and all(found.schedules != other.schedules for other in made):
                made.append(found)
        refused += [error for _, error in sorted(told, key=itemgetter(0))]
        made.sort(key=lambda one: one.consumers)
        if self._late or not counts:
            return made
        return made + self._solved(made, max(counts), depth, agents, stages)

    def _is_needless(self, consumers: int, stages: int, made: Sequence[EmittedKernel]) -> bool:
        """Whether nothing of so many stages can be as fast as what is made, by its bounds."""
        kept = [one for one in made if not one.over]
        if not kept or self.mode != "specialized":
            return False
        best = min(one.length for one in kept)
        with suppress(StrettoError):
            return self._least(consumers, stages) > (1 + 2 * TOLD) * best
        return False

    def _paced(self, made: EmittedKernel) -> EmittedKernel:
        """With what is predicted of it, where threads load."""
        if made.source not in self._paces:
            self._paces[made.source] = paced(made, self.machine)
        return self._paces[made.source]

    def drained(self, together: Sequence[int]) -> EmittedKernel:
        """The kernel with at most so many iterations of each loop together, each to its end.

        EmitError where a loop cannot be.
        """
        made = self._versions.emitted(1, together, None, {}, drained=True)
        if made is None:
            raise EmitError(f"no loop of `{self.name}` has a schedule of {together} stages")
        return self._paced(made)

    def _draining(self) -> list[EmittedKernel]:
        """Kernels whose loops are drained: all alike, then loop by loop from the best so far."""
        self._loops.until = self._deadline
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
        if self._effort == "quick" or self.mode != "specialized" or not loop_schedules.SOLVED_WORK:
            return []
        self._loops.until = self._deadline
        if any(one.short for one in mine):
            return []
        limit = max([n for n in stages if n <= SOLVED_STAGES], default=SOLVED_STAGES)
        try:
            found = self._versions.emitted(consumers, limit, depth, agents, solve=True)
        except (EmitError, KernelError, LoopError):
            return []
        except OverdueError:
            self._ended = True
            return []
        if found is None or any(found.schedules == other.schedules for other in made):
            return []
        return [found]

    def lowered(self, consumers: int) -> RunnableKernel:
        """The kernel, split between consumers and lowered."""
        self._rooms.crowd(consumers)
        return self._rooms.lowered(consumers)


def _require(
    machine: Machine, mode: EmitMode | None, consumers: int | None, depth: int | None
) -> None:
    """That what is asked for can be; StrettoError where it cannot."""
    if consumers is not None:
        machine.replicas_of_products(consumers)
    if consumers not in (None, 1) and mode == "unspecialized":
        told = f"{consumers} consumers in mode {mode}"
        raise StrettoError(f"{told}, in which one warpgroup does everything")
    if depth is not None and depth < 1:
        raise StrettoError(f"rings of {depth} slots; at least 1 is needed")


def _differs(made: EmittedKernel, others: Iterable[EmittedKernel]) -> bool:
    return all(made.schedules != other.schedules for other in others)
