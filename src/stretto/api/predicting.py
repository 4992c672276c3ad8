"""How fast a kernel will be, before anybody runs it; and which of many will be fastest.

kernel, grid, arguments ──► emitted ──► each agent in program order ──► cycles, time, bound
kernels × depths × consumers ─────────► the same for all ───────────► ranked
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf, prod
from os import PathLike, fspath
from typing import Any

from stretto.api.kernels import kernel_given
from stretto.api.solving import result_of, whole_document
from stretto.compile.candidates import Emitter
from stretto.compile.choice import Assemble, assembled, chosen, require, settled
from stretto.compile.emitted import EmitMode, EmittedKernel
from stretto.compile.loop_schedules import Known
from stretto.emission import EmitError
from stretto.emission.gluon.tracing import traced
from stretto.errors import StrettoError
from stretto.kernel import Kernel, Operation
from stretto.kernel.configuration import DEFAULT, Blocks
from stretto.kernel.lowering.written import TILE_COUNT
from stretto.kernel.tree import kind_of
from stretto.kinds import checked
from stretto.machine import Machine, load_machine
from stretto.prediction.floor import floor_of
from stretto.prediction.kernel_time import predict_kernel, predict_stock, watch_kernel
from stretto.prediction.measured import Measured, beside, read_trace
from stretto.prediction.numbers import Number
from stretto.prediction.prediction import Prediction
from stretto.prediction.stock import Stock
from stretto.prediction.timings import timings_of
from stretto.report import notes
from stretto.report.measured import measured_to_json, measured_to_text, timeline_to_json
from stretto.report.prediction import (
    Told,
    prediction_to_text,
    ranking_to_json,
    ranking_to_text,
    stock_to_json,
    stock_to_text,
)
from stretto.solution import counted

DEPTHS = (1, 2, 3, 4, 5, 6)
"""Ring depths that a what-if asks about."""
SPILLS = 1.25
"""By how much a kernel is set back in a ranking whose registers are too many by our count."""

ASSEMBLED = 6
"""Of a ranking: the first, of which the assembler is asked at most."""
NEAR = 1.2
"""Of the time of the first, by what is known by then: up to which it is asked."""

QUICK = (
    "a ranking schedules each configuration with little effort; for one of them, `predict` without "
    "`--what-if` and `emit` spend more, and may come to another II, and to rings of other depths"
)
"""Why a ranking and a prediction of the same configuration differ."""

Given = Mapping[str, Number | tuple[int, ...]]
Problem = tuple[str | PathLike[str] | Kernel, Sequence[int]]
"""A kernel and its grid."""
_Shared = dict[Operation, float]
"""By how many blocks each copy of a kernel is shared, on one grid."""


@dataclass(frozen=True)
class KernelPrediction:
    """A kernel as it is emitted, and what is predicted of it."""

    name: str
    """The file, or the kernel's own name."""
    depth: int | None
    """Most slots of a ring that were asked for."""
    prediction: Prediction
    made: EmittedKernel
    blocks: Blocks = DEFAULT.blocks
    """Whose blocks these are: those of the launch, or as many as there are SMs."""
    measured: Measured | None = None
    """Waits as they were measured, beside what was predicted of them."""
    stock: Prediction | None = None
    """Triton's own kernel of the same source, where its machine code is at hand and recognized."""

    @property
    def worth(self) -> tuple[float, int, int]:
        """What is ranked by: time, then registers that are too many, then shared memory."""
        seconds = self.prediction.seconds * self.told.setback
        return seconds, self.made.over, self.made.emitted.smem

    @property
    def told(self) -> Told:
        """What a report tells."""
        setback = SPILLS if self.prediction.spills else 1.0
        name = self.name if self.blocks == DEFAULT.blocks else f"{self.name} {self.blocks}"
        return Told(name, self.prediction, self.made.machine_why, setback)

    def to_text(self) -> list[str]:
        """For people."""
        lines = prediction_to_text(self.told)
        if self.stock is not None:
            lines += ["", *stock_to_text(self.prediction, self.stock)]
        if self.measured is not None:
            lines += ["", *measured_to_text(self.measured)]
        return lines

    def to_document(self) -> dict[str, Any]:
        """For the viewer: schedules of its loops, what is predicted, what was measured."""
        document = whole_document([*map(result_of, self.made.analyses)])
        if self.measured is not None:
            first = document["loops"][0]
            steady = first["ii"] * (first["stage_count"] - 1)
            first["measured"] = timeline_to_json(self.measured, steady)
        return document | {"prediction": self.to_json()}

    def to_json(self) -> dict[str, Any]:
        """For programs: a ranking of one."""
        found = ranking_to_json([self.told], ())
        if self.stock is not None:
            found["predictions"][0]["stock"] = stock_to_json(self.stock)
        if self.measured is not None:
            found["predictions"][0]["measured"] = measured_to_json(self.measured)
        return found


@dataclass(frozen=True)
class KernelRanking:
    """Configurations of one problem, the fastest first."""

    found: tuple[KernelPrediction, ...]
    refused: tuple[str, ...] = ()
    """Configurations that cannot be, each with the reason."""
    skipped: int = 0
    """Configurations that were not looked at: their products or copies alone take too long, or
    longer rings are as fast."""
    effort: str = "normal"
    """With how much effort their loops were scheduled; `emit` schedules with ``normal``."""

    @property
    def best(self) -> KernelPrediction:
        """The first."""
        return self.found[0]

    def to_text(self) -> list[str]:
        """For people: the first in full, then all as a table."""
        rows = [one.told for one in self.found]
        lines = [*self.best.to_text(), "", *ranking_to_text(rows, self.refused)]
        if self.skipped:
            lines.append(f"{self.skipped} more are no faster by their bounds or by longer rings")
        return lines + notes([QUICK] if self.effort == "quick" else [])

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return ranking_to_json([one.told for one in self.found], self.refused)

    def to_document(self) -> dict[str, Any]:
        """For the viewer: the first, and what all of them are predicted to take."""
        return self.best.to_document() | {"prediction": self.to_json()}


@checked
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
    assemble: Assemble | None = None,
    max_stages: int | None = None,
) -> KernelPrediction:
    """How long a kernel takes on a grid, as `emit` emits it by the same options.

    `arguments` are the numbers that it is launched with, by name, and shapes of its tensors where
    its trip counts follow from them. `clock` is in MHz; left out, the one of the machine while all
    its SMs are busy.

    `measured` is a file that `write_trace` of a kernel left that was emitted with clocks in it, by
    the same options: that kernel is predicted, and its waits are set beside those that were
    measured.

    `assemble` compiles a kernel (`stretto.launching.compiling.compile_emitted`, which needs Triton
    and no GPU): then the kernel is the one that `emit` takes by the assembler's figures, and loops
    of agents are predicted by their machine code. `max_stages` is the most stages that its loops
    may have.
    """
    kernel = kernel_given(kernel)
    if measured is not None:
        return _beside(
            Emitter(kernel, machine, mode=mode, seed=seed, tracing="marks"),
            kernel if isinstance(kernel, str) else kernel.name,
            (consumers, depth),
            (tuple(grid), arguments or {}, clock),
            fspath(measured),
        )
    emitter = Emitter(kernel, machine, mode=mode, seed=seed)
    name = kernel if isinstance(kernel, str) else emitter.name
    stages = () if max_stages is None else (max_stages,)
    made = emitter.candidates(consumers, depth, stages=stages, every=False)
    best = chosen(made, emitter.machine, assemble, emitter.otherwise)
    return _predicted(name, best, emitter.machine, grid, arguments or {}, clock, depth)


def beside_stock(
    found: KernelPrediction,
    stock: Stock,
    *,
    arguments: Given | None = None,
    clock: float | None = None,
) -> KernelPrediction:
    """The same with what is predicted of the kernel as Triton itself compiles it, if anything."""
    grid = found.prediction.grid
    machine = load_machine(found.prediction.machine)
    try:
        own = predict_stock(found.made.subject, stock, machine, grid, arguments or {}, clock)
    except StrettoError:
        return found
    return replace(found, stock=replace(own, spilled=stock.spilled, assembled=True))


@checked
def rank(
    problems: Iterable[Problem],
    machine: Machine | str | None = None,
    *,
    arguments: Given | None = None,
    clock: float | None = None,
    mode: EmitMode | None = None,
    consumers: Sequence[int] | None = None,
    depths: Sequence[int | None] = DEPTHS,
    blocks: Sequence[Blocks] = (DEFAULT.blocks,),
    crowded: bool = False,
    effort: str = "quick",
    names: Sequence[str] = (),
    keep: int | None = None,
    assemble: Assemble | None = None,
    settle: int = 0,
) -> KernelRanking:
    """Kernels, each with its grid, at all depths and numbers of consumers, the fastest first.

    `blocks` are the kinds of blocks that are tried; `crowded` tries more consumers than the machine
    has by itself, with fewer registers each. Of each kernel, depth and number of consumers what is
    emitted for them is predicted. `names` are what the kernels are called, where their own names do
    not tell them apart. With `keep`, only so many are wanted, and what cannot be among them by a
    lower bound is not emitted. StrettoError where none of them can be.
    `assemble` compiles kernels, as for `predict`: the first few, which are then ranked by their
    registers and machine code, before all others. `settle` of them are emitted as `emit` does,
    with more effort than is spent on all where a loop could be shorter, and what the assembler
    keeps to is predicted.
    """
    if keep is not None and keep < 1:
        raise StrettoError(f"keep is {keep}; at least 1 is needed")
    if not depths:
        raise StrettoError("depths has no depth; None stands for the depth that `emit` takes")
    problems, names = list(problems), list(names)
    if names and len(names) != len(problems):
        raise StrettoError(f"{counted(len(problems), 'kernel')} and {len(names)} names")
    ranking = _Ranking(arguments or {}, clock, depths, keep, assemble, settle, effort)
    known: Known = {}
    for number, (given, grid) in enumerate(problems):
        kernel = kernel_given(given)
        for kind in blocks:
            make = partial(Emitter, kernel, machine, mode=mode, blocks=kind, known=known)
            emitter = make(effort=effort)
            name = kernel if isinstance(kernel, str) else emitter.name
            called = names[number] if names else name
            ranking.add(_Candidate(called, kind, make, emitter, grid), consumers)
            if crowded and consumers is None:
                for count in emitter.more:
                    # Each has registers of its own, which the machine then says.
                    one = _Candidate(called, kind, make, make(effort=effort), grid)
                    ranking.add(one, (count,))
    return ranking.found()


@dataclass(frozen=True)
class _Candidate:
    """A kernel of one kind of blocks."""

    name: str
    blocks: Blocks
    make: Callable[..., Emitter]
    """How it is emitted with more effort."""
    emitter: Emitter
    grid: Sequence[int]

    def differs(self, count: int) -> bool:
        """Whether blocks of this kind are others than those of a launch."""
        if self.blocks != "persistent":
            return True
        if prod(self.grid) <= timings_of(self.emitter.machine).sms:
            return False
        kernel = self.emitter.lowered(count).kernel
        return any(kind_of(op).endswith(TILE_COUNT) for op in kernel.walk())


_Open = tuple[float, _Candidate, int, _Shared]
"""What is to be looked at: its floor in seconds, a kernel, consumers, and what it shares."""


class _Ranking:
    """What is to be ranked, and what was found so far."""

    def __init__(
        self,
        given: Given,
        clock: float | None,
        depths: Sequence[int | None],
        keep: int | None,
        assemble: Assemble | None,
        settle: int,
        effort: str,
    ) -> None:
        self._given, self._clock, self._keep = given, clock, keep
        self._assemble = assemble
        self._settle = settle
        self._effort = effort
        # The deepest are the fastest more often than not, and what they do not need others share.
        self._depths = tuple(sorted(depths, key=lambda depth: -depth if depth else -inf))
        self._open: list[_Open] = []
        self._seen: dict[tuple[int, int], list[KernelPrediction]] = {}
        """Of each candidate and number of consumers."""
        self._of: dict[str, _Candidate] = {}
        self._found: dict[object, KernelPrediction] = {}
        self._refused: list[str] = []
        self._first: StrettoError | None = None
        self._skipped = 0
        self._machines: dict[str, Machine] = {}

    def add(self, one: _Candidate, consumers: Sequence[int] | None) -> None:
        """A kernel, once for each number of consumers, with its floor."""
        for count in consumers or one.emitter.counts:
            floor, shared = 0.0, _Shared()
            try:
                if not one.differs(count):
                    continue
                if self._keep is not None:
                    ready = one.emitter.lowered(count)
                    loops = [(loop.operation, loop.wiring.loop) for loop in ready.loops]
                    problem = (one.emitter.machine, one.grid, self._given, self._clock, shared)
                    floor = floor_of(ready.kernel, loops, *problem)
            except StrettoError as error:
                self._refuse(f"{one.name}, {count} consumers", error)
                continue
            self._open.append((floor, one, count, shared))

    def found(self) -> KernelRanking:
        """All of them, or the first that are wanted; those of a small floor are looked at first,
        and where few are wanted, further depths only of those that are near the best."""
        ordered = sorted(self._open, key=lambda one: one[0])
        first, *further = self._depths
        for each in ordered:
            self._look(each, first)
        for each in ordered if further else ():
            for depth in further:
                self._look(each, depth)
        if not self._found:
            raise self._first or StrettoError("there is no kernel to rank")
        best = sorted(self._found.values(), key=lambda one: one.worth)
        if self._assemble is not None:
            best = self._assembled(best, self._assemble)
        kept, refused = tuple(best[: self._keep]), tuple(self._refused)
        return KernelRanking(kept, refused, self._skipped, self._effort)

    def _look(self, each: _Open, depth: int | None) -> None:
        """At a kernel with rings of so many slots."""
        floor, one, count, shared = each
        seen, emitter = self._seen.setdefault((id(one), count), []), one.emitter
        if floor > self._enough() or (self._keep is not None and seen and self._is_needless(seen)):
            self._skipped += 1
            return
        try:
            made = chosen(emitter.candidates(count, depth, every=False), emitter.machine)
            if any(made is other.made for other in seen):
                return
            found = _predicted(
                one.name, made, emitter.machine, one.grid, self._given, self._clock, depth, shared
            )
        except StrettoError as error:
            self._refuse(f"{one.name} with rings of {depth}, {count} consumers", error)
            return
        found = replace(found, blocks=one.blocks)
        seen.append(found)
        self._machines[made.source], self._of[made.source] = emitter.machine, one
        self._found.setdefault((one.name, made.source), found)

    def _is_needless(self, seen: Sequence[KernelPrediction]) -> bool:
        """Whether a kernel that was seen gains nothing by shorter rings: it is far from the best,
        or no more blocks would share an SM by them."""
        least = min(seen, key=lambda one: one.worth).prediction
        return least.seconds > self._near() or least.resident == least.crowd

    def _near(self) -> float:
        """Seconds up to which other depths of a kernel are looked at."""
        best = min((one.worth[0] for one in self._found.values()), default=inf)
        return max(NEAR * best, self._enough() if self._enough() < inf else 0.0)

    def _assembled(
        self, ordered: Sequence[KernelPrediction], assemble: Assemble
    ) -> list[KernelPrediction]:
        """Those that may be the fastest by what the assembler makes of them, then the others."""
        near = [one for one in ordered if one.worth[0] <= NEAR * ordered[0].worth[0]]
        asked = near[:ASSEMBLED]
        found: list[KernelPrediction] = []
        hopeless: list[KernelPrediction] = []
        for number, one in enumerate(asked):
            machine, grid = self._machines[one.made.source], one.prediction.grid
            thorough = number < self._settle and one.made.pace is None and not one.made.short
            if one.worth[0] > NEAR * self._wanted(found):
                hopeless.append(one)
                continue
            of = self._of[one.made.source]
            emitter = of.make()
            try:
                if thorough:
                    made = emitter.candidates(one.made.consumers, one.depth, every=False)
                    known = settled(made, emitter.machine, assemble, emitter.otherwise)
                else:
                    known = assembled(one.made, assemble)
                    require(known, emitter.machine)
            except EmitError as error:
                self._refuse(f"{one.name}, {counted(one.made.consumers, 'consumer')}", error)
                continue
            again = _predicted(one.name, known, machine, grid, self._given, self._clock, one.depth)
            found.append(replace(again, blocks=of.blocks))
        return [*sorted(found, key=lambda one: one.worth), *hopeless, *ordered[len(asked) :]]

    def _wanted(self, found: Sequence[KernelPrediction]) -> float:
        """Seconds of the last that is wanted, of those that were found; no limit where they are
        too few, or all are wanted."""
        if self._keep is None or len(found) < self._keep:
            return inf
        return sorted(one.worth[0] for one in found)[self._keep - 1]

    def _enough(self) -> float:
        """Seconds above which nothing is wanted any more."""
        wanted = self._keep
        if wanted is not None and self._assemble is not None:
            wanted = max(wanted, ASSEMBLED)
        if wanted is None or len(self._found) < wanted:
            return inf
        return sorted(one.worth[0] for one in self._found.values())[wanted - 1]

    def _refuse(self, what: str, error: StrettoError) -> None:
        self._first = self._first or error
        self._refused.append(f"{what}: {error}")


def _beside(
    emitter: Emitter,
    name: str,
    asked: tuple[int | None, int | None],
    launched: tuple[tuple[int, ...], Given, float | None],
    file: str,
) -> KernelPrediction:
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
    found = _predicted(name, one, emitter.machine, grid, given, clock, asked[1])
    subject = one.subject
    watched = watch_kernel(subject, emitter.machine, grid, given, clock)
    return replace(found, measured=beside(trace, subject, watched))


def _predicted(
    name: str,
    made: EmittedKernel,
    machine: Machine,
    grid: Sequence[int],
    given: Given,
    clock: float | None,
    depth: int | None,
    shared: _Shared | None = None,
) -> KernelPrediction:
    prediction = predict_kernel(made.subject, machine, tuple(grid), given, clock, shared)
    if made.assembled is None:
        prediction = replace(prediction, spilled=max(prediction.spilled, made.over))
    return KernelPrediction(name, depth, prediction, made)
