"""Rau refinement: iterative modulo scheduling on the heart of the problem, the ladder's first rung.

    for each plan:  seats on the heart ─► all starts ─► stage rules ─► fillers as late as pays
                    ─► do the rings fit?

    textbook   by start, height first, the next cycle by force
    height     by cycle, height first; stages follow
    weighed    by start; by force where it costs least
    density    by cycle, what is hardest to fit first;   tight: into the tightest gaps
    learned    by cycle and by start in turn, with what the plans before have learned

Where operations may share a hold, the plans are tried with sets chosen beforehand, too; and when
rings overflow, their depths are capped and the capped problem is solved (`rings.py`). Work is
counted in steps, one seat sought each; the clock only cuts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from stretto.generate.kernel import DONE, MORE, Core, Seats, core_of, whole_of
from stretto.generate.ladder import Attempt, order_at, overflow_refusal
from stretto.generate.ladder.refusals import Stuck, group_refusal
from stretto.generate.ladder.rings import capped, overflow, tighten
from stretto.generate.problem import LONG, Problem
from stretto.generate.seating.partial import Partial
from stretto.problem.paths import earliest
from stretto.problem.registers import RULE
from stretto.resources.table import ReservationTable
from stretto.solution import Refusal

RUNG = "rau"
CELLS = 1 << 24
"""Counts, columns × II, up to which Rau's own method is tried."""
CHUNK = 2_000
"""Steps between two looks at the clock."""
TEXTBOOK, WEIGHED = 6, 20
"""Seats that a plan by start may take, for each node; LONG: a long one."""
SHORTER = 8
"""The part of the stages that could be saved that is tried at once."""
SMALL = 128
"""Nodes up to which a placement is left to `improve.py`, which has moves enough for it."""
WHOLE = -1
"""The number of the core in which nothing is folded."""
ROUNDS = 8
"""Times that all seats are moved earlier to save a stage."""


@dataclass(slots=True)
class Work:
    """What is left to spend, in steps."""

    left: int

    def spend(self, steps: int) -> None:
        """So much less."""
        self.left -= steps


@dataclass(frozen=True, slots=True)
class _Plan:
    """How to go about it: begins a run on the seats; `by_cycle`: stages follow."""

    begin: Callable[[Seats], None]
    by_cycle: bool


@dataclass(slots=True)
class Refiner:
    """The hearts of a problem and their seats, kept over all IIs that are tried."""

    problem: Problem
    first_ii: int
    _cores: list[Core] = field(default_factory=list[Core])
    _whole: Core | None = None
    _seats: dict[int, Seats] = field(default_factory=dict[int, Seats])

    def variants(self, ii: int) -> list[tuple[Core, Seats]]:
        """The heart with shared holds first where only that may do, else the plain one."""
        if not self._cores:
            self._cores.append(core_of(self.problem))
            sets = self._shared_sets()
            if sets:
                self._cores.append(core_of(self.problem, sets))
        crowded = len(self._cores) > 1 and _crowded(self._cores[0], ii)
        chosen = range(len(self._cores))[: 0 if crowded else None : -1 if crowded else 1]
        return [(self._cores[k], self._seats_of(k, self._cores[k])) for k in chosen]

    def heart(self, placement: Partial) -> Core | None:
        """The heart in which the same share holds as in a placement, if there is one."""
        fused = set(placement.fused.values())
        return next((core for core in self._cores if set(core.fused()) == fused), None)

    def _seats_of(self, number: int, core: Core) -> Seats:
        if number not in self._seats:
            self._seats[number] = Seats(core)
        return self._seats[number]

    def _shared_sets(self) -> list[tuple[int, ...]]:
        if all(len(ops) < 2 for ops in self.problem.fusion.alike.values()):
            return []
        from stretto.generate.kernel.sharing import shared_sets  # noqa: PLC0415 - few loops fuse

        return shared_sets(self.problem, self.first_ii)

    def refine(self, ii: int, work: Work) -> Attempt:
        """A complete placement at this II whose rings fit, or how far it came.

        The II is one at which every operation fits by itself (`never_fits`).
        """
        first = self._solve(ii, work)
        if first.placement is None or first.refusal is None:
            return first
        # Complete, but the rings overflow: hold them to depths that fit and solve that.
        problem = self.problem
        if first.refusal.limit == RULE:
            return Attempt(None, first.placement, first.refusal)
        for variant in capped(problem, ii, first.placement.whole()):
            again = Refiner(variant, self.first_ii)
            attempt = again._solve(ii, work)
            if attempt.placement is not None and attempt.refusal is None:
                placement = attempt.placement
                back = Partial.of(problem, ii, placement.whole(), placement.fused.values(), RUNG)
                return Attempt(back, back, None)
            if work.left <= 0:
                break
        return Attempt(None, first.placement, first.refusal)

    def by_start(self, ii: int, work: Work) -> Partial | None:
        """What one long weighed plan by start finds at this II."""
        if never_fits(self.problem, ii) is not None:
            return None
        for core, seats in self.variants(ii):
            if not _taken(core, seats, ii):
                continue
            plan = _weighed(seats.heights(), core, LONG)
            if _run(self.problem, seats, plan, work):
                found, why = self._finish(core, seats, plan)
                if why is None:
                    return found
        return None

    def textbook(self, ii: int) -> Partial | Refusal | Stuck | None:
        """What Rau's own method comes to at this II, nothing folded, shared or learned.

        A refusal: it finds something that breaks a rule. None: it is not tried, as at an II of
        more than so many counts.
        """
        problem = self.problem
        core = self._whole = self._whole or whole_of(problem)
        if len(core.limits) * ii > CELLS or _crowded(core, ii) or never_fits(problem, ii):
            return None
        seats = self._seats_of(WHOLE, core)
        if not _taken(core, seats, ii):
            return None
        height, most = seats.heights(), LONG * core.size
        plan = _Plan(lambda s: s.rau(height, most), False)
        if not _run(problem, seats, plan, Work(most + 1)):
            return Stuck(core, ii, seats.starts(), seats.failed, RUNG)
        found, why = self._finish(core, seats, plan)
        return why or found

    def leaner(self, placement: Partial, work: Work) -> Partial:
        """A placement at the same II of fewer stages, where some work finds one.

        First what a plan by start finds from nothing; then, from the placement itself, who stands
        beyond ever fewer stages is seated anew.
        """
        best, ii = placement, placement.ii
        if best.stage_count == 1:
            return best
        least = max(earliest(self.problem.between, ii, self.problem.deadline)) // ii + 1
        if best.stage_count == least:
            return best
        for core, seats in self.variants(ii):
            if not _taken(core, seats, ii):
                continue
            least = max(least, max(seats.earliest(), default=0) // ii + 1)
            if best.stage_count > least:
                height = seats.heights()
                large = core.size > SMALL
                if large:
                    cheap = Work(LONG * self.problem.worth)
                    best = self._better(core, seats, _textbook(height, core, LONG), best, cheap)
                plan = _weighed(height, core, WEIGHED if large else LONG)
                best = self._better(core, seats, plan, best, work)
                best = self._shortened(core, seats, best, least, work)
        return best

    def tightened(self, placement: Partial) -> Partial:
        """A placement whose buffers live no longer than they need to; its starts may be changed."""
        problem, ii, before = self.problem, placement.ii, placement.whole()
        if placement.fused:
            return placement
        tighten(placement, RUNG)
        if not overflow(problem, ii, placement.whole()):
            return placement
        return Partial.of(problem, ii, before, (), RUNG)  # it tied a knot

    def _shortened(
        self, core: Core, seats: Seats, best: Partial, least: int, work: Work
    ) -> Partial:
        """Fewer stages, little by little: the fewer are to move, the more often they find seats."""
        nodes = [ops[0] for ops in core.nodes]
        if set(core.fused()) != set(best.fused.values()):
            return best  # another heart's
        part = SHORTER
        while best.stage_count > least and work.left > 0:
            fewer = max(1, (best.stage_count - least) // part)
            plan = _shorter(best.whole(), nodes, best.stage_count - fewer)
            shorter = self._better(core, seats, plan, best, work)
            if shorter is best and fewer == 1:
                break
            part = 4 * part if shorter is best else part
            best = shorter
        return best

    def _better(self, core: Core, seats: Seats, plan: _Plan, best: Partial, work: Work) -> Partial:
        """What a plan finds, where it has fewer stages."""
        if not _run(self.problem, seats, plan, work):
            return best
        found, why = self._finish(core, seats, plan)
        if found is not None and why is None and found.stage_count < best.stage_count:
            return found
        return best

    def _solve(self, ii: int, work: Work) -> Attempt:
        """Try the plans in turn. A complete placement that overflows comes with a refusal."""
        problem = self.problem
        reached: Stuck | None = None
        seated = -1
        refusal: Refusal | None = None
        overflowing: Attempt | None = None
        variants = [(core, seats) for core, seats in self.variants(ii) if _taken(core, seats, ii)]
        for core, seats in variants:
            for plan in _plans(core, seats):
                if work.left <= 0:
                    break
                done = _run(problem, seats, plan, work)
                if done:
                    partial, why = self._finish(core, seats, plan)
                    if partial is not None and why is None:
                        return Attempt(partial, partial, None)
                    if partial is not None and overflowing is None:
                        overflowing = Attempt(partial, partial, why)
                    refusal = refusal or why
                    reached = reached or Stuck(core, ii, seats.starts(), -1, RUNG)
                else:
                    starts = seats.starts()
                    count = len(starts) - starts.count(None)
                    if count > seated:
                        seated, reached = count, Stuck(core, ii, starts, seats.failed, RUNG)
            if overflowing is not None:
                break
        if overflowing is not None:
            return overflowing
        if reached is None or (seated < 0 and refusal is not None):
            told = refusal or _untried(problem, ii, bool(variants))
            return Attempt(None, Partial(problem, ii), told)
        return Attempt(None, reached.partial, None, reached)

    def _finish(
        self, core: Core, seats: Seats, plan: _Plan
    ) -> tuple[Partial | None, Refusal | None]:
        """The placement of finished seats, and what is wrong with it, if anything.

        Neither: the cycles of a recurrence ask for a stage too many.
        """
        problem, ii = self.problem, seats.ii
        if plan.by_cycle and not seats.staged():
            return None, None
        starts = _whole(seats)
        large = core.size > SMALL
        if plan.by_cycle or (large and not problem.staged):
            starts = _compacted(seats, starts, again=large)
        whole = core.expand(ii, starts)
        if core.tied and not problem.pinned:
            whole = aligned(problem, ii, whole)
        partial = Partial.of(problem, ii, whole, core.fused(), RUNG)
        broken = _stage_rules(partial)
        if broken is not None:
            return None, broken
        too_much = overflow(problem, ii, partial.whole())
        if too_much and not partial.fused:
            tighten(partial, RUNG)
            too_much = overflow(problem, ii, partial.whole())
        return partial, overflow_refusal(ii, too_much, RUNG) if too_much else None


def refine(problem: Problem, ii: int, steps: int = 4_000) -> Attempt:
    """A complete placement at one II whose rings fit, or how far so many steps came."""
    return Refiner(problem, ii).refine(ii, Work(steps))


def never_fits(problem: Problem, ii: int) -> Refusal | None:
    """An operation that meets itself: its holds, wound around the II, exceed what there is."""
    if problem.holds.end <= ii and not problem.repeats:
        return None
    table: ReservationTable | None = None
    for i, vector in enumerate(problem.vectors):
        if vector.end <= ii and i not in problem.repeats:
            continue
        problem.deadline.check()
        table = table or ReservationTable(problem.machine, ii)
        conflict = table.conflict(vector, 0, problem.names[i])
        if conflict is not None:
            use, row = conflict.use, conflict.row
            return Refusal(
                ii,
                str(conflict),
                proved=True,
                op=problem.names[i],
                uses=vector.uses,
                window=(0, ii - 1),
                rows=() if row is None else ((conflict.cycle, row),),
                limit=use.slot if use is not None else conflict.pool or "",
            )
    return None


def _untried(problem: Problem, ii: int, turns: bool) -> Refusal:
    """Why no plan was tried at an II."""
    if turns:
        return Refusal(ii, "not tried: no work was left for it", rung=RUNG)
    apart = group_refusal(problem, ii, RUNG)
    if apart is not None:
        return apart
    why = "operations that have to share a hold would wait for each other around a recurrence"
    return Refusal(ii, why, rung=RUNG, limit="dependence")


def _shorter(starts: Sequence[int], nodes: Sequence[int], stages: int) -> _Plan:
    """From a complete placement on, to so many stages."""

    def begin(seats: Seats) -> None:
        seats.put([starts[i] for i in nodes])
        seats.shorten(stages, WEIGHED * seats.size)

    return _Plan(begin, False)


def _taken(core: Core, seats: Seats, ii: int) -> bool:
    """Whether a heart may have this II at all; its seats then have it."""
    return core.turns(ii) and seats.at(ii, core.segments(ii), core.floors(ii))


def _whole(seats: Seats) -> list[int]:
    return [start for start in seats.starts() if start is not None]


def _compacted(seats: Seats, starts: list[int], *, again: bool) -> list[int]:
    """Starts of fewer stages by seats moved earlier, else the same; `again`: while it saves any.

    One by one, seats around a recurrence stay where the others hold them; so stages are found
    anew, from nothing, for the cycles that the seats have come to.
    """
    while True:
        seats.compact(ROUNDS)
        found = [_whole(seats)]
        if again and seats.staged():
            found.append(_whole(seats))
        lean = min(found, key=lambda starts: _last_stage(starts, seats.ii))
        if _last_stage(lean, seats.ii) >= _last_stage(starts, seats.ii):
            return starts
        if not again:
            return lean
        starts = lean


def _last_stage(starts: Sequence[int], ii: int) -> int:
    return max(starts) // ii - min(starts) // ii


def _crowded(core: Core, ii: int) -> bool:
    """Whether some column has too much to hold at this II, were nothing shared."""
    held = [0] * len(core.limits)
    for claims in core.claims:
        for column, _, duration, amount in claims:
            held[column] += duration * amount
    return any(total > limit * ii for total, limit in zip(held, core.limits, strict=True))


# Plans ------------------------------------------------------------------------------------


def _run(problem: Problem, seats: Seats, plan: _Plan, work: Work) -> bool:
    """Run one plan to its end, or to the end of the work; whether all are seated."""
    before = seats.spent
    plan.begin(seats)
    verdict = MORE
    while verdict == MORE and seats.spent - before < work.left:
        problem.deadline.check()
        verdict = seats.run(min(CHUNK, work.left - (seats.spent - before)))
    work.spend(max(seats.spent - before, seats.size // 4))
    return verdict == DONE


def _textbook(height: Sequence[int], core: Core, budget: int) -> _Plan:
    seats = budget * core.size
    return _Plan(lambda s: s.iterate(height, seats, False), False)


def _weighed(height: Sequence[int], core: Core, budget: int) -> _Plan:
    seats = budget * core.size
    return _Plan(lambda s: s.iterate(height, seats, True), False)


def _packed(
    priority: Sequence[int], evictions: int, *, tight: bool = False, late: bool = False
) -> _Plan:
    return _Plan(lambda s: s.pack(priority, tight, late, evictions), True)


def _plans(core: Core, seats: Seats) -> Iterator[_Plan]:
    """Plans without end, the quickest first."""
    height = seats.heights()
    few, many = core.size + 20, 4 * core.size + 40
    yield _textbook(height, core, TEXTBOOK)
    if seats.packable:
        yield _packed(height, few)
    yield _weighed(height, core, TEXTBOOK)
    hard = core.density
    if seats.packable:
        yield _packed(hard, few)
        yield _packed(hard, few, tight=True)
    yield _weighed(height, core, WEIGHED)
    turn = 0
    while True:
        if seats.packable:
            for _ in range(4):
                priority = _shaken(height if turn % 2 else hard, turn)
                tight, late = turn % 3 == 1, turn % 4 == 2
                yield _packed(priority, many, tight=tight, late=late)
                turn += 1
        yield _weighed(_shaken(height, turn), core, LONG)
        if not seats.packable or turn % 8 == 4:
            yield _textbook(_shaken(height, turn), core, LONG)
        turn += 1


def _shaken(priority: Sequence[int], turn: int) -> Sequence[int]:
    """Priorities moved by up to a fifth either way, differently each turn and always the same."""
    if turn < 2:
        return priority
    return [
        value * (80 + (i * 2654435761 + turn * 40503) % 65521 % 41) // 100
        for i, value in enumerate(priority)
    ]


def aligned(problem: Problem, ii: int, starts: list[int]) -> list[int]:
    """All starts moved by as many cycles, so that no stage begins between members of a group.

    ─────┬──a────b─┬──        ──┬─────a────b┬──       what is held in which cycle turns with
         └ stage ──┘            └── stage ──┘         them: it is legal as it was
    """
    groups = [[starts[i] + problem.ahead[i] * ii for i in members] for members in problem.members]
    spans = [(min(at), max(at) - min(at)) for at in groups]
    for turn in sorted({0, *(-low % ii for low, _ in spans)}):
        if all((low + turn) % ii + span < ii for low, span in spans):
            back = ii if turn and min(starts) + turn >= ii else 0
            return [start + turn - back for start in starts]
    return starts


def _stage_rules(partial: Partial) -> Refusal | None:
    """Depth limits and groups, which cycles alone do not see."""
    problem, ii = partial.problem, partial.ii
    if not problem.staged:
        return None
    starts = partial.whole()
    for i, last in enumerate(problem.max_stage):
        if last is not None and starts[i] // ii > last:
            name, stage = problem.names[i], starts[i] // ii
            return Refusal(
                ii,
                f"`{name}` came to stage {stage}; stage {last} is its last",
                rung=RUNG,
                op=name,
                uses=problem.vectors[i].uses,
                window=(0, (last + 1) * ii - 1),
                limit="depth",
                stage=stage,
                order=order_at(partial, i, stage, starts[i]),
            )
    for members in problem.scattered(ii, starts):
        names = tuple(problem.names[i] for i in members)
        found = [starts[i] // ii for i in members]
        late = max(members, key=lambda i: starts[i])
        return Refusal(
            ii,
            f"the group {', '.join(names)} came to stages {found}",
            rung=RUNG,
            op=problem.names[late],
            uses=problem.vectors[late].uses,
            limit="group",
            group=names,
            stage=starts[late] // ii,
            order=order_at(partial, late, starts[late] // ii, starts[late]),
        )
    return None
