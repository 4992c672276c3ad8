"""`stretto.write`: loops, schedules and programs to files.

             .json                      .mlir
Loop         stretto.loop/1             scf.for
schedule     stretto.schedule/1         scf.for with nv_tile.aws.* attributes
program      --                         nv_tileas.async.pipeline.program
others       their documents            --
"""

from __future__ import annotations

import json
from os import PathLike, fspath
from pathlib import PurePath
from typing import Literal

from stretto.api.results import Result
from stretto.api.scheduling import ScheduleResult
from stretto.errors import StrettoError
from stretto.files import write_text
from stretto.ir import write_mlir, write_program, write_schedule
from stretto.loop import Loop
from stretto.loop.json import dump_loop
from stretto.materialize import Program

Format = Literal["json", "mlir"]
FORMATS: tuple[Format, ...] = ("json", "mlir")


def write(
    what: Loop | Program | Result, path: str | PathLike[str], format: Format | None = None
) -> None:
    """Write a loop, a schedule, a program or another result to a file (``-``: stdout).

    The format is the one given, else what the name of the file ends in: ``.json`` or ``.mlir``. A
    program is written as MLIR alone, and what is neither a loop, a schedule nor a program as JSON
    alone. The file is written whole or not at all.
    """
    name = fspath(path)
    asked = format or PurePath(name).suffix.removeprefix(".")
    if asked not in FORMATS:
        known = ", ".join(FORMATS)
        raise StrettoError(f"cannot write {name}: no format `{asked}`; known: {known}")
    write_text(name, _json(what) if asked == "json" else _mlir(what))


def _json(what: Loop | Program | Result) -> str:
    if isinstance(what, Loop):
        return dump_loop(what)
    if isinstance(what, Program):
        raise StrettoError("a program is written as MLIR, not as JSON", what.loop.name)
    entry = what.to_json()
    document = {"schema": what.SCHEMA, "success": entry["success"], "loops": [entry]}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _mlir(what: Loop | Program | Result) -> str:
    if isinstance(what, Loop):
        return write_mlir(what)
    if isinstance(what, Program):
        return write_program(what)
    if not isinstance(what, ScheduleResult):
        raise StrettoError(f"{what!r} is written as JSON, not as MLIR")
    if not what.success:
        raise StrettoError("there is no schedule to write", what.loop)
    return write_schedule(what.problem.loop, what)
