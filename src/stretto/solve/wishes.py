"""Soft constraints: what is kept to where it costs no cycle of the II, and told where it does.

    same_depth = 1     a, b, c of one number are to share a stage           a 0   b 0   c 1  ✗
    structural = 1     a, b, c are to be issued in program order            a @4  b @2       ✗

A schedule is found without regard to them. Where it breaks one, the loop is scheduled once more, at
no larger II, with all of them as hard ones: same depths as groups, orders as dependences. If that
has a schedule it is taken; else the first stands, with a warning for every wish that it breaks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from stretto.errors import StrettoError
from stretto.generate import COST_BASED, SERIAL
from stretto.generate.problem import Options
from stretto.loop import Dependence, Loop, Note, topological_order
from stretto.resources.prepare import Prepared
from stretto.solution import Proof, ScheduleAnalysis
from stretto.solution.views import analyse
from stretto.solve.job import IllegalScheduleError, known
from stretto.solve.scheduling import schedule_prepared
from stretto.verify import verify


def granted(ready: Prepared, found: ScheduleAnalysis, options: Options) -> ScheduleAnalysis:
    """A schedule of the same II that keeps to every wish, or this one and what it breaks."""
    told = tuple(broken(ready.loop, found))
    if not told:
        return found
    if found.generator != SERIAL and not found.overdue:
        kept = _kept(ready, found, options)
        if kept is not None:
            return kept
    if options.strict:
        raise StrettoError(f"{'; '.join(told)} (strict)", ready.loop.name)
    notes = (Note(ready.loop.at(), text) for text in told)
    return replace(found, warnings=(*found.warnings, *notes))


def broken(loop: Loop, found: ScheduleAnalysis) -> Iterator[str]:
    """Every wish that a schedule does not keep to, with its numbers."""
    placed = {p.op: p for p in found.placements}
    for number, names in _families(loop, "same_depth"):
        if len({placed[name].stage for name in names}) > 1:
            where = ", ".join(f"`{name}` in stage {placed[name].stage}" for name in names)
            yield f"`same_depth` {number} is not kept to: {where}"
    for number, names in _families(loop, "structural"):
        for a, b in pairwise(names):
            first, second = placed[a], placed[b]
            if (second.stage, second.order) < (first.stage, first.order):
                yield (
                    f"`structural` {number} is not kept to: `{b}` at {second.start} is issued "
                    f"before `{a}` at {first.start}"
                )


def _families(loop: Loop, family: str) -> Iterator[tuple[int, list[str]]]:
    """Operations of one number, in program order."""
    found: dict[int, list[str]] = {}
    for op in loop.ops:
        number: int | None = getattr(op.constraint, family)
        if number is not None:
            found.setdefault(number, []).append(op.name)
    yield from ((number, names) for number, names in found.items() if len(names) > 1)


def hardened(loop: Loop, ii: int) -> Loop:
    """The loop with its wishes as constraints that every schedule of this II keeps to."""
    offset = {op.name: op.constraint.stage_offset for op in loop.ops}
    bands = [{name: offset[name] for name in names} for names in loop.groups]
    for _, names in _families(loop, "same_depth"):
        bands = _joined(bands, dict.fromkeys(names, 0))
    band = {name: number for number, names in enumerate(bands) for name in names}
    stages = {name: stage for names in bands for name, stage in names.items()}
    ops = tuple(
        replace(
            op,
            constraint=replace(
                op.constraint,
                gid=band.get(op.name),
                leader_gid=None,
                stage_offset=stages.get(op.name, 0),
                same_depth=None,
                structural=None,
            ),
        )
        for op in loop.ops
    )
    return replace(loop, ops=ops, stated=(*loop.stated, *_in_order(loop, ii)))


def _joined(bands: list[dict[str, int]], names: dict[str, int]) -> list[dict[str, int]]:
    """Bands, each with the offsets of its members, and one more, which unites those it meets.

    Where a member would have to stand in two stages, the bands that were there count.
    """
    for band in [band for band in bands if band.keys() & names.keys()]:
        shared = next(name for name in names if name in band)
        by = names[shared] - band[shared]
        names = {**names, **{name: stage + by for name, stage in band.items()}}
    low = min(names.values())
    apart = [band for band in bands if not band.keys() & names.keys()]
    return [*apart, {name: stage - low for name, stage in names.items()}]


def _in_order(loop: Loop, ii: int) -> Iterator[Dependence]:
    """Each after the one before; one cycle more where a tie would turn the two round."""
    ranks = topological_order(loop)
    assert isinstance(ranks, tuple)  # it has a schedule
    rank = {loop.ops[i].name: r for r, i in enumerate(ranks)}
    for _, names in _families(loop, "structural"):
        for a, b in pairwise(names):
            yield Dependence(a, b, ii + int(rank[a] > rank[b]), 1, "order")


def _kept(ready: Prepared, found: ScheduleAnalysis, options: Options) -> ScheduleAnalysis | None:
    """A schedule that keeps to every wish at this II or a smaller one; None: none was found."""
    assert found.ii is not None
    assert found.bounds is not None
    loop, machine = ready.loop, ready.machine
    firm = replace(ready, loop=hardened(loop, found.ii), notes=())
    again = schedule_prepared(firm, COST_BASED, replace(options, max_ii=found.ii, strict=False))
    if not again.success or again.ii is None:
        return None
    kept = analyse(
        loop,
        machine,
        again.schedule,
        seated_by={p.op: (p.rung, p.arm) for p in again.placements},
        table=again.table,
        bounds=found.bounds,
        proof=_of_the_ii(found, again.ii),
        generator=again.generator,
        rule=found.rule,
        refused=found.refused,
        warnings=found.warnings,
    )
    violations = verify(loop, machine, kept, max_stages=options.max_stages)
    if violations:
        raise IllegalScheduleError(loop.name, again.generator, violations)
    return None if any(broken(loop, kept)) else kept


def _of_the_ii(found: ScheduleAnalysis, ii: int) -> Proof:
    """What is proved of the II holds; of other objectives nothing is, where wishes come first."""
    assert found.bounds is not None
    if found.proof is None or ii != found.ii:
        return known(ii, found.bounds.mii, found.refused)
    return replace(found.proof, objectives=found.proof.objectives[:1])
