"""Soft constraints: what is kept to where it costs no cycle of the II, and told where it does.

    same_depth = 1     a, b, c of one number are to share a stage           a 0   b 0   c 1  ✗
    structural = 1     a, b, c are to be issued in program order            a @4  b @2       ✗

A schedule is found without regard to them. Where it breaks one, the loop is scheduled again, at no
larger II, with them as hard ones: same depths as groups, orders as dependences. Where all of them
together have no schedule, fewer are asked for, the strongest sets first:

    the most of `same_depth`, which the reference names first; of those sets the most of
    `structural` (each two neighbours of a number are one wish); of those the lower numbers

    all ✗  ──►  what is left of a conflict when nobody more can leave it  ──►  the strongest set
                without such a conflict  ──► ✗ another conflict ... ✓ it is kept

A conflict is what the search finds nothing for, so on a large loop the set may be smaller than it
could be. For every wish that a schedule breaks there is a warning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

from stretto.deadline import OverdueError
from stretto.errors import StrettoError
from stretto.generate import COST_BASED, SERIAL
from stretto.generate.problem import Options
from stretto.loop import Dependence, Loop, Note, topological_order
from stretto.resources.prepare import Prepared
from stretto.solution import Proof, ScheduleAnalysis
from stretto.solution.views import analyse
from stretto.solve.job import IllegalScheduleError, known
from stretto.solve.scheduling import OVERDUE, STOPPED, StoppedError, schedule_prepared
from stretto.verification import verify

FAMILIES = ("same_depth", "structural")
"""The strongest first, as the reference lists them. Source: schedule generators."""
TRIED, SMALL = 64, 32
"""Sets of wishes that are tried, of a loop of up to so many operations; of a larger one fewer."""
LEAST_TRIED = 8
LOOKED_AT = 20_000
"""Sets that are looked at to find the strongest without a conflict."""


class Wish(NamedTuple):
    """One thing asked for: that operations share a stage, or that two are issued in order."""

    family: str
    number: int
    ops: tuple[str, ...]

    def broken(self, found: ScheduleAnalysis) -> str:
        """How a schedule breaks it, with the numbers; empty where it does not."""
        placed = [next(p for p in found.placements if p.op == name) for name in self.ops]
        if self.family == "same_depth":
            if len({p.stage for p in placed}) == 1:
                return ""
            why = ", ".join(f"`{p.op}` in stage {p.stage}" for p in placed)
        else:
            first, second = placed
            if (second.stage, second.order) >= (first.stage, first.order):
                return ""
            why = f"`{second.op}` at {second.start} is issued before `{first.op}` at {first.start}"
        return f"`{self.family}` {self.number} is not kept to: {why}"


def granted(ready: Prepared, found: ScheduleAnalysis, options: Options) -> ScheduleAnalysis:
    """A schedule of the same II that keeps to the strongest set of wishes, and what it breaks."""
    wishes = tuple(wishes_of(ready.loop))
    kept = found
    if found.generator != SERIAL and not found.overdue and any(w.broken(found) for w in wishes):
        hunt = _Hunt(ready, found, options, wishes)
        try:
            hunt.strongest()
        except OverdueError:
            late = (*hunt.best.warnings, Note(ready.loop.at(), OVERDUE))
            hunt.best = replace(hunt.best, overdue=True, warnings=late)
        except KeyboardInterrupt:
            stopped = Note(ready.loop.at(), STOPPED)
            raise StoppedError(_warned(ready.loop, hunt.best, wishes, stopped)) from None
        kept = hunt.best
    told = [text for wish in wishes if (text := wish.broken(kept))]
    if told and options.strict:
        raise StrettoError(f"{'; '.join(told)} (strict)", ready.loop.name)
    return _warned(ready.loop, kept, wishes)


def _warned(
    loop: Loop, kept: ScheduleAnalysis, wishes: Iterable[Wish], *more: Note
) -> ScheduleAnalysis:
    notes = [Note(loop.at(), text) for wish in wishes if (text := wish.broken(kept))]
    return replace(kept, warnings=(*kept.warnings, *notes, *more)) if notes or more else kept


def wishes_of(loop: Loop) -> Iterator[Wish]:
    """Every wish of a loop, the strongest first: in the order of families, then of numbers."""
    for family in FAMILIES:
        found: dict[int, list[str]] = {}
        for op in loop.ops:
            number: int | None = getattr(op.constraint, family)
            if number is not None:
                found.setdefault(number, []).append(op.name)
        for number, names in sorted(found.items()):
            if family == "structural":
                yield from (Wish(family, number, pair) for pair in pairwise(names))
            elif len(names) > 1:
                yield Wish(family, number, tuple(names))


# The strongest set ------------------------------------------------------------------------

Chosen = frozenset[int]
"""Wishes by their place in the order of strength."""


@dataclass(slots=True)
class _Hunt:
    """The schedule that keeps to the strongest set so far, and which wishes cannot be together."""

    ready: Prepared
    found: ScheduleAnalysis
    options: Options
    wishes: tuple[Wish, ...]
    best: ScheduleAnalysis = field(init=False)
    conflicts: list[Chosen] = field(default_factory=list[Chosen])
    left: int = field(init=False)
    """Sets that may still be tried."""

    def __post_init__(self) -> None:
        self.best = self.found
        size = len(self.ready.loop.ops)
        self.left = max(LEAST_TRIED, TRIED * SMALL // max(SMALL, size))

    def strongest(self) -> None:
        """Ask for the strongest set that may do until it does, or the tries are used up."""
        while self.left > 0:
            wanted = self._without_conflicts()
            if self._strength(wanted) <= self._strength(self._kept_by(self.best)):
                return
            if self._try(wanted):
                return
            self._learn(wanted)

    def _learn(self, refused: Chosen) -> None:
        """A conflict: what is left of a refused set when nobody more can leave it."""
        core = refused
        for wish in sorted(refused, reverse=True):
            if len(core) > 1 and self.left > 0 and not self._try(core - {wish}):
                core -= {wish}
        self.conflicts.append(core)

    def _try(self, wanted: Chosen) -> bool:
        """Whether these wishes have a schedule together; the best is kept."""
        if wanted <= self._kept_by(self.best):
            return True
        self.left -= 1
        made = _made(self.ready, self.found, self.options, [self.wishes[k] for k in sorted(wanted)])
        if made is None or not wanted <= self._kept_by(made):
            return False
        if self._strength(self._kept_by(made)) > self._strength(self._kept_by(self.best)):
            self.best = made
        return True

    def _kept_by(self, found: ScheduleAnalysis) -> Chosen:
        return frozenset(k for k, wish in enumerate(self.wishes) if not wish.broken(found))

    def _strength(self, chosen: Chosen) -> tuple[list[int], list[bool]]:
        """What compares sets: how many of each family, and then who comes first."""
        count = [sum(self.wishes[k].family == name for k in chosen) for name in FAMILIES]
        return count, [k in chosen for k in range(len(self.wishes))]

    def _without_conflicts(self) -> Chosen:
        """The strongest set that contains no conflict: one of each leaves, the weakest that do."""
        every: Chosen = frozenset(range(len(self.wishes)))
        best: Chosen | None = None
        front, looks = [every], LOOKED_AT
        while front and (looks > 0 or best is None):
            looks -= 1
            at = front.pop()
            if best is not None and self._strength(at) <= self._strength(best):
                continue
            conflict = next((core for core in self.conflicts if core <= at), None)
            if conflict is None:
                best = at
            else:
                front += [at - {wish} for wish in sorted(conflict)]  # the weakest leaves first
        assert best is not None  # without any wish there is no conflict
        return best


# Wishes as rules --------------------------------------------------------------------------


def hardened(loop: Loop, ii: int, wishes: Iterable[Wish]) -> Loop:
    """The loop with some wishes as constraints that every schedule of this II keeps to."""
    wanted = list(wishes)
    offset = {op.name: op.constraint.stage_offset for op in loop.ops}
    bands = [{name: offset[name] for name in names} for names in loop.groups]
    for wish in wanted:
        if wish.family == "same_depth":
            bands = _joined(bands, dict.fromkeys(wish.ops, 0))
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
    return replace(loop, ops=ops, stated=(*loop.stated, *_in_order(loop, ii, wanted)))


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


def _in_order(loop: Loop, ii: int, wishes: Iterable[Wish]) -> Iterator[Dependence]:
    """Each after the one before; one cycle more where a tie would turn the two round."""
    ranks = topological_order(loop)
    assert isinstance(ranks, tuple)  # it has a schedule
    rank = {loop.ops[i].name: r for r, i in enumerate(ranks)}
    for wish in wishes:
        if wish.family == "structural":
            a, b = wish.ops
            yield Dependence(a, b, ii + int(rank[a] > rank[b]), 1, "order")


def _made(
    ready: Prepared, found: ScheduleAnalysis, options: Options, wishes: Iterable[Wish]
) -> ScheduleAnalysis | None:
    """A schedule for wishes as rules, at this II or a smaller one; None: none was found."""
    assert found.ii is not None
    assert found.bounds is not None
    loop, machine = ready.loop, ready.machine
    firm = replace(ready, loop=hardened(loop, found.ii, wishes), notes=())
    again = schedule_prepared(firm, COST_BASED, replace(options, max_ii=found.ii, strict=False))
    if again.overdue and not again.success:
        raise OverdueError(options.deadline.seconds)
    if not again.success or again.ii is None or again.spilled > found.spilled:
        return None
    kept = analyse(
        loop,
        machine,
        again.schedule,
        seated_by={p.op: (p.rung, p.arm) for p in again.placements},
        table=again.table,
        bounds=found.bounds,
        proof=again.proof if again.spilled else _of_the_ii(found, again.ii),
        generator=again.generator,
        rule=found.rule,
        refused=tuple(refusal for refusal in found.refused if refusal.ii < again.ii),
        warnings=found.warnings,
    )
    kept = replace(kept, spilled=again.spilled, overdue=again.overdue)
    violations = verify(loop, machine, kept, max_stages=options.max_stages)
    if violations:
        from stretto.solve.refused import told_of  # noqa: PLC0415 - nobody should need it

        error = IllegalScheduleError(loop.name, again.generator, violations)
        told_of(error, loop, machine.name, again.ii)
        return None
    return kept


def _of_the_ii(found: ScheduleAnalysis, ii: int) -> Proof:
    """What is proved of the II holds; of other objectives nothing is, where wishes come first."""
    assert found.bounds is not None
    if found.proof is None or ii != found.ii:
        return known(ii, found.bounds.mii, found.refused)
    return replace(found.proof, objectives=found.proof.objectives[:1])
