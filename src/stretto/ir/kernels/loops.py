"""The loops of kernels, on a machine: each kernel lowered, its module read as any other.

kernel.ttir ──► Kernel ──► lower for b200-pipes ──► module ──► Loop, Loop
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import VerifyException

from stretto.ir.kernels.writing import kernel_module
from stretto.ir.loops import read_loops, schedulable
from stretto.ir.parsing import Parsed, verify_module
from stretto.kernel import Kernel, KernelError, Location
from stretto.kernel.configuration import DEFAULT, Configuration
from stretto.kernel.pipeline import lower
from stretto.loop import Loop, Note, Place
from stretto.machine import Machine


def lowered_module(
    kernels: Sequence[Kernel], machine: Machine, configuration: Configuration = DEFAULT
) -> tuple[ModuleOp, tuple[str, ...]]:
    """Kernels in nv_tileas for a machine, in one module, and what is worth saying of them."""
    functions: list[ModuleOp] = []
    notes: list[str] = []
    for kernel in kernels:
        lowered = lower(kernel, machine, configuration)
        try:
            functions.append(kernel_module(lowered.kernel))
        except VerifyException as error:
            raise _unlowered(kernel.location, machine, str(error)) from error
        notes += kernel.notes
        notes += [f"{place}: note: {said}" for place, said in lowered.notes]
    first, *others = functions
    for other in others:
        for op in list(other.body.block.ops):
            op.detach()
            first.body.block.add_op(op)
    return first, tuple(notes)


def verified_module(
    file: str, kernels: Sequence[Kernel], machine: Machine, configuration: Configuration = DEFAULT
) -> tuple[Parsed, tuple[str, ...]]:
    """The same, verified: KernelError where what a kernel becomes would be no module."""
    module, notes = lowered_module(kernels, machine, configuration)
    parsed = Parsed.of_module(module, file)
    for fault in verify_module(parsed):
        place = Location(fault.file, fault.line, fault.column)
        raise _unlowered(place, machine, fault.message)
    return parsed, notes


def _unlowered(place: Location, machine: Machine, why: str) -> KernelError:
    return KernelError(place, f"it cannot be lowered for {machine.name}: {why}")


def kernel_loops(
    file: str, kernels: Sequence[Kernel], machine: Machine, configuration: Configuration = DEFAULT
) -> tuple[tuple[Loop, ...], tuple[Note, ...]]:
    """The loops of kernels on a machine, and what is worth saying about them."""
    parsed, notes = verified_module(file, kernels, machine, configuration)
    found = schedulable(parsed, read_loops(parsed, machine, regions=False))
    told = [Note(Place(), note) for note in notes]
    told += [Note(item.loop.at(), w.headline) for item in found.loops for w in item.warnings]
    told += [
        Note(Place(), item.reason.render())
        for item in found.left_alone
        if item.reason.severity != "remark" or not found.loops
    ]
    return tuple(item.loop for item in found.loops), tuple(told)
