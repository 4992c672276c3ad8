"""The operations of a kernel: what is true of each stands in its row, and nowhere else.

    arith.*, math.*      as MLIR has them: elementwise on scalars, or on tiles of one shape
    libdevice.*          functions of CUDA's library, elementwise too
    scf.*                structured control flow, as MLIR has it
    tile.*               tiles, addresses, views of tensors, products, reductions, the grid

Tiles of different shapes never meet: front ends write every broadcast out. Integers have no sign;
an operation's name says how it takes them. Coordinates of a view are in elements, not in tiles.
"""

from __future__ import annotations

from stretto.ops.arithmetic import ARITHMETIC
from stretto.ops.libdevice import LIBDEVICE
from stretto.ops.rows import NONE, Row
from stretto.ops.tiles import TILES

BY_HAND = "by hand"
"""What stands for a syntax that no form describes."""

OPERATIONS: dict[str, Row] = {row.name: row for row in (*ARITHMETIC, *LIBDEVICE, *TILES)}
"""By name. An operation that is not here does not go into a kernel: its front end refuses it."""

SAME_NUMBER = frozenset(row.name for row in OPERATIONS.values() if row.renames)
"""Those whose result is their operand, as another type or with a promise."""

BY_SYMBOL: dict[str, Row] = {symbol: row for row in OPERATIONS.values() for symbol in row.symbols}
"""By the function of libdevice that they are."""

REDUCTIONS: dict[str, str] = {row.name: row.reduces for row in OPERATIONS.values() if row.reduces}
"""What a reduction is called, by what combines two elements."""

OF_COST: dict[str, tuple[str, ...]] = {
    cost: tuple(row.name for row in OPERATIONS.values() if row.elementwise and row.cost == cost)
    for cost in dict.fromkeys(row.cost for row in OPERATIONS.values() if row.elementwise)
}
"""What is computed element by element, by its class of costs."""


def combining_row(reduction: str, *, floats: bool) -> str:
    """The operation that a reduction of numbers combines two elements by."""
    rows = [row for row in OPERATIONS.values() if row.reduces == reduction]
    fitting = (row.name for row in rows if row.types.startswith("f") == floats)
    return next(fitting, rows[0].name)


def of_tileir(name: str, *words: str) -> str:
    """What an operation of Tile IR is called in a kernel, with what its attributes say; or ""."""
    return _TILEIR.get(" ".join((name, *words)), "")


def ttir_formats() -> dict[str, str]:
    """How Triton's MLIR spells each, by its name there; not those with a syntax of their own."""
    return {name: form for name, form, _ in _spelled() if form != BY_HAND}


def from_ttir() -> dict[str, str]:
    """What each operation of Triton's MLIR is called in a kernel."""
    return {name: row for name, _, row in _spelled()}


def _spelled() -> list[tuple[str, str, str]]:
    """Names and forms in Triton's MLIR, and the row."""
    found: list[tuple[str, str, str]] = []
    for row in OPERATIONS.values():
        if row.ttir == NONE:
            continue
        first, _, rest = row.ttir.partition(" ")
        named = "." in first and ":" not in first
        found.append((first, rest, row.name) if named else (row.name, row.ttir, row.name))
    return found


_TILEIR = {spelled: row.name for row in OPERATIONS.values() for spelled in row.tileir}
