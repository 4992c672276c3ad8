"""What a program takes of each memory space: its rings, and the barriers that its pipes need.

    a_tile × 5   smem    5 × 16,384                  a ring of a storage
    p × 2        register  2 × 32,768                a ring of a value
    a_tile's pipe    5 full, 5 empty  × 8 bytes      barriers, where the machine says they live

A pipe needs a barrier a slot on each side, unless one agent's threads do everything that it joins:
these see each other's work without. A mutex is one barrier.
"""

from __future__ import annotations

from dataclasses import dataclass

from stretto.machine import Machine
from stretto.materialization.program import Pipe, Program
from stretto.ops.opcodes import opcode


@dataclass(frozen=True, slots=True)
class SpaceTaken:
    """Bytes of one space that a program takes."""

    space: str
    rings: int
    barriers: int
    budget: int | None
    """None: lifted."""

    @property
    def used(self) -> int:
        """All of them."""
        return self.rings + self.barriers

    @property
    def over(self) -> bool:
        """Whether that is more than there is."""
        return self.budget is not None and self.used > self.budget

    def __str__(self) -> str:
        of = "" if self.budget is None else f" of {self.budget:,}"
        barriers = f" ({self.barriers:,} for barriers)" if self.barriers else ""
        return f"{self.space} {self.used:,}{of} bytes{barriers}"


def space_taken(program: Program, machine: Machine) -> tuple[SpaceTaken, ...]:
    """What a program takes of every space that the machine has a budget for."""
    number = barriers(program)
    return tuple(
        SpaceTaken(
            budget.space,
            sum(ring.bytes * ring.depth for ring in program.rings if ring.space == budget.space),
            number * budget.barrier,
            budget.bytes,
        )
        for budget in machine.budgets
    )


def barriers(program: Program) -> int:
    """How many barriers a program needs."""
    sides = (
        pipe.depth * (2 if pipe.reused else 1) for pipe in program.pipes if _signals(program, pipe)
    )
    return sum(sides) + len(program.mutexes)


def _signals(program: Program, pipe: Pipe) -> bool:
    """Whether somebody has to be told: others than the threads of one agent have to do with it."""
    ops = (*pipe.producers, *(consumer.op for consumer in pipe.consumers))
    if pipe.trivial or len({program.agent_of[op] for op in ops}) > 1:
        return not pipe.trivial
    return any(opcode(program.loop.op(op).kind).issuer != "simt" for op in ops)
