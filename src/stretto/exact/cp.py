"""Three words of CP-SAT whose own types say too little."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ortools.sat.python import cp_model


def when(constraint: cp_model.Constraint, literal: cp_model.LiteralT) -> None:
    """The constraint holds where the literal does."""
    constraint.only_enforce_if(literal)  # pyright: ignore[reportUnknownMemberType]


def total(terms: Iterable[cp_model.LinearExprT]) -> cp_model.LinearExpr:
    """Σ terms, as one expression."""
    return cp_model.LinearExpr.sum(list(terms))  # pyright: ignore[reportUnknownMemberType]


def never(model: cp_model.CpModel) -> cp_model.Constraint:
    """A constraint that nothing satisfies."""
    nothing: Sequence[cp_model.IntVar] = ()
    return model.add_bool_or(nothing)
