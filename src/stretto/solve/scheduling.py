"""`schedule_prepared(ready)`: bound, select, generate, prove, verify.

starts from anywhere  ──►  Job.verified  ──►  ScheduleAnalysis, or a bug of ours found in time
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from time import perf_counter
from typing import TYPE_CHECKING

from stretto.bounds import bounds_of
from stretto.deadline import GRACE, LATEST, Deadline, OverdueError
from stretto.errors import StrettoError
from stretto.exact import II, Event, ProofOptions
from stretto.generate import EXACT, GENERATORS, SERIAL, Selection, select, too_many_uses
from stretto.generate.problem import EFFORTS, PARTS, Options, Problem, for_search
from stretto.loop import Note, Place
from stretto.machine import SPACES
from stretto.problem import apply, compile_loop
from stretto.resources.prepare import Prepared
from stretto.solution import (
    Bounds,
    LateTable,
    Objective,
    Proof,
    Refusal,
    Schedule,
    ScheduleAnalysis,
    TableRow,
    cause,
    spilling,
)
from stretto.solution.views import analyse
from stretto.verify import Violation, verify, verify_table

if TYPE_CHECKING:
    from stretto.generate.ladder.serial import SerialResult
    from stretto.generate.search import Found

Progress = Callable[[Refusal | int | Event], None]
"""Told of every II as it is refused, of the IIs that are found, and of what the solver does."""


STOPPED = "stopped while a better schedule was sought: this is the best so far"
FINISHING = 4.0
"""To analyse, verify and tell of a schedule, or to make the serial one where nothing was found,
takes up to so many times what bounding and compiling the loop took; a search that has a time limit
leaves that much of it."""
OVERDUE = "the time limit came while a better schedule was sought: this is the best so far"


class StoppedError(KeyboardInterrupt):
    """Ctrl-C while a better schedule was sought; `analysis` has the best so far, verified."""

    def __init__(self, analysis: ScheduleAnalysis) -> None:
        self.analysis = analysis
        super().__init__(analysis)


class IllegalScheduleError(StrettoError):
    """A generator made a schedule that the verifier refuses: a bug of that generator."""

    def __init__(self, loop: str, generator: str, violations: Sequence[Violation]) -> None:
        self.generator = generator
        self.violations = tuple(violations)
        ours = generator in GENERATORS
        whose = "; this is a bug of Stretto, please report it with the loop" if ours else ""
        told = "".join(f"\n  {v.rule}: {v.message}" for v in self.violations)
        super().__init__(
            f"the {generator} generator made a schedule that is not legal{whose}{told}", loop
        )

    def __reduce__(
        self,
    ) -> tuple[type[IllegalScheduleError], tuple[str, str, tuple[Violation, ...]]]:
        return IllegalScheduleError, (self.loop, self.generator, self.violations)


def schedule_prepared(
    ready: Prepared,
    generator: str = "auto",
    options: Options | None = None,
    progress: Progress | None = None,
    proof: ProofOptions | None = None,
) -> ScheduleAnalysis:
    """The best schedule found, verified, or why there is none; `proof`: what is to be proved.

    Ctrl-C during the search raises StoppedError, with the best schedule so far; a deadline that
    comes before there is any, OverdueError.
    """
    began = perf_counter()
    options = options or Options()
    if generator == EXACT and proof is None:
        proof = ProofOptions()
    _check_options(options, proof)
    loop, machine = ready.loop, ready.machine
    chosen = select(loop, machine, generator=generator, serial_threshold=options.serial_threshold)
    if options.strict and chosen.warnings:
        raise StrettoError(f"{'; '.join(chosen.warnings)} (strict)", loop.name)
    try:
        patience = options.deadline.later(GRACE)
        patience.check()
        compiled = compile_loop(loop, machine, fuse=options.fuse, max_stages=options.max_stages)
        bounds = bounds_of(compiled, patience)
        quick = proof is not None
        asked = options if options.quick == quick else replace(options, quick=quick)
        problem = for_search(compiled, asked)
        notes = (*ready.notes, *(Note(loop.at(), text) for text in chosen.warnings))
        finishing = FINISHING * (perf_counter() - began)
        analysis = _best_of(Job(problem, bounds, chosen, notes, finishing), proof, progress)
        if analysis.success and any(op.constraint.wishes for op in loop.ops):
            from stretto.solve.wishes import granted  # noqa: PLC0415 - few loops have wishes

            analysis = granted(ready, analysis, options)
    except StoppedError as stopped:
        stopped.analysis = replace(stopped.analysis, seconds=perf_counter() - began)
        raise
    except OverdueError as error:
        raise OverdueError(error.seconds, loop.name) from None
    if options.strict and spilling(analysis):
        raise StrettoError(f"{spilling(analysis)} (strict)", loop.name)
    return replace(analysis, seconds=perf_counter() - began)


def _best_of(job: Job, proof: ProofOptions | None, progress: Progress | None) -> ScheduleAnalysis:
    """Generate; and where a proof is asked for, prove, and generate with all effort if it fails."""
    found = _generate(job, progress)
    best = found.analysis
    if job.problem.pinned and proof is None and not (best.proof and best.proof.optimal):
        proof = ProofOptions(II)  # what is pinned may leave too little for moves to find it
    if job.searches and any(job.problem.ahead) and proof is None and not best.success:
        proof = ProofOptions(II)  # offsets may need a longer II than the serial one, where it ends
    if proof is None or found.analysis.overdue:
        return found.analysis
    analysis = _prove(job, found, proof, progress)
    if analysis.overdue or not _is_open(analysis) or not job.searches:
        return analysis
    options = replace(job.problem.options, quick=False)
    thorough = replace(job, problem=replace(job.problem, options=options))
    try:
        more = _generate(thorough, progress).analysis
    except OverdueError:  # before it had anything; what is proved stands
        return _late(analysis)
    better = _better(analysis, more)
    return _late(better) if more.overdue and not better.overdue else better


def _check_options(options: Options, proof: ProofOptions | None) -> None:
    for part in sorted(options.without):
        if part not in PARTS:
            raise StrettoError(f"without: no part `{part}`; known: {', '.join(PARTS)}")
    if options.effort not in EFFORTS:
        raise StrettoError(f"no effort `{options.effort}`; known: {', '.join(EFFORTS)}")
    for name in ("max_ii", "max_stages", "serial_threshold"):
        number: int | None = getattr(options, name)
        if number is not None and number < 1:
            raise StrettoError(f"{name} is {number}; at least 1 is needed")
    if proof is not None:
        from stretto.exact.objectives import goal_of  # noqa: PLC0415 - where something is proved

        goal_of(proof.objective)


# Answering --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Job:
    """What every answer about one loop is made from."""

    problem: Problem
    bounds: Bounds
    chosen: Selection
    notes: tuple[Note, ...]
    finishing: float = 0.0
    """Seconds to leave for analysing and verifying what a search finds."""

    @property
    def searches(self) -> bool:
        """Whether our search answers, which finds more where it is given more."""
        return self.chosen.generator != SERIAL and self.chosen.generator in GENERATORS

    @property
    def search_until(self) -> Deadline:
        """When a search is to end, so that there is time to verify what it found."""
        return self.problem.deadline.later(-self.finishing)

    def serially(
        self, result: SerialResult, refused: tuple[Refusal, ...] = (), told: str = ""
    ) -> ScheduleAnalysis:
        """The serial schedule; `told`: why, where another generator was chosen."""
        rule = self.chosen.rule + ("; fell back on the serial schedule" if told else "")
        said = (*result.warnings, told) if told else result.warnings
        return self.verified(
            replace(self.chosen, generator=SERIAL, rule=rule),
            self.problem.schedule(result.ii, result.starts),
            refused=refused,
            warnings=said,
        )

    def found(self, found: Found) -> ScheduleAnalysis:
        """What the search found."""
        placement = found.placement
        assert placement is not None
        names = self.problem.names
        return self.verified(
            self.chosen,
            placement.schedule,
            seated_by={names[i]: by for i, by in placement.seated_by.items()},
            refused=found.refused,
        )

    def _not_last(self, analysis: ScheduleAnalysis) -> tuple[Note, ...]:
        """That what is pending was not seated last; an error where that is asked for strictly.

        The arms of the ladder keep to it, and the serial generator tells of it by itself.
        """
        if analysis.generator == SERIAL:
            return ()
        told = tuple(
            f"`pending` of `{placed.op}` is not honoured: {placed.rung or EXACT} seats in no order"
            for placed, pending in zip(analysis.placements, self.problem.pending, strict=True)
            if pending and not placed.arm
        )
        if told and self.problem.options.strict:
            raise StrettoError(f"{'; '.join(told)} (strict)", analysis.loop)
        return tuple(Note(Place(analysis.loop), text) for text in told)

    def failure(self, refused: tuple[Refusal, ...]) -> ScheduleAnalysis:
        """No schedule, and why."""
        return ScheduleAnalysis(
            loop=self.problem.loop.name,
            machine=self.problem.machine.name,
            success=False,
            bounds=self.bounds,
            generator=self.chosen.generator,
            rule=self.chosen.rule,
            refused=refused,
            warnings=self.notes,
        )

    def verified(
        self,
        chosen: Selection,
        schedule: Schedule,
        *,
        seated_by: Mapping[str, tuple[str, str]] | None = None,
        refused: tuple[Refusal, ...] = (),
        warnings: tuple[str, ...] = (),
        proof: Proof | None = None,
    ) -> ScheduleAnalysis:
        """The analysis of a schedule; IllegalScheduleError where the verifier refuses it."""
        loop, machine, mii = self.problem.loop, self.problem.machine, self.bounds.mii
        analysis = analyse(
            loop,
            machine,
            schedule,
            seated_by=seated_by,
            bounds=self.bounds,
            proof=proof or known(schedule.ii, mii, refused),
            generator=chosen.generator,
            rule=chosen.rule,
            refused=refused,
            warnings=(*self.notes, *(Note(loop.at(), text) for text in warnings)),
        )
        violations = verify(loop, machine, analysis, max_stages=self.problem.options.max_stages)
        if violations:
            raise IllegalScheduleError(loop.name, chosen.generator, violations)
        return replace(
            analysis,
            warnings=(*analysis.warnings, *self._not_last(analysis)),
            table=LateTable(partial(self._table, analysis)),
        )

    def _table(self, analysis: ScheduleAnalysis) -> tuple[TableRow, ...]:
        """The reservation table that a schedule populates, verified."""
        problem, schedule = self.problem, analysis.schedule
        starts = [schedule.starts[name] for name in problem.names]
        fused = [[problem.index[name] for name in group] for group in schedule.fused]
        rows = apply(problem, schedule.ii, starts, fused).steps()
        violations = verify_table(problem.loop, problem.machine, replace(analysis, table=rows))
        if violations:
            raise IllegalScheduleError(problem.loop.name, analysis.generator, violations)
        return rows


def known(ii: int, mii: int, refused: tuple[Refusal, ...]) -> Proof:
    """What bound and proved refusals say of an II: optimal where nothing smaller is left."""
    lower, method = lower_bound(mii, refused)
    return Proof(True, lower, method) if ii <= lower else Proof(False, lower, "none")


def lower_bound(mii: int, refused: tuple[Refusal, ...]) -> tuple[int, str]:
    """The MII, raised by the refusals that are proofs and leave nothing between; and by what."""
    lower, method = mii, "bound"
    for refusal in refused:
        if refusal.proved and refusal.ii <= lower:
            lower = max(lower, refusal.last + 1)
            method = "memory" if refusal.limit in SPACES else "conflict"
    return lower, method


# Generating -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Heuristic:
    """What was found without the solver."""

    analysis: ScheduleAnalysis
    last: int
    """The last II worth trying."""


def _generate(job: Job, progress: Progress | None) -> _Heuristic:
    limit, mii = job.problem.options.max_ii, job.bounds.mii
    if limit is not None and limit < mii:
        reason = f"below the MII {mii} ({job.bounds.limiter} bound: {cause(job.bounds.witness)})"
        refusal = Refusal(1, reason, limit if limit > 1 else None, proved=True)
        return _Heuristic(job.failure((refusal,)), limit)
    if job.chosen.generator not in GENERATORS:
        from stretto.solve.outside import asked  # noqa: PLC0415 - few ask somebody else

        return _Heuristic(*asked(job))
    serial_schedule = cache(lambda: _serial_schedule(job))
    if job.chosen.generator == SERIAL:
        ii, at_hand = serial_schedule()
        refused = isinstance(at_hand, Refusal)
        analysis = job.failure((at_hand,)) if refused else job.serially(at_hand)
        return _Heuristic(analysis, ii if limit is None else limit)
    from stretto.generate.search import Found, search  # noqa: PLC0415 - serial loops need none

    try:
        problem, until = job.problem, job.search_until
        if until != problem.deadline:
            problem = replace(problem, options=replace(problem.options, deadline=until))
        found = search(problem, job.bounds, lambda: serial_schedule()[0], progress)
    except KeyboardInterrupt:
        found = Found(None, None, (), stopped=True)
    if found.placement is not None:  # the search looks no further than the serial II
        analysis = job.found(found)
    else:
        at_hand = serial_schedule()[1]
        if isinstance(at_hand, Refusal):
            if found.stopped:
                raise KeyboardInterrupt
            if found.overdue:
                raise OverdueError(job.problem.deadline.seconds)
        analysis = _fallen_back(job, found, at_hand)
    if found.stopped:
        raise StoppedError(_warned(analysis, STOPPED))
    last = limit or analysis.ii or serial_schedule()[0]
    return _Heuristic(_late(analysis) if found.overdue else analysis, last)


def _warned(analysis: ScheduleAnalysis, told: str) -> ScheduleAnalysis:
    return replace(analysis, warnings=(*analysis.warnings, Note(Place(analysis.loop), told)))


def _late(analysis: ScheduleAnalysis) -> ScheduleAnalysis:
    return replace(_warned(analysis, OVERDUE), overdue=True)


def _serial_schedule(job: Job) -> tuple[int, SerialResult | Refusal]:
    """The II of the serial schedule, and the schedule or why it cannot be the answer.

    Made where it is asked for: what is found at the bound needs neither.
    """
    from stretto.generate.ladder.serial import SerialError, serial  # noqa: PLC0415

    problem = job.problem
    try:
        result = serial(problem)
    except SerialError as error:
        return error.ii, Refusal(error.ii, str(error))
    finally:  # or it would not be verified in time
        problem.deadline.later(LATEST - job.finishing).check()
    limit = problem.options.max_ii
    if limit is not None and limit < result.ii:
        reason = f"the serial schedule has II {result.ii}; the largest II allowed is {limit}"
        return result.ii, Refusal(limit, reason)
    return result.ii, result


def _fallen_back(job: Job, found: Found, at_hand: SerialResult | Refusal) -> ScheduleAnalysis:
    """The serial schedule, where the search found none; or that there is none either."""
    if isinstance(at_hand, Refusal):
        told = any(r.ii <= at_hand.ii <= r.last for r in found.refused)
        return job.failure(found.refused if told else (*found.refused, at_hand))
    ended = "found nothing better in time" if found.overdue else "found nothing"
    told = f"the search {ended} up to II {at_hand.ii}: this is the serial schedule"
    return job.serially(at_hand, found.refused, told)


# Proving ----------------------------------------------------------------------------------


def _prove(
    job: Job, found: _Heuristic, proof: ProofOptions, progress: Progress | None
) -> ScheduleAnalysis:
    """Have the solver prove what was found, or improve on it."""
    at_hand = found.analysis
    if job.problem.loop.force_serial and job.chosen.generator != EXACT:
        told = "the loop forces serial execution: there is nothing to prove"
        return _warned(at_hand, told)
    if found.last < job.bounds.mii:
        return at_hand
    crowded = too_many_uses(job.problem.loop)
    if crowded:
        told = f"{crowded}: the solver was not asked"
        return _warned(at_hand, told)
    from stretto.solve.proving import proved  # noqa: PLC0415 - only who proves needs it

    try:
        analysis, stopped = proved(job, at_hand, found.last, proof, progress)
    except KeyboardInterrupt:
        if not at_hand.success:
            raise
        analysis, stopped = at_hand, True
    if stopped and not analysis.success:
        raise KeyboardInterrupt
    if stopped:
        raise StoppedError(_warned(analysis, STOPPED))
    if not job.search_until.over or _settled(analysis, proof):
        return analysis
    if not analysis.success:
        raise OverdueError(job.problem.deadline.seconds)
    return _late(analysis)


def _settled(analysis: ScheduleAnalysis, asked: ProofOptions) -> bool:
    """Whether nothing that was asked of the solver is left open."""
    if not analysis.success:
        return all(refusal.proved for refusal in analysis.refused)
    proof = analysis.proof
    if proof is None or not proof.optimal:
        return False
    return {goal.name for goal in asked.goals} <= {
        row.name for row in proof.objectives if row.optimal
    }


def _is_open(analysis: ScheduleAnalysis) -> bool:
    """Whether the solver left an II below the best one undecided."""
    return analysis.success and analysis.proof is not None and not analysis.proof.optimal


def _better(proved: ScheduleAnalysis, other: ScheduleAnalysis) -> ScheduleAnalysis:
    """What the generators find with all their effort, where the solver's limits left it more.

    The solver starts from a quick look; whoever asks for a proof must not be worse off for it.
    """
    assert proved.proof is not None
    assert proved.ii is not None
    if other.ii is None or other.ii >= proved.ii:
        return proved
    lower = proved.proof.lower_bound
    optimal = other.ii == lower
    method = "bound" if other.bounds is not None and lower == other.bounds.mii else "solver"
    row = Objective(II, other.ii, lower, optimal)
    proof = Proof(optimal, lower, method if optimal else "none", (row,))
    refused = tuple(r for r in proved.refused if r.ii < other.ii)
    return replace(other, generator=proved.generator, proof=proof, refused=refused)
