"""`stretto.read` and `stretto.write`: loops in and out of files, by their content and their names.

{"schema": ...}                      loops of a JSON document, for the front ends
tt.func public @matmul(...) {        loops of a Triton kernel, lowered for a machine
7f "TileIR" 00 ...                   loops of a cuTile kernel, likewise
<graphml> ...                        a modulo problem of HatScheT's, its resources in a file beside
ssp.instance @fir of "ModuloProb...  modulo problems of CIRCT's
func.func @gemm(...) { scf.for ...   all else is MLIR: loops of a module, with their positions

             .json                      .mlir
Loop         stretto.loop/1             scf.for
schedule     stretto.schedule/1         scf.for with nv_tile.aws.* attributes
program      --                         nv_tileas.async.pipeline.program
others       their documents            --
"""

from __future__ import annotations

import json
from dataclasses import replace
from os import PathLike, fspath
from pathlib import PurePath
from typing import TYPE_CHECKING, BinaryIO, Literal, TextIO, cast

from stretto.api import Result, about, misgiven
from stretto.errors import DocumentError, MachineError, StrettoError, listed, nearest
from stretto.files import write_text
from stretto.forms import FORMS, Form
from stretto.frontends import (
    Source,
    content,
    is_json,
    is_mlir,
    is_ssp,
    is_ttir,
    is_xml,
    read_input,
)
from stretto.ir import read_mlir, write_mlir, write_program
from stretto.kinds import checked
from stretto.loop import Loop, texts
from stretto.machine import Machine, load_machine
from stretto.machine.choice import ASKED
from stretto.resources.prepare import Prepared, prepare

if TYPE_CHECKING:
    from stretto.kernel import Kernel
    from stretto.materialization import Program


def path_of(given: object, wanted: str) -> str:
    """A path that is given; StrettoError where something else is."""
    if isinstance(given, str | PathLike):
        return fspath(cast("str | PathLike[str]", given))
    raise misgiven(wanted, given)


@checked
def read(
    path: str | PathLike[str] | TextIO | BinaryIO | Kernel, machine: Machine | str | None = None
) -> Source:
    """The loops of a file, of stdin (``-``) or of an open file, with what is worth saying of them.

    It is a Triton (.ttir) or cuTile kernel (.tileirbc), MLIR, a loop (stretto.loop/1), a
    dependence-graph dump (ddg-0.1), a graph of HatScheT (.graphml) or a modulo problem of CIRCT's
    (ssp); its content says which. The machine matters to kernels and MLIR: they are lowered for it,
    and what an inner loop costs depends on it. Where none is given, a kernel is lowered for the
    target that `X.json` beside `X.ttir` says, else for `h200`. The path of a machine that a loop
    names is relative to the folder of the file.
    """
    if isinstance(path, str | PathLike):
        return read_loops(*read_input(fspath(path)), machine)
    from stretto.kernel import Kernel  # noqa: PLC0415 - few inputs are kernels

    if isinstance(path, Kernel):
        from stretto.api.kernels import kernel_source  # noqa: PLC0415 - likewise

        return kernel_source(path.location.file, (path,), machine)
    if not hasattr(path, "read"):
        raise misgiven("a path, an open file or a kernel", path)
    given = getattr(path, "name", None)
    name = given if isinstance(given, str) else "<stream>"
    return read_loops(name, content(name, path.read()), machine)


def read_loops(file: str, text: str | bytes, machine: Machine | str | None = None) -> Source:
    """All loops of a text."""
    found = _loops(file, text, machine)
    return replace(found, text=text) if isinstance(text, str) else found


def _loops(file: str, text: str | bytes, machine: Machine | str | None) -> Source:
    if isinstance(text, bytes) or is_ttir(file, text):
        from stretto.api.kernels import kernel_source, kernels_of  # noqa: PLC0415 - few inputs are

        return kernel_source(file, kernels_of(file, text), machine)
    target = None if machine is None else load_machine(machine)
    if not is_mlir(text):
        return _read_other(file, text)
    loops, notes = read_mlir(file, text, target)
    if not loops:
        why = "; ".join(texts(notes)) or "it has no scf.for"
        raise DocumentError(file, "", "has no loop that can be read", why)
    return Source(file, loops, notes)


def _read_other(file: str, text: str) -> Source:
    """The loops of a text that is no MLIR of ours."""
    if is_xml(text):
        from stretto.frontends.hatschet import read_graphml  # noqa: PLC0415 - each format its own

        return read_graphml(file, text)
    if not is_json(text) and is_ssp(text):
        from stretto.frontends.ssp import read_ssp  # noqa: PLC0415 - likewise

        return read_ssp(file, text)
    from stretto.frontends.documents import read_source  # noqa: PLC0415 - likewise

    return read_source(file, text)


def chosen(source: Source, name: str | None) -> Source:
    """The loops the user asks about: all, or the one of a name."""
    if name is None:
        return source
    loops = tuple(loop for loop in source.loops if loop.name == name)
    if not loops:
        names = listed(loop.name for loop in source.loops)
        meant = nearest(name, (loop.name for loop in source.loops))
        hint = f"{meant} its loops: {names}".strip()
        raise DocumentError(source.file, "", f"no loop `{name}`", hint)
    return replace(source, loops=loops, notes=about(source, name))


def ready_in(file: str, loop: Loop, machine: Machine | None, why: str = ASKED) -> Prepared:
    """A loop of a file prepared; that it names a machine that is none is a fault of the file."""
    if machine is None and loop.machine is not None:
        try:
            load_machine(loop.machine)
        except MachineError as error:
            raise DocumentError(file, "$.machine", str(error)) from None
    return prepare(loop, machine, why)


# Writing ----------------------------------------------------------------------------------

Format = Literal["json", "mlir"] | Form
FORMATS: tuple[Format, ...] = ("json", "mlir", *FORMS)


@checked
def write(
    what: Loop | Program | Result, path: str | PathLike[str], format: Format | None = None
) -> None:
    """Write a loop, a schedule, a program or another result to a file (``-``: stdout).

    The format is the one given, else what the name of the file ends in: ``.json``, ``.mlir``, and
    of a schedule ``.csv``, ``.svg``, ``.html`` or ``.pftrace`` (a trace). A program is written as
    MLIR alone, and what is neither a loop, a schedule nor a program as JSON alone. The file is
    written whole or not at all.
    """
    if not isinstance(what, Loop | Result):
        from stretto.materialization import Program  # noqa: PLC0415 - few are written

        if not isinstance(what, Program):  # pyright: ignore[reportUnnecessaryIsInstance] - whoever calls may have no types
            raise misgiven("a loop, a program or a result", what)
    name = path_of(path, "the path of a file")
    suffix = PurePath(name).suffix.removeprefix(".")
    asked = format or ("trace" if suffix == "pftrace" else suffix)
    if asked not in FORMATS:
        known = ", ".join(FORMATS)
        raise StrettoError(f"cannot write {name}: no format `{asked}`; known: {known}")
    write_text(name, _written(what, asked))


def _written(what: Loop | Program | Result, asked: str) -> str | bytes:
    if asked in ("json", "mlir"):
        return _json(what) if asked == "json" else _mlir(what)
    from stretto.api.solving import ScheduleResult  # noqa: PLC0415 - few are drawn

    if not isinstance(what, ScheduleResult):
        raise StrettoError(f"only a schedule is written as {asked}", _loop_of(what).name)
    return what.render(asked)


def _json(what: Loop | Program | Result) -> str:
    if isinstance(what, Loop):
        from stretto.loop.json import dump_loop  # noqa: PLC0415 - where a loop is written

        return dump_loop(what)
    if not isinstance(what, Result) or not what.SCHEMA:
        raise StrettoError("a program is written as MLIR, not as JSON", _loop_of(what).name)
    return json.dumps(what.to_document(), indent=2, ensure_ascii=False) + "\n"


def _loop_of(what: Loop | Program | Result) -> Loop:
    if isinstance(what, Loop):
        return what
    return what.problem.loop if isinstance(what, Result) else what.loop


def _mlir(what: Loop | Program | Result) -> str:
    if isinstance(what, Loop):
        return write_mlir(what)
    return what.to_mlir() if isinstance(what, Result) else write_program(what)
