"""Results for people and for programs: text and JSON are two views of the same value.

One file a report. Here is what all of them lay out: plain text, as wide as the terminal, and in
100 columns wherever there is none.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, cast

from stretto.machine.choice import assumed
from stretto.machine.machine import CYCLES

if TYPE_CHECKING:
    from stretto.machine import Machine
    from stretto.schemas.values import OnMachine

WIDTH = 100
"""Columns where nobody says how many."""
NARROWEST, WIDEST = 60, 200
"""Columns that a text is laid out in at least, and at most."""
_width: ContextVar[int] = ContextVar("width", default=WIDTH)
NO_BREAK = "\u00a0"
"""Stands for a space at which a line must not end."""
NAME_WIDTH = 36
"""Longer names are cut in tables, so that the columns beside them keep their room."""


def width() -> int:
    """The columns of the page that is written."""
    return _width.get()


@contextmanager
def page(columns: int) -> Generator[None]:
    """Lay out what is told inside in so many columns, or as many as are sensible."""
    token = _width.set(max(NARROWEST, min(columns, WIDEST)))
    try:
        yield
    finally:
        _width.reset(token)


class Told:
    """A view of what is there to be told, whatever it says."""

    @property
    def success(self) -> bool:
        """Whether everything is as it should be."""
        return True


def printable(text: str, keep: str = "") -> str:
    """The text with control characters and the like written out, but for those to keep.

    Names come from files; what a terminal would obey is shown instead.
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in keep else c.encode("unicode_escape").decode("ascii")
        for c in text
    )


def cut(name: str, width: int = NAME_WIDTH) -> str:
    """A name that is no wider than its column."""
    return name if len(name) <= width else name[: width - 1] + "…"


def wrapped(text: str, indent: str = "", hang: str = "") -> list[str]:
    """A paragraph in the columns of the page; later lines hang under the first."""
    lines = textwrap.wrap(
        printable(text, keep=NO_BREAK),
        width(),
        initial_indent=indent,
        subsequent_indent=indent + hang,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(NO_BREAK, " ") for line in lines] or [indent.rstrip()]


def columns(
    rows: Sequence[Sequence[str]], indent: str = "", right: Sequence[int] = ()
) -> list[str]:
    """A table: columns padded to their widest cell, the last one wrapped under itself."""
    if not rows:
        return []
    rows = [[printable(cell, keep=NO_BREAK) for cell in row] for row in rows]
    last = len(rows[0]) - 1
    widths = [max(len(row[i]) for row in rows) for i in range(last)]
    lines: list[str] = []
    for row in rows:
        cells = [
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=False))
        ]
        head = indent + "".join(cell + "  " for cell in cells)
        lines += wrapped(head + row[last], "", " " * len(head)) if row[last] else [head.rstrip()]
    return [line.rstrip() for line in lines]


def assumption(machine: str, why: str, unit: str = CYCLES) -> str:
    """What a reader must know of a machine: that it was assumed, and what its figures are."""
    told = [f"machine {machine}: {why}"] if assumed(why) else []
    if unit != CYCLES:
        told.append(f"figures of {machine} are {unit}, not cycles of a clock")
    return "; ".join(told)


def assumed_line(machine: Machine, why: str) -> list[str]:
    """The line below the head of a report that says so; none where there is nothing to say."""
    told = assumption(machine.name, why, machine.unit)
    return wrapped(told, "  ", "  ") if told else []


def machines_assumed(rows: Iterable[tuple[str, str]]) -> list[str]:
    """Of many loops, each with its machine and why: for how many which one was assumed."""
    counts = Counter(machine for machine, why in rows if assumed(why))
    told = ", ".join(f"{machine} for {count:,}" for machine, count in counts.most_common())
    return wrapped(f"machine assumed, as each row says: {told}", "  ", "  ") if told else []


def on_machine(machine: Machine, why: str) -> OnMachine:
    """The same for programs: of every entry that speaks of one machine."""
    return {"machine": machine.name, "machine_why": why, "unit": machine.unit}


def notes(lines: Sequence[str]) -> list[str]:
    """What a result must say besides its figures."""
    return [line for note in lines for line in wrapped(f"note: {note}", "  ", "      ")]


def as_json(value: object) -> Any:
    """A value as JSON has it: objects for dataclasses, lists for tuples."""
    if is_dataclass(value):
        return {field.name: as_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [as_json(part) for part in cast("tuple[object, ...]", value)]
    return value
