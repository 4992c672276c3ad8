"""Seeded loops of any size, shaped like tile loops, to compare schedulers on.

    generate_loops(1000, seed=7, ops=(10, 100))  ──►  the same loops on every run, here or elsewhere

Transport and copies are long (up to some 600 cycles), arithmetic is short; an operation has one
to three uses, mostly of equal length, and two to three dependences, mostly on its near past;
some are carried over one to three iterations, so that there are recurrences of many lengths. Every
loop brings its machine along: capacities 1 to 4, two pools. What a seed gives stays as it is from
version to version, or the figures of two papers could not be compared.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from stretto.errors import StrettoError
from stretto.kinds import checked
from stretto.limits import INSTRUCTIONS
from stretto.loop import Demand, Dependence, Facts, Loop, Op, Operand, TileType, Use, Value
from stretto.machine import Machine, load_machine


@dataclass(frozen=True, slots=True)
class _Family:
    kind: str
    share: int
    """How often, against the others."""
    slots: tuple[str, ...]
    durations: tuple[int, int]
    latencies: tuple[int, int]


_FAMILIES = (
    _Family("copy", 2, ("tma", "smem_write"), (32, 128), (380, 600)),
    _Family("mma", 2, ("tensor", "operand_read"), (16, 128), (64, 180)),
    _Family("read", 3, ("smem_read", "lsu"), (4, 16), (23, 40)),
    _Family("write", 2, ("smem_write", "lsu"), (4, 16), (16, 32)),
    _Family("exp", 1, ("mufu", "issue"), (8, 32), (18, 40)),
    _Family("arith", 6, ("alu", "fma", "issue"), (1, 8), (4, 12)),
)
_TOGETHER = 0.8
"""How often a slot is held as long as the operation's others, as issue and transport are."""
_REACH = 12
"""How many operations back a dependence inside an iteration looks."""


MACHINE = """[machine]
name = "random"
title = "a machine for random loops"

[slots]
tma = { capacity = 1 }
smem_write = { capacity = 1 }
tensor = { capacity = 1 }
operand_read = { capacity = 1 }
smem_read = { capacity = 2, fusion_cap = 4 }
lsu = { capacity = 2, fusion_cap = 4 }
mufu = { capacity = 1 }
issue = { capacity = 4 }
alu = { capacity = 4 }
fma = { capacity = 3 }

[pools]
register_bank = { cap = 4 }
dispatch = { cap = 8 }

[budgets]
smem = { bytes = 232448 }
register = { bytes = 262144, unit = 512 }
"""
"""The machine of every random loop, as the loops bring it along."""


@checked
def generate_loops(
    count: int, *, seed: int = 0, ops: int | tuple[int, int] = (10, 100), first: int = 0
) -> Iterator[Loop]:
    """Random loops, the same for the same seed: to measure schedulers on, ours or another's.

    Each has a number of operations in the range `ops`, costs that are stated, and its machine with
    it. Loop i is the same whatever the count; `first` begins with a later one.
    """
    least, most = (ops, ops) if isinstance(ops, int) else ops
    if not 1 <= least <= most <= INSTRUCTIONS:
        wanted = f"a number of 1 to {INSTRUCTIONS:,}, or a range of such"
        raise StrettoError(f"ops is {ops}; expected {wanted}")
    if count < 0 or first < 0:
        raise StrettoError(f"count is {count}, first is {first}; neither can be below 0")
    return (_numbered(seed, i, least, most) for i in range(first, first + count))


def _numbered(seed: int, i: int, least: int, most: int) -> Loop:
    rng = random.Random(f"loop {i} of {seed}")
    return _drawn(rng, f"random{seed}_{i}", rng.randint(least, most), load_machine(MACHINE))


def random_loop(seed: int, ops: int) -> tuple[Loop, Machine]:
    """A resolved loop that passes `check()`, and its machine."""
    machine = load_machine(MACHINE)
    return _drawn(random.Random(f"{seed}/{ops}"), f"random{ops}_{seed}", ops, machine), machine


def _drawn(rng: random.Random, name: str, ops: int, machine: Machine) -> Loop:
    body = [_op(rng, machine, i) for i in range(ops)]
    values = tuple(Value(f"v{i}", TileType((128,), "f32")) for i in range(ops))
    body = [replace(op, operands=_operands(rng, i)) for i, op in enumerate(body)]
    stated = tuple(_carried(rng, body) for _ in range(max(1, ops // 4)))
    return Loop(name, tuple(body), values, stated=stated, machine=MACHINE)


def _op(rng: random.Random, machine: Machine, index: int) -> Op:
    family = rng.choices(_FAMILIES, [f.share for f in _FAMILIES])[0]
    slots = family.slots[: rng.randint(1, len(family.slots))]
    uses: list[Use] = []
    together = rng.randint(*family.durations)
    for slot in slots:
        occupancy = rng.choice([1, 1, machine.slot(slot).capacity or 1])
        held = together if rng.random() < _TOGETHER else rng.randint(*family.durations)
        uses.append(Use(slot, held, occupancy=occupancy))
    demands = [Demand(pool.name, rng.randint(1, pool.cap // 2)) for pool in machine.pools]
    bank = rng.choice([None, 0, 1]) if family.kind == "read" else None
    return Op(
        name=f"{family.kind}{index}",
        kind=family.kind,
        results=(f"v{index}",),
        uses=tuple(uses),
        demands=tuple(demands) if family.kind == "arith" else (),
        latency=rng.randint(*family.latencies),
        facts=Facts(bank=bank),
    )


def _operands(rng: random.Random, index: int) -> tuple[Operand, ...]:
    """Two values of the near past; now and then the operation's own of the iteration before."""
    near = range(max(0, index - _REACH), index)
    chosen = rng.sample(near, min(len(near), 2)) if index else []
    operands = [Operand(f"v{i}") for i in sorted(chosen)]
    if rng.random() < 0.1:
        operands.append(Operand(f"v{index}", distance=1))
    return tuple(operands)


def _carried(rng: random.Random, body: Sequence[Op]) -> Dependence:
    """An order carried back over a few operations, so that recurrences stay local."""
    dst = rng.randrange(len(body))
    src = min(len(body) - 1, dst + rng.randint(0, _REACH))
    latency, distance = rng.randint(0, 40), rng.randint(1, 3)
    return Dependence(body[src].name, body[dst].name, latency, distance, kind="order")
