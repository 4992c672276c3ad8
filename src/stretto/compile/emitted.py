"""A kernel as it is emitted: source, and the schedules that it runs by."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log
from typing import TYPE_CHECKING, Any, Literal

from stretto.compile.overlap import Overlap, overlap_of
from stretto.compile.scheduled import ScheduledLoop
from stretto.emission import Emitted
from stretto.kernel import Kernel
from stretto.materialization import Program
from stretto.ops.spaces import STAGING
from stretto.program.builder import Looped

if TYPE_CHECKING:
    from stretto.prediction.kernel_time import Pace
    from stretto.prediction.running import Assembled, Subject

EmitMode = Literal["specialized", "unspecialized"]
SCHEMA = "stretto.emitted/1"
TOLD = 0.01
"""Of a predicted pace or an II: what two kernels differ by at least before one is said to be
faster; each stage more holds registers for longer."""


@dataclass(frozen=True)
class EmittedKernel:
    """Source, and the schedules that it runs by."""

    emitted: Emitted
    analyses: tuple[ScheduledLoop, ...]
    consumers: int
    mode: EmitMode
    notes: tuple[str, ...] = ()
    kernel: Kernel | None = field(default=None, repr=False, compare=False)
    """Lowered, as it was emitted."""
    looped: tuple[Looped, ...] = field(default=(), repr=False, compare=False)
    """Its loops, in their order."""
    over: int = 0
    """Registers of a thread that are too many, by our count."""
    pace: Pace | None = field(default=None, repr=False, compare=False)
    """Where threads load: how fast that is predicted to be."""
    registers: int | None = field(default=None, repr=False, compare=False)
    """Of a thread, where the assembler was asked."""
    assembled: Assembled | None = field(default=None, repr=False, compare=False)
    """What else the assembler made of it, where it was asked for all."""
    stopped: bool = False
    """Whether a time limit came before all was tried."""
    machine: str = ""
    machine_why: str = ""
    """Why it is emitted for this machine."""

    @property
    def subject(self) -> Subject:
        """What is predicted of it."""
        from stretto.prediction.running import Subject  # noqa: PLC0415 - where it is predicted

        assert self.kernel is not None
        made = self.emitted
        return Subject(
            self.kernel, made, self.programs, made.rings, self.registers, self.assembled,
            self.consumers, self.mode,
        )  # fmt: skip

    @property
    def programs(self) -> tuple[Program, ...]:
        """Of its loops, in their order."""
        return tuple(loop.program for loop in self.looped)

    @property
    def overlap(self) -> Overlap:
        """What of it runs beside something else; nothing if empty."""
        return overlap_of(self.looped, self.analyses, self.mode == "specialized")

    @property
    def slots(self) -> int:
        """Of the longest ring in shared memory, by its schedules alone."""
        uses = [use for analysis in self.analyses for use in analysis.storages]
        return max((use.ring_depth for use in uses if use.space == STAGING), default=0)

    @property
    def source(self) -> str:
        """The Gluon source."""
        return self.emitted.source

    def to_text(self) -> list[str]:
        """The source, line by line."""
        return self.source.rstrip("\n").split("\n")

    def to_mlir(self) -> str:
        """The program, of which the source is one spelling, as a module: `emit` prints it alike."""
        from stretto.ir.kernel_programs import kernel_program_text  # noqa: PLC0415 - where asked

        return kernel_program_text(self.emitted.program)

    def to_json(self) -> dict[str, Any]:
        """For programs: the source, and what it was made by."""
        made = self.emitted
        return {
            "schema": SCHEMA,
            "success": True,
            "kernel": made.name,
            "machine": self.machine,
            "machine_why": self.machine_why,
            "mode": self.mode,
            "consumers": self.consumers,
            "warps": made.warps,
            "maxnreg": made.maxnreg,
            "bytes": made.smem,
            "rings": dict(made.rings),
            "loops": [
                {"name": a.loop, "ii": a.ii, "stage_count": a.stage_count} for a in self.analyses
            ],
            "source": self.source,
            "notes": list(self.notes),
            "stopped": self.stopped,
        }

    @property
    def length(self) -> int:
        """Cycles an iteration, of all its loops."""
        return sum(analysis.ii or 0 for analysis in self.analyses)

    @property
    def order(self) -> tuple[float, ...]:
        """What is smaller is faster: the pace where threads load, and at one pace loops that go on,
        by their II, before those that are drained, by blocks that an SM has, whose rows share its
        cache, and then by what they have to spare; else the II, at one II stages, and consumers."""
        if self.pace is None:
            stages = max((a.stage_count or 0 for a in self.analyses), default=0)
            return round(log(max(1, self.length)) / TOLD), stages, self.length, -self.consumers
        first = round(log(self.pace.cycles) / TOLD)
        if not any(loop.drained for loop in self.looped):
            return first, False, self.length
        return first, True, self.pace.resident, self.pace.alone

    def fits(self, consumers: int, stages: int) -> bool:
        """Whether it has so many consumers, and no loop of it more stages."""
        most = max((a.stage_count or 0 for a in self.analyses), default=0)
        return self.consumers == consumers and most <= stages

    @property
    def short(self) -> bool:
        """Whether no loop can be shorter, by its bounds."""
        return all(a.bounds is not None and (a.ii or 0) <= a.bounds.mii for a in self.analyses)

    @property
    def schedules(self) -> tuple[object, ...]:
        """What tells it from another of the same kernel."""
        drained = tuple(loop.drained for loop in self.looped)
        return self.consumers, tuple((a.ii, a.starts) for a in self.analyses), drained
