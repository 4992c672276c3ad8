"""A file as the chunks that `--split-input-file` makes of it.

    line 1   module A                chunk 1: lines 1-2
         2   // -----
         3   module B                chunk 2: two empty lines, then line 3 on

A chunk keeps the empty lines of what stood before it, so that every position in it is one of the
file, and no diagnostic needs to be moved.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MARKER = "// -----"
_MARK = re.compile(r"^[ \t]*// -----[ \t]*\r?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a file that is a module of its own."""

    text: str
    """With an empty line for every line before it."""
    first: int
    last: int
    """Lines of the file, counted from 1; the marker after a chunk belongs to none."""


def split(text: str, *, wanted: bool = True) -> tuple[Chunk, ...]:
    """The chunks of a file; one where splitting is not `wanted`."""
    marks = list(_MARK.finditer(text)) if wanted else []
    begins = [0, *(mark.end() for mark in marks)]
    ends = [*(mark.start() for mark in marks), len(text)]
    chunks: list[Chunk] = []
    for begin, end in zip(begins, ends, strict=True):
        before = text.count("\n", 0, begin)
        within = text.count("\n", begin, end)
        chunks.append(Chunk("\n" * before + text[begin:end], before + 1, before + within + 1))
    return tuple(chunks)
