"""How an atomic operation changes what it finds: one row a kind.

    umax   unsigned_maximum   gl.atomic_max, of addresses of unsigned numbers   umax

The rows stand in the order of the numbers that Triton's generic form and Tile IR have for them.
"""

from __future__ import annotations

from typing import NamedTuple


class Atomic(NamedTuple):
    """One way to change an element."""

    name: str
    """As `kind` of an operation says it, and as Triton does."""
    numpy: str
    """A function of `simulation/values.py` or of NumPy, of what is there and what is given."""
    gluon: str
    """What Gluon calls it, behind `gl.atomic_`."""
    tileir: str
    """As Tile IR spells it."""
    commutes: bool = True
    """Whether the order of several does not matter, as long as nobody looks at what was there."""
    unsigned: bool = False
    """Whether Gluon tells it by the type of addresses and values, which has no sign."""


ATOMICS: dict[str, Atomic] = {
    row.name: row
    for row in (
        Atomic("and", "bitwise_and", "and", "and"),
        Atomic("or", "bitwise_or", "or", "or"),
        Atomic("xor", "bitwise_xor", "xor", "xor"),
        Atomic("add", "add", "add", "add"),
        Atomic("fadd", "add", "add", "addf"),
        Atomic("max", "maximum", "max", "max"),
        Atomic("min", "minimum", "min", "min"),
        Atomic("umax", "unsigned_maximum", "max", "umax", unsigned=True),
        Atomic("umin", "unsigned_minimum", "min", "umin", unsigned=True),
        Atomic("exch", "second", "xchg", "xchg", commutes=False),
    )
}
"""By name."""

COMMUTING = frozenset(row.name for row in ATOMICS.values() if row.commutes)
"""Kinds whose order among themselves does not matter."""
