"""Whether an assembler gave registers away that a loop still reads.

S  = Q Kᵀ   HGMMA R24, R88, gdesc    Q, read before the loop, in R88 to R103
P           F2FP  R88, ...           what the second product takes, in the same registers
O += P V    HGMMA R56, R88, gdesc    and the next step multiplies P with Kᵀ: ptxas 12.8 did that
"""

from __future__ import annotations

import re

from stretto.prediction.code.costs import Kind
from stretto.prediction.code.listing import Instruction, Listing
from stretto.prediction.code.steps import kind_of

WRITES = re.compile(r"(?:U?P[T\d]+, )*R(\d+)\b")
FACTOR = re.compile(r"R\d+, R(\d+), gdesc")
STORES = ("ST", "STG", "STS", "STL", "STSM", "RED", "BAR", "BRA", "SYNCS")


def overwritten(listing: Listing) -> bool:
    """Whether a product of a loop has its left factor from the step before, where another product
    of that step had it too: of kernels that hold a factor for all steps."""
    return any(map(_overwrites, listing.loops()))


def _overwrites(loop: tuple[Instruction, ...]) -> bool:
    factors = {at: factor for at, one in enumerate(loop) if (factor := _factor(one)) is not None}
    for at, register in factors.items():
        writers = [n for n, one in enumerate(loop) if _written(one) == register]
        if writers and min(writers) > at:
            last = max(writers)
            if any(n > last and other == register for n, other in factors.items()):
                return True
    return False


def _factor(one: Instruction) -> int | None:
    """The first register of a product's left factor, if that is in registers."""
    told = FACTOR.match(one.operands) if kind_of(one) is Kind.PRODUCT else None
    return int(told[1]) if told else None


def _written(one: Instruction) -> int | None:
    """The first register that an instruction writes, other than a sum."""
    if one.opcode in STORES or kind_of(one) is Kind.PRODUCT:
        return None
    told = WRITES.match(one.operands)
    return int(told[1]) if told else None
