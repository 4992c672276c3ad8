"""At least how long a kernel takes, before it is scheduled: what its products hold the tensor core.

    1,024 blocks on 132 SMs: one has 8;  8 × 64 trips × 512 cycles of products  ──►  >= 147 µs

No schedule and no depth of its rings goes below, so a ranking need not look at a kernel whose floor
lies above what it has already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stretto.kernel import Kernel, Operation
from stretto.loop import Loop
from stretto.machine import Machine
from stretto.predict.flow import tensor_cycles
from stretto.predict.numbers import Number, Numbers, arguments
from stretto.predict.timings import timings_of
from stretto.resources.prepare import resolve
from stretto.vocabulary.opcodes import opcode


def floor_of(
    kernel: Kernel,
    loops: Sequence[tuple[Operation, Loop]],
    machine: Machine,
    grid: Sequence[int],
    given: Mapping[str, Number | tuple[int, ...]],
    clock: float | None = None,
) -> float:
    """Seconds; of a lowered kernel whose loops are given with the operations that they are."""
    timings = timings_of(machine)
    x, y, z = (*grid, 1, 1)[:3]
    blocks, shape = x * y * z, (x, y, z)
    maker = {result: op for op in kernel.walk() for result in op.results}
    known = arguments(kernel, given)
    held = [(_around(kernel, op), _products(loop, machine)) for op, loop in loops]

    def cycles(block: int) -> float:
        at = (block % x, block // x % y, block // (x * y))
        numbers = Numbers(maker, known, shape, at)
        return sum(each * _turns(numbers, chain) for chain, each in held)

    last = blocks - 1
    sampled = {cycles(block) for block in (0, last // 3, last // 2, last)}
    if len(sampled) == 1:
        busiest = -(-blocks // timings.sms) * sampled.pop()
    else:
        busiest = sum(map(cycles, range(blocks))) / timings.sms
    return busiest / ((clock or timings.clock) * 1e6) + timings.launch * 1e-9


def _products(loop: Loop, machine: Machine) -> float:
    """Cycles of an iteration that its products hold the tensor core."""
    found = resolve(loop, machine).loop
    return sum(
        tensor_cycles(op, machine) for op in found.ops if opcode(op.kind).accumulator is not None
    )


def _around(kernel: Kernel, inner: Operation) -> list[Operation]:
    """A loop and those around it."""
    loops = [op for op in kernel.walk() if op.name == "scf.for"]
    return [op for op in loops if op is inner or any(one is inner for one in op.walk())]


def _turns(numbers: Numbers, chain: Sequence[Operation]) -> int:
    """How often the innermost goes round in a block; none where that cannot be told."""
    turns = 1
    for op in chain:
        turns *= numbers.trips(*op.operands[:3]) or 0
    return turns
