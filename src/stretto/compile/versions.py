"""A kernel written in one configuration: its loops scheduled, their programs, its source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from stretto.compile.emitted import EmitMode, EmittedKernel
from stretto.compile.loop_schedules import LoopSchedules
from stretto.compile.rooms import Rooms, endless
from stretto.compile.scheduled import ScheduledLoop, scheduled
from stretto.emission import emit_gluon
from stretto.extraction.kernels import RunnableKernel
from stretto.generate import SERIAL
from stretto.kernel import Kernel
from stretto.machine import Machine
from stretto.materialization import materialize
from stretto.ops.spaces import STAGING
from stretto.program.builder import Looped, SharedMemoryError
from stretto.program.traces import Tracing

_Solved = tuple[int, Sequence[Looped], Sequence[ScheduledLoop]]
"""A number of consumers, loops with their programs, and the schedules of those."""


class Versions:
    """Writes one kernel in several configurations; what they share is worked out once."""

    def __init__(
        self, rooms: Rooms, loops: LoopSchedules, tracing: Tracing | None, machine_why: str
    ) -> None:
        self.mode: EmitMode = rooms.mode
        self._rooms = rooms
        self._loops = loops
        self._tracing: Tracing | None = tracing
        self._machine_why = machine_why
        self._drafted: set[object] = set()
        """Of what there is source, by the number of consumers and the agents that were given."""
        self._made: dict[tuple[int, int], list[tuple[int, EmittedKernel]]] = {}

    def draft(self, consumers: int, placed: Mapping[str, str]) -> None:
        """Write the kernel with loops in order and rings of one slot, the least that it takes;
        EmitError where it cannot be written, or does not fit."""
        key = (consumers, tuple(sorted(placed.items())))
        if key in self._drafted:
            return
        rooms = self._rooms
        ready, machine = rooms.placed(consumers, placed), endless(rooms.machine)
        looped: list[Looped] = []
        for loop in ready.loops:
            found = scheduled(loop.wiring.loop, machine, SERIAL)
            if not found.success:
                return
            problem = found.problem
            program = materialize(problem.loop, problem.machine, found, self.mode)
            looped.append(Looped(loop.operation, loop.wiring, program))
        workers = rooms.workers(consumers, placed.values())
        made = emit_gluon(ready.kernel, looped, machine, workers, depth=1)
        budget = rooms.machine.budget(STAGING)
        if budget is not None and budget.bytes is not None and made.smem > budget.bytes:
            raise SharedMemoryError(made.smem, made.scratch, budget.bytes, rooms.machine.name)
        self._drafted.add(key)
        rooms.scratch[consumers] = max(rooms.scratch.get(consumers, 0), made.scratch)

    def in_rings(self, consumers: int, stages: int, depth: int) -> EmittedKernel | None:
        """As `emitted`; what was scheduled for longer rings, and needs none of them, stands."""
        known = self._made.setdefault((consumers, stages), [])
        for cap, one in known:
            if cap < depth or one.slots > depth:
                continue
            if max(one.emitted.rings.values(), default=0) <= depth:
                return one
            solved = (consumers, one.looped, one.analyses)
            known.append((depth, self._written(self._rooms.lowered(consumers), solved, depth, ())))
            return known[-1][1]
        found = self.emitted(consumers, stages, depth, {})
        if found is not None:
            known.append((depth, found))
        return found

    def emitted(
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
        rooms, scratch = self._rooms, self._rooms.scratch
        ready = rooms.placed(consumers, placed)
        looped: list[Looped] = []
        analyses: list[ScheduledLoop] = []
        for number, loop in enumerate(ready.loops):
            most = stages if isinstance(stages, int) else stages[number]
            wiring, found = self._loops.of(loop, consumers, most, depth, solve=solve, serial=serial)
            if not found.success or found.spilled:
                return None
            prepared = found.problem
            program = materialize(prepared.loop, prepared.machine, found, self.mode)
            looped.append(Looped(loop.operation, wiring, program, drained))
            analyses.append(found)
        try:
            return self._written(ready, (consumers, looped, analyses), depth, placed.values())
        except SharedMemoryError as error:
            if error.scratch <= scratch.get(consumers, 0):
                raise
            scratch[consumers] = error.scratch  # more than with loops in order: anew
        return self.emitted(
            consumers, stages, depth, placed, solve=solve, drained=drained, serial=serial
        )

    def _written(
        self, ready: RunnableKernel, solved: _Solved, depth: int | None, placed: Iterable[str]
    ) -> EmittedKernel:
        consumers, looped, analyses = solved
        rooms = self._rooms
        emitted = emit_gluon(
            ready.kernel,
            looped,
            rooms.machine,
            rooms.workers(consumers, placed),
            depth=depth,
            title=_title(ready.kernel, rooms.machine, analyses, consumers),
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
            rooms.over(consumers, analyses),
            machine=rooms.machine.name,
            machine_why=self._machine_why,
        )


def _title(
    kernel: Kernel, machine: Machine, analyses: Sequence[ScheduledLoop], consumers: int
) -> str:
    loops = "; ".join(f"{a.loop}: II {a.ii}, {a.stage_count} stages" for a in analyses)
    who = f"{consumers} consumer{'s' if consumers > 1 else ''}"
    return f"{kernel.name} by Stretto for {machine.name}, {who}. {loops}."
