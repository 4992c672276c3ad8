"""What instructions cost a scheduler, as the machine's file says, and which kind each is.

FFMA, FADD ── arithmetic    IADD3, FMNMX ── integers    MUFU ── special    SHFL ── shared
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from stretto.machine import Machine


class Kind(IntEnum):
    """What an instruction asks for. The first four are pipes, in the order of the figures."""

    ARITHMETIC = 0
    INTEGERS = 1
    """And comparisons, conversions, moves."""
    SPECIAL = 2
    SHARED = 3
    PREDICATE = 4
    """A comparison that writes no register."""
    WIDE = 5
    """Integers on the pipe of arithmetic, which take it twice as long."""
    PRODUCT = 6
    SETTLE = 7
    """Waits for products."""
    MEET = 8
    """Warps of an agent wait for each other."""
    FULL = 9
    """Looks whether a tile has come."""
    ARRIVE = 10
    """Says that a tile is read."""
    UNIFORM = 11
    """Makes a number of a register one of the whole warp."""
    BRANCH = 12
    OTHER = 13
    """Takes a slot to be issued, and nothing else that is short."""


WRITES = (Kind.ARITHMETIC, Kind.INTEGERS, Kind.SPECIAL, Kind.WIDE)
"""Kinds whose results go into registers through the port that products take too."""

OPCODES = {
    Kind.ARITHMETIC: ("FFMA", "FMUL", "FADD", "FFMA32I", "FMUL32I", "FADD32I"),
    Kind.SPECIAL: ("MUFU",),
    Kind.SHARED: ("SHFL", "LDS", "STS", "LDL", "STL", "LDSM", "STSM"),
    Kind.PREDICATE: ("FSETP", "ISETP", "PLOP3"),
    Kind.WIDE: ("IMAD",),
    Kind.MEET: ("BAR",),
    Kind.UNIFORM: ("R2UR",),
    Kind.BRANCH: ("BRA",),
    Kind.PRODUCT: ("HGMMA", "QGMMA", "IGMMA", "BGMMA"),
    Kind.OTHER: ("WARPGROUP", "NOP", "CS2R", "S2UR", "DEPBAR", "WARPSYNC", "YIELD", "ELECT"),
}  # fmt: skip
KINDS = {opcode: kind for kind, opcodes in OPCODES.items() for opcode in opcodes}
SHUFFLE = "SHFL"
READ = (64.0, 96.0, 128.0)
"""Bytes of shared memory a cycle that products read, for which shuffles were measured."""
HUNDREDTHS = 100.0
FIGURES = (
    "code_pipes", "code_beside", "code_latency", "code_operands", "code_writes", "code_saved",
    "code_taken", "code_shuffle", "code_crowd", "code_spread", "code_meet", "code_branch",
    "code_turn", "code_product", "wake", "read",
)  # fmt: skip


@dataclass(frozen=True)
class CodeCosts:
    """Figures of a machine, in cycles."""

    pipes: tuple[float, ...]
    """Of an instruction: arithmetic, integers, special functions, shared memory."""
    beside: tuple[float, ...]
    """The same while a product runs."""
    special: float
    """Until the result of a special function is there."""
    special_beside: float
    shuffled: float
    loaded: float
    """From shared memory, and what did not fit into registers."""
    looked: float
    """At a barrier."""
    uniform: float
    operands: tuple[float, float]
    """Until operands are read: of a special function, and of others."""
    left: float
    """Results a cycle that go into registers while a product runs."""
    saved: float
    """Results that may come at once behind a pause."""
    lent: tuple[float, float]
    """And that may come too early: of arithmetic, and of others."""
    taken: tuple[float, float]
    """Cycles after which arithmetic takes a product's turn, and by which that is then later."""
    longer: tuple[tuple[float, float], ...]
    """Cycles more of a shuffle, by bytes that a product beside it reads in a cycle."""
    crowd: tuple[tuple[float, float], ...]
    """Cycles from one shuffle to the next, by these bytes."""
    spread: tuple[float, float]
    """By how much a meeting of warps, and a copy, may take longer or less, so that agents are not
    held in step by a cycle."""
    meet: tuple[float, float]
    """Of four warps that wait for each other, and of each four more."""
    branch: float
    turn: float
    """From the products of one agent to those of another."""
    product: float
    """From the last cycle of a product until its sum may be read."""
    wake: float
    """From the coming of a tile until a waiter goes on."""
    read: float
    """Bytes of shared memory a cycle that products read at most."""


def code_costs(machine: Machine) -> CodeCosts | None:
    """What a machine says of machine code; None where it does not."""
    figures = {figure.name: tuple(map(float, figure.values)) for figure in machine.timings}
    if any(name not in figures for name in FIGURES):
        return None

    def parts(name: str) -> tuple[float, ...]:
        return tuple(value / HUNDREDTHS for value in figures[name])

    def by_bytes(name: str) -> tuple[tuple[float, float], ...]:
        return tuple(zip(READ, figures[name], strict=True))

    special, beside, shuffled, loaded, looked, uniform = figures["code_latency"]
    own, others = figures["code_operands"]
    saved, arithmetic, rest = parts("code_saved")
    soon, later = parts("code_taken")
    meet, more = figures["code_meet"]
    warps, copies = figures["code_spread"]
    return CodeCosts(
        pipes=parts("code_pipes"),
        beside=parts("code_beside"),
        special=special,
        special_beside=beside,
        shuffled=shuffled,
        loaded=loaded,
        looked=looked,
        uniform=uniform,
        operands=(own, others),
        left=parts("code_writes")[0],
        saved=saved,
        lent=(arithmetic, rest),
        taken=(soon, later),
        longer=by_bytes("code_shuffle"),
        crowd=by_bytes("code_crowd"),
        spread=(warps, copies),
        meet=(meet, more),
        branch=figures["code_branch"][0],
        turn=figures["code_turn"][0],
        product=figures["code_product"][0],
        wake=figures["wake"][0],
        read=figures["read"][0],
    )
