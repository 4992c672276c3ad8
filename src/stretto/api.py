"""The one place that joins a loop, a machine and what works on both.

    prepare(loop)   ──►  the loop with its costs on its machine, checked, and what was noted
    schedule(loop)  ──►  prepare, bound, select, generate, prove, verify: a ScheduleAnalysis

Front ends and the command line go through here, so that nobody computes on a loop that was not
classified and checked first, and nobody is handed a schedule that was not verified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING

from stretto.bounds import compute_bounds
from stretto.errors import LoopError, StrettoError
from stretto.generate.problem import ARMS, LARGE, RUNGS, Options, Problem, make_problem
from stretto.generate.select import SERIAL, Selection, select
from stretto.generate.serial import SerialError, SerialResult, serial
from stretto.loop import Loop, check
from stretto.machine import SPACES, Machine, load_machine
from stretto.resources.classify import resolve
from stretto.schedule import Bounds, Proof, Refusal, ScheduleAnalysis
from stretto.schedule.views import analyse
from stretto.verify import Violation, verify

if TYPE_CHECKING:
    from stretto.generate.search import Found

DEFAULT_MACHINE = "blackwell"
"""The machine of a loop that names none."""

PARTS = (*RUNGS, *(f"arm:{arm}" for arm in ARMS))
"""What `without` may name."""

Progress = Callable[[Refusal | int], None]
"""Told of every II as it is refused, and of the II that is found."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A loop that is ready to be bounded, scheduled or verified."""

    loop: Loop
    machine: Machine
    """With the loop's own slots."""
    notes: tuple[str, ...]
    """Lifted budgets, operations that fell to another encoding, and the like."""


class IllegalScheduleError(StrettoError):
    """A generator made a schedule that the verifier refuses: a bug of Stretto, not of its user."""

    def __init__(self, loop: str, generator: str, violations: Sequence[Violation]) -> None:
        self.loop = loop
        self.generator = generator
        self.violations = tuple(violations)
        told = "".join(f"\n  {v.rule}: {v.message}" for v in self.violations)
        super().__init__(
            f"{loop}: the {generator} generator made a schedule that is not legal; this is a bug "
            f"of Stretto, please report it with the loop{told}"
        )

    def __reduce__(
        self,
    ) -> tuple[type[IllegalScheduleError], tuple[str, str, tuple[Violation, ...]]]:
        return IllegalScheduleError, (self.loop, self.generator, self.violations)


class StoppedError(KeyboardInterrupt):
    """Ctrl-C while a better schedule was sought; `analysis` has the verified serial one."""

    def __init__(self, analysis: ScheduleAnalysis) -> None:
        self.analysis = analysis
        super().__init__(analysis)


def prepare(loop: Loop, machine: Machine | str | None = None) -> Prepared:
    """Classify and check a loop; LoopError with every fault.

    The machine is the one given, else the one the loop names, else `blackwell`.
    """
    if not isinstance(machine, Machine):
        machine = load_machine(machine or loop.machine or DEFAULT_MACHINE)
    resolved = resolve(loop, machine)
    faults = check(resolved.loop, machine)
    if faults:
        raise LoopError(loop.name, [(fault.path, fault.message) for fault in faults])
    full = machine.with_slots(loop.slots)
    return Prepared(resolved.loop, full, machine.notes + resolved.notes)


def schedule(
    loop: Loop,
    machine: Machine | str | None = None,
    generator: str = "auto",
    *,
    max_ii: int | None = None,
    max_stages: int | None = None,
    fuse: bool = True,
    serial_threshold: int = 2,
    strict: bool = False,
    without: Iterable[str] = (),
    progress: Progress | None = None,
) -> ScheduleAnalysis:
    """The best schedule found, verified; `success` is false, with reasons, where there is none.

    `max_ii` is the last II tried (default: that of the serial schedule), `without` leaves out
    rungs (``rau``) and arms (``arm:fuse``). Ctrl-C during the search raises `StoppedError`, a
    KeyboardInterrupt that carries the serial schedule.
    """
    options = Options(max_ii, max_stages, fuse, serial_threshold, strict, frozenset(without))
    return schedule_prepared(prepare(loop, machine), generator, options, progress)


def schedule_prepared(
    ready: Prepared,
    generator: str = "auto",
    options: Options | None = None,
    progress: Progress | None = None,
) -> ScheduleAnalysis:
    """`schedule` of a loop that was prepared before."""
    began = perf_counter()
    options = options or Options()
    _check_options(options)
    loop, machine = ready.loop, ready.machine
    chosen = select(loop, machine, generator=generator, serial_threshold=options.serial_threshold)
    if options.strict and chosen.warnings:
        raise StrettoError(f"{loop.name}: {'; '.join(chosen.warnings)} (strict)")
    problem = make_problem(loop, machine, options)
    bounds = compute_bounds(loop, machine, fuse=options.fuse, max_stages=options.max_stages)
    notes = ready.notes[len(machine.notes) :] + chosen.warnings
    job = _Job(problem, bounds, chosen, notes)
    try:
        analysis = _generate(job, progress)
    except StoppedError as stopped:
        stopped.analysis = replace(stopped.analysis, seconds=perf_counter() - began)
        raise
    return replace(analysis, seconds=perf_counter() - began)


def _check_options(options: Options) -> None:
    for part in sorted(options.without):
        if part not in PARTS:
            raise StrettoError(f"without: no part `{part}`; known: {', '.join(PARTS)}")
    for name in ("max_ii", "max_stages", "serial_threshold"):
        number: int | None = getattr(options, name)
        if number is not None and number < 1:
            raise StrettoError(f"{name} is {number}; at least 1 is needed")


def _limiter(bounds: Bounds) -> str:
    witness = bounds.witness
    if witness.kind == "cycle":
        return f"latency {witness.total} over distance {witness.capacity}"
    return f"{witness.kind} {witness.limit}"


# Generating -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Job:
    """What every answer about one loop is made from."""

    problem: Problem
    bounds: Bounds
    chosen: Selection
    notes: tuple[str, ...]

    def serially(
        self, result: SerialResult, refused: tuple[Refusal, ...] = (), told: str = ""
    ) -> ScheduleAnalysis:
        """The serial schedule; `told`: why, where another generator was chosen."""
        rule = self.chosen.rule + ("; fell back on the serial schedule" if told else "")
        said = result.warnings + ((told,) if told else ())
        return self._verified(
            replace(self.chosen, generator=SERIAL, rule=rule),
            result.ii,
            self.problem.starts_by_name(result.starts),
            refused=refused,
            warnings=said,
        )

    def found(self, found: Found) -> ScheduleAnalysis:
        """What the search found."""
        placement, ii = found.placement, found.ii
        assert placement is not None
        assert ii is not None
        names = self.problem.names
        coarse = len(names) > LARGE
        told = f"more than {LARGE} operations: searched in coarse steps, without the arms"
        return self._verified(
            self.chosen,
            ii,
            self.problem.starts_by_name(placement.whole()),
            warnings=(told,) if coarse and ii > self.bounds.mii else (),
            fused=tuple(tuple(names[i] for i in group) for group in placement.fused.values()),
            seated_by={names[i]: by for i, by in placement.seated_by.items()},
            refused=found.refused,
        )

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
            warnings=self.problem.machine.notes + self.notes,
        )

    def _verified(
        self,
        chosen: Selection,
        ii: int,
        starts: Mapping[str, int],
        *,
        fused: tuple[tuple[str, ...], ...] = (),
        seated_by: Mapping[str, tuple[str, str]] | None = None,
        refused: tuple[Refusal, ...] = (),
        warnings: tuple[str, ...] = (),
    ) -> ScheduleAnalysis:
        loop, machine, mii = self.problem.loop, self.problem.machine, self.bounds.mii
        analysis = analyse(
            loop,
            machine,
            ii,
            starts,
            fused=fused,
            seated_by=seated_by,
            bounds=self.bounds,
            proof=_proof(ii, mii, refused),
            generator=chosen.generator,
            rule=chosen.rule,
            refused=refused,
            warnings=self.notes + warnings,
        )
        violations = verify(loop, machine, analysis, max_stages=self.problem.options.max_stages)
        if violations:
            raise IllegalScheduleError(loop.name, chosen.generator, violations)
        return analysis


def _proof(ii: int, mii: int, refused: tuple[Refusal, ...]) -> Proof:
    """What bound and proved refusals say of an II: optimal where nothing smaller is left."""
    lower, method = mii, "bound"
    for refusal in refused:
        if refusal.proved and refusal.ii <= lower:
            lower = max(lower, (refusal.through or refusal.ii) + 1)
            method = "memory" if refusal.limit in SPACES else "conflict"
    return Proof(True, lower, method) if ii <= lower else Proof(False, lower, "none")


def _generate(job: _Job, progress: Progress | None) -> ScheduleAnalysis:
    limit, mii = job.problem.options.max_ii, job.bounds.mii
    if limit is not None and limit < mii:
        reason = f"below the MII {mii} ({job.bounds.limiter} bound: {_limiter(job.bounds)})"
        return job.failure((Refusal(1, reason, limit if limit > 1 else None, proved=True),))
    serial_ii, at_hand = _serial_schedule(job.problem)
    if job.chosen.generator == SERIAL:
        return job.failure((at_hand,)) if isinstance(at_hand, Refusal) else job.serially(at_hand)
    from stretto.generate.search import Found, search  # noqa: PLC0415 - serial loops need none

    try:
        found = search(job.problem, job.bounds, serial_ii, progress)
    except KeyboardInterrupt:
        found = Found(None, None, (), stopped=True)
    if found.stopped and found.placement is None and isinstance(at_hand, Refusal):
        raise KeyboardInterrupt
    analysis = _best(job, found, at_hand)
    if found.stopped:
        told = "stopped while a better schedule was sought: this is the best so far"
        raise StoppedError(replace(analysis, warnings=(*analysis.warnings, told)))
    return analysis


def _serial_schedule(problem: Problem) -> tuple[int, SerialResult | Refusal]:
    """The II of the serial schedule, and the schedule or why it cannot be the answer."""
    try:
        result = serial(problem)
    except SerialError as error:
        return error.ii, Refusal(error.ii, str(error))
    limit = problem.options.max_ii
    if limit is not None and limit < result.ii:
        reason = f"the serial schedule has II {result.ii}; the largest II allowed is {limit}"
        return result.ii, Refusal(limit, reason)
    return result.ii, result


def _best(job: _Job, found: Found, at_hand: SerialResult | Refusal) -> ScheduleAnalysis:
    """What the search found, or the serial schedule where that is better or all there is."""
    if isinstance(at_hand, Refusal):
        if found.placement is not None:
            return job.found(found)
        told = any(r.ii <= at_hand.ii <= (r.through or r.ii) for r in found.refused)
        return job.failure(found.refused if told else (*found.refused, at_hand))
    if found.placement is not None and found.ii is not None and found.ii <= at_hand.ii:
        return job.found(found)
    told = f"the search found nothing up to II {at_hand.ii}: this is the serial schedule"
    return job.serially(at_hand, found.refused, told)
