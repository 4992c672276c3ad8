"""Seeded loops small enough for brute force, in which every rule of legality binds now and then.

tiny_problem(seed=17, max_ops=5)  ──►  the same loop, machine and options on every run
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from stretto.loop import (
    Access,
    Constraint,
    Demand,
    Dependence,
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
from stretto.machine.machine import Agent


@dataclass(frozen=True)
class Tiny:
    """A loop, its machine and what was asked of its schedule."""

    loop: Loop
    machine: Machine
    fuse: bool
    max_stages: int | None


def tiny_problem(seed: int, max_ops: int = 5) -> Tiny:
    """A resolved loop that passes `check()`."""
    rng = random.Random(f"tiny {seed}")
    machine = _machine(rng)
    kinds = rng.choice([("a",), ("a", "b")])
    ops = [_op(rng, machine, i, rng.choice(kinds)) for i in range(rng.randint(2, max_ops))]
    values = [Value(f"v{i}", rng.choice([None, TileType((128,), "f32")])) for i in range(len(ops))]
    ops = [replace(op, results=(f"v{i}",), operands=_operands(rng, i)) for i, op in enumerate(ops)]
    ops, storages = _storages(rng, ops)
    stated = tuple(_stated(rng, ops) for _ in range(rng.choice([0, 1, 2])))
    room = sum(s.bytes for s in storages) + rng.randint(0, 4)
    budgets = (Budget("smem", max(1, room)), Budget("register", 1 << 18, unit=512))
    machine = replace(machine, budgets=budgets)
    loop = Loop(f"tiny{seed}", tuple(ops), tuple(values), tuple(storages), stated)
    assert check(loop, machine) == ()
    return Tiny(loop, machine, rng.random() < 0.7, rng.choice([None, None, None, 1, 2]))


def tiny_apart(seed: int, max_ops: int = 4) -> Tiny:
    """A tiny problem in which members of groups stand stages apart; it may have no schedule."""
    tiny, rng = tiny_problem(seed, max_ops), random.Random(f"apart {seed}")
    ops = list(tiny.loop.ops)
    for i in rng.sample(range(len(ops)), 2):
        ops[i] = replace(ops[i], constraint=replace(ops[i].constraint, gid=0))
    while not any(op.constraint.stage_offset for op in ops):
        ops = with_offsets(rng, ops)
    return replace(tiny, loop=replace(tiny.loop, ops=tuple(ops)))


def tiny_agents(seed: int, max_ops: int = 4) -> Tiny:
    """A tiny problem on a machine whose agents have registers; it may have no schedule."""
    tiny = tiny_problem(seed, max_ops)
    loop, machine = with_agents(tiny.loop, tiny.machine, seed, 6)
    return replace(tiny, loop=loop, machine=machine)


KINDS = ("arith.addf", "arith.addf", "async.wgmma", "async.wgmma_wait")
"""Arithmetic, products and waits for those take registers in ways of their own."""


def with_agents(loop: Loop, machine: Machine, seed: int, most: int) -> tuple[Loop, Machine]:
    """The same loop by agents of so many registers at most, at times too few."""
    rng = random.Random(f"agents {seed}")
    tiles = {v.name for v in loop.values if v.register_bytes}
    ops: list[Op] = []
    for op in loop.ops:
        kind, operands = op.kind, op.operands
        if kind in {"a", "b"} and rng.random() < 0.8:
            kind = rng.choice(KINDS)
        adds = [o for o in operands if o.value in tiles]
        rest = [o for o in operands if o not in adds[:1]]
        if kind == "async.wgmma" and adds and len(rest) > 1:  # the third is what it adds to
            operands = (*rest[:2], adds[0], *rest[2:])
        agent = rng.choice([None, "g", "g", "g.1", "nobody"])
        ops.append(replace(op, kind=kind, operands=operands, agent=agent))
    ops = [_with_scratch(op, random.Random(f"scratch {seed} {op.name}")) for op in ops]
    registers, replicas = rng.randint(4, most), rng.choice([1, 1, 2])
    agents = (
        Agent("g", ("mma", "simt"), 1, registers, replicas, rng.choice([0, 0, 1])),
        Agent("t", ("tma",), 1, rng.choice([None, 1])),
    )
    return replace(loop, ops=tuple(ops)), replace(machine, agents=agents)


def _with_scratch(op: Op, rng: random.Random) -> Op:
    """One operation in six takes registers while it runs."""
    taken = rng.choice([128, 256, 512]) if rng.random() < 1 / 6 else None
    return replace(op, facts=replace(op.facts, scratch=taken))


def with_offsets(rng: random.Random, ops: list[Op], share: float = 0.5) -> list[Op]:
    """In a share of the loops, some members of groups stand stages behind the others."""
    if rng.random() >= share:
        return ops
    return [
        replace(op, constraint=replace(op.constraint, stage_offset=rng.choice([0, 0, 1, 2])))
        if op.constraint.gid is not None or op.constraint.leader_gid is not None
        else op
        for op in ops
    ]


def _machine(rng: random.Random) -> Machine:
    slots = tuple(
        Slot(i + 1, f"s{i}", rng.choice([1, 1, 1, 2, 3]), fusion_cap=rng.choice([1, 2, 3]))
        for i in range(rng.choice([1, 2]))
    )
    pools = tuple(Pool(f"p{i}", rng.randint(1, 3)) for i in range(rng.choice([0, 1])))
    return Machine("tiny", "a machine of random loops", slots, pools)


def _op(rng: random.Random, machine: Machine, i: int, kind: str) -> Op:
    chosen = rng.sample(machine.slots, rng.choice([1, 1, len(machine.slots)]))
    uses = tuple(
        Use(
            slot.name,
            rng.choice([1, 1, 2, 3]),
            offset=rng.choice([0, 0, 0, 1]),
            occupancy=rng.randint(1, slot.capacity or 1),
        )
        for slot in chosen
    )
    demands = [Demand(p.name, rng.randint(0, p.cap)) for p in machine.pools if rng.random() < 0.5]
    constraint = Constraint(
        gid=rng.choice([None, 0, 0]),
        max_depth=rng.choice([None, None, None, 0, 1]),
    )
    return Op(
        f"op{i}",
        kind,
        uses=uses,
        demands=tuple(demands),
        latency=rng.randint(0, 4),
        facts=Facts(bank=rng.choice([None, 0, 0])),
        constraint=constraint if rng.random() < 0.5 else Constraint(),
    )


def _operands(rng: random.Random, j: int) -> tuple[Operand, ...]:
    operands = [Operand(f"v{i}", rng.choice([0, 0, 1])) for i in range(j) if rng.random() < 0.4]
    if rng.random() < 0.2:
        operands.append(Operand(f"v{j}", 1))
    return tuple(operands)


def _storages(rng: random.Random, ops: list[Op]) -> tuple[list[Op], list[Storage]]:
    storages: list[Storage] = []
    for s in range(rng.choice([0, 1, 2])):
        writer = rng.randrange(len(ops))
        fixed = rng.random() < 0.2
        depth = None if fixed else rng.choice([None, None, 1, 2])
        storages.append(Storage(f"m{s}", "smem", rng.randint(1, 4), fixed, depth))
        ops[writer] = replace(ops[writer], writes=(*ops[writer].writes, f"m{s}"))
        for i in range(writer + 1, len(ops)):
            if rng.random() < 0.5:
                ops[i] = replace(ops[i], reads=(*ops[i].reads, Access(f"m{s}")))
    return ops, storages


def _stated(rng: random.Random, ops: list[Op]) -> Dependence:
    i, j = rng.randrange(len(ops)), rng.randrange(len(ops))
    distance = rng.randint(0, 2) if i < j else rng.randint(1, 2)
    return Dependence(f"op{i}", f"op{j}", rng.randint(0, 3), distance, "order")
