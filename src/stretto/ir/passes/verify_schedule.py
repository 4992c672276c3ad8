"""`tileas-verify-schedule`: is what stands on the loops a legal schedule?

    attributes ──► analysis ──► stretto.verify ──► nothing to say, or every violation at its place

It reads attributes alone, so it judges a schedule made by hand, by another tool or by
`tileas-generate-schedule` all the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from stretto.diagnostics import Diagnostic
from stretto.errors import StrettoError
from stretto.ir.loops import read_loops
from stretto.ir.passes.published import PublishedLoop, published_loops, published_on
from stretto.ir.telling import PassError, check_options, parsed_of, tell, tell_left_alone
from stretto.machine import load_machine
from stretto.resources.prepare import prepare
from stretto.solution import ScheduleAnalysis, counted
from stretto.verification import verify


@dataclass(frozen=True)
class VerifySchedule(ModulePass):
    """Verify the schedules that stand on loops as attributes; change nothing."""

    name = "tileas-verify-schedule"

    machine: str | None = None
    """A machine's name, or the path of a TOML file; else the one the schedule names."""
    max_stages: int | None = None

    def __post_init__(self) -> None:
        check_options(self.machine, max_stages=self.max_stages)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Verify every schedule of a module."""
        del ctx
        machine = None if self.machine is None else load_machine(self.machine)
        parsed = parsed_of(op)
        loops = read_loops(parsed, machine)
        errors = tell_left_alone(self.name, loops, lambda one: bool(published_on(one.op)))
        for found in published_loops(self.name, parsed, loops, machine):
            errors += self._verify(found)
        if errors:
            raise PassError(errors)

    def _verify(self, found: PublishedLoop) -> list[Diagnostic]:
        """What is wrong with the schedule of one loop."""
        speaker, analysis = found.speaker, found.analysis
        for warning in found.warnings:
            tell(warning)
        if analysis is None and not found.faults:
            why = "it has no schedule to verify"
            speaker.remark("Missed", "LeftAlone", f"left alone: {why}")
            tell(speaker.of_loop("warning", why))
            return []
        told = list(found.faults) if analysis is None else self._violations(found, analysis)
        if told:
            message = f"not legal, {counted(len(told), 'error')}: {told[0].message}"
            speaker.remark("Failure", "Illegal", message, Errors=len(told))
        elif analysis is not None and analysis.ii is not None:
            message = f"legal on {found.machine.name}: II {analysis.ii}"
            speaker.remark("Passed", "Legal", message, II=analysis.ii)
        return told

    def _violations(self, found: PublishedLoop, analysis: ScheduleAnalysis) -> list[Diagnostic]:
        try:
            ready = prepare(found.loop, found.machine)
        except StrettoError as error:
            return found.speaker.error(error)
        told = verify(ready.loop, ready.machine, analysis, max_stages=self.max_stages)
        return [found.diagnose(violation) for violation in told]
