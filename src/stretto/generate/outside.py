"""Generators that are not ours: a function from a task to a schedule, verified like any other.

    def mine(task: stretto.GeneratorTask) -> stretto.Schedule | str:
        ...
        return stretto.Schedule(ii, {"load": 0, "mma": 556})     or why there is none: "too deep"

    stretto.register_generator("mine", mine)         in this process
    [project.entry-points."stretto.generators"]      by an installed package, in every process
    mine = "my_package:mine"

What it hands over is looked at for form here and for legality by the verifier; nothing else of it
is believed. Packages are asked only where a name is none of ours, or all names are listed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from stretto.errors import StrettoError, listed
from stretto.generate import GENERATORS
from stretto.limits import ITERATION_CYCLES
from stretto.loop import Loop
from stretto.machine import Machine
from stretto.solution import Schedule

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "stretto.generators"
"""The entry points of packages that bring generators."""
_NAME = re.compile(r"[A-Za-z][\w.-]{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True)
class GeneratorTask:
    """What a generator of somebody else is given; everything in it is known, nothing is left open.

    Every operation of `loop` has its uses and its latency, `loop.dependences` has every order that
    a schedule keeps to, and `machine` the capacities.
    """

    loop: Loop
    machine: Machine
    mii: int
    """No schedule has a smaller II."""
    max_ii: int | None = None
    """The last II that is wanted."""
    max_stages: int | None = None
    """The most stages that are allowed."""
    fuse: bool = True
    """Whether operations may share a hold."""
    seconds: float | None = None
    """Time that is left; None: any. Nobody stops a generator that takes longer."""


Generator = Callable[[GeneratorTask], Schedule | str]
"""From a task to a schedule, or to why there is none."""

_REGISTERED: dict[str, Generator] = {}


def register_generator(name: str, function: Generator) -> None:
    """Have `schedule(generator=name)` ask a function of yours, in this process.

    It is given a GeneratorTask and returns a Schedule, or a text that says why there is none. A
    name that was registered before is given anew. A package brings generators to every process,
    the command line among them, by entry points of the group ``stretto.generators``.
    """
    if not _NAME.fullmatch(name):
        hint = "expected letters, digits, `_`, `-` and `.`, a letter first"
        raise StrettoError(f"a generator cannot be called `{name}`; {hint}")
    if name in GENERATORS:
        raise StrettoError(f"generator `{name}` is Stretto's own; take another name")
    if not callable(function):
        raise StrettoError(f"generator `{name}` is {function!r}, which cannot be called")
    _REGISTERED[name] = function


def outside_names() -> tuple[str, ...]:
    """All generators that are not ours, sorted."""
    return tuple(sorted({*_REGISTERED, *_offered()} - set(GENERATORS)))


def outside_generator(name: str) -> Generator | None:
    """The generator of a name; None: there is none. StrettoError where it cannot be loaded."""
    if name in _REGISTERED:
        return _REGISTERED[name]
    offers = _offered().get(name, [])
    if len(offers) > 1:
        packages = listed(_package(offer) for offer in offers)
        raise StrettoError(f"generator `{name}` is offered by more than one package: {packages}")
    return _loaded(name, offers[0]) if offers else None


def _offered() -> dict[str, list[EntryPoint]]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - it looks at every package

    found: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        same = [p for p in found.setdefault(point.name, []) if p.value == point.value]
        if not same:  # one package may be found twice along the path
            found[point.name].append(point)
    return found


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value


def _loaded(name: str, point: EntryPoint) -> Generator:
    where = f"`{point.value}` of package {_package(point)}"
    try:
        function: object = point.load()
    except Exception as error:
        told = _told(error)
        raise StrettoError(f"generator `{name}` cannot be loaded from {where}: {told}") from error
    if not callable(function):
        raise StrettoError(f"generator `{name}` is {where}, which cannot be called")
    return cast("Generator", function)


def _told(error: BaseException) -> str:
    """An error of somebody else's code: its kind and its first line."""
    first = next(iter(str(error).splitlines()), "")
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def ask(name: str, task: GeneratorTask) -> Schedule | str:
    """What a generator makes of a task, looked at for form; StrettoError where it fails.

    Whether it is legal is for the verifier to say.
    """
    function = outside_generator(name)
    assert function is not None, "whoever selects a generator has looked it up"
    try:
        found: object = function(task)
    except (Exception, SystemExit) as error:
        raise StrettoError(f"generator `{name}` failed: {_told(error)}", task.loop.name) from error
    if isinstance(found, str):
        return found.strip() or "it gives no reason"
    fault = fault_of(found, task.loop)
    if fault:
        raise StrettoError(f"generator `{name}` returned {fault}", task.loop.name)
    return found


def fault_of(found: object, loop: Loop) -> str:
    """What is no schedule about a value that should be one; "": nothing."""
    if not isinstance(found, Schedule):
        return f"{type(found).__name__}; expected a stretto.Schedule, or why there is none"
    ii, starts, fused = cast("tuple[object, object, object]", (found.ii, found.starts, found.fused))
    if not _whole(ii) or not 1 <= found.ii <= ITERATION_CYCLES:
        return f"an II of {ii!r}; expected a whole number from 1 to {ITERATION_CYCLES:,}"
    if not isinstance(starts, Mapping):
        return f"starts that are {type(starts).__name__}; expected a start for each operation"
    for op in loop.ops:
        if op.name not in found.starts:
            return f"no start of `{op.name}`"
        start = found.starts[op.name]
        if not _whole(start) or not 0 <= start <= ITERATION_CYCLES:
            span = f"a whole number from 0 to {ITERATION_CYCLES:,}"
            return f"start {start!r} of `{op.name}`; expected {span}"
    strange = [str(name) for name in found.starts if name not in loop.index]
    if strange:
        return f"a start of `{strange[0]}`, which is no operation of the loop"
    groups = cast("tuple[object, ...]", fused) if isinstance(fused, tuple) else None
    if groups is None or not all(isinstance(group, tuple) for group in groups):
        return f"fused groups {fused!r}; expected a tuple of tuples of names"
    unknown = [repr(name) for group in found.fused for name in group if name not in loop.index]
    return f"a fused group with {unknown[0]}, which is no operation" if unknown else ""


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
