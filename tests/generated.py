"""Hypothesis strategies: machines and resolved loops that pass `check()`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import strategies as st

from stretto.loop import (
    Access,
    Constraint,
    Demand,
    Dependence,
    DependenceKind,
    Facts,
    Loop,
    Op,
    Operand,
    Storage,
    TileType,
    Use,
    Value,
    check,
)
from stretto.machine import Budget, Machine, Pool, Slot
from stretto.ops.spaces import MEMORIES


@dataclass(frozen=True)
class Problem:
    """A loop and the machine it is for."""

    loop: Loop
    machine: Machine


@st.composite
def machines(draw: st.DrawFn, max_slots: int = 3, fusion: bool = True) -> Machine:
    """A small machine: some slots, some pools, small memory budgets."""
    slots = [
        Slot(
            id=i + 1,
            name=f"s{i}",
            capacity=draw(st.sampled_from([1, 1, 1, 2, 3, None])),
            fusion_cap=draw(st.sampled_from([1, 1, 2, 3])) if fusion else 1,
        )
        for i in range(draw(st.integers(1, max_slots)))
    ]
    pools = [Pool(f"p{i}", draw(st.integers(1, 5))) for i in range(draw(st.integers(0, 2)))]
    budgets = (
        Budget("smem", draw(st.integers(8, 40))),
        Budget("tmem", draw(st.integers(8, 40))),
        Budget("register", 1 << 18, unit=512),
    )
    return Machine("tiny", "a generated machine", tuple(slots), tuple(pools), budgets=budgets)


def _uses(draw: st.DrawFn, machine: Machine, max_duration: int) -> tuple[Use, ...]:
    chosen = draw(
        st.lists(st.sampled_from(machine.slots), max_size=2, unique_by=lambda slot: slot.name)
    )
    uses: list[Use] = []
    for slot in chosen:
        most = 2 if slot.capacity is None else slot.capacity
        uses.append(
            Use(
                slot.name,
                duration=draw(st.integers(0, max_duration)),
                offset=draw(st.sampled_from([0, 0, 0, 1, 2])),
                occupancy=draw(st.integers(1, most)),
            )
        )
    return tuple(uses)


def _op(draw: st.DrawFn, machine: Machine, index: int, max_duration: int) -> Op:
    demands = tuple(
        Demand(pool.name, draw(st.integers(0, pool.cap)))
        for pool in machine.pools
        if draw(st.booleans())
    )
    constraint = Constraint(
        gid=draw(st.sampled_from([None, 0, 0, 1])),
        leader_gid=draw(st.sampled_from([None, None, None, None, 0])),
        max_depth=draw(st.sampled_from([None, None, None, 0, 1, 2])),
    )
    return Op(
        name=f"op{index}",
        kind=draw(st.sampled_from(["a", "b"])),
        uses=_uses(draw, machine, max_duration),
        demands=demands,
        latency=draw(st.integers(0, max_duration + 2)),
        facts=Facts(bank=draw(st.sampled_from([None, 0, 0, 1]))),
        constraint=constraint if draw(st.booleans()) else Constraint(),
    )


def _behind(draw: st.DrawFn, op: Op) -> Op:
    asked = op.constraint
    if asked.gid is None and asked.leader_gid is None:
        return op
    offset = draw(st.sampled_from([0, 0, 1, 2]))
    return replace(op, constraint=replace(asked, stage_offset=offset))


def _with_values(draw: st.DrawFn, ops: list[Op]) -> tuple[list[Op], list[Value]]:
    """Give each operation a result and let later (or next-iteration) ones read it."""
    values = [Value("live_in", TileType((4,), "f32"))]
    for i, op in enumerate(ops):
        values.append(Value(f"v{i}", draw(st.sampled_from([None, TileType((128,), "f32")]))))
        ops[i] = replace(op, results=(f"v{i}",))
    for j in range(len(ops)):
        operands: list[Operand] = []
        for i in range(len(ops)):
            if draw(st.integers(0, 9)) < 7:
                continue
            distance = draw(st.sampled_from([0, 0, 1, 2])) if i < j else draw(st.integers(1, 2))
            latency = draw(st.sampled_from([None, None, 0, 1, 5]))
            operands.append(Operand(f"v{i}", distance, latency))
        if draw(st.booleans()):
            operands.append(Operand("live_in"))
        ops[j] = replace(ops[j], operands=tuple(operands))
    return ops, values


def _with_storages(draw: st.DrawFn, ops: list[Op]) -> tuple[list[Op], list[Storage]]:
    storages: list[Storage] = []
    for s in range(draw(st.integers(0, 2))):
        fixed = draw(st.booleans())
        depth = None if fixed else draw(st.sampled_from([None, None, 1, 2]))
        space = draw(st.sampled_from(MEMORIES))
        name = f"m{s}"
        storages.append(Storage(name, space, draw(st.integers(1, 4)), fixed, depth))
        first = draw(st.integers(0, len(ops) - 1))
        for i in range(first, len(ops)):
            writes = i == first or draw(st.integers(0, 4)) == 0
            if writes:
                ops[i] = replace(ops[i], writes=(*ops[i].writes, name))
            if i > first and draw(st.booleans()):
                distance = 0 if fixed else draw(st.sampled_from([0, 0, 1]))
                if depth is not None and distance >= depth:
                    distance = 0
                ops[i] = replace(ops[i], reads=(*ops[i].reads, Access(name, distance)))
    return ops, storages


@st.composite
def problems(
    draw: st.DrawFn,
    max_ops: int = 5,
    max_duration: int = 4,
    fusion: bool = True,
    offsets: bool = False,
) -> Problem:
    """A resolved loop that passes `check()` on a small machine of its own.

    With `offsets`, members of groups stand stages apart: it may have no schedule.
    """
    machine = draw(machines(fusion=fusion))
    n = draw(st.integers(1, max_ops))
    ops = [_op(draw, machine, i, max_duration) for i in range(n)]
    if offsets:
        ops = [_behind(draw, op) for op in ops]
    ops, values = _with_values(draw, ops)
    ops, storages = _with_storages(draw, ops)
    stated: list[Dependence] = []
    for _ in range(draw(st.integers(0, 2))):
        i, j = draw(st.integers(0, n - 1)), draw(st.integers(0, n - 1))
        kinds: list[DependenceKind] = ["order", "memory", "anti", "output"]
        distance = draw(st.integers(0, 3)) if i < j else draw(st.integers(1, 3))
        stated.append(
            Dependence(
                ops[i].name,
                ops[j].name,
                draw(st.integers(0, max_duration)),
                distance,
                draw(st.sampled_from(kinds)),
            )
        )
    loop = Loop("generated", tuple(ops), tuple(values), tuple(storages), tuple(stated))
    assert check(loop, machine) == ()
    return Problem(loop, machine)
