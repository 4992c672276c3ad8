"""Kernels made ready to run: lowered for a machine, each with its loops, wired to its operations.

kernel.ttir ──► Kernel ──► lower for h200 ──► (loop, wiring) ──► schedule ──► program
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from stretto.extraction import LoopsOfText, loops_of, notes_of, schedulable
from stretto.extraction.source import FOR, BlockT, OpT, Source, UnreadableError, ValueT
from stretto.extraction.trees import Kernels
from stretto.extraction.wiring import wired
from stretto.kernel import Kernel, tree
from stretto.kernel.configuration import DEFAULT, Configuration
from stretto.kernel.pipeline import lower
from stretto.kernel.wiring import LoopWiring
from stretto.loop import Loop, Note, Place
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


def runnable(
    source: Source[OpT, BlockT, ValueT],
    found: LoopsOfText[OpT, ValueT],
    kernel: Kernel,
    operations: Mapping[OpT, tree.Operation],
    values: Mapping[ValueT, tree.Value],
) -> RunnableKernel:
    """One of the kernels of a text; which of its operations and values are those of the text."""
    loops: list[RunnableLoop] = []
    notes = [item.reason.render() for item in found.left_alone]
    for item in found.loops:
        if item.for_op in operations and _innermost(source, item.for_op):
            try:
                loops.append(RunnableLoop(*wired(source, item, operations, values), item.machine))
            except UnreadableError as error:
                told = f"loop `{item.loop.name}` runs as it stands: {error.reason}"
                notes.append(source.diagnose(cast("OpT", error.op), "remark", told).render())
    return RunnableKernel(kernel, tuple(loops), tuple(notes))


def _innermost(source: Source[OpT, BlockT, ValueT], op: OpT) -> bool:
    """Whether it is a loop that has none inside."""
    loops = [inner for inner in source.walk(op) if source.name(inner) == FOR]
    return loops == [op]


def runnable_kernels(
    file: str, kernels: Sequence[Kernel], machine: Machine, configuration: Configuration = DEFAULT
) -> tuple[RunnableKernel, ...]:
    """Kernels of a front end, lowered for a machine."""
    lowered = [lower(kernel, machine, configuration).kernel for kernel in kernels]
    source = Kernels(file, lowered)
    found = schedulable(source, loops_of(source, machine))
    return tuple(
        runnable(source, found, kernel, _same(kernel.walk()), _same(_values(kernel)))
        for kernel in lowered
    )


def _values(kernel: Kernel) -> Iterable[tree.Value]:
    yield from (parameter.value for parameter in kernel.parameters)
    for op in kernel.walk():
        yield from op.results
        for region in op.regions:
            yield from region.arguments


def _same(things: Iterable[ValueT]) -> dict[ValueT, ValueT]:
    return {thing: thing for thing in things}


def kernel_loops(
    file: str, kernels: Sequence[Kernel], machine: Machine, configuration: Configuration = DEFAULT
) -> tuple[tuple[Loop, ...], tuple[Note, ...]]:
    """The loops of kernels on a machine, and what is worth saying about them."""
    lowered = [lower(kernel, machine, configuration) for kernel in kernels]
    source = Kernels(file, [one.kernel for one in lowered])
    found = schedulable(source, loops_of(source, machine, regions=False))
    told: list[Note] = []
    for kernel, made in zip(kernels, lowered, strict=True):
        told += [Note(Place(), note) for note in kernel.notes]
        told += [Note(Place(), f"{place}: note: {said}") for place, said in made.notes]
    return tuple(item.loop for item in found.loops), (*told, *notes_of(found))
