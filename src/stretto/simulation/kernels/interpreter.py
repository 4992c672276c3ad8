"""Runs a kernel over its grid, one block after the other, each from its first operation on.

a loop without a program     one step after the other
a loop with one              by its program, in the order and through the rings that it has
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any, cast

import numpy as np

from stretto.errors import StrettoError
from stretto.kernel import Kernel, Operation, Region, Value
from stretto.kernel.tree import kind_of
from stretto.kernel.types import Buffer, Pointer, Scalar, View
from stretto.kernel.wiring import LoopWiring
from stretto.materialization import Program
from stretto.ops.opcodes import opcode
from stretto.simulation.execution import run_program
from stretto.simulation.kernels.arrays import Array, fitted
from stretto.simulation.kernels.evaluator import Evaluator
from stretto.simulation.kernels.loop_domain import LoopDomain
from stretto.simulation.kernels.memory import Address, BufferRef, Cell, Heap, TensorView
from stretto.simulation.outcome import Finding

Inputs = Mapping[str, Any]
"""Arrays for pointers and views, numbers for scalars, by the names of the parameters; for a pointer
to addresses a list of arrays, or each of them as `name[0]`, `name[1]` ..."""
STEPS = 10_000_000
"""Steps that a while loop may take."""


@dataclass(frozen=True)
class Pipelined:
    """The program of a loop, and how it hangs together with the kernel."""

    program: Program
    wiring: LoopWiring


@dataclass(frozen=True)
class KernelRun:
    """What a kernel left behind."""

    arrays: Mapping[str, Array]
    """Every array that was given, as it is afterwards, in the shape it was given in; the arrays of
    a list as `name[0]`, `name[1]` ..."""
    violations: tuple[Finding, ...] = ()
    """What was wrong with the programs of its loops."""
    blocked: bool = False
    iterations: Mapping[str, int] = field(default_factory=dict[str, int])
    """How often each pipelined loop went round, in all blocks together."""


def run_kernel(
    kernel: Kernel,
    inputs: Inputs,
    grid: Sequence[int] = (1,),
    pipelined: Mapping[Operation, Pipelined] | None = None,
) -> KernelRun:
    """Run a lowered kernel; StrettoError where it cannot run, or reaches where nothing is."""
    x, y, z = (*grid, 1, 1, 1)[:3]
    tiles, whole = (x, y, z), launched_grid(kernel, (x, y, z))
    heap = Heap()
    bound = bound_to(kernel, inputs, heap)
    runs = _Runs(pipelined or {})
    for z, y, x in product(*(range(n) for n in reversed(whole))):
        evaluator = Evaluator(whole, (x, y, z), heap, tiles)
        _Block(evaluator, dict(bound), runs).region(kernel.body)
    arrays = left_in(kernel, inputs, bound, heap)
    return KernelRun(arrays, tuple(runs.violations), runs.blocked, runs.iterations)


def launched_grid(kernel: Kernel, tiles: tuple[int, int, int]) -> tuple[int, int, int]:
    """The blocks that run where a launch asks for so many: fewer, where each goes over several."""
    counts = [op for op in kernel.walk() if kind_of(op).endswith("tile_count")]
    if not counts:
        return tiles
    axes = {op.integer("axis") for op in counts}
    return min(counts[0].integer("blocks"), prod(tiles[axis] for axis in axes)), 1, 1


def left_in(
    kernel: Kernel, inputs: Inputs, bound: Mapping[Value, Any], heap: Heap
) -> dict[str, Array]:
    """Every array that was given, as it is now."""
    arrays = {
        name: datum.array.data.reshape(np.shape(inputs[name]))
        for name, datum in ((p.name, bound[p.value]) for p in kernel.parameters)
        if isinstance(datum, Address | TensorView) and not _listed(name, inputs)
    }
    return arrays | dict(heap.left())


def bound_to(kernel: Kernel, inputs: Inputs, heap: Heap) -> dict[Value, Any]:
    """The parameters of a kernel, as they are given; arrays are copied."""
    found: dict[Value, Any] = {}
    given: dict[str, int] = {}
    for parameter in kernel.parameters:
        name, type = parameter.name, parameter.value.type
        # Names of host descriptors stand before their sizes and strides, which have the same.
        number = given.get(name, 0)
        given[name] = number + 1
        pointers = _listed(name, inputs) if isinstance(type, Pointer) else {}
        if name not in inputs and not pointers:
            all_of_them = dict.fromkeys(f"`{p.name}`" for p in kernel.parameters)
            told = f"kernel `{kernel.name}` has a parameter `{name}`: give a value"
            raise StrettoError(f"{told}; it takes {', '.join(all_of_them)}")
        value: Any = inputs.get(name)
        if isinstance(type, Pointer):
            if pointers:
                value = np.asarray([heap.keep(*one) for one in pointers.items()])
            array = heap.place(name, _flat(name, value, type.pointee), type.pointee)
            found[parameter.value] = Address(array, np.asarray(np.int64(0)))
        elif isinstance(type, View):
            data = np.asarray(value)
            array = heap.place(name, _flat(name, data, type.element), type.element)
            strides = tuple(int(np.prod(data.shape[i + 1 :])) for i in range(data.ndim))
            found[parameter.value] = TensorView(array, 0, data.shape, strides, type.padding)
        elif isinstance(type, Scalar):
            if np.ndim(value) > 0:  # a size or a stride that belongs to a descriptor
                data = np.asarray(value)
                sizes = [
                    *data.shape,
                    *(int(np.prod(data.shape[i + 1 :])) for i in range(data.ndim)),
                ]
                value = sizes[(number - 1) % len(sizes)]
            found[parameter.value] = fitted(value, type)
        else:
            raise StrettoError(f"parameter `{name}` of type {type} cannot be given")
    return found


def _listed(name: str, inputs: Inputs) -> dict[str, Array]:
    """Arrays that a parameter holds the addresses of: given as a list, or by name and number."""
    value: Any = inputs.get(name)
    many = cast("list[Any]", value) if isinstance(value, list | tuple) else []
    if any(np.ndim(one) for one in many):
        return {f"{name}[{i}]": np.asarray(one) for i, one in enumerate(many)}
    found: dict[str, Array] = {}
    while value is None and (called := f"{name}[{len(found)}]") in inputs:
        found[called] = np.asarray(inputs[called])
    return found


def _flat(name: str, value: Any, element: Scalar) -> Array:
    data = np.asarray(value)
    if data.dtype.kind not in "biuf":
        raise StrettoError(f"parameter `{name}` is no array of numbers")
    return fitted(data, element).reshape(-1).copy()


class _Runs:
    """The programs of loops, and what came of them."""

    def __init__(self, pipelined: Mapping[Operation, Pipelined]) -> None:
        self.pipelined = pipelined
        self.violations: list[Finding] = []
        self.blocked = False
        self.iterations: dict[str, int] = {}


class _Block:
    """One block of the grid."""

    def __init__(self, evaluator: Evaluator, values: dict[Value, Any], runs: _Runs) -> None:
        self._evaluator = evaluator
        self._values = values
        self._runs = runs

    def region(self, region: Region) -> list[Any]:
        """The operations of a region; what its last hands on."""
        for operation in region.operations[:-1]:
            self.operation(operation)
        return [self._values[value] for value in region.terminator.operands]

    def operation(self, operation: Operation) -> None:
        """One operation, with what it encloses."""
        match operation.name:
            case "scf.for":
                made = self._for(operation)
            case "scf.if":
                side = 0 if bool(self._values[operation.operands[0]]) else 1
                made = self.region(operation.regions[side])
            case "scf.while":
                made = self._while(operation)
            case _:
                made = self._plain(operation)
        for result, datum in zip(operation.results, made, strict=False):
            self._values[result] = datum

    def _plain(self, operation: Operation) -> Sequence[Any]:
        kind = kind_of(operation)
        row = opcode(kind)
        operands = [self._values[value] for value in operation.operands]
        if row.allocates:
            cell = Cell(operands[0] if operands else None)
            return [BufferRef(cell)]
        result = operation.results[0] if operation.results else None
        if row.view and operands and isinstance(operands[0], BufferRef):
            ref = operands[0]

            def seen(array: Array) -> Array:
                return self._evaluator.apply(operation, [array])[0]

            return [BufferRef(ref.cell, (*ref.views, seen))]
        filled = self._filled(operation, operands)
        taken = [
            None
            if datum is filled and i == len(operands) - 1 and not _adds(operation)
            else datum.read()
            if isinstance(datum, BufferRef)
            else datum
            for i, datum in enumerate(operands)
        ]
        made = self._evaluator.apply(operation, taken)
        if result is not None and isinstance(result.type, Buffer):
            home = filled or BufferRef(Cell())
            home.cell.content = made[0]
            return [home, *made[1:]]
        return made

    def _filled(self, operation: Operation, operands: Sequence[Any]) -> BufferRef | None:
        """The buffer that an operation fills or adds to: it stands last among its operands."""
        row = opcode(kind_of(operation))
        groups = operation.integers("groups")
        if row.destination is None and row.accumulator is None:
            return None
        if not any(groups[2:4]) and row.accumulator is not None:
            return None
        last = operands[-1]
        return last if isinstance(last, BufferRef) else None

    def _bounds(self, operation: Operation) -> tuple[int, int, int]:
        lower, upper, step = (int(self._values[value]) for value in operation.operands[:3])
        if step < 1:
            raise StrettoError(f"{operation.location}: error: a loop whose step is {step}")
        return lower, upper, step

    def _for(self, operation: Operation) -> list[Any]:
        lower, upper, step = self._bounds(operation)
        carried = [self._values[value] for value in operation.operands[3:]]
        if operation in self._runs.pipelined:
            return self._pipelined(operation, range(lower, upper, step), carried)
        (body,) = operation.regions
        index, *arguments = body.arguments
        assert isinstance(index.type, Scalar)
        for at in range(lower, upper, step):
            self._values[index] = fitted(at, index.type)
            self._values.update(zip(arguments, carried, strict=True))
            carried = self.region(body)
        return carried

    def _pipelined(self, operation: Operation, steps: range, carried: list[Any]) -> list[Any]:
        found = self._runs.pipelined[operation]
        wiring, evaluator = found.wiring, self._evaluator
        domain = LoopDomain(
            wiring, operation, evaluator, self._values, steps, carried, self._enclosed
        )
        run = run_program(found.program, found.program.starts, domain, len(steps))
        name = found.program.loop.name
        self._runs.violations += run.findings.all()
        self._runs.blocked |= bool(run.blocked)
        self._runs.iterations[name] = self._runs.iterations.get(name, 0) + len(steps)
        return domain.results(run.trace)

    def _enclosed(self, operation: Operation, taken: Mapping[Value, Any]) -> list[Any]:
        """Control flow of a pipelined loop, which knows nothing but what it takes."""
        inside = _Block(self._evaluator, dict(taken), self._runs)
        inside.operation(operation)
        return [inside._values[result] for result in operation.results]

    def _while(self, operation: Operation) -> list[Any]:
        before, after = operation.regions
        carried = [self._values[value] for value in operation.operands]
        for _ in range(STEPS):
            self._values.update(zip(before.arguments, carried, strict=True))
            going, *handed = self.region(before)
            if not bool(going):
                return handed
            self._values.update(zip(after.arguments, handed, strict=True))
            carried = self.region(after)
        raise StrettoError(f"{operation.location}: error: does not end in {STEPS:,} steps")


def _adds(operation: Operation) -> bool:
    row = opcode(kind_of(operation))
    groups = operation.integers("groups")
    return row.accumulator is not None and len(groups) > 2 and groups[2] > 0
