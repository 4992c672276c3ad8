"""Kernels out: from the files their users have to source that runs on a GPU.

kernel.ttir ──► split between replicas ──► lowered ──► scheduled ──► programs ──► Gluon
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from typing import Literal

from stretto.api.kernels import is_kernel, kernels_of
from stretto.api.read_write import read_input
from stretto.api.solving import ScheduleResult, schedule
from stretto.emit import EmitError, Emitted, emit_gluon
from stretto.emit.gluon import Looped, Worker
from stretto.errors import DocumentError, StrettoError
from stretto.ir.kernels.running import RunnableKernel, runnable_kernels
from stretto.kernel import Kernel, Operation, Value
from stretto.kernel.errors import KernelError
from stretto.kernel.partition import partition
from stretto.kernel.types import Buffer, Tile
from stretto.loop import Loop
from stretto.machine import Machine, load_machine
from stretto.materialize import materialize
from stretto.resources.prepare import prepare

EmitMode = Literal["specialized", "unspecialized"]
DEFAULT_TARGET = "h200"
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

    @property
    def source(self) -> str:
        """The Gluon source."""
        return self.emitted.source


def emit(
    kernel: str | PathLike[str] | Kernel,
    machine: Machine | str | None = None,
    *,
    mode: EmitMode | None = None,
    consumers: int | None = None,
    depth: int | None = None,
    seed: int = 0,
) -> EmittedKernel:
    """A Triton or cuTile kernel as Gluon source, pipelined by its schedules.

    `consumers` is how many groups of warps compute, each on its part of the rows; left out, as many
    as the machine has and the kernel can be split between, whichever gives the smaller II.
    A kernel without products runs in one group of warps that does everything, as does one for
    which `mode` is ``unspecialized``. `depth` is the most slots a ring gets; left out, as many as
    shared memory has room for.
    """
    target = machine if isinstance(machine, Machine) else load_machine(machine or DEFAULT_TARGET)
    if not target.agents:
        told = f"machine {target.name} does not say who issues what"
        raise StrettoError(f"{told}; emit for one with agents, such as {DEFAULT_TARGET}")
    whole = _read(kernel)
    compute = target.agents_of_products()
    if mode is None:
        products = any(op.name == "tile.dot" for op in whole.walk())
        mode = "specialized" if products else "unspecialized"
    if mode == "unspecialized":
        return _emit(whole, target, mode, 1, depth, seed)
    counts = range(1, compute.replicas + 1) if consumers is None else (consumers,)
    made: list[EmittedKernel] = []
    refused: list[StrettoError] = []
    for count in counts:
        try:
            made.append(_emit(whole, target, mode, count, depth, seed))
        except (EmitError, KernelError) as error:
            refused.append(error)
    if not made:
        raise refused[0]
    return min(made, key=_length)


def _length(made: EmittedKernel) -> tuple[int, int]:
    return sum(a.ii or 0 for a in made.analyses), -made.consumers


def _read(kernel: str | PathLike[str] | Kernel) -> Kernel:
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


def _emit(
    kernel: Kernel, machine: Machine, mode: EmitMode, consumers: int, depth: int | None, seed: int
) -> EmittedKernel:
    compute = machine.agents_of_products()
    agents = [compute.replica(n) for n in range(consumers)]
    (ready,) = runnable_kernels(kernel.location.file, (partition(kernel, agents),), machine)
    looped: list[Looped] = []
    analyses: list[ScheduleResult] = []
    for loop in ready.loops:
        room = _beside(ready, loop.operation, machine)
        prepared = prepare(loop.wiring.loop, room)
        analysis = _schedule(loop.wiring.loop, room, mode, seed)
        program = materialize(prepared.loop, prepared.machine, analysis, mode)
        looped.append(Looped(loop.operation, loop.wiring, program))
        analyses.append(analysis)
    workers = _workers(ready, machine, agents, mode)
    title = _title(kernel, machine, analyses, consumers)
    emitted = emit_gluon(ready.kernel, looped, machine, workers, depth=depth, title=title)
    return EmittedKernel(emitted, tuple(analyses), consumers, mode, ready.notes)


def _schedule(loop: Loop, machine: Machine, mode: EmitMode, seed: int) -> ScheduleResult:
    """The smallest II whose registers do not spill, then the fewest stages."""
    found = [schedule(loop, machine, seed=seed, max_stages=n) for n in STAGES[mode]]
    good = [analysis for analysis in found if analysis.success]
    if not good:
        return schedule(loop, machine, seed=seed)

    def worth(analysis: ScheduleResult) -> tuple[int, int, int]:
        pressure = analysis.pressure
        over = 0
        if pressure is not None and pressure.budget is not None:
            over = max(0, pressure.peak - pressure.budget)
        return over, analysis.ii or 0, analysis.stage_count or 0

    return min(good, key=worth)


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
        replace(b, bytes=b.bytes - taken) if b.space == "smem" and b.bytes else b
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
        return [Worker("all", max(warps, ready.kernel.warps or 0), 255)]
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
