"""What of an emitted kernel runs beside something else.

    agents      hardware copies for the warps that compute
    copies      asynchronous copies are in flight beyond the step of the loop that asks for them
    together    several iterations of a loop run together, each to its end
    loads       loads into registers are asked for in an earlier step than they are used

A kernel with none of these is its author's, printed anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal

from stretto.compile.scheduled import ScheduledLoop
from stretto.kernel.lowering.written import COPY
from stretto.program.builder import Looped

Overlap = Literal["agents", "copies", "together", "loads", ""]
_HARDWARE = ("async.tiled_tma_load", "async.tma_gather")
_COPIES = (*_HARDWARE, "async.cp_async", COPY)
_LOADS = ("pointer.load", "load")


def overlap_of(
    looped: Sequence[Looped], analyses: Sequence[ScheduledLoop], specialized: bool
) -> Overlap:
    """The most that its loops have of it; nothing if empty."""
    kinds = {op.kind for analysis in analyses for op in analysis.problem.loop.ops}
    if specialized and kinds.intersection(_HARDWARE):
        return "agents"
    if _ahead(analyses, _COPIES):
        return "copies"
    several = [(analysis.stage_count or 1) > 1 for analysis in analyses]
    if any(loop.drained and many for loop, many in zip(looped, several, strict=True)):
        return "together"
    return "loads" if _ahead(analyses, _LOADS) else ""


def _ahead(analyses: Iterable[ScheduledLoop], kinds: Collection[str]) -> bool:
    """Whether what such an operation brings is used in a later step than that which asks for it."""
    for analysis in analyses:
        loop = analysis.problem.loop
        stages = {name: start // (analysis.ii or 1) for name, start in analysis.starts.items()}
        asked = {op.name for op in loop.ops if op.kind in kinds}
        for edge in loop.dependences:
            later = edge.distance + stages[edge.dst] > stages[edge.src]
            if edge.kind == "flow" and edge.src in asked and later:
                return True
    return False
