"""Tiles in the registers of the agents that make them: when each begins to live, and when it ends.

    qk       ████████                   a product fills its registers while it runs: from its issue
    s        ┌────────────┐
    exp             ██████              arithmetic goes in place: its result begins where it ends,
    p                     ┌─────        and there the operand of which it is the last reader is dead

What is added to is one tile, before and behind the product that adds to it; what a product reads in
registers is kept until that product was waited for. Names take nothing. What an operation takes
while it runs (`scratch`) begins and ends with it. Who is alone has the warps of its replicas as
well. Only agents whose registers the machine states are counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from stretto.loop import Loop, Op, Value
from stretto.loop.parts import cached_property
from stretto.machine import Machine
from stretto.machine.machine import Agent
from stretto.ops.opcodes import opcode
from stretto.ops.spaces import SPACES
from stretto.solution.views import profile

RULE = "registers"


class Life(NamedTuple):
    """What lives in the registers of one replica for a time; each iteration has an instance."""

    name: str
    owner: str
    bytes: int
    begins: tuple[tuple[int, int], ...]
    """(operation, cycles after its start): the first of them is where it begins."""
    ends: tuple[tuple[int, int, int], ...]
    """(operation, cycles after its start, iterations later): the last of them is where it ends."""


class Peak(NamedTuple):
    """The most that lives at once in the registers of one replica."""

    owner: str
    bytes: int
    cycle: int
    most: int
    """What there is."""
    threads: int


@dataclass(frozen=True)
class Registers:
    """What lives in registers whose number is stated."""

    loop: Loop
    machine: Machine

    @cached_property
    def _home(self) -> tuple[tuple[Agent, str] | None, ...]:
        """By operation: the agent that issues it, and which of its replicas."""
        return tuple(
            self.machine.replica_for(op.agent, opcode(op.kind).issuer) for op in self.loop.ops
        )

    @cached_property
    def owners(self) -> dict[str, tuple[Agent, int]]:
        """The replicas that the loop has whose registers are stated, and how many of a kind."""
        if all(agent.registers is None for agent in self.machine.agents):
            return {}
        found = dict.fromkeys(home for home in self._home if home is not None)
        count = [agent.name for agent, _ in found]
        return {
            name: (agent, count.count(agent.name))
            for agent, name in found
            if agent.registers is not None
        }

    @cached_property
    def limits(self) -> dict[str, int]:
        """By replica: the bytes that there are for tiles."""
        return {name: agent.room(n) or 0 for name, (agent, n) in self.owners.items()}

    @cached_property
    def _parts(self) -> tuple[tuple[Life, ...], dict[str, int]]:
        if not self.owners:
            return (), {}
        lives: list[Life] = []
        always = dict.fromkeys(self.owners, 0)
        for value in self.loop.values:
            if value.register_bytes:
                self._value(value, lives, always)
        for s in self.loop.storages:
            if not SPACES[s.space].budgeted:
                self._storage(s.name, lives, always)
        for i, op in enumerate(self.loop.ops):
            if op.facts.scratch:
                end = (i, op.completion, 0)
                lives.append(Life(op.name, self._owner(i), op.facts.scratch, ((i, 0),), (end,)))
        return tuple(life for life in lives if life.owner in self.owners), always

    @property
    def lives(self) -> tuple[Life, ...]:
        """What lives for a time."""
        return self._parts[0]

    @property
    def always(self) -> dict[str, int]:
        """By replica: bytes that live all the time, such as what stood there before the loop."""
        return self._parts[1]

    @property
    def bound(self) -> bool:
        """Whether there is anything to count."""
        return any(self.always.values()) or bool(self.lives)

    # Values -----------------------------------------------------------------------------------

    @cached_property
    def _readers(self) -> dict[str, list[tuple[int, int, int]]]:
        """Value to (operation, number of the operand, iterations back), seen through names."""
        values = {value.name: value for value in self.loop.values}
        found: dict[str, list[tuple[int, int, int]]] = {}
        for i, op in enumerate(self.loop.ops):
            if self._names(op, values):
                continue
            for k, operand in enumerate(op.operands):
                at, back, steps = values.get(operand.value), operand.distance, 0
                while at is not None and at.view_of is not None and steps <= len(values):
                    back += self._back(at)
                    at, steps = values.get(at.view_of), steps + 1
                if at is not None:
                    found.setdefault(at.name, []).append((i, k, back))
        return found

    def _back(self, view: Value) -> int:
        """How many iterations before its own the value is that a view names."""
        maker = self.loop.producers.get(view.name)
        operands = () if maker is None else self.loop.op(maker).operands
        return next((o.distance for o in operands if o.value == view.view_of), 0)

    @staticmethod
    def _names(op: Op, values: dict[str, Value]) -> bool:
        """Whether it takes no time and makes nothing but names."""
        made = [values[name].view_of for name in op.results if name in values]
        return bool(made) and None not in made and op.completion == 0

    def _value(self, value: Value, lives: list[Life], always: dict[str, int]) -> None:
        readers = self._readers.get(value.name, [])
        maker = self.loop.producers.get(value.name)
        if maker is None:
            for owner in dict.fromkeys(self._owner(i) for i, _, _ in readers):
                if owner in always:
                    always[owner] += value.register_bytes
            return
        p = self.loop.index[maker]
        op = self.loop.ops[p]
        begin = 0 if opcode(op.kind).memory else op.completion
        ends = [(p, op.completion, 0)]
        for i, k, back in readers:
            ends += self._read(value, i, k, back)
        lives.append(
            Life(value.name, self._owner(p), value.register_bytes, ((p, begin),), _last(ends))
        )

    def _read(self, value: Value, i: int, k: int, back: int) -> Iterator[tuple[int, int, int]]:
        """Until when an operation keeps what it reads."""
        op = self.loop.ops[i]
        added = opcode(op.kind).accumulator
        if added is None:
            yield i, op.completion, back
        elif k == added and value.register_bytes in self._sizes(op):
            yield i, 0, back  # from here on it is the result
        else:
            yield i, op.completion, back
            for w, waits in enumerate(self.loop.ops):
                if opcode(waits.kind).awaits and waits.operands:
                    first = waits.operands[0]
                    if first.value in op.results:
                        yield w, waits.completion, back + first.distance

    def _sizes(self, op: Op) -> list[int]:
        return [v.register_bytes for v in self.loop.values if v.name in op.results]

    def _owner(self, i: int) -> str:
        home = self._home[i]
        return "" if home is None else home[1]

    # Storages ---------------------------------------------------------------------------------

    def _storage(self, name: str, lives: list[Life], always: dict[str, int]) -> None:
        loop, s = self.loop, self.loop.storage(name)
        writers = [loop.index[op.name] for op in loop.storage_writers[name]]
        readers = [(loop.index[op.name], back) for op, back in loop.storage_readers[name]]
        touching = [*writers, *(i for i, _ in readers)]
        if not touching:
            return
        owner = self._owner(touching[0])
        if s.fixed or not writers:
            if owner in always:
                always[owner] += s.bytes
            return
        ends = [(i, loop.ops[i].completion, 0) for i in writers]
        ends += [(i, loop.ops[i].completion, back) for i, back in readers]
        lives.append(Life(name, owner, s.bytes, tuple((w, 0) for w in writers), _last(ends)))

    # What a schedule makes of it --------------------------------------------------------------

    @cached_property
    def touching(self) -> frozenset[int]:
        """Operations whose starts decide how much lives."""
        ops = {i for life in self.lives for i, _ in life.begins}
        return frozenset(ops | {i for life in self.lives for i, _, _ in life.ends})

    def spans(self, owner: str, ii: int, starts: Sequence[int]) -> list[tuple[int, int, int]]:
        """(bytes, begin, end) of all that lives with one replica, of one iteration."""
        found: list[tuple[int, int, int]] = []
        for life in self.lives:
            if life.owner == owner:
                begin = min(starts[i] + offset for i, offset in life.begins)
                end = max(starts[i] + offset + ii * back for i, offset, back in life.ends)
                found.append((life.bytes, begin, max(begin, end)))
        return found

    def peaks(self, ii: int, starts: Sequence[int]) -> Iterator[Peak]:
        """By replica: the most that lives at once."""
        for owner, most in self.limits.items():
            agent, count = self.owners[owner]
            cycles, live = profile(self.spans(owner, ii, starts), ii, self.always[owner])
            top = max(live)
            yield Peak(owner, top, cycles[live.index(top)], most, agent.threads(count))

    def overflow(self, ii: int, starts: Sequence[int]) -> str:
        """Whose registers do not do for what lives in them, with the bytes; empty: nobody's."""
        for peak in self.peaks(ii, starts) if self.bound else ():
            if peak.bytes > peak.most:
                return (
                    f"{RULE} of {peak.owner} hold {peak.most:,} bytes; "
                    f"{peak.bytes:,} live at cycle {peak.cycle}"
                )
        return ""


def _last(ends: list[tuple[int, int, int]]) -> tuple[tuple[int, int, int], ...]:
    """Of each operation and distance the last end."""
    found: dict[tuple[int, int], int] = {}
    for i, offset, back in ends:
        found[i, back] = max(offset, found.get((i, back), offset))
    return tuple((i, offset, back) for (i, back), offset in found.items())
