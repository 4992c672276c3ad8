"""What can go wrong, as types.

    StrettoError              anything Stretto says to its user; never a traceback
      ├── DocumentError       a file is not what it should be: where, what, and what was expected
      ├── MachineError        no such machine
      ├── LoopError           the loop itself is wrong: every fault, not the first (`stretto.loop`)
      ├── InfeasibleError     no initiation interval can ever work
      └── MaterializeError    an analysis that cannot become a program, or a limit is met

Each carries its facts as attributes, so that text and JSON are two views of the same error.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import islice
from pathlib import PurePath

from stretto.limits import NAMES_TOLD

MOST_TOLD = 300
"""Characters of an error that nobody foresaw."""


def listed(names: Iterable[str], between: str = ", ") -> str:
    """Names for a message: the first of them, and how many more there are."""
    rest = iter(names)
    told = list(islice(rest, NAMES_TOLD))
    more = sum(1 for _ in rest)
    return between.join(told) + (f" and {more:,} more" if more else "") if told else "none"


def nearest(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """A hint for a name that nobody knows: the one that was meant, or what else to say."""
    from difflib import get_close_matches  # noqa: PLC0415 - where something is misspelt

    close = get_close_matches(name[:60], sorted(known), n=1)
    return f"did you mean `{close[0]}`?" if close else otherwise


TRACEBACK = "STRETTO_TRACEBACK"
"""Set in the environment, an error that nobody foresaw is a traceback: for tests, and for us."""


def unforeseen(error: Exception, file: str) -> str:
    """What to say of an error that is no StrettoError, and so a bug; raised again for TRACEBACK."""
    if os.environ.get(TRACEBACK):
        raise error
    from traceback import extract_tb  # noqa: PLC0415 - where there is a bug

    told = " ".join(f"{type(error).__name__}: {error}".removesuffix(": ").split())
    frames = extract_tb(error.__traceback__)
    where = f" ({PurePath(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    hint = f"please report it with the input ({TRACEBACK}=1 shows the way to it)"
    return f"{file}: error: {told[:MOST_TOLD]}{where}; this is a bug of Stretto, {hint}"


class StrettoError(Exception):
    """The root of every error meant for the user."""

    def __init__(self, message: str, loop: str = "") -> None:
        self.message = message
        self.loop = loop
        """The loop it is about; "": none, or more than one."""
        super().__init__(f"{loop}: {message}" if loop else message)

    def lines(self, file: str) -> tuple[str, ...]:  # noqa: ARG002 - for those that know a place
        """As lines for people; `file`: what was read."""
        return (f"error: {self}",)


class UsageError(Exception):
    """The arguments of a command make no sense; carries argparse's message and usage line."""

    def __init__(self, message: str, usage: str) -> None:
        self.message = message
        self.usage = usage
        super().__init__(message)


class DocumentError(StrettoError):
    """A document has a fault at a known place.

    Prints as ``file: path: error: what is wrong (hint)``.
    """

    def __init__(self, file: str, path: str, message: str, hint: str = "") -> None:
        place = f"{file}: {path}" if path else file
        super().__init__(f"{place}: error: {message}" + (f"; {hint}" if hint else ""))
        self.file = file
        self.path = path
        self.message = message
        self.hint = hint

    def lines(self, file: str) -> tuple[str, ...]:  # noqa: ARG002 - it knows its own
        """Itself: it begins with its place."""
        return (str(self),)

    def __reduce__(self) -> tuple[type[DocumentError], tuple[str, str, str, str]]:
        return DocumentError, (self.file, self.path, self.message, self.hint)


class MachineError(StrettoError):
    """A machine that was asked for does not exist."""


class InfeasibleError(StrettoError):
    """No initiation interval, however large, can satisfy the dependences."""


class MaterializeError(StrettoError):
    """The analysis cannot be turned into a program."""
