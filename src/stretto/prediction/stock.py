"""What Triton makes of a kernel by itself, as far as a prediction asks: steps by its machine code.

    one warpgroup           wait │ copy for step + 2 │ products ─ arithmetic │ wait │ ...
    step = the longest of   its code on one scheduler, warps of all blocks of an SM;
                            bytes at the memory's rate; a copy's latency over the stages ahead

Every warp does the same, so that the code of one tells. What stands before and behind the loops is
taken as our own kernel has it: tiles come, sums are stored. A kernel whose loops with products are
not those of the source, one by one, is not predicted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from stretto.kernel import Operation
from stretto.machine.machine import Budget
from stretto.prediction.code.costs import CodeCosts, Kind
from stretto.prediction.code.listing import Instruction, Listing, read_listing
from stretto.prediction.code.steps import AgentCode, issued, kind_of
from stretto.prediction.code.warps import Scheduler
from stretto.prediction.instructions import Costs
from stretto.prediction.score import Beat
from stretto.prediction.timings import Timings

TRIPS = 24
"""Steps that are run."""
BEGINNINGS = (0.0, 0.35)
"""Parts of a step by which blocks of an SM begin apart."""
WARP = 32
RESERVED = 1024
"""Bytes of shared memory that CUDA takes of each block."""
GRAIN = 8
"""By how many a thread gets its registers."""
GROUP = 4
"""Warps of a group, one for each scheduler."""


@dataclass(frozen=True)
class Stock:
    """A kernel as Triton compiled it."""

    listing: str
    warps: int
    stages: int
    registers: int
    smem: int
    spilled: int = 0

    def residents(self, timings: Timings, budget: Budget | None) -> int:
        """Blocks that an SM has room for."""
        given = -(-max(1, self.registers) // GRAIN) * GRAIN
        limits = [
            timings.threads // (self.warps * WARP),
            timings.registers // GROUP // (given * WARP) * GROUP // self.warps,
        ]
        if self.smem and budget is not None and budget.bytes:
            limits.append((budget.bytes + RESERVED) // (self.smem + RESERVED))
        return max(1, min(limits))


@dataclass(frozen=True)
class _Ready:
    """Tiles that are always there: what copies cost is counted apart."""

    def there(self, ring: str, turn: int) -> float | None:
        del ring, turn
        return 0.0

    def handed(self, ring: str, turn: int, at: float) -> None:
        del ring, turn, at


def loops_with_products(listing: Listing) -> list[tuple[Instruction, ...]]:
    """Its innermost loops that multiply, in order."""
    return [loop for loop in listing.loops() if any(kind_of(one) is Kind.PRODUCT for one in loop)]


def code_step(
    code: Sequence[Instruction], warps: int, resident: int, costs: CodeCosts
) -> float | None:
    """Cycles of a step of so many blocks on an SM, were all tiles there; None: it is stuck."""
    issues = issued(code)
    found: list[float] = []
    for part in BEGINNINGS[: 1 if resident == 1 else None]:
        agents = [
            AgentCode(f"{block}", max(1, warps // GROUP), 0, issues, ())
            for block in range(resident)
        ]
        apart = part * found[0] if found else 0.0
        steps = Scheduler(agents, _Ready(), costs, apart).run(TRIPS)
        if steps is None:
            return None
        ends = [each[TRIPS // 2 :] for each in steps.values()]
        found.append(max((each[-1] - each[0]) / (len(each) - 1) for each in ends))
    return mean(found)


def copied_step(
    copies: Sequence[Beat],
    sources: Mapping[Operation, str],
    costs: Costs,
    stages: int,
    resident: int,
) -> tuple[float, float]:
    """Cycles of a step that copies take: by the memory's rate, and of each block by latency."""
    rate = latency = 0.0
    for beat in copies:
        source = sources.get(beat.operation, "hbm") if beat.operation else "hbm"
        rate += max(beat.bytes / costs.rate[source], beat.bytes / costs.port)
        latency = max(latency, costs.latency[source])
    landed = sum(beat.bytes for beat in copies) / costs.port
    return rate * resident, (latency + landed) / max(1, stages - 1)


def steps_of(
    stock: Stock,
    copies: Sequence[Sequence[Beat]],
    sources: Mapping[Operation, str],
    costs: tuple[CodeCosts, Costs],
    resident: int,
) -> list[float] | None:
    """Cycles of a step of each loop, whose copies are given; None where there are other loops."""
    codes = loops_with_products(read_listing(stock.listing))
    if len(codes) != len(copies):
        return None
    found: list[float] = []
    for code, copied in zip(codes, copies, strict=True):
        step = code_step(code, stock.warps, resident, costs[0])
        if step is None:
            return None
        rate, latency = copied_step(copied, sources, costs[1], stock.stages, resident)
        found.append(max(step, rate, latency))
    return found
