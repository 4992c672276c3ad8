"""What is said of an operation of a kernel: one row each, in columns of text and plain data.

    math.sin   f -> f   np.sin   gl.sin({f0})   o B A : R   sin   special

Nobody is called from here: whoever evaluates, prints, reads or counts resolves the text of his own
column. A language that has no such operation is stated as `-`, with what to write instead where
that is known; a column that is empty is a mistake, and a test names it.
"""

from __future__ import annotations

from typing import NamedTuple

NONE = "-"
"""How a column begins that says: there is no such thing, and perhaps why."""


def reason_of(column: str) -> str | None:
    """What a column says of a language that has no such operation; None: it has."""
    if column != NONE and not column.startswith(f"{NONE} "):
        return None
    return column.removeprefix(NONE).strip()


class Row(NamedTuple):
    """All that is true of one operation of a kernel."""

    name: str
    """As a kernel has it; those of MLIR's own dialects have MLIR's names."""
    types: str
    """What it takes and makes. Element by element: `f f -> f`, where a letter is a type (f and g
    floating point, i and j integers, x and y any numbers or addresses, p an address, c truths,
    anything else an element type as it is), and all have one shape; after a semicolon, how the
    result is beside the first operand: wider, narrower, of the same bits.
    Of all else, the name of a rule of `kernel/checking.py`; `-` where numbers of operands do."""
    says: str
    """In words."""
    operands: tuple[int, int | None] = (0, 0)
    """At least, at most; None: any number."""
    results: tuple[int, int | None] = (0, 0)
    attributes: tuple[str, ...] = ()
    """Those it must have."""
    regions: int = 0
    numpy: str = ""
    """Its value: a function of `simulation/values.py` or of NumPy; of what is not computed element
    by element, a method of `simulation/kernels/evaluator.py`."""
    gluon: str = ""
    """Its expression: {0} an operand; {u0} without a sign, {f0} of 32 bits at least, {type} the
    result's element type, {bits} its width."""
    ttir: str = ""
    """How Triton's MLIR spells it, in the letters of `frontends/triton/formats.py`; the name stands
    in front where it is another one. `by hand`: its syntax is its own."""
    symbols: tuple[str, ...] = ()
    """Functions of libdevice that are it, as `tt.extern_elementwise` names them."""
    tileir: tuple[str, ...] = ()
    """How Tile IR spells it: its name, then what its attributes say of it."""
    cost: str = ""
    """Its class of costs: the files of machines say what a class takes."""
    mlir: str = ""
    """What it is called in a lowered kernel; two names: the second is that on tiles."""
    reduces: str = ""
    """What a reduction is called that combines two elements so."""
    renames: bool = False
    """Whether its result is its operand's number, as another type or with a promise."""
    pure: bool = False
    """Whether it is done for what it makes alone."""
    axis: str = ""
    """What is known of its result, of integers and addresses: a rule of `kernel/axes.py`; nothing
    if empty."""

    @property
    def elementwise(self) -> bool:
        """Whether each element of its result is made of one element of each operand."""
        return "->" in self.types

    def lacking(self) -> tuple[str, ...]:
        """The columns that it does not state."""
        columns = ("types", "says", "numpy", "gluon", "ttir", "tileir", "cost", "mlir")
        return tuple(column for column in columns if not getattr(self, column))


def elementwise(
    name: str,
    types: str,
    says: str,
    *,
    numpy: str,
    gluon: str,
    cost: str,
    ttir: str = NONE,
    symbols: str = "",
    tileir: tuple[str, ...] = (NONE,),
    mlir: str = "",
    attributes: tuple[str, ...] = (),
    reduces: str = "",
    renames: bool = False,
    axis: str = "",
) -> Row:
    """The row of an operation that is computed element by element; its types count its operands."""
    taken = len(types.partition("->")[0].split())
    return Row(
        name,
        types,
        says,
        (taken, taken),
        (1, 1),
        attributes,
        numpy=numpy,
        gluon=gluon,
        ttir=ttir,
        symbols=tuple(f"__nv_{symbol}" for symbol in symbols.split()),
        tileir=tileir,
        cost=cost,
        mlir=mlir or name,
        reduces=reduces,
        renames=renames,
        pure=True,
        axis=axis,
    )
