"""Reductions along an axis that one operation combines: one row each.

    reduce.max   gl.max({0}, {axis})

Which operation combines so says that operation's own row; how it is computed follows from it.
"""

from __future__ import annotations

_FOLD = "gl.reduce({0}, {axis}, {function})"

GLUON: dict[str, str] = {
    "reduce.sum": "gl.sum({0}, {axis})",
    "reduce.max": "gl.max({0}, {axis})",
    "reduce.min": "gl.min({0}, {axis})",
    "reduce.maximum": "gl.max({0}, {axis})",
    "reduce.minimum": "gl.min({0}, {axis})",
    "reduce.umax": _FOLD,
    "reduce.umin": _FOLD,
    "reduce.prod": _FOLD,
    "reduce.and": _FOLD,
    "reduce.or": _FOLD,
    "reduce.xor": "gl.xor_sum({0}, {axis})",
}
"""Expressions, as in the rows of operations; {function} puts two elements together."""

FOLDED = {
    "reduce.with": _FOLD,
    "scan": "gl.associative_scan({0}, {axis}, {function}, reverse={reverse})",
    **{name: form for name, form in GLUON.items() if form == _FOLD},
}
"""Those that need a function of their own, whatever it is."""
