"""One II, start by start: refuted by its linear relaxation, or asked of the solver.

    Windows ──► multipliers ──► refuted
                  └─ else ──► solver ──► refuted | a hint | nothing

Where the II is small against the number of operations, as in loops of single words and memory
ports, this refutes in a second what intervals on a circle do not in minutes. What is found keeps to
recurrences, slots and pools, and is a hint for the model of all rules.
"""

from __future__ import annotations

from dataclasses import dataclass

from ortools.sat.python import cp_model

from stretto.exact.case import Case, Solution
from stretto.exact.cp import total
from stretto.exact.multipliers import refutes
from stretto.exact.solving import Clock, run
from stretto.exact.windows import Stand, Windows

MOST = 8_000
"""Literals above which the solver is not asked: its linear relaxation gets slow."""
WORK = 6.0
"""Units of work that the solver may take."""


@dataclass(frozen=True, slots=True)
class Found:
    """What was said of an II."""

    refuted: bool
    hint: Solution | None = None


def ask(case: Case, ii: int, clock: Clock, share: float) -> Found:
    """Whether recurrences and holds refute an II; else starts that keep to them, if any came."""
    windows = Windows(case, ii)
    if windows.impossible:
        return Found(refuted=True)
    if not windows.worth:
        return Found(refuted=False)
    if refutes(windows, clock):
        return Found(refuted=True)
    if windows.size > MOST or clock.over:
        return Found(refuted=False)
    model = cp_model.CpModel()
    begun = _write(model, windows)
    solver, status = run(model, clock, min(share, WORK / clock.left), linear=True)
    if status == cp_model.INFEASIBLE:
        return Found(refuted=True)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Found(refuted=False)
    values = [solver.boolean_value(literal) for literal in begun]
    return Found(refuted=False, hint=windows.solution(values))


def _write(model: cp_model.CpModel, windows: Windows) -> list[cp_model.IntVar]:
    """The program in the solver's terms; its literals."""
    begun = [model.new_bool_var("") for _ in range(windows.size)]
    for literal in windows.certain:
        model.add_bool_or([begun[literal]])
    for literal, implied in windows.implied:
        model.add_implication(begun[literal], begun[implied])
    stands: dict[Stand, cp_model.LiteralT] = {}
    for own in windows.at.values():
        for stand in own:
            stands[stand] = _stand(model, begun, stand)
        model.add_exactly_one([stands[stand] for stand in own])
    for limit, cell in windows.capacities():
        if all(2 * amount > limit for amount, _ in cell):
            model.add_at_most_one([stands[stand] for _, stand in cell])
        else:
            model.add(total([amount * stands[stand] for amount, stand in cell]) <= limit)
    return begun


def _stand(
    model: cp_model.CpModel, begun: list[cp_model.IntVar], stand: Stand
) -> cp_model.LiteralT:
    """Whether an operation begins then and no sooner."""
    _, by, before = stand
    if before is None:
        return model.new_constant(1) if by is None else begun[by]
    if by is None:
        return ~begun[before]
    literal = model.new_bool_var("")
    model.add(begun[by] - begun[before] == literal)
    return literal
