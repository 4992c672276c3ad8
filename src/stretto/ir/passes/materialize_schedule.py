"""`tileas-materialize-schedule`: scheduled loops become pipelined programs.

    scf.for ... {nv_tile.aws.*}   ──►   nv_tileas.async.pipeline.program { ... }

unspecialized: prologue, kernel and epilogue in one stream. specialized: a region an agent. A loop
over work tiles around it gets a wider index. The schedule is verified first, and nothing is
searched: a loop without a schedule is left alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.scf import ForOp
from xdsl.passes import ModulePass

from stretto.diagnostics import Diagnostic, MlirError
from stretto.errors import StrettoError
from stretto.ir.loops import read_loops
from stretto.ir.loops.module import ANY
from stretto.ir.passes.published import PublishedLoop, published_loops, published_on, withdraw
from stretto.ir.programs import replace_loop
from stretto.ir.programs.original import Original, UnwritableError
from stretto.ir.programs.work_tiles import describe, persistent_loop, widen
from stretto.ir.telling import (
    MOST_NOTES,
    PassError,
    check_options,
    parsed_of,
    tell,
    tell_left_alone,
)
from stretto.machine import load_machine
from stretto.materialization import MODES, Persistent, Program, materialize
from stretto.resources.prepare import prepare
from stretto.solution import ScheduleAnalysis, counted
from stretto.verification import TRUSTED, Violation, verify


@dataclass(frozen=True)
class MaterializeSchedule(ModulePass):
    """Turn loops with a schedule into pipelined programs."""

    name = "tileas-materialize-schedule"

    mode: str = "unspecialized"
    """``unspecialized``: one stream; ``specialized``: a stream an agent."""
    machine: str | None = None
    """A machine's name, or the path of a TOML file; else the one the schedule names."""
    simt_groups: int = 1
    """How many agents share the SIMT work of a specialized program."""
    trust_schedule: bool = False
    """Schedules that the machine model refuses are checked for dependences and storages only."""

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ValueError(f"mode is {self.mode}; known: {', '.join(MODES)}")
        check_options(self.machine, simt_groups=self.simt_groups)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Materialize every schedule of a module."""
        del ctx
        machine = None if self.machine is None else load_machine(self.machine)
        parsed = parsed_of(op)
        loops = read_loops(parsed, machine)
        errors = tell_left_alone(self.name, loops, lambda one: bool(published_on(one.op)))
        todo: list[tuple[PublishedLoop, Original, Program]] = []
        for found in published_loops(self.name, parsed, loops, machine, self.trust_schedule):
            made = self._program(found, errors)
            if made is not None:
                todo.append((found, *made))
        for found, original, program in todo:
            errors += self._replace(found, original, program)
        if errors:
            raise PassError(errors)

    # From a schedule to a program -------------------------------------------------------------

    def _program(
        self, found: PublishedLoop, errors: list[Diagnostic]
    ) -> tuple[Original, Program] | None:
        """The program of one loop; None where there is none, which is told."""
        speaker, analysis = found.speaker, found.analysis
        for warning in found.warnings:
            tell(warning)
        if analysis is None:
            if not found.faults:
                self._left_alone(found, "it has no schedule to materialize")
            errors += found.faults
            return None
        loop = speaker.found.for_op
        if not isinstance(loop, ForOp):
            why = "nothing goes round, so its schedule is its order; there is no program to make"
            speaker.remark("Missed", "LeftAlone", f"left alone: {why}")
            return None
        try:
            return self._materialize(found, loop, analysis, errors)
        except UnwritableError as error:
            note = speaker.at(error.op, "note", error.reason)
            self._left_alone(found, f"it cannot be written as a program: {error.reason}", note)
            withdraw(speaker.found.for_op)
        except StrettoError as error:
            told = speaker.error(error)
            speaker.remark("Failure", "Illegal", f"not materialized: {told[0].message}")
            errors += told
        return None

    def _materialize(
        self,
        found: PublishedLoop,
        loop: ForOp,
        analysis: ScheduleAnalysis,
        errors: list[Diagnostic],
    ) -> tuple[Original, Program] | None:
        persistent = self._persistent(found)
        ops = found.speaker.found.ops
        ready = prepare(found.loop, found.machine)
        violations = verify(ready.loop, ready.machine, analysis)
        if self.trust_schedule and violations:
            # Of which machine it is said to be is no matter of dependences.
            analysis = replace(analysis, machine="")
            violations = self._trusted(found, verify(ready.loop, ready.machine, analysis))
        if violations:
            told = [found.diagnose(violation) for violation in violations]
            message = f"not materialized, the schedule is not legal: {told[0].message}"
            found.speaker.remark("Failure", "Illegal", message, Errors=len(told))
            errors += told
            return None
        original = Original(loop, ops, ready.loop, buffers=found.speaker.found.buffers)
        program = materialize(
            ready.loop,
            ready.machine,
            analysis,
            "specialized" if self.mode == "specialized" else "unspecialized",
            simt_groups=self.simt_groups,
            persistent=persistent,
            trusted=self.trust_schedule,
        )
        return original, program

    def _trusted(
        self, found: PublishedLoop, violations: tuple[Violation, ...]
    ) -> tuple[Violation, ...]:
        """What forbids a schedule that is trusted; of what else the machine refuses, a warning."""
        wrong = tuple(v for v in violations if v.rule in TRUSTED)
        others = [found.diagnose(v) for v in violations if v.rule not in TRUSTED]
        if others and not wrong:
            told = f"{found.machine.name} refuses the schedule, {counted(len(others), 'violation')}"
            message = f"materialized on trust; {told}: {others[0].message}"
            notes = tuple(replace(one, severity="note") for one in others[:MOST_NOTES])
            tell(replace(found.speaker.of_loop("warning", message), notes=notes))
            found.speaker.remark("Passed", "Trusted", message, Violations=len(others))
        return wrong

    def _persistent(self, found: PublishedLoop) -> Persistent | None:
        """The loop over work tiles around a loop; MlirError where its shapes are wrong."""
        outer = persistent_loop(found.speaker.found.for_op)
        if outer is None:
            return None
        said = describe(*outer)
        told = f"{found.loop.name}: the schedule is invalid"
        wrong = [found.speaker.at(outer[1], "error", f"{told}: {f}") for f in said.check()]
        if wrong:
            raise MlirError(wrong)
        return said

    def _left_alone(self, found: PublishedLoop, why: str, *notes: Diagnostic) -> None:
        found.speaker.remark("Missed", "LeftAlone", f"left alone: {why}")
        told = found.speaker.of_loop("warning", why)
        tell(replace(told, notes=notes))

    # Into the module --------------------------------------------------------------------------

    def _replace(
        self, found: PublishedLoop, original: Original, program: Program
    ) -> list[Diagnostic]:
        loop = original.for_op
        persistent = persistent_loop(loop)
        outer = [at for at in ANY.around(loop) if isinstance(at, ForOp)]
        self._materialized(found, program)
        try:
            replace_loop(original, program)
        except UnwritableError as error:
            return [found.speaker.at(error.op, "error", f"{program.loop.name}: {error.reason}")]
        for enclosing in outer:
            # Its schedule was one of a loop that is no more.
            withdraw(enclosing)
        if persistent is not None:
            widen(*persistent)
        return []

    def _materialized(self, found: PublishedLoop, program: Program) -> None:
        agents = len(program.agents)
        pipes, mutexes = len(program.pipes), len(program.mutexes)
        told = [
            counted(program.stage_count, "stage"),
            counted(agents, "agent"),
            counted(pipes, "pipe"),
            counted(mutexes, "mutex", "mutexes"),
        ]
        message = f"materialized, {program.mode}: II {program.ii}, {', '.join(told)}"
        found.speaker.remark(
            "Passed",
            "Materialized",
            message,
            Mode=program.mode,
            II=program.ii,
            Stages=program.stage_count,
            Agents=agents,
            Pipes=pipes,
            Mutexes=mutexes,
        )
