"""Whole kernels: from the files their users have to loops, to MLIR, or to a run on real values.

kernel.ttir (kernel.json beside it) ──┬► Kernel ──┬──► its loops on a machine      kernel_source
kernel.tileirbc ──────────────────────┘           ├──► the lowered kernel          import_kernel
kernel.mlir ──────────────────────────────────────┴──► a run over its grid         simulate_kernel
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

from stretto.api.read_write import path_of
from stretto.api.solving import schedule
from stretto.compile.sources import is_kernel, kernels_of, machine_of
from stretto.errors import DocumentError, StrettoError
from stretto.frontends import Source, read_input
from stretto.ir import write_kernels
from stretto.kernel import Kernel
from stretto.kernel.configuration import DEFAULT, Configuration
from stretto.kinds import checked
from stretto.loop import texts
from stretto.machine import Machine, load_machine
from stretto.machine.choice import assumed, chosen_for_loop
from stretto.materialization import Mode, materialize
from stretto.report import as_json, assumption
from stretto.resources.prepare import prepare
from stretto.solution import counted

if TYPE_CHECKING:
    from stretto.compile.emitted import EmittedKernel
    from stretto.extraction.kernels import RunnableKernel
    from stretto.program.clocks import Covered
    from stretto.simulation.outcome import Finding
    from stretto.simulation.space import SpaceTaken

KernelMode = Literal["sequential", "emitted"] | Mode
"""One step after the other, loops by their programs, or the program that `emit` prints."""
SCHEMA = "stretto.kernel-simulation/1"
KERNEL = "a kernel, or the path of one,"


def kernel_source(
    file: str,
    kernels: Sequence[Kernel],
    machine: Machine | str | None = None,
    configuration: Configuration = DEFAULT,
) -> Source:
    """The loops of kernels, lowered for a machine, which they name from then on."""
    from stretto.extraction.kernels import kernel_loops  # noqa: PLC0415 - where there is a kernel

    target, why = machine_of(file, kernels[0], machine)
    loops, notes = kernel_loops(file, kernels, target, configuration)
    named = machine if isinstance(machine, str) else target.name
    told = why if assumed(why) else ""
    loops = tuple(replace(loop, machine=named, machine_why=told) for loop in loops)
    if not loops:
        why = "; ".join(texts(notes)) or "it has none: `stretto simulate` runs it as it is"
        raise DocumentError(file, "", "has no loop that can be scheduled", why)
    return Source(file, loops, notes)


def kernel_given(kernel: object) -> Kernel | str:
    """A kernel at hand, or the path of one; StrettoError where something else is given."""
    return kernel if isinstance(kernel, Kernel) else path_of(kernel, KERNEL)


@checked
def import_kernel(
    kernel: str | PathLike[str] | Kernel,
    machine: Machine | str | None = None,
    *,
    consumers: int = 1,
) -> tuple[str, tuple[str, ...]]:
    """A Triton or cuTile kernel as MLIR, lowered for a machine, and what is worth saying of it.

    The machine is the one given, else that of the kernel's target, else `h200`. Its rows are split
    between `consumers`, replicas of the agent that computes.
    """
    made = imported(kernel, machine, consumers)
    return made.text, made.notes


@dataclass(frozen=True)
class ImportedKernel:
    """A kernel as MLIR, and what it was lowered for."""

    text: str
    notes: tuple[str, ...]
    machine: str
    machine_why: str

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "schema": "stretto.kernel/1",
            "success": True,
            "machine": self.machine,
            "machine_why": self.machine_why,
            "mlir": self.text,
            "notes": list(self.notes),
        }


def imported(
    kernel: str | PathLike[str] | Kernel, machine: Machine | str | None, consumers: int
) -> ImportedKernel:
    """The kernel, with the machine it was lowered for."""
    if isinstance(kernel, Kernel):
        file, kernels = kernel.location.file, (kernel,)
    else:
        file, text = read_input(path_of(kernel, KERNEL))
        if not is_kernel(file, text):
            hint = "expected a .ttir or a .tileirbc file"
            raise DocumentError(file, "", "is no kernel that can be imported", hint)
        kernels = kernels_of(file, text)
    target, why = machine_of(file, kernels[0], machine)
    text, notes = write_kernels(kernels, target, Configuration(consumers))
    told = assumption(target.name, why, target.unit)
    return ImportedKernel(text, (*([told] if told else []), *notes), target.name, why)


@dataclass(frozen=True)
class EmittedRun:
    """The program of a whole kernel that was run."""

    machine: str
    agents: Mapping[str, int]
    """Their warps, by name."""
    rings: Mapping[str, int]
    """Their slots, by name."""
    covered: Covered
    """What was run by clocks alone."""
    trips: tuple[int, ...]
    """Trip counts of the run on values."""

    def to_text(self) -> list[str]:
        """For people."""
        agents = ", ".join(f"{name} ({counted(n, 'warp')})" for name, n in self.agents.items())
        lines = [f"  agents: {agents}"]
        if self.rings:
            slots = ", ".join(f"{name} {n}" for name, n in self.rings.items())
            lines.append(f"  slots: {slots}")
        runs = f"{counted(self.covered.runs, 'run')}, {counted(self.covered.events, 'event')}"
        trips = ", ".join(map(str, self.covered.trips))
        lines.append(f"  by clocks: {runs}" + (f"; trips {trips}" if trips else ""))
        if self.trips:
            lines.append(f"  on values: trips {', '.join(map(str, self.trips))}")
        return lines

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "machine": self.machine,
            "agents": dict(self.agents),
            "rings": dict(self.rings),
            "runs": self.covered.runs,
            "events": self.covered.events,
            "trips_by_clocks": list(self.covered.trips),
            "trips_on_values": list(self.trips),
        }


@dataclass(frozen=True)
class KernelSimulation:
    """What a kernel left behind, and whether its pipelined loops left the same."""

    kernel: str
    mode: str
    grid: tuple[int, ...]
    arrays: Mapping[str, Any]
    """Every array that was given, as it is afterwards."""
    equal: bool | None
    """Whether the pipelined run left the same numbers as the sequential one; None: there were no
    numbers."""
    iterations: Mapping[str, int]
    """How often each pipelined loop went round, in all blocks together."""
    memory: Mapping[str, tuple[SpaceTaken, ...]]
    """What the rings and barriers of each pipelined loop take."""
    violations: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    program: EmittedRun | None = None
    """Of mode ``emitted``."""

    @property
    def success(self) -> bool:
        """Whether everything is as it should be."""
        return self.equal is not False and not self.violations

    def to_text(self) -> list[str]:
        """For people."""
        grid = " × ".join(map(str, self.grid))
        verdict = "equal to" if self.equal else "NOT equal to"
        head = f"{self.kernel}, {self.mode}, grid {grid}"
        if self.equal is None:
            lines = [f"{self.kernel}, {self.mode}: nothing wrong by clocks; --inputs runs it"]
        elif self.mode == "sequential":
            lines = [f"{head}: done"]
        else:
            lines = [f"{head}: {verdict} sequential execution"]
        if self.program is not None:
            lines += self.program.to_text()
        lines += [f"  {name}: {n} iterations" for name, n in self.iterations.items()]
        for name, spaces in self.memory.items():
            taken = "; ".join(str(space) for space in spaces if space.used)
            lines.append(f"  {name}: {taken or 'no memory'}")
        lines += [f"  {v.name}: {v.message}" for v in self.violations[:12]]
        for name, array in self.arrays.items():
            low, high = (float(array.min()), float(array.max())) if array.size else (0.0, 0.0)
            shape = "x".join(map(str, array.shape))
            lines.append(f"  {name}: {shape}, from {low:g} to {high:g}")
        return lines + [f"  note: {note}" for note in self.notes]

    def to_json(self) -> dict[str, Any]:
        """For programs; arrays are not in it."""
        return {
            "schema": SCHEMA,
            "success": self.success,
            "kernel": self.kernel,
            "mode": self.mode,
            "grid": list(self.grid),
            "equal": self.equal,
            "iterations": dict(self.iterations),
            "memory": {name: as_json(spaces) for name, spaces in self.memory.items()},
            "violations": [{"name": v.name, "message": v.message} for v in self.violations],
            "arrays": {name: list(array.shape) for name, array in self.arrays.items()},
            "notes": list(self.notes),
            **({} if self.program is None else {"program": self.program.to_json()}),
        }


@checked
def simulate_kernel(
    kernel: str | PathLike[str] | Kernel,
    inputs: Mapping[str, Any] | None,
    grid: Sequence[int] = (1,),
    machine: Machine | str | None = None,
    *,
    mode: KernelMode = "unspecialized",
) -> KernelSimulation:
    """Run a whole kernel, a .ttir, .tileirbc or .mlir file, over its grid on NumPy arrays.

    Arrays are given for pointers and descriptors, numbers for all else, by the names of the
    parameters; they are copied. What runs is the program that `emit` prints, in this `mode` or in
    the one that it takes by itself (``emitted``), instruction by instruction, all agents of a block
    at a time; without inputs (None) by clocks alone, for each trip count that matters. It is
    compared with a run of the kernel's operations, one after the other (``sequential``). A program
    that was written as MLIR runs as it stands.

    Where there is no such program, since the machine does not say who issues what or an operation
    has no Gluon, a note says so: then each loop runs by a program of its own, with pipes and
    mutexes, and what is around it as it stands. ``emitted`` refuses such a kernel.
    """
    from stretto.api.emitting import emit  # noqa: PLC0415 - which knows this module
    from stretto.compile.kernel_programs import program_in  # noqa: PLC0415 - loads much

    if mode == "emitted" or program_in(kernel_given(kernel)) is not None:
        return _simulate_emitted(emit(kernel, machine), mode, inputs, grid)
    made = "" if mode == "sequential" else _emitted(kernel, machine, mode)
    if not isinstance(made, str):
        return _simulate_emitted(made, mode, inputs, grid)
    if inputs is None:
        raise StrettoError(f"mode {mode} runs on values: give inputs")
    runnable = _runnable(kernel, machine)
    if made:
        why = f"each loop runs by a program of its own, since there is none of the kernel: {made}"
        runnable = replace(runnable, notes=(*runnable.notes, why))
    from stretto.simulation.kernels import Pipelined, run_kernel  # noqa: PLC0415 - loads NumPy
    from stretto.simulation.outcome import Findings  # noqa: PLC0415 - likewise
    from stretto.simulation.simulator import check_rings  # noqa: PLC0415
    from stretto.simulation.space import space_taken  # noqa: PLC0415

    plain = run_kernel(runnable.kernel, inputs, grid)
    name, shape = runnable.kernel.name, tuple(grid)
    if mode == "sequential":
        return KernelSimulation(name, mode, shape, plain.arrays, True, {}, {}, (), runnable.notes)
    programs: dict[Any, Pipelined] = {}
    memory: dict[str, tuple[SpaceTaken, ...]] = {}
    findings = Findings()
    for loop in runnable.loops:
        ready = prepare(loop.wiring.loop, loop.machine)
        found = schedule(ready)
        if not found.success:
            raise StrettoError(f"{ready.loop.name}: no schedule was found, so it cannot run")
        program = materialize(ready.loop, ready.machine, found, mode)
        programs[loop.operation] = Pipelined(program, loop.wiring)
        memory[ready.loop.name] = space_taken(program, ready.machine)
        check_rings(program, ready.machine, findings)
    run = run_kernel(runnable.kernel, inputs, grid, programs)
    equal = not run.blocked and all(
        _same(run.arrays[array], plain.arrays[array]) for array in plain.arrays
    )
    return KernelSimulation(
        name,
        mode,
        shape,
        run.arrays,
        equal,
        run.iterations,
        memory,
        (*findings.all(), *run.violations),
        runnable.notes,
    )


def _emitted(
    kernel: str | PathLike[str] | Kernel, machine: Machine | str | None, mode: Mode
) -> EmittedKernel | str:
    """The kernel as it is emitted; why it is not, where its loops can run by themselves."""
    from stretto.api.emitting import emit  # noqa: PLC0415 - which knows this module
    from stretto.program.clocks import FaultError  # noqa: PLC0415 - likewise

    try:
        return emit(kernel, machine, mode=mode)
    except FaultError:
        raise
    except StrettoError as error:  # of a kernel that cannot be read, what follows says the same
        return str(error)


def _simulate_emitted(
    made: EmittedKernel, mode: KernelMode, inputs: Mapping[str, Any] | None, grid: Sequence[int]
) -> KernelSimulation:
    """The program that is printed, by clocks, and on values where there are any."""
    from stretto.program.clocks import check_program  # noqa: PLC0415 - only where it is run

    program, notes = made.emitted.program, made.notes
    mode = mode if mode == "emitted" else made.mode
    agents = {agent.name: agent.warps for agent in program.agents}
    covered, name = check_program(program), program.kernel.name
    if inputs is None:
        run = EmittedRun(made.machine, agents, program.rings, covered, ())
        return KernelSimulation(name, mode, (), {}, None, {}, {}, (), notes, run)
    from stretto.simulation.kernels import run_kernel  # noqa: PLC0415 - loads NumPy
    from stretto.simulation.kernels.programs import run_program_of_kernel  # noqa: PLC0415

    plain = run_kernel(program.kernel, inputs, grid)
    found = run_program_of_kernel(program, inputs, grid, launchable=True)
    equal = all(_same(found.arrays[array], plain.arrays[array]) for array in plain.arrays)
    run = EmittedRun(made.machine, agents, program.rings, covered, found.trips)
    shape = tuple(grid)
    return KernelSimulation(name, mode, shape, found.arrays, equal, {}, {}, (), notes, run)


def load_inputs(file: str) -> dict[str, Any]:
    """The arrays and numbers of an .npz file."""
    import numpy as np  # noqa: PLC0415

    try:
        with np.load(file, allow_pickle=False) as found:
            return {name: found[name] for name in found.files}
    except (OSError, ValueError, AttributeError, KeyError) as error:
        hint = "expected what numpy.savez writes"
        raise DocumentError(file, "", f"cannot be read: {error}", hint) from None


def _same(a: Any, b: Any) -> bool:
    import numpy as np  # noqa: PLC0415

    return bool(np.array_equal(a, b, equal_nan=True))


def _runnable(
    kernel: str | PathLike[str] | Kernel, machine: Machine | str | None
) -> RunnableKernel:
    from stretto.extraction.kernels import runnable_kernels  # noqa: PLC0415
    from stretto.ir import runnable_text  # noqa: PLC0415

    kernels: tuple[Kernel, ...] = ()
    if isinstance(kernel, Kernel):
        file, text, kernels = kernel.location.file, "", (kernel,)
    else:
        file, text = read_input(path_of(kernel, KERNEL))
        if is_kernel(file, text):
            kernels = kernels_of(file, text)
    if kernels:
        target, why = machine_of(file, kernels[0], machine)
        found = runnable_kernels(file, kernels, target)
        told = assumption(target.name, why, target.unit)
    else:
        assert isinstance(text, str)  # bytes are a kernel
        target = None if machine is None else load_machine(machine)
        found = runnable_text(file, text, target)
        told = ""
        if target is None and any(
            one.wiring.loop.machine is None for kernel in found for one in kernel.loops
        ):
            name, why = chosen_for_loop(None)
            told = assumption(name, why, load_machine(name).unit)
    if len(found) != 1:
        raise DocumentError(file, "", f"has {counted(len(found), 'kernel')}", "one is run")
    return replace(found[0], notes=(told, *found[0].notes)) if told else found[0]
