"""A loop of which each operation has its warpgroup: what goes from one to another goes by memory.

    softmax     alpha ──► hand_alpha          smem_write, 512 bytes into a ring
    correction                   └──► take_alpha_1 ──► rescale_o       smem_read

Tiles in registers are handed over; scalars are worked out by everybody who needs them, and what
lives in shared or tensor memory is there for all. Both ends are operations like any other: they
hold issue slots, take time and bytes, and are bounded, scheduled and verified as such.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from stretto.agents.groups import arithmetic
from stretto.loop import Access, Loop, Op, Operand, Storage, Value
from stretto.machine import Machine
from stretto.machine.replicas import slot_of
from stretto.ops.spaces import SPACES, STAGING
from stretto.resources.prepare import prepare

WRITE, READ = SPACES[STAGING].fill, SPACES[STAGING].read


@dataclass(frozen=True)
class Flows:
    """What of a loop the warpgroups for arithmetic do, and the tiles between its operations."""

    loop: Loop
    machine: Machine

    @cached_property
    def values(self) -> Mapping[str, Value]:
        """By name."""
        return {value.name: value for value in self.loop.values}

    def root(self, name: str) -> str:
        """The value that a name is a view of."""
        while name in self.values and (of := self.values[name].view_of) is not None:
            name = of
        return name

    def bytes(self, name: str) -> int:
        """What a value takes in registers, where it is a tile; 0: it is none."""
        value = self.values.get(name)
        if value is None or value.type is None or not value.type.shape:
            return 0
        return value.register_bytes

    @cached_property
    def costs(self) -> Loop:
        """The loop with what its operations cost."""
        return prepare(self.loop, self.machine).loop

    @cached_property
    def issue(self) -> dict[str, int]:
        """Cycles that an operation holds the issue slot of a warpgroup, where it holds one."""
        name = arithmetic(self.machine).name
        held: dict[str, int] = {}
        for op in self.costs.ops:
            for use in op.uses or ():
                if use.slot == name:
                    held[op.name] = held.get(op.name, 0) + use.duration
        return held

    @cached_property
    def free(self) -> tuple[str, ...]:
        """Operations that any of the warpgroups may do: they touch a tile or a memory."""
        found: list[str] = []
        for op in self.loop.ops:
            if op.agent is not None or op.name not in self.issue:
                continue
            views = op.results and all(self.root(name) != name for name in op.results)
            tiles = [*op.results, *(self.root(o.value) for o in op.operands)]
            if not views and (op.reads or op.writes or any(self.bytes(t) for t in tiles)):
                found.append(op.name)
        return tuple(found)

    @cached_property
    def edges(self) -> tuple[tuple[str, str, str], ...]:
        """Who makes a tile in registers, who takes it, and its name."""
        free = set(self.free)
        return tuple(
            dict.fromkeys(
                (maker, op.name, root)
                for op in self.loop.ops
                if op.name in free
                for operand in op.operands
                if (root := self.root(operand.value))
                and (maker := self.loop.producers.get(root)) in free
                and maker != op.name
                and self.bytes(root)
            )
        )

    def handed(self, choice: Mapping[str, str]) -> tuple[str, ...]:
        """Tiles that a choice of agents sends from one to another."""
        found = (tile for a, b, tile in self.edges if choice[a] != choice[b])
        return tuple(dict.fromkeys(found))


def with_agents(flows: Flows, choice: Mapping[str, str]) -> Loop:
    """The loop with its agents, and with a hand-over of each tile that leaves its agent."""
    loop, home = flows.loop, flows.loop.producers
    takers: dict[str, list[str]] = {}
    for maker, taker, tile in flows.edges:
        if choice[maker] != choice[taker] and choice[taker] not in takers.setdefault(tile, []):
            takers[tile].append(choice[taker])
    ops: list[Op] = []
    values, storages = list(loop.values), list(loop.storages)
    for op in loop.ops:
        agent = choice.get(op.name)
        operands = op.operands if agent is None else tuple(
            replace(operand, value=_taken(root, agent))
            if agent in takers.get(root := flows.root(operand.value), ())
            and choice[home[root]] != agent
            else operand
            for operand in op.operands
        )  # fmt: skip
        ops.append(_of(agent, replace(op, operands=operands), flows))
        for tile in op.results:
            if tile in takers:
                ops += _handed_over(tile, choice[op.name], takers[tile])
                type_ = flows.values[tile].type
                storages.append(Storage(f"{tile}_handed", STAGING, flows.bytes(tile)))
                values.append(Value(f"{tile}_sent", type_, f"{tile}_handed"))
                values += [Value(_taken(tile, to), type_) for to in takers[tile]]
    return replace(loop, ops=tuple(ops), values=tuple(values), storages=tuple(storages))


def _of(agent: str | None, op: Op, flows: Flows) -> Op:
    """An operation of an agent, with the issue slot of that where its costs are known already."""
    if agent is None:
        return op
    machine, usual = flows.machine, arithmetic(flows.machine)
    uses = op.uses and tuple(
        replace(use, slot=slot_of(machine, use.slot, usual, agent)) for use in op.uses
    )
    return replace(op, agent=agent, uses=uses)


def _handed_over(tile: str, agent: str, takers: list[str]) -> Iterator[Op]:
    ring, sent = f"{tile}_handed", f"{tile}_sent"
    yield Op(f"hand_{tile}", WRITE, (Operand(tile),), (sent,), writes=(ring,), agent=agent)
    for to in takers:
        taken = _taken(tile, to)
        yield Op(f"take_{taken}", READ, (Operand(sent),), (taken,), reads=(Access(ring),), agent=to)


def _taken(tile: str, agent: str) -> str:
    return f"{tile}_{agent.replace('.', '_')}"
