"""Machine code as nvdisasm prints it: instructions, and what the assembler says of their timing.

    /*03f90*/  SHFL.BFLY PT, R17, R18, 0x2, 0x1f ;  /* 0x0c401f0012117f89 */
                                                    /* 0x000e6400000e0000 */   stall 2, barrier 1

Beside what it does an instruction says for how many cycles its warp issues nothing more, for
which of six barriers it waits, and which of them it releases when its operands are read and when
its result is there: bits 105 to 121 of 128.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

BARRIERS = 6
CONTROL = 41
"""Of the upper 64 bits: where what is said of timing begins."""

LABEL = re.compile(r"\s*(\.L_x_\d+):")
FIRST = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;?\s*/\* (0x[0-9a-f]{16}) \*/")
SECOND = re.compile(r"\s*/\* (0x[0-9a-f]{16}) \*/")
TARGET = re.compile(r"\((\.L_x_\d+)\)")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction, and its timing."""

    name: str
    """As the assembler writes it, with what follows its dots."""
    operands: str
    guarded: bool
    """Whether a predicate says if it is done."""
    stall: int
    """Cycles until its warp may issue the next."""
    waits: tuple[int, ...]
    """Barriers that have to be released before."""
    made: int | None
    """The barrier that is released when its result is there."""
    read: int | None
    """The one that is released when its operands are read."""

    @property
    def opcode(self) -> str:
        """What it does, without its dots."""
        return self.name.split(".")[0]


@dataclass(frozen=True)
class Listing:
    """Instructions of a kernel in order, and where labels stand."""

    instructions: tuple[Instruction, ...]
    labels: dict[str, int]

    def loops(self) -> list[tuple[Instruction, ...]]:
        """The innermost loops, in order: what lies between a label and a guarded branch to it."""
        found: list[tuple[int, int]] = []
        for last, one in enumerate(self.instructions):
            target = TARGET.search(one.operands) if one.opcode == "BRA" and one.guarded else None
            first = self.labels.get(target[1]) if target else None
            if first is not None and first <= last:
                found.append((first, last))
        inner = [
            (first, last)
            for first, last in found
            if not any(first <= a and b <= last and (a, b) != (first, last) for a, b in found)
        ]
        return [self.instructions[first : last + 1] for first, last in inner]


def read_listing(text: str) -> Listing:
    """What `nvdisasm -c -hex` printed."""
    found: list[Instruction] = []
    labels: dict[str, int] = {}
    told = ""
    for line in text.splitlines():
        if label := LABEL.match(line):
            labels[label[1]] = len(found)
        elif first := FIRST.match(line):
            told = first[2]
        elif told and (second := SECOND.match(line)):
            found.append(_instruction(" ".join(told.split()), int(second[1], 16) >> CONTROL))
            told = ""
    return Listing(tuple(found), labels)


def _instruction(told: str, control: int) -> Instruction:
    guarded = told.startswith("@")
    if guarded:
        told = told.partition(" ")[2]
    name, _, operands = told.rstrip(" ;").partition(" ")
    made, read, waits = control >> 5 & 7, control >> 8 & 7, control >> 11
    return Instruction(
        name,
        operands,
        guarded,
        max(1, control & 15),
        tuple(b for b in range(BARRIERS) if waits >> b & 1),
        # 7 stands for no barrier.
        made if made < BARRIERS else None,
        read if read < BARRIERS else None,
    )
