"""A module's kernels made ready to run: each with its loops wired, and prepared for a machine.

module ──► read_loops ──► (loop, wiring) ──► schedule ──► program ──► run_kernel
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.scf import ForOp
from xdsl.ir import Operation

from stretto.ir.kernels.functions import kernels_of
from stretto.ir.kernels.loops import verified_module
from stretto.ir.kernels.wiring import wired
from stretto.ir.loops import read_loops, schedulable
from stretto.ir.loops.flow import UnreadableError
from stretto.ir.parsing import Parsed, parse_module
from stretto.kernel import Kernel, tree
from stretto.kernel.configuration import DEFAULT, Configuration
from stretto.kernel.wiring import LoopWiring
from stretto.machine import Machine


@dataclass(frozen=True)
class RunnableLoop:
    """A loop of a kernel that can be scheduled."""

    operation: tree.Operation
    wiring: LoopWiring
    machine: Machine


@dataclass(frozen=True)
class RunnableKernel:
    """A lowered kernel and its loops."""

    kernel: Kernel
    loops: tuple[RunnableLoop, ...]
    notes: tuple[str, ...] = ()


def runnable(parsed: Parsed, machine: Machine | None) -> tuple[RunnableKernel, ...]:
    """The kernels of a module."""
    found = schedulable(parsed, read_loops(parsed, machine))
    left = tuple(item.reason.render() for item in found.left_alone)
    kernels: list[RunnableKernel] = []
    for kernel in kernels_of(parsed):
        own = [item for item in found.loops if item.for_op in kernel.operations]
        loops: list[RunnableLoop] = []
        notes = list(left)
        for item in own:
            if _innermost(item.for_op):
                try:
                    loops.append(RunnableLoop(*wired(kernel, item), item.machine))
                except UnreadableError as error:
                    told = f"loop `{item.loop.name}` runs as it stands: {error.reason}"
                    notes.append(parsed.diagnose(error.op, "remark", told).render())
        kernels.append(RunnableKernel(kernel.kernel, tuple(loops), tuple(notes)))
    return tuple(kernels)


def _innermost(op: Operation) -> bool:
    """Whether it is a loop that has none inside."""
    return isinstance(op, ForOp) and not any(
        isinstance(inner, ForOp) for inner in op.body.block.walk()
    )


def runnable_text(file: str, text: str, machine: Machine | None) -> tuple[RunnableKernel, ...]:
    """The kernels of an MLIR text."""
    return runnable(parse_module(text, file), machine)


def runnable_kernels(
    file: str, kernels: Sequence[Kernel], machine: Machine, configuration: Configuration = DEFAULT
) -> tuple[RunnableKernel, ...]:
    """Kernels of a front end, lowered for a machine."""
    parsed, _ = verified_module(file, kernels, machine, configuration)
    return runnable(parsed, machine)
