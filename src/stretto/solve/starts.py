"""Starts for a schedule of which only (stage, order) is known.

    (stage, order)     II 15                         start
    load    0, 0       in stage 0, first              0
    wgmma   0, 1       in stage 0, not before load    0      a loop of its own: scheduled, verified
    write   0, 2       not before wgmma               8
    read    0, 3       not before write               8

What is known becomes part of the loop, in means that every solver has. A first operation, `origin`,
holds nothing and waits for itself for the whole II, so that no smaller one is tried. An operation
of stage s comes s × II after it, and s is the last stage it may be in. Who is next in the order of
a stage waits for the one before, and one cycle more where a tie would turn the two round; who is
fused starts no later than the others. These say nothing of data, so they are II cycles and distance
1: no path of an iteration, which would keep two operations from sharing a hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from stretto.deadline import NEVER
from stretto.errors import InfeasibleError, StrettoError
from stretto.exact import ProofOptions
from stretto.generate import COST_BASED
from stretto.generate.problem import Options
from stretto.loop import Constraint, Dependence, Fault, Loop, Op, topological_order
from stretto.lower_bounds import bounds_of
from stretto.problem import compile_loop
from stretto.resources.prepare import Prepared
from stretto.solution import Schedule, ScheduleAnalysis, no_schedule
from stretto.solve.scheduling import schedule_prepared

ORIGIN = "origin"
WITHOUT_II = 256
"""IIs that are tried where none is known."""


@dataclass(frozen=True, slots=True)
class Places:
    """What is known of a schedule: the public key of every operation, and who shares a hold."""

    of: Mapping[str, tuple[int, int]]
    """Operation to (stage, order)."""
    fused: tuple[tuple[str, ...], ...] = ()


def starts_of(ready: Prepared, places: Places, ii: int | None = None) -> Schedule:
    """A schedule with these places; at the smallest II that has one, where none is given.

    Rules that places alone can break (groups, depths) are left to whoever verifies it.
    StrettoError: there is none, or none was found.
    """
    if ii is not None:
        return _at(ready, places, ii, thorough=True)
    mii = bounds_of(compile_loop(ready.loop, ready.machine, fuse=bool(places.fused)), NEVER).mii
    told = ""
    for candidate in range(mii, mii + WITHOUT_II):
        try:
            return _at(ready, places, candidate, thorough=False)
        except StrettoError as error:
            told = told or error.message
    raise StrettoError(
        f"no II is stated, and none from {mii} to {mii + WITHOUT_II - 1} was found to have these "
        f"stages and orders; {told}",
        ready.loop.name,
    )


def _at(ready: Prepared, places: Places, ii: int, *, thorough: bool) -> Schedule:
    """Starts at an II."""
    loop = ready.loop
    for told in _contradictions(loop, places, ii):
        raise StrettoError(told, loop.name)
    pinned = replace(ready, loop=pinned_loop(loop, places, ii), notes=())
    options = Options(max_ii=ii, fuse=bool(places.fused))
    found = schedule_prepared(pinned, COST_BASED, options)
    if not found.success and thorough:
        found = schedule_prepared(pinned, COST_BASED, options, proof=ProofOptions("ii"))
    if not found.success:
        raise StrettoError(
            f"no starts at II {ii} have these stages and orders: {_why_not(found)}", loop.name
        )
    starts = {name: start for name, start in found.starts.items() if name in loop.index}
    return Schedule(ii, starts, places.fused)


def _why_not(found: ScheduleAnalysis) -> str:
    last = max(found.refused, key=lambda refusal: refusal.last, default=None)
    return no_schedule(found.refused) if last is None else last.reason


def _contradictions(loop: Loop, places: Places, ii: int) -> Iterator[str]:
    """Dependences that two places leave no room for, whatever the cycles."""
    for d in loop.dependences:
        (src, before), (dst, after) = places.of[d.src], places.of[d.dst]
        asked = f"{d.kind} latency {d.latency}, distance {d.distance}, II {ii}"
        if (dst + d.distance - src + 1) * ii <= d.latency:
            yield f"`{d.dst}` in stage {dst} cannot wait for `{d.src}` in stage {src}: {asked}"
        elif src == dst and d.distance == 0 and after < before:
            yield (
                f"`{d.dst}`, number {after} of stage {dst}, cannot wait for `{d.src}`, number "
                f"{before}: {asked}"
            )


def pinned_loop(loop: Loop, places: Places, ii: int) -> Loop:
    """A loop whose every schedule has these places, at this II or a larger one."""
    origin = next(
        name
        for name in (ORIGIN, *(f"{ORIGIN}.{i}" for i in range(len(loop.ops))))
        if name not in loop.index
    )
    groups = [[name for name in names if name in loop.index] for names in places.fused]
    group = {name: i for i, names in enumerate(groups) for name in names}
    ops = (
        Op(origin, ORIGIN, uses=(), latency=0, constraint=Constraint(max_depth=0)),
        *(
            replace(
                op,
                facts=replace(op.facts, bank=group.get(op.name)),
                constraint=replace(
                    op.constraint,
                    gid=None,
                    leader_gid=None,
                    stage_offset=0,
                    max_depth=places.of[op.name][0],
                    same_depth=None,
                    structural=None,
                ),
            )
            for op in loop.ops
        ),
    )
    asked = (
        Dependence(origin, origin, ii, 1, "order"),
        *(Dependence(origin, op.name, places.of[op.name][0] * ii, 0, "order") for op in loop.ops),
        *_in_order(loop, places, ii),
        *(Dependence(a, b, ii, 1, "order") for names in groups for a, b in _around(names)),
    )
    return replace(loop, ops=ops, stated=(*loop.stated, *asked))


def _in_order(loop: Loop, places: Places, ii: int) -> Iterator[Dependence]:
    """Each operation of a stage after the one before it."""
    ranks = topological_order(loop)
    if isinstance(ranks, Fault):
        raise InfeasibleError(ranks.message)
    rank = {loop.ops[i].name: r for r, i in enumerate(ranks)}
    in_order = sorted(places.of, key=lambda name: (places.of[name], rank[name]))
    for a, b in pairwise(in_order):
        if places.of[a][0] == places.of[b][0]:
            yield Dependence(a, b, ii + int(rank[a] > rank[b]), 1, "order")


def _around(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each and the next, and the last and the first."""
    yield from pairwise((*names, *names[:1]))
