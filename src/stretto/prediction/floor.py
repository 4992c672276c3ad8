"""At least how long a kernel takes, before it is scheduled: its products, arithmetic, or copies.

    1,024 blocks on 132 SMs: one has 8;  8 × 64 trips × 512 cycles of products  ──►  >= 154 µs

No schedule and no depth of its rings goes below, so a ranking need not look at a kernel whose floor
lies above what it has already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from stretto.kernel import Kernel, Operation
from stretto.kernel.tree import kind_of
from stretto.kernel.types import Buffer
from stretto.loop import Loop
from stretto.machine import Machine
from stretto.ops.opcodes import OPCODES, opcode
from stretto.prediction.blocks import part_of
from stretto.prediction.copying import at_clock, out_of_step, share, shared_rate
from stretto.prediction.flow import MULTIPLY, tensor_cycles
from stretto.prediction.numbers import Grid, Number, Numbers, arguments
from stretto.prediction.running import TRIPS
from stretto.prediction.timings import Timings, clock_of, timings_of
from stretto.resources.prepare import resolve
from stretto.simulation.kernels.interpreter import launched_grid

MET = 0.95
"""Part of what pipes are asked for that agents meet at least, in the few trips that are run."""


def floor_of(
    kernel: Kernel,
    loops: Sequence[tuple[Operation, Loop]],
    machine: Machine,
    grid: Sequence[int],
    given: Mapping[str, Number | tuple[int, ...]],
    clock: float | None,
    shared: dict[Operation, float],
) -> float:
    """Seconds; of a lowered kernel whose loops are given with the operations that they are.

    `shared` is that of `predict_kernel`, filled here.
    """
    measured = timings_of(machine)
    mhz = clock_of(measured, clock)
    timings = at_clock(measured, mhz)
    x, y, z = (*grid, 1, 1)[:3]
    tiles: Grid = (x, y, z)
    x, y, z = launched_grid(kernel, tiles)
    blocks = x * y * z
    maker = {result: op for op in kernel.walk() for result in op.results}
    known = arguments(kernel, given)

    def numbers_of(block: int) -> Numbers:
        at = (block % x, block // x % y, block // (x * y))
        return Numbers(maker, known, (x, y, z), at, tiles)

    every = [op for loop, _ in loops for op, _ in _copies(loop)]
    share(kernel, every, range(min(blocks, timings.sms)), numbers_of, shared)
    held: list[tuple[list[Operation], tuple[float, ...], float, float]] = []
    for op, loop in loops:
        bytes = sum(n for _, n in _copies(op))
        # Blocks are in step or not: what they have then may be more.
        apart = out_of_step(
            kernel, [c for c, _ in _copies(op)], shared, timings, numbers_of, blocks
        )
        copied = min(
            sum(n / shared_rate(shared[c], timings) for c, n in _copies(op)),
            sum(n / apart[c] for c, n in _copies(op)),
        )
        # So many trips are on their way before the memory's rate is felt; a loop that is run for
        # too few of them is predicted as if it never were.
        ahead = timings.costs.queue / bytes if bytes else 0.0
        if ahead > TRIPS // 2:
            copied = 0.0
        held.append((_around(kernel, op), _pipes(loop, machine, timings), copied, ahead))

    def cycles(block: int) -> float:
        numbers = numbers_of(block)
        turns = [_turns(numbers, chain) for chain, *_ in held]
        pipes = (0.0, 0.0, 0.0)
        copies = 0.0
        for n, (_, busy, copied, ahead) in zip(turns, held, strict=True):
            pipes = tuple(all_of + n * one for all_of, one in zip(pipes, busy, strict=True))
            copies += max(0.0, n - ahead) * copied
        return max(*pipes, copies)

    last = blocks - 1
    sampled = {cycles(block) for block in (0, last // 3, last // 2, last)}
    if len(sampled) == 1:
        busiest = -(-blocks // timings.sms) * sampled.pop()
    else:
        few = range(blocks) if tiles == (x, y, z) else (0, last // 3, last // 2, last)
        busiest = sum(map(cycles, few)) / len(few) * blocks / timings.sms
    return busiest / (mhz * 1e6) + timings.launch * 1e-9


def _copies(loop: Operation) -> list[tuple[Operation, int]]:
    """Copies in of a loop, each with its bytes."""
    found: list[tuple[Operation, int]] = []
    for op in loop.walk():
        row, made = OPCODES.get(kind_of(op)), op.results[0].type if op.results else None
        if row is not None and row.destination is not None and isinstance(made, Buffer):
            found.append((op, prod(made.shape) * made.element.bits // 8))
    return found


def _pipes(loop: Loop, machine: Machine, timings: Timings) -> tuple[float, ...]:
    """Cycles of an iteration that tensor core, special functions and arithmetic are busy."""
    found = resolve(loop, machine).loop
    tensor = special = arithmetic = 0.0
    for op in found.ops:
        if opcode(op.kind).accumulator is not None:
            tensor += tensor_cycles(op, machine)
        else:
            part = part_of(op, found, timings.pipes)
            special += part.special
            arithmetic += part.arithmetic if opcode(op.kind).computes != MULTIPLY else 0.0
    beside = (1 - timings.costs.beside) * tensor
    return tensor, special * MET, (arithmetic + beside) * MET


def _around(kernel: Kernel, inner: Operation) -> list[Operation]:
    """A loop and those around it."""
    loops = [op for op in kernel.walk() if op.name == "scf.for"]
    return [op for op in loops if op is inner or any(one is inner for one in op.walk())]


def _turns(numbers: Numbers, chain: Sequence[Operation]) -> int:
    """How often the innermost goes round in a block; none where that cannot be told."""
    first, *inner = chain
    trips = numbers.trips(*first.operands[:3]) or 0
    if not inner:
        return trips
    known = [numbers.trips(*op.operands[:3]) for op in inner]
    if all(one is not None for one in known):
        return trips * prod(one or 0 for one in known)
    begin, step = (numbers.of(value) for value in (first.operands[0], first.operands[2]))
    if begin is None or step is None:
        return 0
    turns = 0
    for turn in range(trips):
        numbers.bind(first.regions[0].arguments[0], begin + turn * step)
        turns += _turns(numbers, inner)
    return turns
