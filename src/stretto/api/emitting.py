"""Kernels out: from the files their users have to source that runs on a GPU.

kernel.ttir ──► split between replicas ──► lowered ──► scheduled ──► programs ──► Gluon
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from typing import Any, Literal

from stretto.api.kernels import is_kernel, kernels_of
from stretto.api.read_write import read_input
from stretto.api.solving import ScheduleResult, schedule
from stretto.emit import EmitError, Emitted, emit_gluon
from stretto.emit.gluon import Looped, Worker
from stretto.emit.gluon.tracing import Tracing
from stretto.errors import DocumentError, StrettoError
from stretto.ir.kernels.running import RunnableKernel, runnable_kernels
from stretto.kernel import Kernel, Operation, Value
from stretto.kernel.errors import KernelError
from stretto.kernel.partition import partition
from stretto.kernel.types import Buffer, Tile
from stretto.machine import Machine, load_machine
from stretto.materialize import Program, materialize
from stretto.resources.prepare import prepare
from stretto.simulate.kernels.wiring import LoopWiring
from stretto.vocabulary.spaces import STAGING

EmitMode = Literal["specialized", "unspecialized"]
DEFAULT_TARGET = "h200"
SCHEMA = "stretto.emitted/1"
GROUP_ROWS = 64
"""Rows that one group of four warps multiplies at a time."""
GROUP_WARPS = 4
STAGES: dict[EmitMode, tuple[int, ...]] = {"specialized": (6, 4, 3, 2), "unspecialized": (3, 2)}
"""Stages that are tried: each writes every operation once more, and holds registers for longer."""
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
    programs: tuple[Program, ...] = field(default=(), repr=False, compare=False)
    """Of its loops, in their order."""

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
        }

    @property
    def over(self) -> int:
        """Registers that are too many, by our count."""
        pressures = [analysis.pressure for analysis in self.analyses]
        stated = [p for p in pressures if p is not None and p.budget is not None]
        return max((0, *(p.peak - (p.budget or 0) for p in stated)))

    @property
    def schedules(self) -> tuple[object, ...]:
        """What tells it from another of the same kernel."""
        return self.consumers, tuple((a.ii, a.starts) for a in self.analyses)


def emit(
    kernel: str | PathLike[str] | Kernel,
    machine: Machine | str | None = None,
    *,
    mode: EmitMode | None = None,
    consumers: int | None = None,
    depth: int | None = None,
    seed: int = 0,
    accept: Callable[[Emitted], bool] | None = None,
    tracing: Tracing | None = None,
) -> EmittedKernel:
    """A Triton or cuTile kernel as Gluon source, pipelined by its schedules.

    `consumers` is how many groups of warps compute, each on its part of the rows; left out, as many
    as the machine has and the kernel can be split between, whichever gives the smaller II.
    A kernel without products runs in one group of warps that does everything, as does one for
    which `mode` is ``unspecialized``. Rings have at most `depth` slots; left
    out, as many as shared memory has room for.

    Schedules of several stage counts are tried. Taken is the smallest II whose registers do not
    spill by our count; with `accept`, the smallest that it accepts (it may compile the source).
    With `tracing`, the kernel takes one argument more, `trace`, to which it writes clocks.
    """
    made = candidates(
        kernel, machine, mode=mode, consumers=consumers, depth=depth, seed=seed, tracing=tracing
    )
    if accept is not None:
        for candidate in sorted(made, key=_length):
            if accept(candidate.emitted):
                return candidate
    return min(made, key=_worth)


def candidates(
    kernel: str | PathLike[str] | Kernel,
    machine: Machine | str | None = None,
    *,
    mode: EmitMode | None = None,
    consumers: int | None = None,
    depth: int | None = None,
    seed: int = 0,
    tracing: Tracing | None = None,
) -> list[EmittedKernel]:
    """All that `emit` chooses among: a kernel for each number of consumers and of stages.

    Those that come to the same schedules stand here once. StrettoError where there is none.
    """
    emitter = Emitter(kernel, machine, mode=mode, seed=seed, tracing=tracing)
    return emitter.candidates(consumers, depth)


class Emitter:
    """Emits one kernel in several configurations; what they share is worked out once."""

    def __init__(
        self,
        kernel: str | PathLike[str] | Kernel,
        machine: Machine | str | None = None,
        *,
        mode: EmitMode | None = None,
        seed: int = 0,
        tracing: Tracing | None = None,
        effort: str = "normal",
    ) -> None:
        named = isinstance(machine, Machine)
        self.machine = machine if named else load_machine(machine or DEFAULT_TARGET)
        if not self.machine.agents:
            told = f"machine {self.machine.name} does not say who issues what"
            raise StrettoError(f"{told}; emit for one with agents, such as {DEFAULT_TARGET}")
        self.kernel = read_kernel(kernel)
        self.mode: EmitMode = mode or ("specialized" if self._products else "unspecialized")
        self._asked: EmitMode | None = mode
        self._seed = seed
        self._tracing: Tracing | None = tracing
        self._effort = effort
        self._lowered: dict[int, RunnableKernel] = {}

    @property
    def _products(self) -> bool:
        return any(op.name == "tile.dot" for op in self.kernel.walk())

    @property
    def counts(self) -> tuple[int, ...]:
        """Numbers of consumers that it may have."""
        most = self.machine.agents_of_products().replicas if self.mode == "specialized" else 1
        return tuple(range(1, most + 1))

    def candidates(
        self, consumers: int | None = None, depth: int | None = None, stages: Sequence[int] = ()
    ) -> list[EmittedKernel]:
        """A kernel for each number of consumers and of stages; StrettoError where there is none."""
        most = self.machine.agents_of_products().replicas
        _require(self.machine, most, self._asked, consumers, depth)
        counts = (consumers,) if consumers and self.mode == "specialized" else self.counts
        made: list[EmittedKernel] = []
        refused: list[StrettoError] = []
        for count, limit in itertools.product(counts, stages or STAGES[self.mode]):
            try:
                found = self._emitted(count, limit, depth)
            except (EmitError, KernelError) as error:
                refused.append(error)
                continue
            if found is not None and all(found.schedules != other.schedules for other in made):
                made.append(found)
        if not made:
            told = f"no loop of `{self.kernel.name}` has a schedule"
            raise refused[0] if refused else EmitError(told)
        return made

    def _agents(self, consumers: int) -> list[str]:
        compute = self.machine.agents_of_products()
        return [compute.replica(n) for n in range(consumers)]

    def _ready(self, consumers: int) -> RunnableKernel:
        """The kernel, split between consumers and lowered."""
        if consumers not in self._lowered:
            split = partition(self.kernel, self._agents(consumers))
            (ready,) = runnable_kernels(self.kernel.location.file, (split,), self.machine)
            kernel = replace(ready.kernel, warps=self.kernel.warps)
            self._lowered[consumers] = replace(ready, kernel=kernel)
        return self._lowered[consumers]

    def _emitted(self, consumers: int, stages: int, depth: int | None) -> EmittedKernel | None:
        ready, machine = self._ready(consumers), self.machine
        looped: list[Looped] = []
        analyses: list[ScheduleResult] = []
        for loop in ready.loops:
            room = _beside(ready, loop.operation, machine)
            wiring = loop.wiring if depth is None else _capped(loop.wiring, depth)
            prepared = prepare(wiring.loop, room)
            analysis = schedule(prepared, seed=self._seed, max_stages=stages, effort=self._effort)
            if not analysis.success:
                return None
            program = materialize(prepared.loop, prepared.machine, analysis, self.mode)
            looped.append(Looped(loop.operation, wiring, program))
            analyses.append(analysis)
        workers = _workers(ready, machine, self._agents(consumers), self.mode)
        emitted = emit_gluon(
            ready.kernel,
            looped,
            machine,
            workers,
            depth=depth,
            title=_title(self.kernel, machine, analyses, consumers),
            tracing=self._tracing,
        )
        programs = tuple(loop.program for loop in looped)
        return EmittedKernel(
            emitted, tuple(analyses), consumers, self.mode, ready.notes, ready.kernel, programs
        )


def _require(
    machine: Machine, most: int, mode: EmitMode | None, consumers: int | None, depth: int | None
) -> None:
    """That what is asked for can be; StrettoError where it cannot."""
    if consumers is not None and not 1 <= consumers <= most:
        raise StrettoError(f"{consumers} consumers; {machine.name} has 1 to {most}")
    if consumers not in (None, 1) and mode == "unspecialized":
        told = f"{consumers} consumers in mode {mode}"
        raise StrettoError(f"{told}, in which one group of warps does everything")
    if depth is not None and depth < 1:
        raise StrettoError(f"rings of {depth} slots; at least 1 is needed")


def _length(made: EmittedKernel) -> tuple[int, int]:
    return sum(a.ii or 0 for a in made.analyses), -made.consumers


def read_kernel(kernel: str | PathLike[str] | Kernel) -> Kernel:
    """The one kernel of a file, or a kernel as it is."""
    if isinstance(kernel, Kernel):
        return kernel
    file, text = read_input(fspath(kernel))
    if not is_kernel(file, text):
        hint = "expected a .ttir or a .tileirbc file"
        raise DocumentError(file, "", "is no kernel that can be emitted", hint)
    found = kernels_of(file, text)
    if len(found) != 1:
        raise DocumentError(file, "", f"has {len(found)} kernels", "give one at a time")
    return found[0]


def _capped(wiring: LoopWiring, depth: int) -> LoopWiring:
    """The same loop with rings in shared memory of at most so many slots."""
    storages = tuple(
        s if s.fixed or s.space != STAGING else replace(s, depth=min(depth, s.depth or depth))
        for s in wiring.loop.storages
    )
    return replace(wiring, loop=replace(wiring.loop, storages=storages))


def _worth(made: EmittedKernel) -> tuple[int, int, int]:
    """Registers that are too many, then the II, then stages."""
    return made.over, *_length(made)


def _beside(ready: RunnableKernel, loop: Operation, machine: Machine) -> Machine:
    """The machine with the shared memory that the rest of the kernel leaves to a loop."""
    read = {value for op in loop.regions[0].walk() for value in op.operands}
    # Loops that come one after the other share their rings.
    inside = {op for other in ready.loops for op in other.operation.regions[0].walk()}
    roots: dict[Value, Value] = {}
    taken = BARRIERS
    for op in ready.kernel.walk():
        if op.results and op.operands and isinstance(op.results[0].type, Buffer):
            last = op.operands[-1] if op.name.endswith(("_load", "_write")) else op.operands[0]
            roots[op.results[0]] = roots.get(last, last)
    for op in ready.kernel.walk():
        if op in inside or not op.results or op.operands:
            continue
        buffer = op.results[0]
        if isinstance(buffer.type, Buffer) and not any(roots.get(v, v) is buffer for v in read):
            taken += Tile(buffer.type.shape, buffer.type.element).elements * (
                buffer.type.element.bits // 8
            )
    budgets = tuple(
        replace(b, bytes=b.bytes - taken) if b.space == STAGING and b.bytes else b
        for b in machine.budgets
    )
    return replace(machine, budgets=budgets)


def _workers(
    ready: RunnableKernel, machine: Machine, agents: Sequence[str], mode: EmitMode
) -> list[Worker]:
    compute = machine.agents_of_products()
    rows = [
        op.results[0].type.shape[0]
        for op in ready.kernel.walk()
        if op.name == f"nv_tileas.{machine.products[0].opcode}"
        and isinstance(op.results[0].type, Tile)
    ]
    groups = max(1, min(2, min(rows, default=GROUP_ROWS) // GROUP_ROWS)) if len(agents) == 1 else 1
    warps = groups * GROUP_WARPS
    if mode == "unspecialized":
        stated = ready.kernel.warps or GROUP_WARPS
        return [Worker("all", max(warps, stated) if rows else stated, 255)]
    found = [Worker(name, warps, compute.registers) for name in agents]
    copy = machine.agent_for("tma")
    assert copy is not None
    return [*found, Worker(copy.name, copy.warps, copy.registers)]


def _title(
    kernel: Kernel, machine: Machine, analyses: Sequence[ScheduleResult], consumers: int
) -> str:
    loops = "; ".join(f"{a.loop}: II {a.ii}, {a.stage_count} stages" for a in analyses)
    who = f"{consumers} consumer{'s' if consumers > 1 else ''}"
    return f"{kernel.name} by Stretto for {machine.name}, {who}. {loops}."
