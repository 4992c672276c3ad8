"""The loops of a module with the schedules that stand on them.

module ──► loop, the machine its schedule names, analysis     or the faults of its attributes
                                                    └── None: nothing of a schedule is there
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from stretto.errors import StrettoError
from stretto.ir.diagnostics import Diagnostic, MlirError
from stretto.ir.parsing import Parsed, parse_module
from stretto.ir.passes.publish import MACHINE, published_on
from stretto.ir.passes.published import published
from stretto.ir.passes.telling import Speaker
from stretto.ir.reading import LoopInModule, LoopsOfModule, read_loops
from stretto.loop import Loop
from stretto.machine import Machine, load_machine, machine_beside
from stretto.solution import ScheduleAnalysis
from stretto.verify import Violation


@dataclass(frozen=True)
class PublishedLoop:
    """A loop and what is written on it."""

    speaker: Speaker
    """Of the loop as it is on the machine that counts."""
    analysis: ScheduleAnalysis | None
    """None: nothing of a schedule is written there, or it cannot be read."""
    faults: tuple[Diagnostic, ...] = ()

    @property
    def loop(self) -> Loop:
        """The loop, not yet classified."""
        return self.speaker.found.loop

    @property
    def machine(self) -> Machine:
        """The machine asked for, else the one the schedule names, else the loop's own."""
        return self.speaker.found.machine

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What was noted while the loop was read."""
        return self.speaker.found.warnings

    def diagnose(self, violation: Violation) -> Diagnostic:
        """A violation of this schedule, at its place in the text."""
        if self.analysis is None:
            raise ValueError(f"`{self.loop.name}` has no schedule to violate a rule")
        return self.speaker.violation(self.analysis, violation)


def read_schedules(
    file: str, text: str, machine: Machine | str | None = None
) -> tuple[PublishedLoop, ...]:
    """The loops of an MLIR text with their schedules; MlirError with every fault.

    A loop that cannot be read is a fault when it has a schedule, and left out when it has none.
    """
    parsed = parse_module(text, file)
    target = load_machine(machine) if isinstance(machine, str) else machine
    loops = read_loops(parsed, target)
    faults = [
        replace(one.reason, severity="error") for one in loops.left_alone if published_on(one.op)
    ]
    found = tuple(published_loops("verify", parsed, loops, target))
    faults += [fault for one in found for fault in one.faults]
    if faults:
        raise MlirError(faults)
    return found


def published_loops(
    pass_name: str, parsed: Parsed, loops: LoopsOfModule, machine: Machine | None
) -> Iterator[PublishedLoop]:
    """Loop by loop what is written on it; `machine` stands above what schedules name."""
    others = _Others(parsed)
    for found in loops.loops:
        speaker = Speaker(pass_name, parsed, found)
        if not published_on(found.for_op):
            yield PublishedLoop(speaker, None)
            continue
        try:
            analysis = published(speaker)
            if machine is None:
                speaker = replace(speaker, found=others.on(speaker, analysis.machine))
        except MlirError as error:
            yield PublishedLoop(speaker, None, error.diagnostics)
        else:
            yield PublishedLoop(speaker, analysis)


@dataclass
class _Others:
    """A module as it reads on other machines: how long an inner loop takes depends on that."""

    parsed: Parsed
    read: dict[str, LoopsOfModule] = field(default_factory=dict[str, LoopsOfModule])

    def on(self, speaker: Speaker, name: str) -> LoopInModule:
        """A loop on the machine its schedule names.

        A machine that has the name already is kept: it may come from a file of another name.
        """
        found = speaker.found
        if name in ("", found.machine.name):
            return found
        if name not in self.read:
            try:
                beside = machine_beside(self.parsed.source.file, name)
                self.read[name] = read_loops(self.parsed, load_machine(beside))
            except StrettoError as error:
                told = speaker.at(found.for_op, "error", str(error), attribute=MACHINE)
                raise MlirError([told]) from None
        for again in self.read[name].loops:
            if again.for_op is found.for_op:
                return again
        why = [one.reason for one in self.read[name].left_alone if one.op is found.for_op]
        raise MlirError([replace(reason, severity="error") for reason in why])
