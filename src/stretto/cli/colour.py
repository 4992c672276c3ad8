"""Colour for a terminal, put on lines that are laid out already.

    first line of a report    bold          ▁▂▃▄▅▆▇█ and bars    blue
    * behind a name           red           note: ...            yellow

Only where a person looks: not in a pipe, not in a file, not where NO_COLOR is set or the terminal
is a dumb one.
"""

from __future__ import annotations

import os
import re

from stretto.files import on_terminal

BOLD, RED, YELLOW, BLUE, GREEN, OFF = (f"\x1b[{n}m" for n in (1, 31, 33, 34, 32, 0))

_PARTS = (
    (re.compile(r"[▁▂▃▄▅▆▇█▏▎▍▌▋▊▉]+"), BLUE),
    (re.compile(r"(?<= )\*(?= |$)"), RED),
    (re.compile(r"(?<=^  )note:"), YELLOW),
    (re.compile(r"\b(?:it|which) spills\b|\bnot legal\b|\bnot proved optimal\b"), RED),
    (re.compile(r"(?<!proved )\boptimal\b"), GREEN),
)


def wanted() -> bool:
    """Whether standard output is a terminal that shows colours."""
    shows = os.environ.get("TERM", "") not in ("", "dumb")
    return on_terminal() and shows and not os.environ.get("NO_COLOR")


def coloured(lines: list[str]) -> list[str]:
    """The lines with colours; a line that begins at the margin heads what follows."""
    return [_line(line) for line in lines]


def _line(line: str) -> str:
    heads = bool(line) and not line.startswith(" ")
    around = BOLD if heads else ""
    for pattern, colour in _PARTS:
        line = pattern.sub(lambda match, c=colour: f"{c}{match[0]}{OFF}{around}", line)
    return f"{BOLD}{line}{OFF}" if heads else line
