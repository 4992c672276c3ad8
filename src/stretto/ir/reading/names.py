"""Names that are given once: what a text suggests, with a number behind it where two agree.

%x, %x_1 (which xDSL keeps as two hints `x`)   ──►   x, x_1
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation


class Names:
    """Names in use; those reserved are never given."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken = set(reserved)
        self._counts: dict[str, int] = {}

    def give(self, wanted: str) -> str:
        """The name that is wanted, or one close to it."""
        name, count = wanted, self._counts.get(wanted, 0)
        while name in self._taken:
            count += 1
            name = f"{wanted}_{count}"
        self._counts[wanted] = count
        self._taken.add(name)
        return name


def function_name(op: Operation) -> str:
    """The symbol of the function that encloses an operation."""
    at = op.parent_op()
    while at is not None:
        symbol = at.properties.get("sym_name") or at.attributes.get("sym_name")
        if isinstance(symbol, StringAttr):
            return symbol.data
        at = at.parent_op()
    return "loop"
