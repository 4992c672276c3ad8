"""The steady loop of each agent in machine code, known by the waits, arrivals and products in it.

    score    full k_tile ─ product ─ full v_tile ─ product ─ settle ─ arrive k_tile ─ ...
    code     SYNCS TRYWAIT ─ HGMMA ─ SYNCS TRYWAIT ─ HGMMA ─ DEPBAR ─ SYNCS ARRIVE ─ ...

These keep their order whatever the assembler does to the arithmetic between them, so that each
look at a barrier is known to be for a ring, and for which iteration. Agents are told apart by the
barrier at which their warps meet: those of the first agent meet at 0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from stretto.prediction.code.costs import KINDS, SHUFFLE, Kind
from stretto.prediction.code.listing import Instruction, Listing
from stretto.prediction.score import AgentScore, Beat, LoopScore, loops_in

ROWS, DEEP = 64, 32
"""Of an instruction's product: rows, and bytes of a row of the left factor."""
SHAPE = re.compile(r"[A-Z]+\.\d+x([1-9]\d*)x\d+")
LEFT = re.compile(r"0x([0-9a-f]+)")
STAGED = re.compile(r"R\d+, gdesc")
"""A product whose left factor is in shared memory too."""
COMMIT, TRYWAIT, SETTLED = "gsb0", "TRYWAIT", "DEPBAR"
EXPECTED = ("full", "arrive", "product")
"""What is looked for in machine code; waits for products that are done are left out there."""
QUIET = ("work", "settle", "turn", "hand")
MOVES = ("MOV", "IMAD.MOV")


@dataclass(frozen=True, slots=True)
class Issue:
    """An instruction as a scheduler sees it."""

    kind: Kind
    stall: int
    waits: tuple[int, ...]
    made: int | None
    read: int | None
    cycles: float = 0.0
    """Of a product: of the tensor core."""
    bytes: float = 0.0
    """Of a product: bytes of shared memory that it reads."""
    last: bool = False
    """Of a product: whether it ends one of the loop; of a branch: whether it ends the step."""
    left: int = 0
    """Of a wait for products: those that may still run."""
    shuffle: bool = False
    ring: str = ""
    stage: int = 0


@dataclass(frozen=True)
class AgentCode:
    """What a warp of an agent does in a step."""

    agent: str
    groups: int
    """Of four warps."""
    first: int
    """Its first steady step."""
    issues: tuple[Issue, ...]
    arrives: tuple[tuple[str, int], ...]
    """Rings that it hands back in a step, and of which stage."""
    moves: int = 0
    """Instructions that copy registers."""


def agents_in(
    listing: Listing, scores: Sequence[AgentScore], number: int
) -> list[AgentCode] | None:
    """The code of all agents that multiply in a loop; None where it is not recognized."""
    found: list[AgentCode] = []
    by_place = _by_place(listing)
    for place, score in zip(sorted(by_place), _multiplying(scores), strict=False):
        every = loops_in(score.parts)
        loop = next((one for one in every if one.number == number), None)
        if loop is None or any(b.kind not in (*EXPECTED, *QUIET) for b in loop.kernel):
            return None
        code = _matched(by_place[place], every, loop)
        if code is None:
            return None
        found.append(_agent(score, loop, code))
    return found if len(found) == len(_multiplying(scores)) else None


def _multiplying(scores: Sequence[AgentScore]) -> list[AgentScore]:
    return [
        score
        for score in scores
        if any(beat.kind == "product" for loop in loops_in(score.parts) for beat in loop.kernel)
    ]


def _by_place(listing: Listing) -> dict[int, list[tuple[Instruction, ...]]]:
    """Loops with products by the barrier at which the warps of their agent meet."""
    found: dict[int, list[tuple[Instruction, ...]]] = {}
    for loop in listing.loops():
        if not any(kind_of(one) is Kind.PRODUCT for one in loop):
            continue
        met = [one.operands.split(",")[0] for one in loop if one.opcode == "BAR"]
        told = LEFT.match(met[0]) if met else None
        place = int(told[1], 16) if told else 0
        found.setdefault(place, []).append(loop)
    return found


def _order_of_code(loop: Sequence[Instruction]) -> list[str]:
    found: list[str] = []
    for one in loop:
        if one.opcode == "SYNCS":
            found.append("full" if TRYWAIT in one.name else "arrive")
        elif kind_of(one) is Kind.PRODUCT and COMMIT in one.operands:
            found.append("product")
    return found


def _order_of_beats(beats: Sequence[Beat]) -> list[str]:
    return [beat.kind for beat in beats if beat.kind in EXPECTED]


def _matched(
    places: Sequence[tuple[Instruction, ...]], every: Sequence[LoopScore], wanted: LoopScore
) -> tuple[Instruction, ...] | None:
    """The steady loop among those of an agent, each of which may also stand there one iteration
    after the other: the text has that before it."""
    order = _order_of_beats(wanted.kernel)
    same = [loop for loop in places if _order_of_code(loop) == order]
    expected: list[LoopScore | None] = []
    for loop in every:
        if _order_of_beats(loop.singly) == order:
            expected.append(None)
        if _order_of_beats(loop.kernel) == order:
            expected.append(loop)
    if len(same) == len(expected):
        return same[expected.index(wanted)]
    # Of what leaves steps out there are few, which the assembler may have unrolled.
    kept = [loop for loop in expected if loop is None or not loop.hidden]
    if len(same) == len(kept) and wanted in kept:
        return same[kept.index(wanted)]
    alone = [loop for loop in expected if loop is not None] == [wanted]
    return same[-1] if same and alone else None


def _agent(score: AgentScore, loop: LoopScore, code: Sequence[Instruction]) -> AgentCode:
    rings = iter([beat for beat in loop.kernel if beat.kind in ("full", "arrive")])
    issues: list[Issue] = []
    for number, one in enumerate(code):
        issue = _issue(one, last=number == len(code) - 1)
        if issue.kind in (Kind.FULL, Kind.ARRIVE):
            beat = next(rings)
            issue = _issue(one, ring=beat.thing, stage=beat.stage)
        issues.append(issue)
    arrives = tuple((b.thing, b.stage) for b in loop.kernel if b.kind == "arrive")
    moves = sum(one.name.startswith(MOVES) for one in code)
    groups = max(1, score.warps // 4)
    return AgentCode(score.agent, groups, loop.first, tuple(issues), arrives, moves)


def issued(code: Sequence[Instruction]) -> tuple[Issue, ...]:
    """A loop as a scheduler sees it, of which nobody says what its barriers are for."""
    return tuple(_issue(one, last=n == len(code) - 1) for n, one in enumerate(code))


def _issue(one: Instruction, *, last: bool = False, ring: str = "", stage: int = 0) -> Issue:
    kind = kind_of(one)
    cycles = bytes = 0.0
    left = 0
    if kind is Kind.PRODUCT:
        shape = SHAPE.match(one.name)
        columns = int(shape[1]) if shape else ROWS
        cycles = columns / 2
        staged = bool(STAGED.match(one.operands))
        bytes = float((columns + (ROWS if staged else 0)) * DEEP)
        last = COMMIT in one.operands
    elif kind is Kind.SETTLE:
        told = LEFT.search(one.operands)
        left = int(told[1], 16) if told else 0
    return Issue(
        kind, one.stall, one.waits, one.made, one.read, cycles, bytes, last, left,
        one.opcode == SHUFFLE, ring, stage,
    )  # fmt: skip


def kind_of(one: Instruction) -> Kind:
    """What an instruction asks for."""
    if one.opcode == "WARPGROUP" and SETTLED in one.name:
        return Kind.SETTLE
    if one.opcode == "SYNCS":
        return Kind.FULL if TRYWAIT in one.name else Kind.ARRIVE
    if one.opcode in KINDS:
        return KINDS[one.opcode]
    # What begins with U is of the whole warp, and has a pipe of its own.
    return Kind.OTHER if one.opcode.startswith("U") else Kind.INTEGERS
