"""`stretto.convert`: a loop from any format that is read to any that is written.

    stretto.convert("fir.graphml", "fir.json")   ──►  .files, .loops, .losses

    .json               stretto.loop/1; a machine that came with the loop stands in it
    .mlir               scf.for
    .graphml            HatScheT's graph, and its resources in OUT_RM.xml
    .ssp, .ssp.mlir     a modulo problem of CIRCT's

What a format cannot say of a loop is told as a loss, never dropped in silence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from os.path import isdir
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal

from stretto.api.read_write import chosen, read
from stretto.errors import StrettoError, listed
from stretto.files import STANDARD, write_text
from stretto.frontends import Source
from stretto.ir import write_mlir
from stretto.kinds import checked
from stretto.loop import Loop, texts
from stretto.loop.json import dump_loop
from stretto.machine import Machine, load_machine
from stretto.report import assumption, columns, wrapped
from stretto.resources.prepare import prepare
from stretto.solution import counted

if TYPE_CHECKING:
    from stretto.schemas.conversion import ConversionDocument

Target = Literal["json", "mlir", "graphml", "ssp"]
TARGETS: tuple[Target, ...] = ("json", "mlir", "graphml", "ssp")
SCHEMA = "stretto.conversion/1"


@dataclass(frozen=True)
class Conversion:
    """What was written where, and what was lost."""

    source: str
    format: Target
    files: tuple[str, ...]
    loops: tuple[tuple[str, int], ...]
    """Names, and how many operations each has."""
    losses: tuple[tuple[str, str], ...]
    """Of a loop, what the format cannot say."""
    notes: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        """The losses and the notes, one a line."""
        return [*(f"{loop}: lost: {told}" for loop, told in self.losses), *self.notes]

    def to_text(self) -> list[str]:
        """For people."""
        rows = [(name, counted(ops, "operation")) for name, ops in self.loops]
        lines = wrapped(f"{self.source} as {self.format}: {', '.join(self.files)}")
        lines += columns(rows, "  ")
        if not self.losses:
            lines.append("  nothing was lost")
        return lines + [part for line in self.lines for part in wrapped(line, "  ", "    ")]

    def to_json(self) -> ConversionDocument:
        """As a document."""
        return {
            "schema": SCHEMA,
            "success": True,
            "input": self.source,
            "format": self.format,
            "files": list(self.files),
            "loops": [{"name": name, "ops": ops} for name, ops in self.loops],
            "losses": [{"loop": loop, "lost": told} for loop, told in self.losses],
            "notes": list(self.notes),
        }


@checked
def convert(
    given: str | PathLike[str] | Source | Loop,
    out: str | PathLike[str],
    machine: Machine | str | None = None,
    *,
    format: Target | None = None,
    loop: str | None = None,
) -> Conversion:
    """Write the loops of an input in another format, and tell what it cannot say of them.

    The format is the one given, else what the name of the file ends in. Several loops go into one
    file where the format can hold them (``ssp``); else `loop` names one. The machine matters to
    graphml and ssp, which state costs: it is the one given, else the one the loop names. Files are
    written whole or not at all.
    """
    if isinstance(given, Loop):
        given = Source(given.name, (given,))
    if not isinstance(machine, str):
        machine = None if machine is None else load_machine(machine)
    source = given if isinstance(given, Source) else read(given, machine)
    source = chosen(source, loop)
    name = fspath(out)
    target = format or target_of(name)
    if len(source.loops) > 1 and target != "ssp":
        names = listed(one.name for one in source.loops)
        told = f"{source.file} has {len(source.loops)} loops, a .{target} file holds one"
        raise StrettoError(f"{told}; name it with --loop (loop=...): {names}")
    made = _written(source.loops, name, target, machine)
    for file, _ in made.files:
        if isdir(file):  # before the one beside it is written
            raise StrettoError(f"cannot write {file}: Is a directory")
    for file, text in made.files:
        write_text(file, text)
    return Conversion(
        source.file,
        target,
        tuple(file for file, _ in made.files),
        tuple((one.name, len(one.ops)) for one in source.loops),
        made.losses,
        (*texts(source.notes), *made.notes),
    )


def target_of(name: str) -> Target:
    """The format that the name of a file asks for."""
    path = PurePath(name)
    if path.suffixes[-2:] == [".ssp", ".mlir"]:
        return "ssp"
    for target in TARGETS:
        if path.suffix == f".{target}":
            return target
    known = ", ".join(f".{target}" for target in TARGETS)
    hint = f"end its name in {known}, or give --to (format=...)"
    raise StrettoError(f"cannot tell the format of {name}; {hint}")


@dataclass(frozen=True, slots=True)
class _Written:
    """Files and their texts, what was lost of which loop, what is worth knowing."""

    files: tuple[tuple[str, str], ...]
    losses: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


def _written(
    loops: Sequence[Loop], name: str, target: Target, machine: Machine | str | None
) -> _Written:
    if target in ("json", "mlir"):
        (one,) = loops
        lost: tuple[tuple[str, str], ...] = ()
        if isinstance(machine, str):
            one = replace(one, machine=machine)
        elif machine is not None:
            lost = ((one.name, f"machine {machine.name}, which has no file to be named"),)
        files = ((name, dump_loop(one) if target == "json" else write_mlir(one)),)
        told = assumption(one.machine or "", one.machine_why)
        return _Written(files, lost, (told,) if told else ())
    ready = [prepare(one, machine) for one in loops]
    on = [(one.loop.name, one.machine, one.machine_why) for one in ready]
    assumed = [(name, assumption(machine.name, why, machine.unit)) for name, machine, why in on]
    told = [f"{name}: {text}" for name, text in assumed if text]
    if target == "ssp":
        from stretto.frontends.ssp_writing import write_ssp  # noqa: PLC0415 - each its own

        parts = [(one.loop.name, write_ssp(one)) for one in ready]
        return _Written(
            ((name, "\n".join(part.text for _, part in parts)),),
            tuple((loop, lost) for loop, part in parts for lost in part.losses),
            (*told, *(f"{loop}: {note}" for loop, part in parts for note in part.notes)),
        )
    if name == STANDARD:
        raise StrettoError("graphml is two files, so it cannot be written on standard output")
    from stretto.frontends.hatschet_writing import write_graphml  # noqa: PLC0415 - likewise

    (only,) = ready
    found = write_graphml(only)
    path = PurePath(name)
    model = str(path.with_name(path.stem + "_RM.xml"))
    losses = tuple((only.loop.name, told) for told in found.losses)
    return _Written(((model, found.model), (name, found.graph)), losses, tuple(told))
