"""What a reduction's region does with two elements, where one operation does it all.

^(%a, %b): %m = arith.maxnumf %a, %b; yield %m          reduce.max
"""

from __future__ import annotations

from stretto.kernel.tree import Operation
from stretto.ops.operations import REDUCTIONS


def combined_by(reduction: Operation) -> str | None:
    """The opcode of a reduction; None where its region does more than one operation."""
    (region,) = reduction.regions
    if len(reduction.operands) != 1 or len(region.operations) != 2:
        return None
    combined, last = region.operations
    pair = set(combined.operands) == set(region.arguments)
    if not pair or last.operands != combined.results:
        return None
    return REDUCTIONS.get(combined.name)
