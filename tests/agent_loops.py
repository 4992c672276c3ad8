"""Seeded loops as kernels are lowered to for machines like `h200`, with small numbers.

    copy      k ─┐            v ─┐                 issue slots: every operation holds its agent's
    compute      qk wait max exp pv wait           products and their waits share a stage
    compute.1    ...                               sums that threads write wait for every product

agent_problem(seed=17)  ──►  Rich(loop, machine, ...): two agents, one of them with two replicas at
times; products whose waits are operations, in groups; registers that are too few at times; tiles in
rings; values carried from one iteration to the next. Sizes go from three operations to forty.
"""

from __future__ import annotations

import random
from dataclasses import replace

from rich_loops import Rich
from stretto.loop import Access, Constraint, Facts, Loop, Op, Operand, Storage, TileType, Use, Value
from stretto.loop.checking import check
from stretto.machine import Budget, Machine, Slot
from stretto.machine.machine import Agent

NAMES = ("TMA", "TC", "FMA", "MUFU", "copy", "compute", "compute.1", "sums", "sums.1")
SIMT = ("arith.addf", "arith.mulf", "arith.subf", "math.exp2", "reduce.max", "reduce.sum")
SUMS = 4
"""Products in flight."""


def agent_problem(seed: int) -> Rich:
    """A resolved loop that passes `check()`; where a draft does not, the next one is tried."""
    rng = random.Random(f"agents {seed}")
    while True:
        rich = _Draft(f"agents{seed}", random.Random(rng.random())).finish()
        if check(rich.loop, rich.machine) == ():
            return rich


class _Draft:
    """A loop in the making."""

    def __init__(self, name: str, rng: random.Random) -> None:
        self.name, self.rng = name, rng
        self.scale = rng.choice([2, 3, 5, 8])
        self.replicas = rng.choice([1, 1, 2])
        self.ops: list[Op] = []
        self.values: dict[str, Value] = {}
        self.storages: list[Storage] = []
        self.tiles: list[str] = []
        """Values in shared memory."""
        self.held: dict[str, list[str]] = {"compute": [], "compute.1": []}
        """Values in registers, by replica."""
        self.groups = 0

    def finish(self) -> Rich:
        rng = self.rng
        size = rng.choice([3, 4, 5, 6, 8, 8, 12, 16, 24, 40])
        if rng.random() < 0.3:
            self._add_value("given", None)
            self.held["compute"].append("given")
        while len(self.ops) < size:
            what = rng.random()
            if what < 0.2 or not self.tiles:
                self._copy()
            elif what < 0.45:
                self._product(self._replica())
            else:
                self._arithmetic(self._replica())
        self._carry()
        loop = Loop(self.name, tuple(self.ops), tuple(self.values.values()), tuple(self.storages))
        limit = rng.choice([None] * 5 + [1, 2, 3, 4])
        return Rich(loop, self._machine(), fuse=True, max_stages=limit)

    def _machine(self) -> Machine:
        rng = self.rng
        slots = tuple(
            Slot(i + 1, name, SUMS if name.startswith("sums") else 1)
            for i, name in enumerate(NAMES)
        )
        registers = rng.choice([2, 4, 6, 8, 12, 20, 40])
        agents = (
            Agent("copy", ("tma",), 1, rng.choice([None, 1])),
            Agent("compute", ("mma", "simt"), 1, registers, self.replicas, rng.choice([0, 1])),
        )
        tile = sum(s.bytes for s in self.storages)
        budgets = (
            Budget("smem", max(1, tile + rng.choice([0, 4, 8, 64]))),
            Budget("register", 1 << 18, unit=512),
        )
        return Machine("agents", "a machine with agents", slots, agents=agents, budgets=budgets)

    def _replica(self) -> str:
        return self.rng.choice(["compute", "compute.1"]) if self.replicas == 2 else "compute"

    def _long(self) -> int:
        return self.rng.randint(1, self.scale)

    def _add_value(self, name: str, storage: str | None) -> None:
        tile = None if storage else TileType((32 * self.rng.choice([1, 1, 2, 4]),), "f32")
        self.values[name] = Value(name, tile, storage)

    def _add(self, op: Op) -> None:
        self.ops.append(op)

    def _copy(self) -> None:
        n = len(self.ops)
        tile = f"t{n}"
        depth = self.rng.choice([None, None, None, 1, 2, 3])
        self.storages.append(Storage(tile, "smem", self.rng.randint(1, 4), depth=depth))
        self._add_value(f"v{n}", tile)
        uses = (Use("TMA", self._long()), Use("copy", 1))
        late = self._long() + self.scale
        self._add(
            Op(f"op{n}", "async.tiled_tma_load", results=(f"v{n}",), writes=(tile,), uses=uses,
               latency=late, agent="copy")
        )  # fmt: skip
        self.tiles.append(f"v{n}")

    def _product(self, agent: str) -> None:
        """A product of a tile, its wait, and both in one group; it may add to what is there."""
        rng, n = self.rng, len(self.ops)
        tile = rng.choice(self.tiles)
        mine = self.held[agent]
        operands = [Operand(rng.choice(mine)) if mine else Operand(tile), Operand(tile)]
        home = self.values[tile].storage
        assert home is not None
        self._add_value(f"v{n}", None)
        if mine and rng.random() < 0.5:
            added = rng.choice(mine)
            operands.append(Operand(added))
            self.values[f"v{n}"] = replace(self.values[added], name=f"v{n}", view_of=None)
        runs = self._long()
        sums = f"sums{agent.removeprefix('compute')}"
        uses = (Use("TC", runs), Use(agent, 1), Use(sums, runs + 1))
        group = Constraint(gid=self.groups) if rng.random() < 0.8 else Constraint()
        self.groups += 1
        self._add(
            Op(f"op{n}", "async.wgmma", tuple(operands), (f"v{n}",), (Access(home),), uses=uses,
               latency=runs + 1, agent=agent, constraint=group)
        )  # fmt: skip
        seen = Value(f"v{n + 1}", self.values[f"v{n}"].type, None, f"v{n}")
        self.values[seen.name] = seen
        self._add(
            Op(f"op{n + 1}", "async.wgmma_wait", (Operand(f"v{n}"), Operand(tile)), (seen.name,),
               (Access(home),), uses=(Use(agent, 1),), latency=1, agent=agent, constraint=group)
        )  # fmt: skip
        mine.append(seen.name)

    def _arithmetic(self, agent: str) -> None:
        rng, n = self.rng, len(self.ops)
        mine = self.held[agent]
        kind = rng.choice(SIMT)
        count = min(len(mine), rng.choice([1, 1, 2]))
        operands = tuple(Operand(name) for name in rng.sample(mine, count))
        runs = self._long()
        pipe = "MUFU" if kind == "math.exp2" else "FMA"
        uses = (Use(agent, runs), Use(pipe, rng.randint(1, runs)))
        if rng.random() < 0.15:
            uses = (*uses, Use(f"sums{agent.removeprefix('compute')}", runs, occupancy=SUMS))
        self._add_value(f"v{n}", None)
        scratch = rng.choice([128, 256]) if rng.random() < 0.1 else None
        self._add(
            Op(f"op{n}", kind, operands, (f"v{n}",), uses=uses, latency=runs,
               facts=Facts(scratch=scratch), agent=agent)
        )  # fmt: skip
        mine.append(f"v{n}")

    def _carry(self) -> None:
        """Some take what a later one of the same replica made in the iteration before."""
        rng = self.rng
        for i, op in enumerate(self.ops):
            later = [
                other.results[0]
                for other in self.ops[i:]
                if other.agent == op.agent and self.values[other.results[0]].storage is None
            ]
            if op.kind in SIMT and later and rng.random() < 0.25:
                operands = (*op.operands, Operand(rng.choice(later), 1))
                self.ops[i] = replace(op, operands=operands)
