"""What can go wrong, as types.

    StrettoError              anything Stretto says to its user; never a traceback
      ├── DocumentError       a file is not what it should be: where, what, and what was expected
      ├── MachineError        no such machine
      ├── LoopError           the loop itself is wrong: every fault, not the first
      ├── InfeasibleError     no initiation interval can ever work
      └── MaterializeError    an analysis that cannot become a program, or a limit is met

Each carries its facts as attributes, so that text and JSON are two views of the same error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from stretto.limits import FAULTS_TOLD, NAMES_TOLD


def listed(names: Iterable[str], between: str = ", ") -> str:
    """Names for a message: the first of them, and how many more there are."""
    rest = iter(names)
    told = list(islice(rest, NAMES_TOLD))
    more = sum(1 for _ in rest)
    return between.join(told) + (f" and {more:,} more" if more else "") if told else "none"


class StrettoError(Exception):
    """The root of every error meant for the user."""


class DocumentError(StrettoError):
    """A document has a fault at a known place.

    Prints as ``file: path: error: what is wrong (hint)``.
    """

    def __init__(self, file: str, path: str, message: str, hint: str = "") -> None:
        self.file = file
        self.path = path
        self.message = message
        self.hint = hint
        place = f"{file}: {path}" if path else file
        super().__init__(f"{place}: error: {message}" + (f"; {hint}" if hint else ""))

    def __reduce__(self) -> tuple[type[DocumentError], tuple[str, str, str, str]]:
        return DocumentError, (self.file, self.path, self.message, self.hint)


class MachineError(StrettoError):
    """A machine that was asked for does not exist."""


class LoopError(StrettoError):
    """The loop cannot be used as it is; `faults` lists every (path, message).

    The first are told, the others counted.
    """

    def __init__(self, loop: str, faults: Sequence[tuple[str, str]]) -> None:
        self.loop = loop
        self.faults = tuple(faults)
        super().__init__("\n".join(self.lines(loop)))

    def lines(self, file: str) -> tuple[str, ...]:
        """One line a fault, as of a file."""
        told = [f"{file}: {path}: error: {said}" for path, said in self.faults[:FAULTS_TOLD]]
        more = len(self.faults) - len(told)
        return (*told, f"{file}: error: and {more:,} faults more") if more else tuple(told)

    def __reduce__(self) -> tuple[type[LoopError], tuple[str, tuple[tuple[str, str], ...]]]:
        return LoopError, (self.loop, self.faults)


class InfeasibleError(StrettoError):
    """No initiation interval, however large, can satisfy the dependences."""


class MaterializeError(StrettoError):
    """The analysis cannot be turned into a program."""
