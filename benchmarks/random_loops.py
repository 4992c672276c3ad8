"""Seeded loops of any size, shaped like tile loops, for benchmarks.

    random_loop(seed=7, ops=1000)  ──►  the same Loop and Machine on every run

Transport and copies are long (up to some 600 cycles), arithmetic is short; an operation has one
to three uses, mostly of equal length, and two to three dependences, mostly on its near past;
some are carried over one to three iterations, so that there are recurrences of many lengths.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from stretto.loop import Demand, Dependence, Facts, Loop, Op, Operand, TileType, Use, Value
from stretto.machine import Budget, Machine, Pool, Slot


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
_CAPACITIES = {"alu": 4, "fma": 3, "issue": 4, "lsu": 2, "smem_read": 2}
_FUSION_CAPS = {"smem_read": 4, "lsu": 4}
_TOGETHER = 0.8
"""How often a slot is held as long as the operation's others, as issue and transport are."""
_REACH = 12
"""How many operations back a dependence inside an iteration looks."""


def random_machine() -> Machine:
    """The machine of every random loop: capacities 1 to 4, two pools."""
    names = dict.fromkeys(slot for family in _FAMILIES for slot in family.slots)
    slots = tuple(
        Slot(i + 1, name, _CAPACITIES.get(name, 1), fusion_cap=_FUSION_CAPS.get(name, 1))
        for i, name in enumerate(names)
    )
    budgets = (Budget("smem", 232_448), Budget("register", 262_144, unit=512))
    pools = (Pool("register_bank", 4), Pool("dispatch", 8))
    return Machine("random", "a machine for random loops", slots, pools, budgets=budgets)


def random_loop(seed: int, ops: int) -> tuple[Loop, Machine]:
    """A resolved loop that passes `check()`, and its machine."""
    rng = random.Random(f"{seed}/{ops}")
    machine = random_machine()
    body = [_op(rng, machine, i) for i in range(ops)]
    values = tuple(Value(f"v{i}", TileType((128,), "f32")) for i in range(ops))
    body = [replace(op, operands=_operands(rng, i)) for i, op in enumerate(body)]
    stated = tuple(_carried(rng, body) for _ in range(max(1, ops // 4)))
    return Loop(f"random{ops}_{seed}", tuple(body), values, stated=stated), machine


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
