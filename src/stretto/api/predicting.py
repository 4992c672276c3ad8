"""How fast a kernel will be, before anybody runs it; and which of many will be fastest.

kernel, grid, arguments ──► emitted ──► each agent in program order ──► cycles, time, bound
kernels × depths × consumers ─────────► the same for all ───────────► ranked
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from typing import Any

from stretto.api.emitting import EmitMode, EmittedKernel, Emitter
from stretto.emit.gluon.tracing import traced
from stretto.errors import StrettoError
from stretto.kernel import Kernel
from stretto.machine import Machine
from stretto.predict.measured import Measured, beside, read_trace
from stretto.predict.numbers import Number
from stretto.predict.prediction import Prediction
from stretto.predict.running import StuckError, Subject
from stretto.predict.whole import predict_whole, watch_whole
from stretto.report.measured import measured_to_json, measured_to_text
from stretto.report.prediction import (
    prediction_to_text,
    ranking_to_json,
    ranking_to_text,
)

DEPTHS = (1, 2, 3, 4, 5, 6)
"""Ring depths that a what-if asks about."""
SPILLS = 1.25
"""By how much a kernel is set back in a ranking whose registers are too many by our count."""

Given = Mapping[str, Number | tuple[int, ...]]
Problem = tuple[str | PathLike[str] | Kernel, Sequence[int]]
"""A kernel and its grid."""


@dataclass(frozen=True)
class PredictResult:
    """A kernel as it is emitted, and what is predicted of it."""

    name: str
    """The file, or the kernel's own name."""
    depth: int | None
    """Most slots of a ring that were asked for."""
    prediction: Prediction
    made: EmittedKernel
    measured: Measured | None = None
    """Waits as they were measured, beside what was predicted of them."""

    @property
    def worth(self) -> tuple[float, int, int]:
        """What is ranked by: time, then registers that are too many, then shared memory."""
        setback = SPILLS if self.prediction.spills else 1.0
        return self.prediction.seconds * setback, self.made.over, self.made.emitted.smem

    def to_text(self) -> list[str]:
        """For people."""
        lines = prediction_to_text(self.name, self.prediction)
        if self.measured is not None:
            lines += ["", *measured_to_text(self.measured)]
        return lines

    def to_json(self) -> dict[str, Any]:
        """For programs: a ranking of one."""
        found = ranking_to_json([(self.name, self.prediction)], ())
        if self.measured is not None:
            found["predictions"][0]["measured"] = measured_to_json(self.measured)
        return found


@dataclass(frozen=True)
class RankResult:
    """Configurations of one problem, the fastest first."""

    found: tuple[PredictResult, ...]
    refused: tuple[str, ...] = ()
    """Configurations that cannot be, each with the reason."""

    @property
    def best(self) -> PredictResult:
        """The first."""
        return self.found[0]

    def to_text(self) -> list[str]:
        """For people: the first in full, then all as a table."""
        rows = [(one.name, one.prediction) for one in self.found]
        return [*self.best.to_text(), "", *ranking_to_text(rows, self.refused)]

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        rows = [(one.name, one.prediction) for one in self.found]
        return ranking_to_json(rows, self.refused)


def predict(
    kernel: str | PathLike[str] | Kernel,
    machine: Machine | str | None = None,
    *,
    grid: Sequence[int],
    arguments: Given | None = None,
    clock: float | None = None,
    mode: EmitMode | None = None,
    consumers: int | None = None,
    depth: int | None = None,
    seed: int = 0,
    measured: str | PathLike[str] | None = None,
) -> PredictResult:
    """How long a kernel takes on a grid: the fastest of those that `emit` may choose among.

    `arguments` are the numbers that it is launched with, by name, and shapes of its tensors where
    its trip counts follow from them. `clock` is in MHz; left out, the one of the machine while all
    its SMs are busy.

    `measured` is a file that `write_trace` of a kernel left that was emitted with clocks in it, by
    the same options: that kernel is predicted, and its waits are set beside those that were
    measured.
    """
    if measured is not None:
        return _beside(
            Emitter(kernel, machine, mode=mode, seed=seed, tracing="marks"),
            fspath(kernel) if not isinstance(kernel, Kernel) else kernel.name,
            (consumers, depth),
            (tuple(grid), arguments or {}, clock),
            fspath(measured),
        )
    emitter = Emitter(kernel, machine, mode=mode, seed=seed)
    name = emitter.name if isinstance(kernel, Kernel) else fspath(kernel)
    made = emitter.candidates(consumers, depth)
    found, stuck = _predicted(name, made, emitter.machine, grid, arguments or {}, clock, depth)
    if not found:
        raise stuck[0]
    return min(found, key=lambda one: one.worth)


def rank(
    problems: Iterable[Problem],
    machine: Machine | str | None = None,
    *,
    arguments: Given | None = None,
    clock: float | None = None,
    mode: EmitMode | None = None,
    consumers: Sequence[int] | None = None,
    depths: Sequence[int | None] = DEPTHS,
    effort: str = "quick",
) -> RankResult:
    """Kernels, each with its grid, at all depths and numbers of consumers, the fastest first.

    StrettoError where none of them can be.
    """
    found: dict[str, PredictResult] = {}
    refused: list[str] = []
    first: StrettoError | None = None
    for kernel, grid in problems:
        emitter = Emitter(kernel, machine, mode=mode, effort=effort)
        name = emitter.name if isinstance(kernel, Kernel) else fspath(kernel)
        for count in consumers or emitter.counts:
            for depth in depths:
                try:
                    made = emitter.candidates(count, depth)
                    several, stuck = _predicted(
                        name, made, emitter.machine, grid, arguments or {}, clock, depth
                    )
                except StrettoError as error:
                    first = first or error
                    refused.append(f"{name} with rings of {depth}, {count} consumers: {error}")
                    continue
                refused += [f"{name} with rings of {depth}: {error}" for error in stuck]
                for one in several:
                    found.setdefault(one.made.source, one)
    if not found:
        raise first or StrettoError("there is no kernel to rank")
    return RankResult(tuple(sorted(found.values(), key=lambda one: one.worth)), tuple(refused))


def _beside(
    emitter: Emitter,
    name: str,
    asked: tuple[int | None, int | None],
    launched: tuple[tuple[int, ...], Given, float | None],
    file: str,
) -> PredictResult:
    """The kernel that a trace is of, and its waits beside what was predicted of them."""
    trace = read_trace(file)
    made = emitter.candidates(*asked)
    same = [one for one in made if traced(one.source) == trace.traced]
    if not same:
        told = f"is of a source that none of {len(made)} here is"
        hint = "give what `stretto emit --trace` was given: --consumers, --depth, --mode, --seed"
        raise trace.at.fail(told, hint)
    (one,) = same[:1]
    grid, given, clock = launched
    found, stuck = _predicted(name, [one], emitter.machine, grid, given, clock, asked[1])
    if not found:
        raise stuck[0]
    assert one.kernel is not None
    subject = Subject(one.kernel, one.emitted, one.programs, one.emitted.rings)
    watched = watch_whole(subject, emitter.machine, grid, given, clock)
    return replace(found[0], measured=beside(trace, subject, watched))


def _predicted(
    name: str,
    made: Sequence[EmittedKernel],
    machine: Machine,
    grid: Sequence[int],
    given: Given,
    clock: float | None,
    depth: int | None,
) -> tuple[list[PredictResult], list[StuckError]]:
    found: list[PredictResult] = []
    stuck: list[StuckError] = []
    for one in made:
        assert one.kernel is not None
        subject = Subject(one.kernel, one.emitted, one.programs, one.emitted.rings)
        try:
            prediction = predict_whole(subject, machine, tuple(grid), given, clock)
        except StuckError as error:
            stuck.append(error)
            continue
        told = replace(prediction, spills=one.over > 0)
        found.append(PredictResult(name, depth, told, one))
    return found, stuck
