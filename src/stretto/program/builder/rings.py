"""Rings in shared memory: who fills their slots, who reads them, and how each tells the other.

copy agent      wait k_tile_free ─► expect bytes, copy ─► k_tile_full turns by itself
compute agent   wait k_tile_full ─► product, wait for it ─► arrive k_tile_free
product agent   wait k_tile_full ─► product, which arrives by itself when it is done
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from stretto.kernel import Operation, Value
from stretto.kernel.lowering.written import COPY, TMA_LOAD
from stretto.kernel.types import Buffer
from stretto.materialization import Program
from stretto.materialization.program import Issue, Pipe
from stretto.ops.spaces import STAGING
from stretto.program.builder.sums import on_its_own
from stretto.program.errors import ALONE, EmitError


@dataclass
class Ring:
    """Copies of a tile in shared memory that iterations take in turn."""

    name: str
    shape: tuple[int, ...]
    element: str
    bytes: int
    depth: int
    producer: str
    """The agent that fills it."""
    consumers: tuple[str, ...]
    """The agents that read it."""
    by_tma: bool
    copied: bool = False
    """Whether threads copy to it, who learn by themselves when a slot is full."""
    answered: bool = False
    """Whether products read it that say themselves when they are done: who fills it waits."""
    exact: bool = False
    """Whether orders between agents are kept because it has no slot more."""
    turned: bool = False
    """Whether its columns lie in one piece, not its rows."""

    @property
    def full(self) -> bool:
        """Whether somebody has to be told that a slot is full."""
        return self.by_tma

    @property
    def own(self) -> bool:
        """Whether the agent that fills it reads it as well."""
        return self.producer in self.consumers

    @property
    def free(self) -> bool:
        """Whether somebody has to be told that a slot is free."""
        return self.answered or any(agent != self.producer for agent in self.consumers)


def rings_of(
    program: Program,
    operations: Mapping[str, Operation],
    loop: Operation,
    agent_of: Mapping[str, str],
    turned: Collection[Value] = (),
) -> list[Ring]:
    """The rings of a loop's program; EmitError where one is used in a way without Gluon."""
    found: list[Ring] = []
    for ring in program.rings:
        if ring.space != STAGING or ring.fixed or ring.storage is None:
            continue
        pipes = [pipe for pipe in program.pipes if pipe.ring == ring.name and not pipe.trivial]
        writers = [op for op in program.loop.ops if ring.storage in op.writes]
        if not writers:
            continue  # it comes from outside
        if len(writers) != 1 or any(c.distance for pipe in pipes for c in pipe.consumers):
            told = f"ring `{ring.name}` is filled or read in a way that has no Gluon yet"
            raise EmitError(told, loop)
        (writer,) = writers
        by_tma = writer.kind == TMA_LOAD
        operation = operations[writer.name]
        buffer = operation.operands[-1].type
        assert isinstance(buffer, Buffer)
        reading = {
            i.op: operations[i.op]
            for agent in program.agents
            for i in agent.stream.kernel
            if isinstance(i, Issue) and any(r.storage == ring.storage for r in i.reads)
        }
        readers = {agent_of[op] for op in reading}
        if not by_tma and readers != {agent_of[writer.name]}:
            told = f"`{writer.name}` hands ring `{ring.name}` to another agent"
            hint = f"{ALONE} has one warpgroup do both"
            raise EmitError(f"{told}, which has no Gluon yet", operation, hint)
        _require_handed_back(operation, pipes, agent_of[writer.name], readers)
        found.append(
            Ring(
                ring.storage,
                buffer.shape,
                buffer.element.element,
                ring.bytes,
                ring.depth,
                agent_of[writer.name],
                tuple(sorted(readers)),
                by_tma,
                writer.kind == COPY,
                _answered(ring.storage, reading, agent_of),
                _ordered(program, agent_of),
                operation.operands[-1] in turned,
            )
        )
    return found


def _ordered(program: Program, agent_of: Mapping[str, str]) -> bool:
    """Whether a loop has an order between agents that only the depth of a ring may keep."""
    held = {
        (mutex.holder, waiter.op, waiter.distance)
        for mutex in program.mutexes
        for waiter in mutex.waiters
    }
    rings = {ring.storage for ring in program.rings}
    derived = [
        d
        for d in program.loop.dependences
        if d.kind != "flow" and not (d.kind == "anti" and d.via in rings)
    ]
    return any(
        agent_of[d.src] != agent_of[d.dst] and (d.src, d.dst, d.distance) not in held
        for d in (*derived, *program.loop.stated)
    )


def _answered(storage: str, reading: Mapping[str, Operation], agent_of: Mapping[str, str]) -> bool:
    """Whether products that say themselves when they are done read a ring."""
    products = [name for name, operation in reading.items() if on_its_own(operation)]
    agents = {agent_of[name] for name in products}
    for name, operation in reading.items():
        if agent_of[name] in agents and name not in products:
            told = f"`{name}` reads ring `{storage}` beside products of the same agent"
            raise EmitError(f"{told}, which has no Gluon yet", operation)
    return bool(products)


def _require_handed_back(
    writer: Operation, pipes: Sequence[Pipe], producer: str, readers: set[str]
) -> None:
    for pipe in pipes:
        if not pipe.reused and readers != {producer}:
            told = f"pipe `{pipe.name}` never hands its slots back, which has no Gluon yet"
            raise EmitError(told, writer)
