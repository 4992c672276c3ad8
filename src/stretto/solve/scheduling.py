"""`schedule_prepared(ready)`: bound, select, generate, shorten, prove, verify.

    nothing asked for      search ──► with fewer stages ──► by the solver        the smallest II
    --max-stages N         that one, if it has so few; else the same with N
    no register to spare   the same, whatever spills: marked so, and never optimal

Whatever restricts a schedule is tried against the one that is found without it first, and fewer
stages are tried wherever the bound is not met: so no option that the answer meets already makes the
II larger, nor does a larger limit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING

from stretto.deadline import GRACE, LATEST, NEVER, OverdueError
from stretto.errors import StrettoError
from stretto.exact import II, Event, Limits, ProofOptions
from stretto.generate import EXACT, GENERATORS, SERIAL, Selection, select, too_many_uses
from stretto.generate.problem import EFFORTS, IMPROVE, PARTS, RETRIES, TIES, Options, for_search
from stretto.loop import Note, Place
from stretto.lower_bounds import bounds_of
from stretto.machine.machine import REGISTER_BYTES, Machine
from stretto.problem import compile_loop
from stretto.problem.registers import Registers
from stretto.resources.prepare import Prepared
from stretto.solution import Refusal, ScheduleAnalysis, cause, spilling
from stretto.solve.job import IllegalScheduleError, Job, known
from stretto.verification import verify

if TYPE_CHECKING:
    from stretto.generate.ladder.refusals import Stuck
    from stretto.generate.ladder.serial import SerialResult
    from stretto.generate.search import Found

Progress = Callable[[Refusal | int | Event], None]
"""Told of every II as it is refused, of the IIs that are found, and of what the solver does."""


STOPPED = "stopped while a better schedule was sought: this is the best so far"
FINISHING = 4.0
"""To analyse, verify and tell of a schedule, or to make the serial one where nothing was found,
takes up to so many times what bounding and compiling the loop took; a search that has a time limit
leaves that much of it."""
REFUSED_TOO = "the verifier refuses the serial schedule"
OVERDUE = "the time limit came while a better schedule was sought: this is the best so far"
SPILLS = "no schedule keeps to the registers of its agents"
UNKEPT = "no schedule was found that keeps to the registers of its agents"
CHAINED = 128
"""Operations up to which fewer stages are tried where the bound is not met."""
SOLVED = 64
"""Operations up to which the solver is asked for a smaller II than the search finds."""
TINY = 8
"""Operations up to which it is asked whatever the loop has."""
EACH = {"quick": 0.0, "normal": 0.1, "thorough": 2.0}
"""Units of the solver's work for one II, by effort."""
DEEPER, DEEP = 1, 3
"""Stages beyond those of the best schedule that a smaller II may take, where registers are few and
where they are not."""
LEFT_OUT = (frozenset({IMPROVE}), frozenset({IMPROVE, "rau"}))
"""What is left out, in turn, where the verifier refuses what was found."""


class StoppedError(KeyboardInterrupt):
    """Ctrl-C while a better schedule was sought; `analysis` has the best so far, verified."""

    def __init__(self, analysis: ScheduleAnalysis) -> None:
        self.analysis = analysis
        super().__init__(analysis)


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
    loop = ready.loop
    chosen = select(
        loop, ready.machine, generator=generator, serial_threshold=options.serial_threshold
    )
    if options.strict and chosen.warnings:
        raise StrettoError(f"{'; '.join(chosen.warnings)} (strict)", loop.name)
    try:
        options.deadline.later(GRACE).check()
        asked = _Asked(ready, chosen, options, progress)
        try:
            analysis = _kept_or_spilled(asked, proof)
        except StoppedError as stopped:
            stopped.analysis = _with_bugs(stopped.analysis, asked.bugs)
            raise
        analysis = _with_bugs(analysis, asked.bugs)
        if analysis.success and any(op.constraint.wishes for op in loop.ops):
            from stretto.solve.wishes import granted  # noqa: PLC0415 - few loops have wishes

            analysis = granted(ready, analysis, options)
        if asked.stuck:
            from stretto.generate.ladder.refusals import explained  # noqa: PLC0415 - few need it

            refused = explained(analysis.refused, asked.stuck, options.deadline)
            analysis = replace(analysis, refused=refused)
    except StoppedError as stopped:
        stopped.analysis = replace(stopped.analysis, seconds=perf_counter() - began)
        raise
    except OverdueError as error:
        raise OverdueError(error.seconds, loop.name) from None
    if options.strict and spilling(analysis):
        raise StrettoError(f"{spilling(analysis)} (strict)", loop.name)
    return replace(analysis, seconds=perf_counter() - began)


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


# What is asked ----------------------------------------------------------------------------

Answers = dict[Options, ScheduleAnalysis]
"""What was found for one loop, by the options that it was found under, their deadline aside."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A loop, what chose its generator, and what is asked of its schedule."""

    ready: Prepared
    chosen: Selection
    options: Options
    progress: Progress | None
    answers: Answers = field(default_factory=Answers)
    bugs: list[str] = field(default_factory=list[str])
    """What is to be told of schedules that the verifier refused, whatever becomes the answer."""
    stuck: dict[Refusal, Stuck] = field(default_factory=dict["Refusal", "Stuck"])
    """What refusals are about, of all searches."""

    def job(self) -> Job:
        """The loop compiled for these options, with its bounds."""
        began = perf_counter()
        loop, options = self.ready.loop, self.options
        compiled = compile_loop(
            loop, self.ready.machine, fuse=options.fuse, max_stages=options.max_stages
        )
        bounds = bounds_of(compiled, options.deadline.later(GRACE))
        notes = (*self.ready.notes, *(Note(loop.at(), text) for text in self.chosen.warnings))
        finishing = FINISHING * (perf_counter() - began)
        problem = for_search(compiled, options)
        return Job(problem, bounds, self.chosen, notes, finishing, self.bugs, self.stuck)

    def at_most(self, stages: int) -> _Asked:
        """The same in so many stages."""
        return replace(self, options=replace(self.options, max_stages=stages))

    def within(self, part: float) -> _Asked:
        """The same in a part of the time that is left."""
        return replace(
            self, options=replace(self.options, deadline=self.options.deadline.share(part))
        )

    def freed(self) -> _Asked | None:
        """The same without what restricts a schedule; None: nothing does."""
        ops = tuple(replace(op, constraint=op.constraint.unpinned) for op in self.ready.loop.ops)
        loop = self.ready.loop if ops == self.ready.loop.ops else replace(self.ready.loop, ops=ops)
        options = replace(self.options, max_ii=None, max_stages=None, fuse=True)
        if loop is self.ready.loop and options == self.options:
            return None
        answers = self.answers if loop is self.ready.loop else {}
        return replace(self, ready=replace(self.ready, loop=loop), options=options, answers=answers)

    def meets(self, found: ScheduleAnalysis) -> bool:
        """Whether a schedule of the freed loop is one of this loop under these options."""
        options = self.options
        if not found.success or found.ii is None or found.overdue:
            return False
        if options.max_ii is not None and found.ii > options.max_ii:
            return False
        if found.fused and not options.fuse:
            return False
        loop, machine = self.ready.loop, self.ready.machine
        return not verify(loop, machine, found, max_stages=options.max_stages)


def _best_of(asked: _Asked, proof: ProofOptions | None) -> ScheduleAnalysis:
    """What is found; and where a proof is asked for, proved or improved on."""
    job = asked.job()
    found = _found(asked, job)
    proved = found.overdue or (found.proof is not None and found.proof.optimal)
    if proof is None and (job.searches or not job.chosen.firm) and not proved:
        tight = job.problem.size <= TINY or any(job.problem.ahead)
        if job.problem.pinned or (tight and not found.success):
            proof = ProofOptions(II)  # what is pinned or tied may leave too little to find it
            better = _prove(job, found, proof, asked.progress)
            told = better.success or job.problem.pinned  # else the search says who found no seat
            return better if told else found
    if proof is None or found.overdue:
        return found
    return _prove(job, found, proof, asked.progress)


def _found(asked: _Asked, job: Job) -> ScheduleAnalysis:
    """The best schedule without a proof: the one of the freed loop, if it does; else its own."""
    freed = asked.freed() if job.searches and job.problem.wants(RETRIES) else None
    if freed is None or job.bounds.mii > (asked.options.max_ii or job.bounds.mii):
        return _searched(asked, job)
    try:
        free = _searched(freed.within(0.5))
    except OverdueError:
        return _searched(asked, job)
    except StoppedError as stopped:
        if asked.meets(stopped.analysis):
            raise
        raise KeyboardInterrupt from None
    if not asked.meets(free):
        return _searched(asked, job)
    try:
        return job.verified(
            replace(job.chosen, generator=free.generator, rule=free.rule),
            free.schedule,
            seated_by={p.op: (p.rung, p.arm) for p in free.placements},
            refused=free.refused,
            proof=free.proof if free.proof and free.proof.optimal else None,
        )
    except IllegalScheduleError as error:
        _tell(job, error, job.bounds.mii)
        return _searched(asked, job)


def _searched(asked: _Asked, job: Job | None = None) -> ScheduleAnalysis:
    """The best of the search, of fewer stages and of the solver, under the options that are asked.

    With more effort it is never worse: what less of it finds counts as well.
    """
    key = replace(asked.options, deadline=NEVER)
    if key not in asked.answers:
        job = job or asked.job()
        found = _searched_once(asked, job)
        less = list(EFFORTS).index(asked.options.effort) - 1
        again = job.searches and job.problem.wants(RETRIES) and not found.overdue
        if less >= 0 and again and _is_open(found):
            effort = list(EFFORTS)[less]
            other = _searched(replace(asked, options=replace(asked.options, effort=effort)))
            found = min(found, other, key=_length) if found.success and other.success else found
        if found.overdue:
            return found
        asked.answers[key] = found
    return asked.answers[key]


def _searched_once(asked: _Asked, job: Job) -> ScheduleAnalysis:
    """The best at one effort."""
    best = _generate(job, asked.progress)
    if best.overdue or (best.success and not _is_open(best)) or not job.problem.wants(RETRIES):
        return best
    if not job.searches:
        small = not job.chosen.firm and job.problem.size <= TINY
        return _shortened(job, best) if small else best
    if job.problem.members and job.problem.registers.bound and job.problem.wants(TIES):
        best = _untied(asked, job, best)
        if best.overdue or (best.success and not _is_open(best)):
            return best
    if best.success and job.problem.size <= CHAINED:
        best = _of_fewer_stages(asked, best)
    return best if best.overdue else _shortened(job, best)


def _untied(asked: _Asked, job: Job, best: ScheduleAnalysis) -> ScheduleAnalysis:
    """The better of what is found with members of groups moved whole, and one by one.

    Where registers are few, either may find what the other does not.
    """
    try:
        other = _generate(job.leaving_out({TIES}), asked.progress)
    except OverdueError:
        if not best.success:
            raise
        return _late(best)
    except StoppedError as stopped:
        if best.success and _length(best) <= _length(stopped.analysis):
            raise StoppedError(_warned(best, STOPPED)) from None
        raise
    except KeyboardInterrupt:
        if not best.success:
            raise
        raise StoppedError(_warned(best, STOPPED)) from None
    if not other.success or (best.success and _length(best) <= _length(other)):
        return _late(best) if other.overdue else best
    return other


def _length(analysis: ScheduleAnalysis) -> tuple[int, int]:
    """What is smaller is better: the II, and at one II the stages."""
    assert analysis.ii is not None
    return analysis.ii, analysis.stage_count


def _of_fewer_stages(asked: _Asked, best: ScheduleAnalysis) -> ScheduleAnalysis:
    """The best in fewer stages, where that is better: a search may find there what it else misses.

    So no larger limit has a larger II. In so few stages that a path takes too long, nothing can be.
    """
    stages = (asked.options.max_stages or best.stage_count) - 1
    if stages < 1:
        return best
    fewer = asked.at_most(stages)
    job = fewer.job()
    if best.ii is None or job.bounds.mii >= best.ii:
        return best
    try:
        other = _searched(fewer, job)
    except OverdueError:
        return _late(best)
    if not other.success or _length(other) >= _length(best):
        return _late(best) if other.overdue else best
    mii = asked.job().bounds
    proof = known(other.ii or 0, mii.mii, best.refused)
    refused = tuple(r for r in best.refused if other.ii is None or r.ii < other.ii)
    return replace(other, bounds=mii, proof=proof, refused=refused)


def _shortened(job: Job, best: ScheduleAnalysis) -> ScheduleAnalysis:
    """What the solver finds at smaller IIs with a little work each, where the search may be blind.

    That is where stages are tied to each other, registers are few, or hardly anything is to move.
    """
    problem, each = job.problem, EACH[job.problem.options.effort]
    if problem.options.strict and any(problem.pending):
        return best  # the solver seats in no order
    blind = problem.staged or problem.registers.bound or problem.size <= TINY
    if not each or not blind or problem.size > SOLVED or too_many_uses(problem.loop):
        return best
    last = best.ii or (problem.options.max_ii or _serial_schedule(job)[0]) + 1
    lower = best.proof.lower_bound if best.proof else job.bounds.mii
    if lower >= last:
        return best
    from stretto.exact.case import Case  # noqa: PLC0415 - most loops need no solver
    from stretto.exact.interrupts import load_solver  # noqa: PLC0415

    load_solver()
    from stretto.exact.search import shorten  # noqa: PLC0415
    from stretto.generate.search import leaned  # noqa: PLC0415

    deeper = DEEPER if problem.registers.bound else DEEP
    stages = best.stage_count + deeper if best.success else None
    try:
        case = Case(problem, deadline=job.search_until)
        schedule = shorten(case, lower, last, Limits(each), stages)
    except KeyboardInterrupt:
        if not best.success:
            raise
        raise StoppedError(_warned(best, STOPPED)) from None
    except OverdueError:
        return _late(best)
    if schedule is None:
        return best
    rule = job.chosen.rule
    if best.success:
        rule = (
            f"improves on the {best.generator} schedule (II {best.ii}, {best.stage_count} stages)"
        )
    refused = tuple(r for r in best.refused if r.ii < schedule.ii)
    chosen = replace(job.chosen, generator=EXACT, rule=rule)
    try:
        job.verified(chosen, schedule)  # or what is wrong with it would be hidden by moves
        return job.verified(chosen, leaned(problem, schedule), refused=refused)
    except IllegalScheduleError as error:
        _tell(job, error, schedule.ii)
        return best


def _tell(job: Job, error: IllegalScheduleError, ii: int) -> None:
    """Note a schedule that the verifier refuses; raise the error where that is asked for."""
    from stretto.solve.refused import told_of  # noqa: PLC0415 - nobody should need it

    job.bugs.append(told_of(error, job.problem.loop, job.problem.machine.name, ii))


# Registers --------------------------------------------------------------------------------


def lifted(machine: Machine) -> Machine:
    """The machine with as many registers as anybody may want."""
    agents = tuple(replace(agent, registers=None) for agent in machine.agents)
    return replace(machine, agents=agents)


def _kept_or_spilled(asked: _Asked, proof: ProofOptions | None) -> ScheduleAnalysis:
    """The best schedule; one that spills where none is found that keeps to the registers of agents.

    That is made before anything is proved, and half of the time is left for it: no limit of time
    and no proof takes away what would be found without.
    """
    if asked.options.strict or lifted(asked.ready.machine) == asked.ready.machine:
        return _best_of(asked, proof)
    kept: ScheduleAnalysis | None = None
    with suppress(OverdueError):
        kept = _best_of(asked.within(0.5), None)
    if kept is not None and kept.success:
        return kept if proof is None and not kept.overdue else _better_of(kept, asked, proof)
    spare = _spilled(asked.within(0.5), kept)
    if spare is None:
        return kept if kept is not None and proof is None else _best_of(asked, proof)
    if proof is None and kept is not None:
        return spare
    return _better_of(spare, asked, proof)


def _better_of(
    at_hand: ScheduleAnalysis, asked: _Asked, proof: ProofOptions | None
) -> ScheduleAnalysis:
    """What is found in all the time there is, unless what is at hand is better."""
    try:
        other = _best_of(asked, proof)
    except OverdueError:
        return _late(at_hand)
    except StoppedError:
        raise
    except KeyboardInterrupt:
        raise StoppedError(_warned(at_hand, STOPPED)) from None
    if other.success:
        longer = not spilling(at_hand) and _length(at_hand) < _length(other)
        return _late(at_hand) if longer else other
    if not _refuted(other):
        return at_hand
    kept = tuple(note for note in at_hand.warnings if not note.text.startswith(UNKEPT))
    return _warned(replace(at_hand, warnings=kept), SPILLS)


def _spilled(asked: _Asked, failed: ScheduleAnalysis | None) -> ScheduleAnalysis | None:
    """A schedule that does not keep to the registers of agents; it says so. None: none either."""
    ready = asked.ready
    free = replace(ready, machine=lifted(ready.machine))
    found = _best_of(replace(asked, ready=free, answers={}), None)
    if not found.success or found.ii is None:
        return None
    starts = [found.starts[op.name] for op in ready.loop.ops]
    peaks = Registers(ready.loop, ready.machine).peaks(found.ii, starts)
    spilled = max(
        (-(-(p.bytes - p.most) // (p.threads * REGISTER_BYTES)) for p in peaks), default=0
    )
    refused = failed.refused if failed is not None else ()
    why = next((r.reason for r in refused if r.limit == "registers"), "")
    proved = failed is not None and _refuted(failed)
    told = SPILLS if proved else f"{UNKEPT}{why and f' ({why})'}"
    job = asked.job()
    try:
        spare = job.verified(
            replace(asked.chosen, generator=found.generator, rule=found.rule),
            found.schedule,
            seated_by={p.op: (p.rung, p.arm) for p in found.placements},
            refused=found.refused,
            warnings=(told,),
            spilled=spilled,
        )
    except IllegalScheduleError as error:
        _tell(job, error, found.ii)
        return None
    return _late(spare) if found.overdue else spare


def _refuted(failed: ScheduleAnalysis) -> bool:
    """Whether it is proved that there is no schedule."""
    return failed.generator == EXACT and all(refusal.proved for refusal in failed.refused)


# Generating -------------------------------------------------------------------------------


def _generate(job: Job, progress: Progress | None) -> ScheduleAnalysis:
    """What the chosen generator finds."""
    limit, mii = job.problem.options.max_ii, job.bounds.mii
    if limit is not None and limit < mii:
        reason = f"below the MII {mii} ({job.bounds.limiter} bound: {cause(job.bounds.witness)})"
        refusal = Refusal(1, reason, limit if limit > 1 else None, proved=True)
        return job.failure((refusal,))
    if job.chosen.generator not in GENERATORS:
        from stretto.solve.outside import asked  # noqa: PLC0415 - few ask somebody else

        return asked(job)
    if job.chosen.generator != SERIAL:
        return _search(job, cache(lambda: _serial_schedule(job)), progress)
    ii, at_hand = _serial_schedule(job)
    if isinstance(at_hand, Refusal):
        if job.chosen.firm:
            return job.failure((at_hand,))
        return _search(job.searching(), lambda: (ii, at_hand), progress)
    try:
        return job.serially(at_hand)
    except IllegalScheduleError as error:
        _tell(job, error, ii)
        return _next_best(job, Refusal(ii, REFUSED_TOO), progress)


def _search(
    job: Job,
    serial_schedule: Callable[[], tuple[int, SerialResult | Refusal]],
    progress: Progress | None,
) -> ScheduleAnalysis:
    """What the ladder finds, or the serial schedule."""
    from stretto.generate.search import Found, search  # noqa: PLC0415 - serial loops need none

    try:
        problem, until = job.problem, job.search_until
        if until != problem.deadline:
            problem = replace(problem, options=replace(problem.options, deadline=until))
        found = search(problem, job.bounds, lambda: serial_schedule()[0], progress)
        job.stuck.update(found.stuck)
    except KeyboardInterrupt:
        found = Found(None, None, (), stopped=True)
    if found.placement is not None:  # the search looks no further than the serial II
        try:
            analysis = job.found(found)
        except IllegalScheduleError as error:
            _tell(job, error, found.placement.ii)
            analysis = _next_best(job, serial_schedule()[1], progress)
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
    return _late(analysis) if found.overdue else analysis


def _next_best(
    job: Job, at_hand: SerialResult | Refusal, progress: Progress | None
) -> ScheduleAnalysis:
    """What the verifier accepts, where it refused the best: less and less is asked of the search.

    In the end stands the serial schedule, or that there is none.
    """
    from stretto.generate.search import search  # noqa: PLC0415

    for without in LEFT_OUT:
        other = job.searching().leaving_out(without)
        serial_ii = at_hand.ii
        found = search(other.problem, job.bounds, lambda: serial_ii, progress)  # noqa: B023
        if found.placement is not None:
            try:
                return other.found(found)
            except IllegalScheduleError:
                continue
    return job.failure((at_hand,)) if isinstance(at_hand, Refusal) else _serially(job, at_hand)


def _serially(
    job: Job, result: SerialResult, refused: tuple[Refusal, ...] = (), told: str = ""
) -> ScheduleAnalysis:
    """The serial schedule; none where the verifier refuses that too."""
    try:
        return job.serially(result, refused, told)
    except IllegalScheduleError as error:
        _tell(job, error, result.ii)
        return job.failure((*refused, Refusal(result.ii, REFUSED_TOO)))


def _warned(analysis: ScheduleAnalysis, told: str) -> ScheduleAnalysis:
    return replace(analysis, warnings=(*analysis.warnings, Note(Place(analysis.loop), told)))


def _with_bugs(analysis: ScheduleAnalysis, bugs: Sequence[str]) -> ScheduleAnalysis:
    for text in dict.fromkeys(bugs):
        analysis = _warned(analysis, text)
    return analysis


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
        return error.ii, Refusal(error.ii, str(error), limit=error.limit)
    finally:  # or it would not be verified in time
        problem.deadline.later(LATEST - job.finishing).check()
    limit = problem.options.max_ii
    if limit is not None and limit < result.ii:
        reason = f"the serial schedule has II {result.ii}; the largest II allowed is {limit}"
        return result.ii, Refusal(limit, reason, limit="max_ii")
    return result.ii, result


def _fallen_back(job: Job, found: Found, at_hand: SerialResult | Refusal) -> ScheduleAnalysis:
    """The serial schedule, where the search found none; or that there is none either."""
    if isinstance(at_hand, Refusal):
        told = any(r.ii <= at_hand.ii <= r.last for r in found.refused)
        return job.failure(found.refused if told else (*found.refused, at_hand))
    ended = "found nothing better in time" if found.overdue else "found nothing"
    told = f"the search {ended} up to II {at_hand.ii}: this is the serial schedule"
    return _serially(job, at_hand, found.refused, told)


# Proving ----------------------------------------------------------------------------------


def _prove(
    job: Job, at_hand: ScheduleAnalysis, proof: ProofOptions, progress: Progress | None
) -> ScheduleAnalysis:
    """Have the solver prove what was found, or improve on it."""
    if job.problem.loop.force_serial and job.chosen.generator != EXACT:
        told = "the loop forces serial execution: there is nothing to prove"
        return _warned(at_hand, told)
    last = job.problem.options.max_ii or at_hand.ii or _serial_schedule(job)[0]
    if last < job.bounds.mii:
        return at_hand
    crowded = too_many_uses(job.problem.loop)
    if crowded:
        told = f"{crowded}: the solver was not asked"
        return _warned(at_hand, told)
    from stretto.solve.proving import proved  # noqa: PLC0415 - only who proves needs it

    try:
        analysis, stopped = proved(job, at_hand, last, proof, progress)
    except KeyboardInterrupt:
        if not at_hand.success:
            raise
        analysis, stopped = at_hand, True
    except IllegalScheduleError as error:
        _tell(job, error, at_hand.ii or last)
        analysis, stopped = at_hand, False
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
