"""The textbook formulation of one II: a boolean for every operation and every modulo cycle.

    x[i, c] = 1   operation i stands in modulo cycle c          Σ over c of x[i, c] = 1
    row c of a slot:  Σ over holders of x[i, c - k] × occupancy <= capacity,  k over their hold

After R. Govindarajan, E. Altman and G. Gao, "A framework for resource-constrained rate-optimal
software pipelining" (1996). It is here to disagree with `stretto.exact`, with which it shares the
solver library and nothing else, and to be measured against. Its size grows with the II. It does
not fuse; who compares with it says so to the other side.
"""

from __future__ import annotations

from ortools.sat.python import cp_model

from stretto.loop import Loop, Op
from stretto.machine import Machine


def time_indexed(
    loop: Loop, machine: Machine, ii: int, *, max_stages: int | None = None, seconds: float = 60.0
) -> str:
    """``found``, ``refuted`` or ``undecided``, with unlimited stages unless limited."""
    machine = machine.with_slots(loop.slots)
    model = cp_model.CpModel()
    most = _enough_stages(loop, ii) if max_stages is None else max_stages - 1
    x = {op.name: [model.new_bool_var(f"{op.name}@{c}") for c in range(ii)] for op in loop.ops}
    stage: dict[str, cp_model.IntVar] = {}
    start: dict[str, cp_model.LinearExpr] = {}
    for op in loop.ops:
        model.add_exactly_one(x[op.name])
        limit = most if op.constraint.max_depth is None else min(most, op.constraint.max_depth)
        stage[op.name] = model.new_int_var(0, limit, f"stage {op.name}")
        start[op.name] = ii * stage[op.name] + sum(c * x[op.name][c] for c in range(ii))
    for d in loop.dependences:
        model.add(start[d.dst] - start[d.src] >= d.latency - ii * d.distance)
    for group in loop.groups:
        for name in group[1:]:
            wide = _offset(loop, name) - _offset(loop, group[0])
            model.add(stage[name] == stage[group[0]] + wide)
    _rows(model, loop, machine, ii, x)
    _memory(model, loop, machine, ii, start)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = seconds
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return "refuted"
    return "found" if status in (cp_model.OPTIMAL, cp_model.FEASIBLE) else "undecided"


def _offset(loop: Loop, name: str) -> int:
    return loop.op(name).constraint.stage_offset


def _enough_stages(loop: Loop, ii: int) -> int:
    """Every operation as far behind the one before it as any rule can ask, all in a row."""
    latest = max((d.latency for d in loop.dependences), default=0)
    longest = max((_done(op) for op in loop.ops), default=0)
    distance = max((r.distance for op in loop.ops for r in op.reads), default=0)
    offset = max(op.constraint.stage_offset for op in loop.ops)
    return len(loop.ops) * (-(-max(latest, longest) // ii) + distance + 1 + offset)


def _done(op: Op) -> int:
    return max([op.latency or 0, *(use.offset + use.duration for use in op.uses or ())])


def _rows(
    model: cp_model.CpModel,
    loop: Loop,
    machine: Machine,
    ii: int,
    x: dict[str, list[cp_model.IntVar]],
) -> None:
    """One inequality for every row of every slot and pool."""
    held: dict[tuple[str, str], list[tuple[str, int, int]]] = {}
    for op in loop.ops:
        uses = op.uses or ()
        for use in uses:
            cells = held.setdefault(("slot", use.slot), [])
            cells += [(op.name, use.offset + k, use.occupancy) for k in range(use.duration)]
        for demand in op.demands:
            lasts = max((use.duration for use in uses), default=0)
            cells = held.setdefault(("pool", demand.pool), [])
            cells += [(op.name, k, demand.units) for k in range(lasts)]
    for (what, name), cells in held.items():
        limit = machine.slot(name).capacity if what == "slot" else machine.pool(name).cap
        if limit is not None:
            for row in range(ii):
                taken = sum(amount * x[op][(row - k) % ii] for op, k, amount in cells)
                model.add(taken <= limit)


def _memory(
    model: cp_model.CpModel,
    loop: Loop,
    machine: Machine,
    ii: int,
    start: dict[str, cp_model.LinearExpr],
) -> None:
    """Copies of every storage, and their bytes in every space."""
    needed: dict[str, list[cp_model.LinearExpr | int]] = {}
    for s in loop.storages:
        if s.space == "register":
            continue
        writers = [op for op in loop.ops if s.name in op.writes]
        if s.fixed or not writers:
            needed.setdefault(s.space, []).append(s.bytes)
            continue
        copies = model.new_int_var(1, 10_000, f"copies {s.name}")
        ends = [(op, 0) for op in writers]
        ends += [(op, r.distance) for op in loop.ops for r in op.reads if r.storage == s.name]
        for op, distance in ends:
            for writer in writers:
                life = start[op.name] + (_done(op) + ii * distance) - start[writer.name]
                model.add(ii * copies >= life)
        if s.depth is not None:
            model.add(copies <= s.depth)
        needed.setdefault(s.space, []).append(s.bytes * copies)
    for space, sizes in needed.items():
        budget = machine.budget(space)
        if budget is not None and budget.bytes is not None:
            model.add(sum(sizes) <= budget.bytes)
