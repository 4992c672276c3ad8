"""The constraint builder's second mode: accepted starts, applied to a reservation table.

    build   loop ──► Compiled      vectors, claims and the block's summary, once for every II
    apply   Compiled + starts ──► ReservationTable      every hold committed, probed first

`compile_loop` is the first mode. Building never looks at starts, and applying never looks at the
loop again. The same function makes the table that the arms of the ladder probe and the one that is
published with a schedule. Operations that are fused hold once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stretto.loop import Demand, ResourceVector
from stretto.problem import Compiled
from stretto.problem.fusion import join, shape
from stretto.resources.table import ReservationTable


def apply(
    compiled: Compiled,
    ii: int,
    starts: Sequence[int | None],
    fused: Iterable[Sequence[int]] = (),
) -> ReservationTable:
    """The table of what is seated; ConflictError where it does not fit.

    Groups of fused operations start together; each holds under the name of its first.
    """
    members = {group[0]: group for group in fused}
    led = {i for group in members.values() for i in group[1:]}
    table = ReservationTable(compiled.machine, ii)
    for i, start in enumerate(starts):
        if start is not None and i not in led:
            vector = fused_vector(compiled, members.get(i, (i,)))
            table.commit(compiled.names[i], vector, start)
    return table


def fused_vector(compiled: Compiled, members: Sequence[int]) -> ResourceVector:
    """What operations hold when fused: each use once, as long as the longest; all demands."""
    if len(members) == 1:
        return compiled.vectors[members[0]]
    uses = shape(compiled.vectors[members[0]])
    demands: dict[str, int] = {}
    for i in members:
        uses = join(uses, shape(compiled.vectors[i]))
        for demand in compiled.vectors[i].demands:
            demands[demand.pool] = demands.get(demand.pool, 0) + demand.units
    return ResourceVector(uses, tuple(Demand(p, u) for p, u in demands.items()))
