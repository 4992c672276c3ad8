"""Where something is, and what is said of it there.

    Place("gemm", 2, ("uses", 0, "slot"))    $.ops[2].uses[0].slot  of loop gemm
    Place("gemm")                            the loop
    Place()                                  no loop: the machine, or one that was not read

A note is worth knowing; a fault stops. Both are made where they are noticed, and keep their place
until somebody prints them: as a path into the document, or as a line and column of a module.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stretto.errors import StrettoError
from stretto.limits import FAULTS_TOLD


@dataclass(frozen=True, slots=True)
class Place:
    """A loop, an operation of it, a field of that; each as far as it is known."""

    loop: str = ""
    """Its name; "": no loop that was read."""
    op: int | None = None
    """The program position of an operation; None: the loop as a whole."""
    field: tuple[str | int, ...] = ()
    """The keys and positions that lead to a field of the operation, or of the loop."""

    @property
    def path(self) -> str:
        """As a JSON path into the loop document."""
        keys = self.field if self.op is None else ("ops", self.op, *self.field)
        return "$" + "".join(f"[{k}]" if isinstance(k, int) else f".{k}" for k in keys)


@dataclass(frozen=True, slots=True)
class Note:
    """Something worth knowing that stops nothing."""

    place: Place
    text: str
    """What there is to know; that it is about this loop goes without saying."""

    def __str__(self) -> str:
        return f"{self.place.loop}: {self.text}" if self.place.loop else self.text


def texts(notes: Iterable[Note]) -> list[str]:
    """What notes say, for a report that has said which loop it is about."""
    return [note.text for note in notes]


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a loop."""

    place: Place
    code: str
    """What kind of fault, in a word or two."""
    message: str

    @property
    def path(self) -> str:
        """Where, as a JSON path into the loop document."""
        return self.place.path

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class LoopError(StrettoError):
    """The loop cannot be used as it is; `faults` has every `Fault`.

    The first are told, the others counted.
    """

    def __init__(self, loop: str, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(self.lines(loop)))
        self.loop = loop

    def lines(self, file: str) -> tuple[str, ...]:
        """One line a fault, as of a file."""
        told = [f"{file}: {f.path}: error: {f.message}" for f in self.faults[:FAULTS_TOLD]]
        more = len(self.faults) - len(told)
        return (*told, f"{file}: error: and {more:,} faults more") if more else tuple(told)

    def __reduce__(self) -> tuple[type[LoopError], tuple[str, tuple[Fault, ...]]]:
        return LoopError, (self.loop, self.faults)
