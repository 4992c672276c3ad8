"""Why an operation does not fit where it was tried.

    II 15        load   ████████·······     cycles 0 to 7
    tp_smem_wr   write  ████········███     12, 13, 14 and, around the end, 0 to 3
                        ^ `write` wants tp_smem_wr at cycle 0 (start 12 + 3, II 15):
                          held by `load` (1 of 1)

A conflict carries its numbers; the sentence is a view of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from stretto.errors import StrettoError
from stretto.loop import Use


@dataclass(frozen=True, slots=True)
class Conflict:
    """The first cycle of the first use (or pool demand) of an operation that does not fit."""

    op: str
    """The operation that was tried; empty when only its vector was."""
    start: int
    ii: int
    offset: int
    """Cycles after the start."""
    use: Use | None
    """The use that does not fit; None when it is a pool."""
    pool: str | None
    """The pool that does not give; None when it is a slot."""
    wanted: int
    """What the operation takes of the slot or pool in this modulo cycle, all its uses together."""
    load: int
    """What others hold of it in this modulo cycle."""
    limit: int
    """The slot's capacity or the pool's cap."""
    holders: tuple[str, ...]
    """Who holds the slot or draws on the pool in this modulo cycle, in order of commitment."""
    row: int | None
    """The row word of the cycle; None on machines of more than 64 slots."""

    @property
    def cycle(self) -> int:
        """The modulo cycle."""
        return (self.start + self.offset) % self.ii

    def __str__(self) -> str:
        who = f"`{self.op}`" if self.op else "the operation"
        if self.use is None:
            what, verb = f"draws {self.wanted} from {self.pool}", "drawn"
        else:
            amount = "" if self.wanted == 1 else f"{self.wanted} of "
            what, verb = f"wants {amount}{self.use.slot}", "held"
        where = f"at cycle {self.cycle} (start {self.start} + {self.offset}, II {self.ii})"
        if self.wanted > self.limit:
            why = f"it takes {self.wanted} of {self.limit} by itself"
        else:
            names = ", ".join(f"`{name}`" for name in self.holders)
            why = f"{verb} by {names} ({self.load} of {self.limit})"
        return f"{who} {what} {where}: {why}"


class ConflictError(StrettoError):
    """An operation was committed where it does not fit; `conflict` says why."""

    def __init__(self, conflict: Conflict) -> None:
        self.conflict = conflict
        super().__init__(str(conflict))

    def __reduce__(self) -> tuple[type[ConflictError], tuple[Conflict]]:
        return ConflictError, (self.conflict,)
