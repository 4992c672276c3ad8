"""`tileas-generate-schedule`: finds a schedule of every loop and writes it onto the loop.

    scf.for ... { ops } {...}   ──►   the same, with nv_tile.aws.* attributes (see published.py)

It publishes; it rewrites nothing. A loop that gets no schedule is left alone: a warning and a
remark say why, and what an earlier run had written onto it is gone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from stretto.deadline import deadline_after
from stretto.diagnostics import Diagnostic
from stretto.errors import StrettoError
from stretto.exact import OBJECTIVE, SEED, WORK, WORKERS, Limits, ProofOptions
from stretto.generate import EXACT
from stretto.generate.problem import EFFORTS, Options
from stretto.ir.loops import read_loops
from stretto.ir.passes.published import publish, withdraw
from stretto.ir.telling import (
    PassError,
    Speaker,
    check_options,
    parsed_of,
    tell,
    tell_left_alone,
)
from stretto.limits import ITERATION_CYCLES
from stretto.resources.prepare import prepare
from stretto.solution import (
    Refusal,
    ScheduleAnalysis,
    at_the_mii,
    counted,
    limit,
    no_schedule,
    sought,
    the_mii,
)
from stretto.solve import IllegalScheduleError, schedule_prepared


@dataclass(frozen=True)
class GenerateSchedule(ModulePass):
    """Schedule every loop and write what was found onto it, as attributes."""

    name = "tileas-generate-schedule"

    machine: str | None = None
    """A machine's name, or the path of a TOML file; else the loop's own, else `blackwell`."""
    generator: str = "auto"
    """``auto``, ``serial``, ``cost-based`` or ``exact``."""
    max_ii: int | None = None
    """The last II tried; else that of the serial schedule."""
    max_stages: int | None = None
    fuse: bool = True
    """Whether operations may share a hold."""
    serial_threshold: int = 2
    """Loops of fewer operations are scheduled serially."""
    effort: str = "normal"
    """How much work the search is worth: ``quick``, ``normal`` or ``thorough``."""
    prove: bool = False
    """Whether the solver proves the schedule that was found, or improves on it."""
    objective: str = OBJECTIVE
    """With `prove` or ``exact``: what is minimized, and all that comes before it."""
    work_limit: float = WORK
    """Units of deterministic work that the solver may take, each in the order of a second."""
    workers: int = 1
    """Threads of the solver."""
    seed: int = 0
    """Of the solver."""
    time_limit: float | None = None
    """Seconds after which each loop keeps the best schedule so far."""
    strict: bool = False
    """A loop that is left alone, or a constraint that is not honoured, is an error."""

    def __post_init__(self) -> None:
        if self.max_ii is not None and self.max_ii > ITERATION_CYCLES:
            raise ValueError(f"max-ii is {self.max_ii}; at most {ITERATION_CYCLES} is allowed")
        if self.effort not in EFFORTS:
            raise ValueError(f"no effort `{self.effort}`; known: {', '.join(EFFORTS)}")
        self._check_proof()
        check_options(
            self.machine,
            max_ii=self.max_ii,
            max_stages=self.max_stages,
            serial_threshold=self.serial_threshold,
        )

    def _check_proof(self) -> None:
        """ValueError where the solver takes no such number."""
        if self.objective != OBJECTIVE:
            from stretto.exact.objectives import NAMES  # noqa: PLC0415 - the default needs no list

            if self.objective not in NAMES:
                raise ValueError(f"no objective `{self.objective}`; known: {', '.join(NAMES)}")
        for name, number in (("work-limit", self.work_limit), ("time-limit", self.time_limit)):
            if number is not None and not 0 < number < inf:
                raise ValueError(f"{name} is {number:g}; a number above 0 is needed")
        if not 1 <= self.workers <= WORKERS:
            raise ValueError(f"workers is {self.workers}; 1 to {WORKERS} are possible")
        if not 0 <= self.seed <= SEED:
            raise ValueError(f"seed is {self.seed}; 0 to {SEED} are possible")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Schedule every loop of a module."""
        del ctx
        parsed = parsed_of(op)
        loops = read_loops(parsed, self.machine)
        for one in loops.left_alone:
            withdraw(one.op)
        errors = tell_left_alone(
            self.name, loops, lambda one: self.strict and one.reason.severity != "remark"
        )
        failed = [self._schedule(Speaker(self.name, parsed, found)) for found in loops.loops]
        if self.strict or all(failed):
            errors += [diagnostic for told in failed for diagnostic in told]
        else:  # of several loops, one is no reason to refuse all
            for found, told in zip(loops.loops, failed, strict=True):
                why = f"{found.loop.name}: left alone: "
                for d in told:
                    tell(replace(d, severity="warning", message=why + d.message))
        if errors:
            raise PassError(errors)

    def _schedule(self, speaker: Speaker) -> list[Diagnostic]:
        """Publish a schedule of one loop; the errors that stop the pass."""
        found = speaker.found
        for warning in found.warnings:
            tell(warning)
        withdraw(found.for_op)
        try:
            ready = prepare(found.loop, found.machine)
            options, proof = self._options(), self._proof()
            analysis = schedule_prepared(ready, self.generator, options, None, proof)
        except IllegalScheduleError:
            raise
        except StrettoError as error:
            told = speaker.error(error)
            why = "; ".join(diagnostic.message for diagnostic in told)
            speaker.remark("Failure", "LeftAlone", f"left alone: {why}")
            return told
        for refusal in analysis.refused:
            if sought(refusal):
                refused(speaker, refusal)
        if not analysis.success:
            return self._left_alone(speaker, analysis)
        publish(found.for_op, found.ops, analysis)
        for warning in analysis.warnings:
            if warning.place.loop:  # those of the machine are known to whoever lifted a budget
                speaker.warn(warning)
        self._scheduled(speaker, analysis)
        return []

    def _options(self) -> Options:
        return Options(
            self.max_ii,
            self.max_stages,
            self.fuse,
            self.serial_threshold,
            self.strict,
            effort=self.effort,
            deadline=deadline_after(self.time_limit),
        )

    def _proof(self) -> ProofOptions | None:
        """What the solver is to prove, if anything."""
        if not self.prove and self.generator != EXACT:
            return None
        return ProofOptions(self.objective, Limits(self.work_limit, self.workers, self.seed))

    def _left_alone(self, speaker: Speaker, analysis: ScheduleAnalysis) -> list[Diagnostic]:
        """A loop that has no schedule, or none was found."""
        why = f"left alone: {why_not(analysis)}"
        speaker.remark("Missed", "LeftAlone", why)
        notes = tuple(
            speaker.at(speaker.found.ops[refusal.op], "note", unseated(refusal))
            for refusal in analysis.refused[-1:]
            if refusal.op in speaker.found.ops
        )
        told = speaker.of_loop("error" if self.strict else "warning", why)
        told = replace(told, notes=notes)
        if self.strict:
            return [told]
        tell(told)
        return []

    def _scheduled(self, speaker: Speaker, analysis: ScheduleAnalysis) -> None:
        assert analysis.ii is not None
        assert analysis.bounds is not None
        speaker.remark(
            "Passed",
            "Scheduled",
            f"scheduled on {analysis.machine}: {verdict(analysis)}",
            II=analysis.ii,
            MII=analysis.bounds.mii,
            Limiter=limit(analysis.bounds.witness),
            Stages=analysis.stage_count,
            Generator=analysis.generator,
            Machine=analysis.machine,
            Proof=analysis.proof.method if analysis.proof is not None else "none",
        )


def refused(speaker: Speaker, refusal: Refusal) -> None:
    """A remark on an II that was refused, at the operation that found no seat."""
    numbers: dict[str, int | str] = {"II": refusal.ii}
    if refusal.last > refusal.ii:
        numbers["Through"] = refusal.last
    numbers |= {name.capitalize(): text for name, text in sought(refusal)}
    numbers |= {"Rung": refusal.rung} if refusal.rung else {}
    numbers["Proved"] = "yes" if refusal.proved else "no"
    place = speaker.found.ops.get(refusal.op)
    speaker.remark("Missed", "Refused", f"II {refusal.ii}: {refusal.reason}", place, **numbers)


# In words ---------------------------------------------------------------------------------


def verdict(analysis: ScheduleAnalysis) -> str:
    """The II, what limits it, and how it was found."""
    bounds, proof = analysis.bounds, analysis.proof
    assert bounds is not None
    if analysis.ii == bounds.mii:
        text = at_the_mii(bounds)
    else:
        proved = "proved optimal" if proof is not None and proof.optimal else "not proved optimal"
        text = f"II {analysis.ii}, {proved}; {the_mii(bounds)}"
    stages = counted(analysis.stage_count, "stage")
    return f"{text}; {stages}, {analysis.generator} ({analysis.rule})"


def unseated(refusal: Refusal) -> str:
    """Where an operation was sought in vain, and what stood there."""
    told = "; ".join(f"{name} {text}" for name, text in sought(refusal) if name != "operation")
    return f"`{refusal.op}` at II {refusal.ii}: {told}"


def why_not(analysis: ScheduleAnalysis) -> str:
    """Why there is no schedule: the last II that was refused, and what limits the loop."""
    bounds, refused = analysis.bounds, analysis.refused
    by = "" if bounds is None else limit(bounds.witness)
    limited = f"; the loop is limited by {by}" if by else ""
    if not refused:
        return no_schedule() + limited
    last = max(refused, key=lambda refusal: refusal.last)
    told = f"{no_schedule(refused)}: {last.reason}"
    return told if by in last.reason else told + limited
