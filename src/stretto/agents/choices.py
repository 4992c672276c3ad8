"""Choices of agents for a loop: those that may have a schedule shorter than one that is known.

1. Operations that cannot be parted at a gain are one: to hand the tile between them over would hold
   a pipe for longer than what is left of the II to beat.
2. What remains is enumerated, warpgroups being alike, and cut off where a pipe or a warpgroup is
   full.
3. Each choice that is left makes a loop with an MII of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from stretto.agents.groups import arithmetic
from stretto.agents.handover import READ, WRITE, Flows, with_agents
from stretto.loop import Op, Operand, Value
from stretto.lower_bounds import compute_bounds
from stretto.machine.replicas import own_slots
from stretto.resources.prepare import Prepared, classify, prepare

NODES = 50_000
"""Partial choices looked at for one number of warpgroups."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Agents of operations, and the loop that they make."""

    agents: Mapping[str, str]
    handed: tuple[str, ...]
    """Tiles that go from one warpgroup to another."""
    ready: Prepared
    mii: int


@dataclass(eq=False)
class Choices:
    """Of one loop, for one number of warpgroups."""

    flows: Flows
    count: int
    limit: int
    """An II that is to be beaten; what cannot is left out. It may fall while choices are made."""
    cut: bool = False
    """Whether choices were left out since there are too many."""
    _nodes: int = 0

    @cached_property
    def _names(self) -> tuple[str, ...]:
        agent = arithmetic(self.flows.machine)
        return tuple(agent.replica(n) for n in range(self.count))

    @cached_property
    def _held(self) -> dict[str, int]:
        """Cycles that each pipe which all warpgroups share is held, before any hand-over."""
        own = own_slots(self.flows.machine, arithmetic(self.flows.machine))
        held = {
            s.name: 0
            for s in self.flows.machine.slots
            if s.capacity == 1 and s.fusion_cap == 1 and s.name not in own
        }
        for op in self.flows.costs.ops:
            for use in op.uses or ():
                if use.slot in held:
                    held[use.slot] += use.duration
        return held

    @cached_property
    def _costs(self) -> dict[str, dict[str, int]]:
        return {tile: self._cost(tile) for tile in {tile for _, _, tile in self.flows.edges}}

    def _cost(self, tile: str) -> dict[str, int]:
        """What the hand-over of a tile holds of the shared pipes, at least: to one taker."""
        value = self.flows.values[tile]
        sent, taken = Value("sent", value.type, "ring"), replace(value, name="taken")
        known = {tile: value, "sent": sent, "taken": taken}
        cost: dict[str, int] = {}
        for op in (
            Op("hand", WRITE, (Operand(tile),), ("sent",)),
            Op("take", READ, (Operand("sent"),), ("taken",)),
        ):
            for use in classify(op, self.flows.machine, known).op.uses or ():
                if use.slot in self._held:
                    cost[use.slot] = cost.get(use.slot, 0) + use.duration
        return cost

    def _together(self) -> list[list[str]]:
        """Sets of operations that have one agent in every choice below the limit, longest first."""
        leader = {name: name for name in self.flows.free}

        def find(name: str) -> str:
            while leader[name] != name:
                leader[name] = name = leader[leader[name]]
            return name

        for maker, taker, tile in self.flows.edges:
            if not self._fits(self._costs[tile]):
                leader[find(taker)] = find(maker)
        sets: dict[str, list[str]] = {}
        for name in self.flows.free:
            sets.setdefault(find(name), []).append(name)
        return sorted(sets.values(), key=lambda s: -sum(self.flows.issue[n] for n in s))

    def _fits(self, cost: Mapping[str, int]) -> bool:
        """Whether each pipe stays below the limit with what is handed over."""
        return all(held + cost.get(slot, 0) < self.limit for slot, held in self._held.items())

    def __iter__(self) -> Iterator[Choice]:
        """Those whose MII is below the limit, least handed over first."""
        every = list(self._enumerated(self._together()))
        handed = [self.flows.handed(agents) for agents in every]
        weights = [sum(self.flows.bytes(tile) for tile in tiles) for tiles in handed]
        for number in sorted(range(len(every)), key=lambda n: (weights[n], n)):
            ready = prepare(with_agents(self.flows, every[number]), self.flows.machine)
            mii = compute_bounds(ready.loop, ready.machine).mii
            if mii < self.limit:
                yield Choice(every[number], handed[number], ready, mii)

    def _enumerated(self, sets: list[list[str]]) -> Iterator[dict[str, str]]:
        """Every choice that uses all warpgroups and fills neither one nor a pipe."""
        load = [0] * self.count
        agents: dict[str, str] = {}

        def placed(at: int, used: int) -> Iterator[dict[str, str]]:
            self._nodes += 1
            if self._nodes > NODES:
                self.cut = True
                return
            if at == len(sets):
                yield dict(agents)
                return
            work = sum(self.flows.issue[name] for name in sets[at])
            for group in range(min(used + 1, self.count)):
                now = max(used, group + 1)
                if load[group] + work >= self.limit or self.count - now > len(sets) - at - 1:
                    continue
                load[group] += work
                agents.update(dict.fromkeys(sets[at], self._names[group]))
                if self._fits(self._handed_by(agents)):
                    yield from placed(at + 1, now)
                load[group] -= work
            for name in sets[at]:
                agents.pop(name, None)

        yield from placed(0, 0)

    def _handed_by(self, agents: Mapping[str, str]) -> dict[str, int]:
        """What the hand-overs of a partial choice hold."""
        cost: dict[str, int] = {}
        parted = {
            tile
            for maker, taker, tile in self.flows.edges
            if maker in agents and taker in agents and agents[maker] != agents[taker]
        }
        for tile in parted:
            for slot, cycles in self._costs[tile].items():
                cost[slot] = cost.get(slot, 0) + cycles
        return cost
