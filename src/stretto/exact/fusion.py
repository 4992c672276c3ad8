"""Fused groups as a choice of the model.

    read0 ─┐ leads                  joins[read2, read0] = 1:  read2 starts with read0 and
    read1  │ leads alone            holds nothing of its own; read0 holds one shape that
    read2 ─┘                        covers both (decision 10)

    Σ over leaders of joins[i, leader] = 1;  members of a leader <= fusion cap
    joins[i, leader]  =>  start[i] = start[leader]
    exactly one shape a leader, from the earliest offset to the latest end of its members

A group is led by its first member in program order, so it has one name. Shapes are enumerated: the
joins of up to `cap` members' shapes are few, and a hold of constant length may be longer than II.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ortools.sat.python import cp_model

from stretto.exact.case import Case
from stretto.exact.cp import when
from stretto.problem import Class
from stretto.problem.fusion import Shape, join, shape


@dataclass(frozen=True, slots=True)
class Choice:
    """The groups a solution may form in one class."""

    joins: dict[tuple[int, int], cp_model.IntVar]
    """(member, leader) to whether it joins; (i, i): whether it leads."""
    holds: dict[tuple[int, Shape], cp_model.IntVar]
    """(leader, shape) to whether this is what its group holds."""

    def groups(self, value: dict[tuple[int, int], bool]) -> list[tuple[int, ...]]:
        """The groups of more than one operation, given which joins are true."""
        found: dict[int, list[int]] = {}
        for i, leader in self.joins:
            if value[i, leader]:
                found.setdefault(leader, []).append(i)
        return [tuple(sorted(group)) for group in found.values() if len(group) > 1]


def choose(
    model: cp_model.CpModel, case: Case, c: Class, starts: Sequence[cp_model.LinearExprT]
) -> Choice:
    """Variables and constraints of one class."""
    apart = c.apart
    joins: dict[tuple[int, int], cp_model.IntVar] = {}
    for i in c.members:
        case.deadline.check()
        for leader in c.members:
            if leader <= i and (leader, i) not in apart:
                joins[i, leader] = model.new_bool_var(f"join_{i}_{leader}")
    for i in c.members:
        case.deadline.check()
        model.add_exactly_one([var for (member, _), var in joins.items() if member == i])
    for leader in c.members:
        case.deadline.check()
        joined = {i: var for (i, to), var in joins.items() if to == leader and i != leader}
        leads = joins[leader, leader]
        if len(joined) >= c.cap:
            model.add(sum(joined.values()) <= c.cap - 1)
        for i, var in joined.items():
            model.add_implication(var, leads)
            when(model.add(starts[i] == starts[leader]), var)
        for a, b in apart:
            if a in joined and b in joined:
                model.add_bool_or([~joined[a], ~joined[b]])
    return Choice(joins, _holds(model, case, c, joins))


def _holds(
    model: cp_model.CpModel, case: Case, c: Class, joins: dict[tuple[int, int], cp_model.IntVar]
) -> dict[tuple[int, Shape], cp_model.IntVar]:
    """One shape a leader, which covers the shapes of all that join it."""
    own = {i: shape(case.problem.vectors[i]) for i in c.members}
    holds: dict[tuple[int, Shape], cp_model.IntVar] = {}
    for leader in c.members:
        case.deadline.check()
        others = [i for (i, to) in joins if to == leader and i != leader]
        leads = joins[leader, leader]
        shapes = _shapes(own[leader], [own[i] for i in others], c.cap)
        if len(shapes) == 1:
            holds[leader, shapes[0]] = leads
            continue
        variables = [model.new_bool_var(f"shape_{leader}_{k}") for k in range(len(shapes))]
        model.add(sum(variables) == leads)
        for covering, var in zip(shapes, variables, strict=True):
            holds[leader, covering] = var
            for i in others:
                if join(covering, own[i]) != covering:
                    model.add_bool_or([~var, ~joins[i, leader]])
    return holds


def _shapes(own: Shape, others: Sequence[Shape], cap: int) -> list[Shape]:
    """Every shape a group of this leader may have, its own first."""
    found = {own: None}
    front = list(found)
    for _ in range(cap - 1):
        front = [s for a in front for b in others if (s := join(a, b)) not in found]
        front = list(dict.fromkeys(front))
        if not front:
            break
        found.update(dict.fromkeys(front))
    return list(found)


def keep_acyclic(model: cp_model.CpModel, case: Case, choices: Sequence[Choice]) -> None:
    """With every group drawn as one node, dependences of distance 0 form no cycle.

    ``rank[dst] > rank[src]`` along a dependence, equal inside a group.
    """
    inside = [(src, dst) for src, dst, d in case.edges if d.distance == 0]
    ranks = [model.new_int_var(0, case.size - 1, f"rank_{i}") for i in range(case.size)]
    for src, dst in inside:
        model.add(ranks[dst] >= ranks[src] + 1)
    for choice in choices:
        for (i, leader), var in choice.joins.items():
            if i != leader:
                when(model.add(ranks[i] == ranks[leader]), var)
