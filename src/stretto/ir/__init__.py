"""MLIR in and out: the nv_tileas dialect, its reader and writer, and the passes.

    kernel.mlir ──► parsing ──► module ──► loops ──► Loop          read_mlir
                                  ▲                    │
                                  └── loops.writer ◄───┘             write_mlir

Nothing here loads xDSL before it is called.
"""

from __future__ import annotations

from stretto import starting

TYPE_CHECKING = False  # typing takes a while to load, and `stretto-opt` starts here
if TYPE_CHECKING:
    from collections.abc import Sequence

    from stretto.extraction.kernels import RunnableKernel
    from stretto.ir.passes.published import PublishedLoop
    from stretto.kernel import Kernel
    from stretto.kernel.configuration import Configuration
    from stretto.loop import Loop, Note
    from stretto.machine import Machine
    from stretto.materialization import Program
    from stretto.solution import ScheduleAnalysis

_PARSING = "stretto.ir.parsing"


def read_mlir(
    file: str, text: str, machine: Machine | str | None = None
) -> tuple[tuple[Loop, ...], tuple[Note, ...]]:
    """The loops of an MLIR text and what is worth saying about them; MlirError if it is wrong.

    The machine is the one the loops are to be scheduled on, if it is known: what an inner loop
    costs depends on it. A loop that cannot run there is left alone; where there is no other, its
    faults are errors.
    A note about a loop left alone begins with its position. The path of a machine that a loop names
    is relative to the folder of `file`.
    """
    starting.load(_PARSING, "stretto.ir.loops")
    from stretto.extraction import loops_of, notes_of, schedulable  # noqa: PLC0415
    from stretto.ir.loops.module import Module  # noqa: PLC0415
    from stretto.ir.parsing import parse_module  # noqa: PLC0415

    module = Module(parse_module(text, file))
    found = schedulable(module, loops_of(module, machine))
    return tuple(item.loop.in_file(file) for item in found.loops), notes_of(found)


def runnable_text(file: str, text: str, machine: Machine | None) -> tuple[RunnableKernel, ...]:
    """The kernels of an MLIR text, each with its loops, as they are lowered already."""
    starting.load(_PARSING, "stretto.ir.loops")
    from stretto.extraction import loops_of, schedulable  # noqa: PLC0415
    from stretto.extraction.kernels import runnable  # noqa: PLC0415
    from stretto.ir.kernels.functions import kernels_of  # noqa: PLC0415
    from stretto.ir.loops.module import Module  # noqa: PLC0415
    from stretto.ir.parsing import parse_module  # noqa: PLC0415

    parsed = parse_module(text, file)
    module = Module(parsed)
    found = schedulable(module, loops_of(module, machine))
    return tuple(
        runnable(module, found, one.kernel, one.operations, one.values)
        for one in kernels_of(parsed)
    )


def write_kernels(
    kernels: Sequence[Kernel], machine: Machine, configuration: Configuration
) -> tuple[str, tuple[str, ...]]:
    """Whole kernels as MLIR text, lowered for a machine, and what is worth saying about them."""
    starting.load(_PARSING, "stretto.ir.kernels.writing")
    from stretto.ir.kernels.writing import lowered_module  # noqa: PLC0415
    from stretto.ir.loops.writer import print_module  # noqa: PLC0415

    module, notes = lowered_module(kernels, machine, configuration)
    return print_module(module), notes


def write_mlir(loop: Loop, generic: bool = False) -> str:
    """A loop as MLIR text, from which `read_mlir` makes the same loop again."""
    from stretto.ir.loops.writer import print_module, write_loop  # noqa: PLC0415

    return print_module(write_loop(loop).module, generic)


def write_schedule(loop: Loop, analysis: ScheduleAnalysis, generic: bool = False) -> str:
    """A loop as MLIR text with a schedule on it, as `tileas-generate-schedule` writes it."""
    from stretto.ir.loops.writer import print_module, write_loop  # noqa: PLC0415
    from stretto.ir.passes.published import publish  # noqa: PLC0415

    written = write_loop(loop)
    publish(written.for_op, written.ops, analysis)
    return print_module(written.module, generic)


def write_program(program: Program, generic: bool = False) -> str:
    """A program as MLIR text, from which `read_programs` makes the same program again."""
    from stretto.ir.loops.writer import print_module  # noqa: PLC0415
    from stretto.ir.programs import write_program as write  # noqa: PLC0415

    return print_module(write(program), generic)


def read_programs(file: str, text: str) -> tuple[Program, ...]:
    """The pipelined programs of an MLIR text, as `tileas-materialize-schedule` writes them.

    MlirError where one cannot be read. Whether one is right, the simulator says.
    """
    starting.load(_PARSING, "stretto.ir.programs")
    from stretto.ir.parsing import parse_module  # noqa: PLC0415
    from stretto.ir.programs import read_programs as read  # noqa: PLC0415

    return read(parse_module(text, file))


def read_schedules(
    file: str, text: str, machine: Machine | str | None = None, *, trusted: bool = False
) -> tuple[PublishedLoop, ...]:
    """The loops of an MLIR text with the schedules that stand on them; MlirError if it is wrong.

    Each has its `loop`, the `machine` that counts (the one given, else the one its schedule names,
    else its own), its `analysis` (None where nothing of a schedule is written on it), and
    `diagnose`, which puts a violation at its place in the text. Starts that one on trust has not
    are sought whatever the machine has room for.
    """
    starting.load(_PARSING, "stretto.ir.passes.published")
    from stretto.ir.passes.published import read_schedules as read  # noqa: PLC0415

    return read(file, text, machine, trusted=trusted)
