"""An SM that several blocks have at a time, and what each of them gets of it.

1 block      232,448 bytes   65,536 registers    copy 24, compute 240 a thread
3 blocks      76,800         21,840              copy 24, compute 136
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stretto.errors import StrettoError
from stretto.machine.machine import REGISTER_BYTES, REGISTER_STEP, WARP, Budget, Machine
from stretto.ops.spaces import REGISTERS, STAGING

GROUP = 4
"""Warps that share registers out among each other: agents begin with whole groups."""
FEWEST = 24
"""Registers of a thread at least (PTX ISA: setmaxnreg)."""
HALVED = 2
"""Blocks up to which one group of warps keeps the registers that it has alone."""


def shared(machine: Machine, blocks: int) -> Machine:
    """The machine as one of so many blocks of an SM has it."""
    if blocks == machine.blocks:
        return machine
    part = min(1.0, HALVED / blocks)
    return replace(
        machine,
        blocks=blocks,
        budgets=tuple(_part(budget, machine, blocks) for budget in machine.budgets),
        products=tuple(
            replace(one, held=int(one.held * part), held_of_tiles=int(one.held_of_tiles * part))
            for one in machine.products
        ),
    )


def _part(budget: Budget, machine: Machine, blocks: int) -> Budget:
    """What one of so many blocks has of a memory."""
    if budget.bytes is None or budget.space not in (STAGING, REGISTERS):
        return budget
    if budget.space == REGISTERS:
        return replace(budget, bytes=budget.bytes // blocks)
    kept = machine.limit("block_bytes") or 0
    return replace(budget, bytes=(budget.bytes + kept) // blocks - kept)


def groups(warps: Sequence[int]) -> int:
    """Warps with which a kernel of several agents begins."""
    return -(-sum(warps) // GROUP) * GROUP


def thread_registers(machine: Machine, warps: int) -> int | None:
    """Registers of each thread of a block of so many warps; None where no file is stated."""
    budget = machine.budget(REGISTERS)
    if budget is None or budget.bytes is None:
        return None
    file = budget.bytes // REGISTER_BYTES
    return file // (warps * WARP) // REGISTER_STEP * REGISTER_STEP


def registers_left(machine: Machine, computing: int, others: Sequence[tuple[int, int]]) -> int:
    """Registers of a thread of so many warps that compute; of all others warps and registers are
    told. StrettoError where nothing is left."""
    warps = groups([computing, *(count for count, _ in others)])
    each = thread_registers(machine, warps)
    most = machine.known_limit("thread_registers")
    if each is None:
        return most
    beside = max((registers for _, registers in others), default=0) * (warps - computing)
    left = (each * warps - beside) // computing // REGISTER_STEP * REGISTER_STEP
    if left < FEWEST:
        told = f"{machine.blocks} blocks an SM leave {left} registers to a thread that computes"
        raise StrettoError(f"{told}; {FEWEST} are the fewest")
    return min(most, left)
