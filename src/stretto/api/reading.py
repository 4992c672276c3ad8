"""`stretto.read`: any input, by its content. JSON goes to the front ends, all else is MLIR.

{"schema": ...}                      loops of a JSON document
func.func @gemm(...) { scf.for ...   loops of a module, read with their positions
"""

from __future__ import annotations

import re
from dataclasses import replace
from os import PathLike, fspath
from typing import TextIO

from stretto.errors import DocumentError, listed
from stretto.files import read_text
from stretto.frontends import Source, read_source
from stretto.ir import read_mlir
from stretto.loop import Note
from stretto.loop.places import texts
from stretto.machine import Machine, load_machine

_JSON = re.compile(r'\s*(?:$|\{(?!-#)|\[|[-\d]|"[^"\n]*"(?!\s*\()|(?:true|false|null)\b)')
"""How JSON begins, whole or not; an operation in quotes is MLIR."""


def is_mlir(text: str) -> bool:
    """Whether a text is MLIR: all that does not begin as JSON does."""
    return _JSON.match(text) is None


def read(path: str | PathLike[str] | TextIO, machine: Machine | str | None = None) -> Source:
    """The loops of a file, of stdin (``-``) or of an open file, with what is worth saying of them.

    It is MLIR, a loop (stretto.loop/1) or a dependence-graph dump (ddg-0.1); its content says
    which. The machine matters to MLIR: what an inner loop costs depends on it. The path of a
    machine that a loop names is relative to the folder of the file.
    """
    if isinstance(path, str | PathLike):
        return read_loops(*read_text(fspath(path)), machine)
    name = getattr(path, "name", None)
    return read_loops(name if isinstance(name, str) else "<stream>", path.read(), machine)


def read_loops(file: str, text: str, machine: Machine | str | None = None) -> Source:
    """All loops of a text."""
    if not is_mlir(text):
        return read_source(file, text)
    target = load_machine(machine) if isinstance(machine, str) else machine
    loops, notes = read_mlir(file, text, target)
    if not loops:
        why = "; ".join(texts(notes)) or "it has no scf.for"
        raise DocumentError(file, "", "has no loop that can be read", why)
    return Source(file, loops, notes)


def chosen(source: Source, name: str | None) -> Source:
    """The loops the user asks about: all, or the one of a name."""
    if name is None:
        return source
    loops = tuple(loop for loop in source.loops if loop.name == name)
    if not loops:
        names = listed(loop.name for loop in source.loops)
        raise DocumentError(source.file, "", f"no loop `{name}`", f"its loops: {names}")
    return replace(source, loops=loops, notes=about(source, name))


def about(source: Source, loop: str) -> tuple[Note, ...]:
    """The notes of a source that are about one loop; "": about none that was read."""
    return tuple(note for note in source.notes if note.place.loop == loop)
