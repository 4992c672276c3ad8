"""One iteration's numbers leave the registers before the next one's products fill them.

    qk ── wait ── max ── exp ── sum ── narrow ── rescale     a product that adds to nothing takes
     ▲                                              │        registers, while the numbers of the
     ╰───────────── of the next iteration ◄─────────╯        iteration before still hold theirs

Where a group of warps has registers for both, a schedule may set them side by side. Where it has
not, the loop says so: what a group computes in an iteration comes in the order of the text, sums
that products add to last, and the first product of the next iteration behind all of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from stretto.kernel import Operation
from stretto.kernel.types import Scalar, Tile, Type
from stretto.loop import Dependence, Op
from stretto.simulate.kernels.wiring import LoopWiring
from stretto.vocabulary.opcodes import opcode

SPARE = 48
"""Registers of a thread that addresses, rows and counters take."""
REGISTER = 32
"""Bits."""


def one_at_a_time(wiring: LoopWiring, agents: Iterable[str], room: int, threads: int) -> LoopWiring:
    """The loop with such orders for each of its agents that has not registers for both.

    `room` is how many registers each of an agent's `threads` has.
    """
    asked: list[Dependence] = []
    for agent in agents:
        mine = [op for op in wiring.loop.ops if op.agent == agent]
        if _registers(mine, wiring, threads) > room - SPARE:
            asked += _orders(mine, wiring)
    if not asked:
        return wiring
    return replace(wiring, loop=replace(wiring.loop, stated=(*wiring.loop.stated, *asked)))


def _registers(ops: list[Op], wiring: LoopWiring, threads: int) -> int:
    """Registers of a thread, were a next iteration's sums to stand beside this one's numbers."""
    sums = factors = widest = 0
    for op in ops:
        operation = wiring.operations[op.name]
        row = opcode(op.kind)
        if row.accumulator is not None:
            sums += sum(_held(value.type, threads) for value in operation.results)
            factors += _held(operation.operands[0].type, threads)
        elif _computes(op) and not op.facts.accumulates:
            widest = max([widest, *(_held(value.type, threads) for value in operation.results)])
    return sums + factors + widest if widest else 0


def _held(type: Type, threads: int) -> int:
    """Registers of a thread for its part of a tile; none for one in shared memory."""
    if not isinstance(type, Tile) or not isinstance(type.element, Scalar):
        return 0
    return type.elements * type.element.bits // (REGISTER * threads)


def _orders(ops: list[Op], wiring: LoopWiring) -> list[Dependence]:
    products = [op for op in ops if opcode(op.kind).accumulator is not None]
    fresh = [op.name for op in products if not _adds(wiring.operations[op.name])]
    computed = [op for op in ops if op not in products and _computes(op)]
    computed.sort(key=lambda op: bool(op.facts.accumulates))
    names = [op.name for op in computed]
    if not fresh or not names:
        return []
    found = [Dependence(a, b, 0, 0, "order") for a, b in pairwise(names)]
    return [*found, Dependence(names[-1], fresh[0], 1, 1, "order")]


def _adds(operation: Operation) -> bool:
    """Whether a product adds to what is there."""
    return any(operation.integers("groups")[2:3])


def _computes(op: Op) -> bool:
    row = opcode(op.kind)
    return not row.view and not row.awaits
