"""The Python builder, and other people's formats: recognized by their content, not by a name.

builder           loops written in Python
documents, ddg    loops in JSON: our own documents, and dumps of dependence graphs
hatschet, ssp     modulo problems of high-level synthesis: GraphML, and CIRCT's ssp
triton, cutile    whole kernels; tileir: the bytecode of the latter

Whatever they read comes out as a `Source`, or as kernels. Every input is asked whether it is a
kernel, so no reader is loaded for that:

tt.func public @kernel(...)            TTIR: what is read
#ttg.blocked<{...}>, ttg.num-warps     TTGIR: too late, layouts and pipelining are in it
@triton.jit def kernel(...)            Python: too early
7f "TileIR" 00 ...                     Tile IR bytecode, as cuTile exports it
<graphml> ...                          XML: a graph, whose resources stand in a file beside it
ssp.instance @fir of "ModuloProblem"   a problem of CIRCT's
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeGuard

from stretto.errors import DocumentError, listed
from stretto.files import read_data, text_of
from stretto.loop import Loop, Note

MAGIC = b"\x7fTileIR\0"
"""How bytecode begins."""

_TTIR = re.compile(r'^\s*(?:tt\.func\s|"tt\.func"\s*\(\s*\))', re.MULTILINE)
_SSP = re.compile(
    r'^\s*(?:module\b[^\n]*\{\s*)?"?ssp\.(?:instance|library|resource)\b', re.MULTILINE
)
_TTGIR = re.compile(r'#ttg\.|"?ttg\.num-warps"?\s*=|#triton_gpu\.|!ttg\.|#gluon\.')
_PYTHON = re.compile(
    r"^(?:#![^\n]*python|import\s+\w|from\s+[\w.]+\s+import\s|@(?:\w+\.)*jit\b|def\s+\w+\s*\()",
    re.MULTILINE,
)


_JSON = re.compile(r'\s*(?:$|\{(?!-#)|\[|[-\d]|"[^"\n]*"(?!\s*\()|(?:true|false|null)\b)')
"""How JSON begins, whole or not; an operation in quotes is MLIR."""


@dataclass(frozen=True, slots=True)
class Source:
    """The loops of one input."""

    file: str
    loops: tuple[Loop, ...]
    notes: tuple[Note, ...] = ()
    """What was noted while it was read, of its loops and of those that were not read."""
    text: str = field(default="", compare=False, repr=False)
    """What was read, where it is text."""

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


# What is in a file? -----------------------------------------------------------------------


def read_input(name: str) -> tuple[str, str | bytes]:
    """What to call a file or stdin, and its text; bytes if it is bytecode."""
    called, data = read_data(name)
    return called, content(called, data)


def content(called: str, data: str | bytes) -> str | bytes:
    """The text of data; bytecode as it is."""
    return data if isinstance(data, bytes) and is_bytecode(data) else text_of(called, data)


def is_json(text: str) -> bool:
    """Whether a text begins as JSON does."""
    return _JSON.match(text) is not None


def is_mlir(text: str | bytes) -> TypeGuard[str]:
    """Whether a text is MLIR of ours: all that does not begin as JSON does and is nothing else."""
    if isinstance(text, bytes) or is_json(text):
        return False
    return not (looks_like_ttir(text) or is_xml(text) or is_ssp(text))


def holds_program(text: str | bytes) -> TypeGuard[str]:
    """Whether a text is a module with the program of a whole kernel."""
    return not isinstance(text, bytes) and _PROGRAM in text


_PROGRAM = '"stretto.kernel_program"('


# Is it a kernel? --------------------------------------------------------------------------


def is_bytecode(data: bytes) -> bool:
    """Whether these bytes are Tile IR bytecode, by their first eight."""
    return data.startswith(MAGIC)


def is_xml(text: str) -> bool:
    """Whether a text is XML, by its first character."""
    return text.lstrip()[:1] == "<"


def is_ssp(text: str) -> bool:
    """Whether a text has problems of CIRCT's ssp dialect."""
    return "ssp." in text and _SSP.search(text) is not None


def looks_like_ttir(text: str) -> bool:
    """Whether a text has a function of Triton's."""
    return _TTIR.search(text) is not None


def is_ttir(file: str, text: str) -> bool:
    """Whether a text is TTIR; DocumentError where it is something near it that is not read."""
    if looks_like_ttir(text):
        if _TTGIR.search(text):
            hint = "give the .ttir file that Triton wrote beside it"
            raise DocumentError(file, "", "is TTGIR: layouts are chosen in it already", hint)
        return True
    if _PYTHON.search(text) and "nv_tileas" not in text and "func.func" not in text:
        hint = (
            "give the .ttir that Triton writes into its cache (TRITON_CACHE_DIR, or "
            "TRITON_KERNEL_DUMP=1), or call stretto.triton.read(kernel, ...) from Python"
        )
        raise DocumentError(file, "", "is Python, not a kernel that is compiled", hint)
    return False
