"""A module's kernels made ready to run: each with its loops wired, and prepared for a machine.

module ──► read_loops ──► (loop, wiring) ──► schedule ──► program ──► run_kernel
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.scf import ForOp

from stretto.ir.kernels.functions import kernels_of
from stretto.ir.kernels.loops import verified_module
from stretto.ir.kernels.wiring import wired
from stretto.ir.loops import read_loops, schedulable
from stretto.ir.parsing import Parsed, parse_module
from stretto.kernel import Kernel, Operation
from stretto.machine import Machine
from stretto.simulate.kernels.wiring import LoopWiring


@dataclass(frozen=True)
class RunnableLoop:
    """A loop of a kernel that can be scheduled."""

    operation: Operation
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
    found = schedulable(parsed, read_loops(parsed, machine, regions=False))
    left = tuple(item.reason.render() for item in found.left_alone)
    kernels: list[RunnableKernel] = []
    for kernel in kernels_of(parsed):
        own = [item for item in found.loops if item.for_op in kernel.operations]
        loops = tuple(
            RunnableLoop(*wired(kernel, item), item.machine)
            for item in own
            if not any(isinstance(op, ForOp) for op in item.for_op.body.block.walk())
        )
        kernels.append(RunnableKernel(kernel.kernel, loops, left))
    return tuple(kernels)


def runnable_text(file: str, text: str, machine: Machine | None) -> tuple[RunnableKernel, ...]:
    """The kernels of an MLIR text."""
    return runnable(parse_module(text, file), machine)


def runnable_kernels(
    file: str, kernels: Sequence[Kernel], machine: Machine
) -> tuple[RunnableKernel, ...]:
    """Kernels of a front end, lowered for a machine."""
    parsed, _ = verified_module(file, kernels, machine)
    return runnable(parsed, machine)
