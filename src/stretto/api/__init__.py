"""The front door: plain functions over raw loops and names of machines.

    read ──► Loop ──► bounds | schedule | explain            each prepares what it is given
                        │
                        └──► verify | materialize | simulate ──► write

    read_write   `read`, `write`: any format        checking     `verify`; schedules from elsewhere
    bounding     `bounds`                           pipelined    `materialize`, `simulate`
    solving      `schedule`                         kernels      whole kernels
    explaining   `explain`

A result is that of the layer below, with its problem beside it: it has the same attributes, and
can print itself (`report`), as JSON too (`to_json`). The names stand in `stretto` itself, where
each is loaded when it is first used. Here is what all of them are given, and what every result can
do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import wraps
from math import inf
from os import PathLike, fspath
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Concatenate,
    ParamSpec,
    Protocol,
    TypeVar,
    cast,
    overload,
)

from stretto.deadline import Deadline, deadline_after
from stretto.errors import StrettoError, listed
from stretto.frontends import Source
from stretto.loop import Loop, LoopError, Note, check, texts
from stretto.machine import Machine, load_machine
from stretto.resources.prepare import Prepared, prepare

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

WIDTH = 100
"""Characters of a path that is told."""
P = ParamSpec("P")
R = TypeVar("R", bound="Result")
R_co = TypeVar("R_co", bound="Result", covariant=True)

# Given ------------------------------------------------------------------------------------


def misgiven(wanted: str, given: object) -> StrettoError:
    """What to give a function of the front door that was given something else."""
    from stretto.kernel import Kernel  # noqa: PLC0415 - where something is wrong

    told = f"{wanted} is wanted, and {type(given).__name__} is given"
    match given:
        case str() | PathLike():
            path = fspath(cast("str | PathLike[str]", given))
            shown = repr(path) if len(path) < WIDTH and path.isprintable() else "path"
            hint = f"stretto.read({shown}) gives the loops of a file"
        case Kernel():
            hint = (
                "stretto.read(kernel, machine) gives its loops; stretto.import_kernel, emit and "
                "predict take all of it"
            )
        case Source():
            hint = f"its loops: {listed(loop.name for loop in given)}; give one of them"
        case Result():
            hint = "its loop is `.problem.loop`"
        case Loop():
            hint = "stretto.schedule(loop) gives a schedule, stretto.read(path) the loops of a file"
        case _:
            hint = "stretto.read(path) gives the loops of a file, stretto.build(...) a new one"
    return StrettoError(f"{told}; {hint}")


def for_each(function: Callable[Concatenate[Loop | Prepared, P], R]) -> _ForEach[P, R]:
    """Has a function of a loop take what `read` gives as well: an answer for each of its loops."""

    @wraps(function)
    def answers(
        loop: Loop | Prepared | Source | Sequence[Loop], *args: P.args, **options: P.kwargs
    ) -> R | tuple[R, ...]:
        if isinstance(loop, Source):
            return tuple(
                replace(function(one, *args, **options), notes=about(loop, one.name))
                for one in loop
            )
        if isinstance(loop, list | tuple):
            return tuple(function(one, *args, **options) for one in loop)
        return function(cast("Loop | Prepared", loop), *args, **options)

    return cast("_ForEach[P, R]", answers)


def about(source: Source, loop: str) -> tuple[Note, ...]:
    """The notes of a source that are about one loop; "": about none that was read."""
    return tuple(note for note in source.notes if note.place.loop == loop)


def made_ready(loop: Loop | Prepared | Source, machine: Machine | str | None = None) -> Prepared:
    """The loop prepared for a machine; one that is prepared already stays as it is."""
    if isinstance(loop, Source) and len(loop) == 1:
        loop = loop[0]
    if isinstance(loop, Loop):
        return prepare(loop, machine)
    if not isinstance(loop, Prepared):
        raise misgiven("a loop", loop)
    if machine is None:
        return loop
    other = load_machine(machine)
    if other.with_slots(loop.loop.slots) != loop.machine:
        ready = f"the loop is prepared for {loop.machine.name}"
        raise StrettoError(f"{ready}; for {other.name}, prepare it as it was", loop.loop.name)
    return loop


def with_pins_of(ready: Prepared, pins: Iterable[str]) -> Prepared:
    """The problem with further pins; LoopError where what they ask for is no loop."""
    asked = tuple(pins)
    if not asked:
        return ready
    from stretto.loop.pins import with_pins  # noqa: PLC0415 - few loops are given any

    loop = with_pins(ready.loop, asked)
    faults = check(loop, ready.machine)
    if faults:
        raise LoopError(loop.name, faults)
    return replace(ready, loop=loop)


def deadline_of(time_limit: float | Deadline | None) -> Deadline:
    """When to end: so many seconds from now, or at a moment that is known already."""
    if isinstance(time_limit, Deadline):
        return time_limit
    if time_limit is not None and not 0 < time_limit < inf:
        raise StrettoError(f"time_limit is {time_limit}; a number of seconds above 0 is needed")
    return deadline_after(time_limit)


# Results ----------------------------------------------------------------------------------


class View(Protocol):
    """A result as the report layer shows it."""

    @property
    def success(self) -> bool:
        """Whether everything is as it should be."""
        ...

    def to_json(self) -> Mapping[str, Any]:
        """As an entry of `loops` in a document."""
        ...

    def to_text(self) -> list[str]:
        """For people."""
        ...


@dataclass(frozen=True, repr=False)
class Result(ABC):
    """The root of all results: each has its problem, its report and its line.

    >>> stretto.schedule(gemm)
    <ScheduleAnalysis gemm on b200-pipes: II 256, 3 stages, optimal>

    `report()` is what the command line prints, `to_json()` an entry of what it prints with
    `--json`.
    """

    SCHEMA: ClassVar[str] = ""
    """Of a document of such results; "": it is none."""

    problem: Prepared = field(kw_only=True)
    notes: tuple[Note, ...] = field(default=(), kw_only=True)
    """What the front end noted of the loop."""

    @abstractmethod
    def view(self) -> View:
        """What text and JSON are made by."""

    @abstractmethod
    def line(self) -> str:
        """All of it in a few words."""

    @property
    def noted(self) -> tuple[str, ...]:
        """All that was noted of the loop, when it was prepared and before."""
        return tuple(texts(self.problem.notes + self.notes))

    def to_json(self) -> dict[str, Any]:
        """One entry of `loops` in a document."""
        return dict(self.view().to_json())

    def to_document(self) -> dict[str, Any]:
        """A document of this result alone, as `--json` prints it."""
        entry = self.to_json()
        return {"schema": self.SCHEMA, "success": entry["success"], "loops": [entry]}

    def to_mlir(self) -> str:
        """As a module, where it can be one."""
        raise StrettoError(f"{self!r} is written as JSON, not as MLIR")

    def report(self) -> str:
        """Text for people, as the command line prints it."""
        return "\n".join(self.view().to_text())

    def _repr_html_(self) -> str:
        """What a notebook shows: the report."""
        from html import escape  # noqa: PLC0415 - only notebooks ask

        return f"<pre>{escape(self.report())}</pre>"

    def __repr__(self) -> str:
        from stretto.report import printable  # noqa: PLC0415 - where somebody looks

        return f"<{printable(self.line())}>"


class _ForEach(Protocol[P, R_co]):
    """A function of a loop, or of loops."""

    @overload
    def __call__(self, loop: Loop | Prepared, /, *args: P.args, **options: P.kwargs) -> R_co: ...
    @overload
    def __call__(
        self, loop: Source | Sequence[Loop], /, *args: P.args, **options: P.kwargs
    ) -> tuple[R_co, ...]: ...


def fields_of(found: DataclassInstance) -> dict[str, Any]:
    """What a result of a layer below has, to make one of the front door of."""
    return {field.name: getattr(found, field.name) for field in fields(found)}
