"""The dialects a kernel may use, loaded when a text first names them.

builtin, func   the module and its functions
arith, math     scalar and tile arithmetic
scf             the loops
ub              values that nobody reads
nv_tileas       tiles, their movement and the pipelines between them
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.ir import Dialect

FOREIGN = ("arith", "builtin", "func", "math", "scf", "ub")
"""Dialects of others that a kernel is written in."""


def _nv_tileas() -> Dialect:
    from stretto.ir.dialect import NvTileas  # noqa: PLC0415 - when a text uses it, not before

    return NvTileas


def make_context(allow_unregistered: bool = True) -> Context:
    """A context with these dialects; operations of others are kept as they are, if allowed."""
    context = Context(allow_unregistered=allow_unregistered)
    known = get_all_dialects()
    for name in FOREIGN:
        context.register_dialect(name, known[name])
    context.load_registered_dialect("builtin")
    context.register_dialect("nv_tileas", _nv_tileas)
    return context
