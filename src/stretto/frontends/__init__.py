"""The Python builder, and other people's formats: recognized by their content, not by a name.

builder           loops written in Python
documents, ddg    loops in JSON: our own documents, and dumps of dependence graphs
recognizing       whether an input is a kernel at all
triton, cutile    whole kernels; tileir: the bytecode of the latter

Whatever they read comes out as a `Source`, or as kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stretto.errors import listed
from stretto.loop import Loop, Note


@dataclass(frozen=True, slots=True)
class Source:
    """The loops of one input."""

    file: str
    loops: tuple[Loop, ...]
    notes: tuple[Note, ...] = ()
    """What was noted while it was read, of its loops and of those that were not read."""

    def __iter__(self) -> Iterator[Loop]:
        return iter(self.loops)

    def __len__(self) -> int:
        return len(self.loops)

    def __getitem__(self, which: int | str) -> Loop:
        """A loop by its place or its name."""
        if isinstance(which, int):
            return self.loops[which]
        for loop in self.loops:
            if loop.name == which:
                return loop
        raise KeyError(which)

    def __repr__(self) -> str:
        return f"<Source {self.file}: {listed(loop.name for loop in self.loops)}>"
