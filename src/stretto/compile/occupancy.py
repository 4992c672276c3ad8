"""Blocks that share an SM: candidates for a launch whose grid and trip counts are known.

    1 block     agents, 240 registers, rings of 8    one prologue after the other
    3 blocks    agents, 136 registers, rings of 3    the others go on while one fills or drains
    4 blocks    one warpgroup, 128 registers         as Triton pipelines

Each has its part of an SM's registers and shared memory, and its schedules keep to that. Which is
the fastest is predicted: loops of a few steps gain by blocks beside them, long ones by agents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf, prod

from stretto.compile.candidates import Emitter
from stretto.compile.choice import Assemble, assembled, require
from stretto.compile.emitted import EmitMode, EmittedKernel
from stretto.deadline import NEVER, Deadline
from stretto.errors import StrettoError
from stretto.extraction.kernels import RunnableKernel
from stretto.kernel import Kernel
from stretto.machine import Machine
from stretto.machine.sharing import shared
from stretto.prediction.kernel_time import predict_kernel
from stretto.prediction.numbers import Number, Numbers, arguments
from stretto.prediction.prediction import Prediction
from stretto.prediction.running import StuckError
from stretto.prediction.timings import timings_of

WAYS: tuple[tuple[EmitMode, int], ...] = (
    ("specialized", 2),
    ("specialized", 3),
    ("unspecialized", 1),
    ("unspecialized", 4),
    ("unspecialized", 8),
)
"""Modes, and blocks that are to fit on an SM."""
STAGES = (3, 2)
"""Stages that are tried: more of them hold more registers and slots."""
SLOTS = 4
"""Of a ring at most: the other blocks of an SM go on where a copy comes late."""


@dataclass(frozen=True)
class Launch:
    """What is known of a launch: its blocks, and the numbers that trip counts follow from."""

    grid: tuple[int, ...]
    given: Mapping[str, Number | tuple[int, ...]] = field(
        default_factory=dict[str, "Number | tuple[int, ...]"]
    )

    def trips(self, ready: RunnableKernel) -> list[int | None]:
        """How often each loop of a lowered kernel goes round in the first block."""
        x, y, z = (*self.grid, 1, 1)[:3]
        maker = {result: op for op in ready.kernel.walk() for result in op.results}
        numbers = Numbers(maker, arguments(ready.kernel, self.given), (x, y, z), (0, 0, 0))
        return [numbers.trips(*loop.operation.operands[:3]) for loop in ready.loops]


@dataclass(frozen=True)
class Candidate:
    """A kernel, and what is predicted of its launch."""

    made: EmittedKernel
    prediction: Prediction


def candidates(
    kernel: Kernel, machine: Machine, launch: Launch, *, seed: int = 0, deadline: Deadline = NEVER
) -> Iterator[EmittedKernel]:
    """Kernels of which several blocks share an SM, as far as the grid has so many."""
    most = -(-prod(launch.grid) // timings_of(machine).sms)
    for mode, blocks in WAYS:
        if blocks > most or deadline.over:
            continue
        emitter = Emitter(kernel, shared(machine, blocks), mode=mode, seed=seed, deadline=deadline)
        with suppress(StrettoError):
            depth = _slots(emitter.lowered(1), launch)
            yield from emitter.candidates(1, depth, None, STAGES)


def _slots(ready: RunnableKernel, launch: Launch) -> int:
    """Slots of a ring: more than loops have trips are never filled, and of each its barriers are
    made one by one before a block begins."""
    trips = [n or 0 for n in launch.trips(ready)]
    top = set(ready.kernel.body.operations)
    if not trips or 0 in trips or any(loop.operation not in top for loop in ready.loops):
        return SLOTS
    return min(SLOTS, max(trips))


# The choice --------------------------------------------------------------------------------------

CLEAN = 3
"""Candidates that run as they were scheduled, by the assembler, after which no more is asked."""
GAIN = 0.97
"""Of the time of the kernel that `emit` takes for any launch: what another must be predicted to
take at most. Blocks that share an SM are no gain where they are about as fast."""


def settled(
    made: EmittedKernel,
    others: Iterable[EmittedKernel],
    machine: Machine,
    launch: Launch,
    assemble: Assemble | None = None,
) -> EmittedKernel:
    """The kernel that is predicted to be the fastest at a launch: `made`, or one of the others.

    With `assemble` only what runs as it was scheduled is taken, or what spills fewer bytes. Where
    `made` itself is not understood by the prediction, the best of the others is taken.
    """
    own, least = None, inf
    try:
        own = _predicted(made, machine, launch)
        least = GAIN * own.prediction.seconds
    except StuckError:
        pass
    except StrettoError as error:  # nobody knows how it runs
        return _noted(made, f"blocks that share an SM were not compared: {error}")
    best, worth = own, (_spills(made), least)
    ranked = _ranked(others, machine, launch)
    clean: list[Candidate] = []
    for one in ranked:
        if len(clean) == CLEAN:
            break
        known = one if assemble is None else _assembled(one, assemble, machine, launch)
        if known is None:
            continue
        clean += [known] if assemble is not None and not _spills(known.made) else []
        if (_spills(known.made), known.prediction.seconds) < worth:
            best, worth = known, (_spills(known.made), known.prediction.seconds)
    if best is None:
        return made
    told = own and own.prediction
    return _noted(best.made, _why(best.prediction, told, len(ranked)))


def _assembled(
    one: Candidate, assemble: Assemble, machine: Machine, launch: Launch
) -> Candidate | None:
    """With the assembler's figures; None where the compiler does not take it."""
    try:
        known = _predicted(assembled(one.made, assemble), machine, launch)
        require(known.made, machine)
    except Exception:  # the compiler's own: another may do
        return None
    return known


def _predicted(made: EmittedKernel, machine: Machine, launch: Launch) -> Candidate:
    return Candidate(made, predict_kernel(made.subject, machine, launch.grid, launch.given))


def _ranked(others: Iterable[EmittedKernel], machine: Machine, launch: Launch) -> list[Candidate]:
    """Those that can be predicted, the fastest first."""
    found: dict[str, Candidate] = {}
    for one in others:
        with suppress(StrettoError):
            found.setdefault(one.source, _predicted(one, machine, launch))
    return sorted(found.values(), key=lambda one: one.prediction.seconds)


def _spills(made: EmittedKernel) -> int:
    """Bytes that are spilled, and one where it does not run as it was scheduled."""
    seen = made.assembled
    return 0 if seen is None or seen.clean else seen.spilled + 1


def _why(best: Prediction, own: Prediction | None, others: int) -> str:
    """What was chosen, with the figures."""
    told = f"{_blocks(best)} an SM, {best.mode}: predicted {best.seconds * 1e6:.3g} µs"
    part = f"{best.fill:,.0f} of {best.block:,.0f} cycles of a block are not the steady loop's"
    if best is own:
        return f"{told}, none of {others} others less; {part}"
    beside = "" if own is None else f", {_blocks(own)} {own.seconds * 1e6:.3g}"
    return f"{told}{beside}; {part}"


def _blocks(one: Prediction) -> str:
    return f"{one.resident} block{'s' if one.resident > 1 else ''}"


def _noted(made: EmittedKernel, note: str) -> EmittedKernel:
    return replace(made, notes=(*made.notes, note))
