"""The operations of a kernel: what each takes and makes, one row each.

    arith.*, math.*      as MLIR has them: elementwise on scalars, or on tiles of one shape
    scf.*                structured control flow, as MLIR has it
    tile.*               tiles, addresses, views of tensors, products, reductions, the grid

Tiles of different shapes never meet: front ends write every broadcast out. Integers have no sign;
an operation's name says how it takes them. Coordinates of a view are in elements, not in tiles.
"""

from __future__ import annotations

from typing import NamedTuple


class Signature(NamedTuple):
    """How many operands and results an operation has; None: any number."""

    operands: tuple[int, int | None]
    """At least, at most."""
    results: tuple[int, int | None]
    attributes: tuple[str, ...] = ()
    """Those it must have."""
    regions: int = 0
    says: str = ""


def _row(least: int, most: int | None, made: int, says: str, *attributes: str) -> Signature:
    return Signature((least, most), (made, made), attributes, 0, says)


_BINARY = _row(2, 2, 1, "a and b, element by element")
_UNARY = _row(1, 1, 1, "of a, element by element")

OPERATIONS: dict[str, Signature] = {
    "arith.constant": _row(
        0, 0, 1, "`value`: a number that is everywhere, or a tuple of all elements", "value"
    ),
    **{
        f"arith.{name}": _BINARY
        for name in (
            "addf", "subf", "mulf", "divf", "remf", "maxnumf", "minnumf", "maximumf", "minimumf",
            "addi", "subi", "muli", "divsi", "divui", "remsi", "remui", "ceildivsi", "ceildivui",
            "floordivsi", "maxsi", "minsi", "maxui", "minui", "andi", "ori", "xori", "shli",
            "shrsi", "shrui", "mulhiui", "mulhisi",
        )
    },
    **{
        f"arith.{name}": _row(2, 2, 1, "`predicate` as MLIR spells it: slt, uge, oeq, une ...", "predicate")
        for name in ("cmpi", "cmpf")
    },
    "arith.select": _row(3, 3, 1, "condition, then, else; the condition may be a scalar"),
    **{
        f"arith.{name}": _UNARY
        for name in (
            "negf", "extf", "truncf", "extsi", "extui", "trunci", "sitofp", "uitofp", "fptosi",
            "fptoui", "bitcast", "index_cast",
        )
    },
    **{
        f"math.{name}": _UNARY
        for name in (
            "absf", "absi", "exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "tan",
            "tanh", "sinh", "cosh", "erf", "floor", "ceil", "roundeven",
        )
    },
    "math.powf": _BINARY,
    "math.fma": _row(3, 3, 1, "a * b + c"),
    # Control flow.
    "scf.for": Signature(
        (3, None), (0, None), (), 1,
        "lower, upper, step, initial values; region: index, carried values; ends in scf.yield",
    ),
    "scf.if": Signature(
        (1, 1), (0, None), (), 2, "condition; then and else, each ending in scf.yield"
    ),
    "scf.while": Signature(
        (0, None), (0, None), (), 2,
        "initial values; before: carried values, ends in scf.condition; after: ends in scf.yield",
    ),
    "scf.yield": Signature((0, None), (0, 0)),
    "scf.condition": Signature((1, None), (0, 0), (), 0, "whether to go on, what is handed on"),
    "tile.return": Signature((0, 0), (0, 0), (), 0, "the end of the kernel, at the end of its body only"),
    # The grid.
    "tile.block_index": _row(0, 0, 1, "of this block along `axis`", "axis"),
    "tile.block_count": _row(0, 0, 1, "of blocks along `axis`", "axis"),
    "tile.tile_count": _row(0, 0, 1, "of tiles along `axis` that a launch asks for, where `blocks` blocks at most go over them", "axis", "blocks"),
    # Tiles.
    "tile.splat": _row(1, 1, 1, "a scalar everywhere"),
    "tile.range": _row(0, 0, 1, "start, start + 1, ... below end", "start", "end"),
    "tile.broadcast": _row(1, 1, 1, "dimensions of size 1 are repeated; the rank stays"),
    "tile.expand_dims": _row(1, 1, 1, "a dimension of size 1 comes in at `axis`", "axis"),
    "tile.reshape": _row(1, 1, 1, "the same elements in the same order; to and from a scalar too"),
    "tile.transpose": _row(1, 1, 1, "`order`: which dimension of the source each one is", "order"),
    "tile.join": _row(2, 2, 1, "two tiles, along a new last dimension"),
    "tile.split": _row(1, 1, 2, "the two halves of a last dimension of size 2"),
    "tile.cat": _row(2, 2, 1, "two tiles one after the other along `axis`", "axis"),
    "tile.extract": Signature((1, None), (1, 1), (), 0, "a part of a tile: the tile, then the index of the part, in parts"),
    "tile.gather": _row(2, 2, 1, "source and indices along `axis`", "axis"),
    # Memory.
    "tile.offset": _row(2, 2, 1, "address (or tile of such) and how many elements further"),
    "tile.load": Signature((1, 3), (1, 2), (), 0, "addresses, then mask, then what else is read; may make a token"),
    "tile.store": Signature((2, 3), (0, 1), (), 0, "addresses, values, then mask"),
    "tile.atomic_rmw": Signature((2, 3), (1, 2), ("kind",), 0, "addresses, values, mask; `kind`: add, fadd, max, min, umax, umin, and, or, xor, exch"),
    "tile.atomic_cas": Signature((3, 4), (1, 2), (), 0, "addresses, expected, new, then mask"),
    "tile.pointer_to_int": _UNARY,
    "tile.int_to_pointer": _UNARY,
    "tile.view": Signature((1, None), (1, 1), (), 0, "address, then the sizes that the type leaves open (all if it states none), then such strides"),
    "tile.view_load": Signature((2, None), (1, 2), (), 0, "view, then coordinates in elements"),
    "tile.view_store": Signature((3, None), (0, 1), (), 0, "view, tile, then coordinates in elements"),
    "tile.view_gather": Signature((3, 3), (1, 1), (), 0, "view, rows, column"),
    "tile.view_scatter": Signature((4, 4), (0, 0), (), 0, "view, tile, rows, column"),
    "tile.view_reduce": Signature((3, None), (0, 0), ("kind",), 0, "view, tile, coordinates"),
    "tile.view_size": _row(1, 1, 1, "of a view's tensor along `axis`, in elements", "axis"),
    # Products and reductions.
    "tile.dot": _row(3, 3, 1, "a, b, accumulator: a × b + accumulator; a leading dimension is a batch"),
    "tile.reduce": Signature((1, None), (1, None), ("axis",), 1, "region: results so far, then elements; ends in tile.yield"),
    "tile.scan": Signature((1, None), (1, None), ("axis",), 1, "as reduce, all sums on the way; `reverse`"),
    "tile.yield": Signature((1, None), (0, 0)),
    # What is known, and what is only said.
    "tile.assume": _row(1, 1, 0, "that a condition holds"),
    "tile.hint": _row(1, 1, 1, "the same value, of which `divisibility`, `contiguity`, `constancy`, `lower` or `upper` is promised"),
    "tile.assert": Signature((1, 1), (0, 0), (), 0, "a condition; `message`"),
    "tile.barrier": Signature((0, 0), (0, 0), (), 0, "all threads meet"),
    "tile.token": Signature((0, None), (1, 1), (), 0, "order: after all of these"),
}  # fmt: skip
"""By name. An operation that is not here does not go into a kernel: its front end refuses it."""

SAME_NUMBER = frozenset(
    ("tile.hint", "arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast")
)
"""Those whose result is their operand, as another type or with a promise."""
