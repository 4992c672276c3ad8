"""Seeded loops of every size for the speed benchmark: the same Loop and Machine on every run.

    tile        load ─► mma ─► softmax ─► mma      four exclusive pipes, holds of up to 256 cycles,
                                                   accumulators, rings, recurrences of many lengths
    random      odd seeds: capacities 1 to 4 and a pool, one to three uses, some with offsets;
                even seeds: those of `frontends.random_loops`, with holds of up to 128 cycles
    chain       long chains of which one operation in ten to twenty holds anything at all
    fusable     reads of shared memory on blackwell, up to five of which may share a hold
    scattered   two to five exclusive slots an operation, each at an offset of its own

Costs are stated, so that what is measured is scheduling. No budget of memory binds, nothing has a
group or a depth limit: a textbook scheduler, which knows none of these, finds legal schedules. It
knows no fusion either; on `fusable` it shows what a loop costs without.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from stretto import Loop, Machine, load_machine
from stretto.frontends.random_loops import random_loop
from stretto.loop import (
    Access,
    Demand,
    Dependence,
    Facts,
    Op,
    Operand,
    Space,
    Storage,
    TileType,
    Use,
    Value,
)
from stretto.machine import Budget, Pool, Slot

_BYTES = 1 << 40
_AMPLE = (Budget("smem", _BYTES), Budget("tmem", _BYTES), Budget("register", _BYTES, unit=512))
"""Budgets that no loop of ours reaches."""
_TILE = TileType((128, 4), "f32")


def loop_of(kind: str, ops: int, seed: int) -> tuple[Loop, Machine]:
    """The loop of a kind, size and seed, and its machine."""
    if kind == "random" and seed % 2 == 0:
        loop, machine = random_loop(seed, ops)
        slots = tuple(replace(slot, fusion_cap=1) for slot in machine.slots)
        return loop, replace(machine, name="random-pipes", slots=slots, budgets=_AMPLE)
    body = _Body(random.Random(f"{kind}/{ops}/{seed}"), ops)
    machine = _KINDS[kind](body, seed)
    return body.loop(f"{kind}{ops}_{seed}"), machine


@dataclass
class _Body:
    """A loop that grows; whatever would make it larger than asked for is dropped."""

    rng: random.Random
    size: int
    ops: list[Op] = field(default_factory=list[Op])
    storages: list[Storage] = field(default_factory=list[Storage])
    stated: list[Dependence] = field(default_factory=list[Dependence])

    @property
    def full(self) -> bool:
        return len(self.ops) >= self.size

    def op(
        self,
        kind: str,
        uses: Sequence[Use],
        latency: int,
        operands: Sequence[str] = (),
        *,
        carried: int = 0,
        reads: Sequence[str] = (),
        into: str | None = None,
        demands: Sequence[Demand] = (),
        bank: int | None = None,
    ) -> str:
        """An operation; its value. `carried`: it reads its own value of so many iterations ago."""
        if self.full:
            return ""
        name = f"{kind.rpartition('.')[2]}{len(self.ops)}"
        seen = [Operand(value) for value in dict.fromkeys(operands) if value]
        if carried:
            seen.append(Operand(f"v_{name}", distance=carried))
        self.ops.append(
            Op(
                name=name,
                kind=kind,
                operands=tuple(seen),
                results=(f"v_{name}",),
                reads=tuple(Access(storage) for storage in reads if storage),
                writes=(into,) if into else (),
                uses=tuple(uses),
                demands=tuple(demands),
                latency=latency,
                facts=Facts(bank=bank),
            )
        )
        return f"v_{name}"

    def storage(self, space: Space, *, fixed: bool = False, depth: int | None = None) -> str:
        """A buffer, for the operation that comes next."""
        if self.full:
            return ""
        name = f"{space}{len(self.storages)}"
        self.storages.append(Storage(name, space, 1024, fixed, depth))
        return name

    def order(self, src: int, dst: int, latency: int, distance: int) -> None:
        """An order between two operations by number."""
        names = self.ops[src].name, self.ops[dst].name
        self.stated.append(Dependence(*names, latency, distance, kind="order"))

    def loop(self, name: str) -> Loop:
        """The loop so far."""
        values = tuple(Value(result, _TILE) for op in self.ops for result in op.results)
        return Loop(name, tuple(self.ops), values, tuple(self.storages), tuple(self.stated))


def _machine(name: str, capacities: dict[str, int], pools: tuple[Pool, ...] = ()) -> Machine:
    slots = tuple(Slot(i + 1, slot, c) for i, (slot, c) in enumerate(capacities.items()))
    return Machine(name, f"made for {name} loops", slots, pools, budgets=_AMPLE)


# Tile-like --------------------------------------------------------------------------------


def _tile(body: _Body, _: int) -> Machine:
    while not body.full:
        body.rng.choice((_product, _product, _softmax, _epilogue))(body)
    return _machine("tile-pipes", {"TMA": 1, "TC": 1, "CUDA": 1, "SFU": 1})


def _load(body: _Body) -> tuple[str, str]:
    """A tile and the ring it stands in."""
    held = body.rng.choice((32, 48, 64, 96, 128))
    ring = body.storage("smem", depth=body.rng.choice((None, None, 2, 3, 4)))
    return body.op("load", [Use("TMA", held)], 460 + held, into=ring), ring


def _mma(body: _Body, operands: Sequence[str], rings: Sequence[str]) -> str:
    held = body.rng.choice((32, 64, 128, 256))
    latency = held + body.rng.randint(40, 120)
    return body.op("mma", [Use("TC", held)], latency, operands, carried=1, reads=rings)


def _cuda(body: _Body, operands: Sequence[str], *, carried: int = 0) -> str:
    held = body.rng.choice((2, 4, 8, 16, 32, 64))
    return body.op("arith", [Use("CUDA", held)], held + 6, operands, carried=carried)


def _product(body: _Body) -> None:
    """Two tiles, one accumulator."""
    (a, a_ring), (b, b_ring) = _load(body), _load(body)
    _mma(body, [a, b], [a_ring, b_ring])


def _softmax(body: _Body) -> None:
    """Scores, a running maximum and sum, and a second product: a step of attention."""
    k, k_ring = _load(body)
    qk = body.op("mma", [Use("TC", 64)], 160, [k], reads=[k_ring])
    scores = body.op("tmem_load", [Use("CUDA", 64)], 80, [qk])
    top = _cuda(body, [_cuda(body, [scores])], carried=1)
    p = body.op("exp", [Use("SFU", body.rng.choice((32, 64)))], 90, [_cuda(body, [scores, top])])
    _cuda(body, [p], carried=1)
    stored = body.op("tmem_store", [Use("CUDA", 24)], 48, [_cuda(body, [p])])
    v, v_ring = _load(body)
    _mma(body, [stored, v], [v_ring])


def _epilogue(body: _Body) -> None:
    """A tile out of tensor memory, worked on and stored."""
    tile = body.op("tmem_load", [Use("CUDA", body.rng.choice((64, 128)))], 133)
    for _ in range(body.rng.randint(1, 4)):
        tile = _cuda(body, [tile])
    held = body.rng.choice((104, 208))
    body.op("store", [Use("TMA", held)], 130 + held, [tile])


# Random -----------------------------------------------------------------------------------

_CAPACITIES = {"a": 1, "b": 1, "c": 1, "d": 2, "e": 2, "f": 3, "g": 4, "h": 4}
_REACH = 12
"""How many operations back, or ahead, a dependence looks."""


def _random(body: _Body, _: int) -> Machine:
    rng, pool = body.rng, Pool("ports", 8)
    machine = _machine("random-slots", _CAPACITIES, (pool,))
    while not body.full:
        uses: list[Use] = []
        held = rng.choice((1, 1, 2, 4, 4, 8, 16, 48))
        for slot in rng.sample(machine.slots, rng.choice((1, 1, 2, 3))):
            offset = rng.choice((0, 0, 0, rng.randint(1, 8)))
            amount = rng.randint(1, max(1, (slot.capacity or 1) // 2))
            uses.append(Use(slot.name, rng.choice((held, held, 1)), offset, amount))
        near = [op.results[0] for op in body.ops[-_REACH:]]
        demands = [Demand(pool.name, rng.randint(1, 4))] if held <= 4 and rng.random() < 0.5 else ()
        body.op(
            "op",
            uses,
            held + rng.randint(0, 12),
            rng.sample(near, min(len(near), rng.choice((1, 2, 2)))),
            carried=1 if rng.random() < 0.1 else 0,
            demands=demands,
        )
    for _ in range(max(1, body.size // 5)):
        dst = rng.randrange(body.size)
        src = min(body.size - 1, dst + rng.randint(0, _REACH))
        body.order(src, dst, rng.randint(0, 30), rng.randint(1, 3))
    return machine


# Chains -----------------------------------------------------------------------------------


def _chain(body: _Body, _: int) -> Machine:
    rng = body.rng
    machine = _machine("chain-units", {"memory": 2, "multiply": 1, "divide": 1})
    share = rng.uniform(0.05, 0.10)
    heads = [""] * max(1, body.size // 25)
    while not body.full:
        uses: list[Use] = []
        latency = rng.choice((0, 1, 1, 2))
        if not body.ops or rng.random() < share:  # one at least, or there is nothing to schedule
            slot, held = rng.choice((("memory", 1), ("memory", 2), ("multiply", 2), ("divide", 4)))
            uses, latency = [Use(slot, held)], held + 2
        at = rng.randrange(len(heads))
        other = rng.choice(heads) if rng.random() < 0.2 else ""
        heads[at] = body.op("unit" if uses else "wire", uses, latency, [heads[at], other])
    _close_chains(body)
    return machine


def _close_chains(body: _Body) -> None:
    """Recurrences about as long as what the slots ask for: neither alone is the bound."""
    held = sum(use.duration for op in body.ops for use in op.vector.uses) or 1
    index = {op.results[0]: i for i, op in enumerate(body.ops)}
    for _ in range(max(1, body.size // 20)):
        src = body.rng.randrange(body.size)
        dst, length = src, body.ops[src].ready
        for _ in range(body.rng.randint(1, 25)):
            if not body.ops[dst].operands:
                break
            dst = index[body.ops[dst].operands[0].value]
            length += body.ops[dst].ready
        distance = max(1, round(length / (held * body.rng.uniform(0.25, 0.5))))
        body.order(src, dst, body.ops[src].ready, distance)


# Fusable reads, scattered uses ------------------------------------------------------------


def _fusable(body: _Body, seed: int) -> Machine:
    rng = body.rng
    while not body.full:
        bank = rng.randrange(3)
        reads = rng.randint(2, 6) if seed else body.size  # seed 0: nothing but reads of one bank
        got = [
            body.op("async.smem_read", [Use("tp_smem_rd", 7)], 7, bank=bank) for _ in range(reads)
        ]
        added = body.op("arith.addf", [Use("alu_or_fmaheavy", 4)], 4, got[:2])
        if rng.random() < 0.3:
            body.op("arith.mulf", [Use("alu_or_fmaheavy", 4)], 4, [*got[2:3], added], carried=1)
    return load_machine("blackwell")


def _scattered(body: _Body, _: int) -> Machine:
    rng = body.rng
    machine = _machine("scattered-slots", {f"s{i}": 1 for i in range(8)})
    while not body.full:
        uses = [
            Use(slot.name, rng.randint(1, 6), rng.randint(0, 24))
            for slot in rng.sample(machine.slots, rng.randint(2, 5))
        ]
        if rng.random() < 0.2:  # the first slot a second time, later
            uses.append(replace(uses[0], offset=uses[0].end + rng.randint(1, 12)))
        near = [op.results[0] for op in body.ops[-_REACH:]]
        operands = rng.sample(near, min(len(near), rng.randint(0, 2)))
        body.op("op", uses, rng.randint(4, 30), operands, carried=int(rng.random() < 0.1))
    return machine


_KINDS: dict[str, Callable[[_Body, int], Machine]] = {
    "tile": _tile,
    "random": _random,
    "chain": _chain,
    "fusable": _fusable,
    "scattered": _scattered,
}
KINDS = tuple(_KINDS)
