"""Which of several candidates is taken: by what is predicted, or by what the assembler says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from stretto.compile.emitted import EmittedKernel
from stretto.emission import EmitError, Emitted
from stretto.machine import Machine
from stretto.ops.spaces import STAGING

if TYPE_CHECKING:
    from stretto.prediction.running import Assembled

Assemble = Callable[[Emitted], "Assembled"]
"""Compiles a kernel."""
NEAR = 1.15
"""Of the best pace: up to which the assembler is asked for the registers of a kernel."""
BESIDE = 1.5
"""Of the best pace: up to which a kernel that overlaps something is taken before one that does not,
which is what its own framework makes of it anyway. Blocks are assumed to be many; where there is
one an SM, what is loaded ahead counts for more."""


def chosen(
    made: Sequence[EmittedKernel],
    machine: Machine,
    assemble: Assemble | None = None,
    otherwise: Callable[[], Iterable[EmittedKernel]] = tuple,
) -> EmittedKernel:
    """The candidate that is emitted, and so the one that is predicted.

    `otherwise` makes those that are asked for only where the compiler takes none as it should be.
    """
    if assemble is not None:
        return settled(made, machine, assemble, otherwise)
    best = _best_pace(made)
    return min(made, key=lambda one: (one.over, *_worth(one, best)))


NOTHING = "nothing of it overlaps"


def settled(
    made: Sequence[EmittedKernel],
    machine: Machine,
    assemble: Assemble,
    otherwise: Callable[[], Iterable[EmittedKernel]] = tuple,
) -> EmittedKernel:
    """The first that fits shared memory and that the assembler keeps to, else of those that
    fit the one that spills the fewest bytes; EmitError where none fits, and what the compiler
    raises where it takes none."""
    best = _best_pace(made)
    failed: list[Exception] = []
    near = [
        paced(one, machine)
        for one in _compiled((one for one in made if _is_near(one, best)), assemble, failed)
    ]
    near += [one for one in made if not _is_near(one, best)]
    best = _best_pace(near)
    spilling: list[tuple[int, EmittedKernel]] = []
    refused: list[EmitError] = []
    plain: EmittedKernel | None = None
    first = sorted(near, key=lambda one: _worth(one, best))
    for one in chain(first, _later(otherwise)):
        if plain is not None and not one.overlap:
            continue
        for known in _compiled((one,), assemble, failed):
            try:
                seen = require(known, machine)
            except EmitError as error:
                refused.append(error)
                continue
            if seen.clean and (known.overlap or not any(one.overlap for _, one in spilling)):
                return known
            if seen.clean:
                plain = known
            else:
                spilling.append((seen.spilled, known))
    if plain is not None:
        return _explained(plain, spilling)
    if not spilling:
        raise (*refused, *failed)[0]
    return _explained(min(spilling, key=lambda pair: pair[0])[1], spilling)


def _later(make: Callable[[], Iterable[EmittedKernel]]) -> Iterator[EmittedKernel]:
    """What is made only once it is asked for."""
    yield from make()


def _explained(taken: EmittedKernel, spilling: list[tuple[int, EmittedKernel]]) -> EmittedKernel:
    """With what is wrong with those that would overlap something, where the one taken does not."""
    bytes = [spilled for spilled, one in spilling if one.overlap]
    if taken.overlap or not bytes:
        return taken
    least = min(bytes)
    told = f"threads spill {least} bytes" if least else "ptxas cannot run products as written"
    note = f"{NOTHING}: with a step more in flight, {told}"
    return replace(taken, notes=(*taken.notes, note))


def _compiled(
    made: Iterable[EmittedKernel], assemble: Assemble, failed: list[Exception]
) -> Iterator[EmittedKernel]:
    """Those that the compiler takes, with what the assembler made of them; whatever it raises
    of another is put with what failed, since the next may do."""
    for one in made:
        if one.assembled is not None:
            yield one
            continue
        try:
            known = assembled(one, assemble)
        except Exception as error:
            failed.append(error)
        else:
            yield known


def assembled(made: EmittedKernel, assemble: Assemble) -> EmittedKernel:
    """With what the assembler made of it."""
    found = assemble(made.emitted)
    return replace(made, registers=found.registers, assembled=found)


def require(made: EmittedKernel, machine: Machine) -> Assembled:
    """What the assembler made of it; EmitError where that cannot run."""
    found, budget = made.assembled, machine.budget(STAGING)
    assert found is not None
    assert made.kernel is not None
    name = made.kernel.name
    room = None if budget is None else budget.bytes
    if room is not None and found.smem > room:
        told = f"`{name}` takes {found.smem:,} bytes of shared memory once compiled"
        hint = "smaller tiles, or --depth for shorter rings"
        raise EmitError(f"{told}, {machine.name} has {room:,}", hint=hint)
    if found.overwritten:
        told = f"`{name}` overwrites a factor that it still needs once compiled"
        raise EmitError(told, hint="another --depth or number of consumers may do")
    return found


def paced(made: EmittedKernel, machine: Machine) -> EmittedKernel:
    """With what is predicted of it, where threads load: by its registers, once they are known."""
    from stretto.prediction.kernel_time import pace_of_threads  # noqa: PLC0415 - for few kernels

    return replace(made, pace=pace_of_threads(made.subject, machine))


def _best_pace(made: Iterable[EmittedKernel]) -> float:
    """The smallest that is predicted of any; 0 where none is."""
    return min((one.pace.cycles for one in made if one.pace is not None), default=0.0)


def _is_near(made: EmittedKernel, best: float) -> bool:
    """Whether it is predicted to be about as fast as the best."""
    return made.pace is not None and made.pace.cycles <= NEAR * best


def _worth(made: EmittedKernel, best: float) -> tuple[float, ...]:
    """What is smaller is taken: first what overlaps something and is not far slower than the best,
    since all else is what its own framework does anyway; then the pace or the II."""
    beside = made.pace is None or (made.overlap and made.pace.cycles <= BESIDE * best)
    return not beside, *made.order
