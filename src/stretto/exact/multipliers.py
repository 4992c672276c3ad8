"""A linear relaxation that refutes an II, added up in whole numbers.

    multiplier × (row of a slot)             3 × (a@2 + b@2 + b@6 <= 1)
    multiplier × (what implies what)      +  2 × (begun[b, 4] <= begun[a, 1])        ...
    ─────────────────────────────────────────────────────────────────────────
    a sum that no literals between 0 and 1 keep to: no schedule does

GLOP, the simplex method of OR-tools, minimizes by how much capacities would have to be exceeded.
It counts in floating point, so what it says is no proof; but its multipliers are one once they are
rounded to whole numbers and the sum of the rows is found impossible: any multipliers will do that
are not negative (J. Farkas, 1902).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from ortools.linear_solver.python.model_builder_helper import (
    ModelBuilderHelper,
    ModelSolverHelper,
    SolveStatus,
)

from stretto.exact.solving import Clock
from stretto.exact.windows import Stand, Windows

SCALE = 1 << 40
"""A multiplier of 1."""
ITERATIONS = 30_000
"""Steps of the simplex method after which nothing is said."""
WORK = 1e-4
"""Units of work, for each literal."""


def refutes(windows: Windows, clock: Clock) -> bool:
    """Whether the linear relaxation of an II has no solution."""
    capacities = list(windows.capacities())
    found = _multipliers(windows, capacities, clock)
    return found is not None and impossible(windows, capacities, found)


def _multipliers(
    windows: Windows, capacities: Sequence[tuple[int, list[tuple[int, Stand]]]], clock: Clock
) -> list[int] | None:
    """What the rows of implications, then those of capacities, are multiplied by; None: nothing."""
    made = ModelBuilderHelper()
    certain = set(windows.certain)
    for k in range(windows.size):
        _variable(made, float(k in certain), 1.0)
    beyond = _variable(made, 0.0, inf)
    made.set_var_objective_coefficient(beyond, 1.0)
    for literal, implied in windows.implied:
        _row(made, 0, {literal: 1, implied: -1})
    for limit, cell in capacities:
        terms, certainly = _terms(cell)
        _row(made, limit - certainly, {**terms, beyond: -1})
    solver = ModelSolverHelper("glop")
    solver.set_solver_specific_parameters(f"max_number_of_iterations: {ITERATIONS}")
    if clock.seconds_left is not None:
        solver.set_time_limit_in_seconds(clock.seconds_left)
    solver.solve(made)
    clock.work += WORK * windows.size
    if solver.status() != SolveStatus.OPTIMAL or solver.objective_value() <= 0:
        return None
    return [max(0, round(-value * SCALE)) for value in solver.dual_values().tolist()]


def _variable(made: ModelBuilderHelper, low: float, high: float) -> int:
    k = made.add_var()
    made.set_var_lower_bound(k, low)
    made.set_var_upper_bound(k, high)
    return k


def _row(made: ModelBuilderHelper, most: int, terms: dict[int, int]) -> None:
    """Σ terms <= most."""
    row = made.add_linear_constraint()
    made.set_constraint_lower_bound(row, -inf)
    made.set_constraint_upper_bound(row, most)
    for k, amount in terms.items():
        made.add_term_to_constraint(row, k, amount)


def impossible(
    windows: Windows,
    capacities: Sequence[tuple[int, list[tuple[int, Stand]]]],
    multipliers: Sequence[int],
) -> bool:
    """Whether the rows times these, added up, ask for more than literals can have."""
    least = 0
    terms = [0] * windows.size
    for (literal, implied), times in zip(windows.implied, multipliers, strict=False):
        terms[literal] += times
        terms[implied] -= times
    filled = multipliers[len(windows.implied) :]
    for (limit, cell), times in zip(capacities, filled, strict=True):
        own, certainly = _terms(cell)
        least += times * (certainly - limit)
        for k, amount in own.items():
            terms[k] += times * amount
    certain = set(windows.certain)
    return least + sum(t for k, t in enumerate(terms) if t < 0 or k in certain) > 0


def _terms(cell: Sequence[tuple[int, Stand]]) -> tuple[dict[int, int], int]:
    """What fills a modulo cycle: by literal, and whatever they are."""
    terms: dict[int, int] = {}
    certainly = 0
    for amount, (_, by, before) in cell:
        if by is None:
            certainly += amount
        else:
            terms[by] = terms.get(by, 0) + amount
        if before is not None:
            terms[before] = terms.get(before, 0) - amount
    return terms, certainly
