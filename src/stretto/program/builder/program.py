"""The whole program of a kernel: memory, what the host hands over, and all agents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stretto.kernel import Kernel, Operation
from stretto.kernel.lowering.written import TILE_COUNT
from stretto.kernel.tree import kind_of
from stretto.machine import Machine
from stretto.machine.sharing import groups, thread_registers
from stretto.ops.spaces import STAGING
from stretto.program.alternation import alternating
from stretto.program.builder.agent import AgentBuilder
from stretto.program.builder.host import arguments, assumed, descriptors
from stretto.program.builder.layouts import Layouts
from stretto.program.builder.loops import LoopBuilder
from stretto.program.builder.plan import Looped, Plan, Worker, deepen, make_plan
from stretto.program.builder.sums import Sum
from stretto.program.builder.tracer import Tracer
from stretto.program.clocks import check_program
from stretto.program.errors import EmitError
from stretto.program.kernel_program import (
    AgentProgram,
    Barriers,
    Declaration,
    KernelProgram,
    SharedMemory,
    TensorMemory,
    WorkTiles,
)
from stretto.program.rescaling import with_rescaling
from stretto.program.traces import Tracing
from stretto.program.walk import layouts_in

REGISTER_FILE = 65536
"""Registers of an SM whose machine states none."""
WARP = 32


class SharedMemoryError(EmitError):
    """What a kernel needs of shared memory is more than there is."""

    def __init__(self, bytes: int, scratch: int, room: int, machine: str) -> None:
        told = f"{bytes:,} bytes of shared memory are needed, {machine} has {room:,}"
        if scratch:
            told += f"; {scratch:,} of them for what the compiler hands from thread to thread"
        super().__init__(told, hint="smaller tiles, or --depth for shorter rings")
        self.scratch = scratch


def build_program(
    kernel: Kernel,
    loops: Sequence[Looped],
    machine: Machine,
    workers: Sequence[Worker],
    *,
    depth: int | None = None,
    title: str = "",
    tracing: Tracing | None = None,
) -> KernelProgram:
    """The program of a lowered kernel whose loops run by schedules; EmitError where it has none.

    It is run by clocks: one that may go wrong is refused, and never leaves here.
    """
    builder = _Builder(make_plan(kernel, loops, workers, machine), title, tracing)
    # What is exchanged between threads is known once agents are built; rings have the rest.
    builder.plan.scratch = builder.scratch(builder.agents())
    deepen(builder.plan) if depth is None else deepen(builder.plan, depth)
    budget = machine.budget(STAGING)
    if budget is not None and budget.bytes is not None and builder.plan.bytes > budget.bytes:
        scratch = builder.plan.scratch
        raise SharedMemoryError(builder.plan.bytes, scratch, budget.bytes, machine.name)
    lengths = [loop.program.ii for loop in builder.plan.loops.values()]
    program = alternating(with_rescaling(builder.program()), lengths)
    check_program(program)
    return program


@dataclass
class _Builder:
    plan: Plan
    title: str
    tracing: Tracing | None

    def __post_init__(self) -> None:
        plan = self.plan
        # Long loops of agents spare the exchange; a sum in tensor memory lies by rows already.
        in_rows = (len(plan.workers) == 1 or plan.machine.blocks > 1) and not plan.sums
        self._layouts = Layouts(plan.kernel, plan.workers[0].warps, in_rows=in_rows)

    def agents(self) -> list[AgentBuilder]:
        """All agents that have something to do."""
        found: list[AgentBuilder] = []
        for number, worker in enumerate(self.plan.workers):
            count = len(self.plan.workers)
            tracer = Tracer(self.tracing, number, count) if self.tracing else None
            layouts = self._layouts
            if worker.warps != self.plan.workers[0].warps:
                layouts = Layouts(self.plan.kernel, worker.warps)
            agent = AgentBuilder(self.plan, worker, layouts, tracer)
            agent.build(self._loop)
            found.append(agent)
        # An agent that has nothing to do is none.
        return [agent for agent in found if agent.body or agent is found[0]]

    def _loop(self, agent: AgentBuilder, operation: Operation) -> None:
        LoopBuilder(agent, self.plan.loops[operation]).build()

    def scratch(self, agents: Sequence[AgentBuilder]) -> int:
        """Bytes of shared memory that Triton takes for exchanges, and to start agents."""
        started = sum(
            agent.worker.warps + sum(self._handed(name) for name in agent.used)
            for agent in agents[1:]
        )
        return started + sum(agent.layouts.bytes for agent in agents)

    def _handed(self, name: str) -> int:
        """Bytes in which an agent is told of an argument: its address, and what lies there."""
        for descriptor in self.plan.descriptors.values():
            if descriptor.name == name:
                return 8 + (4 + 8) * len(descriptor.block)  # sizes and strides
        shared = (*self.plan.shared_rings(), *self.plan.tiles.values())
        ranks = {one.name: len(one.shape) + 1 for one in shared}
        return 8 + 4 * ranks.get(name, 2)  # where it begins; barriers have two dimensions

    def program(self) -> KernelProgram:
        """All of it, with rings as deep as they are now."""
        plan, agents = self.plan, self.agents()
        bodies = tuple(
            AgentProgram(
                agent.worker.name,
                agent.worker.warps,
                agent.worker.registers,
                tuple(agent.used),
                agent.body,
                {loop: tuple(marks) for loop, marks in agent.marks.items()},
            )
            for agent in agents
        )
        named = {layout.name: layout for body in bodies for layout in layouts_in(body.body)}
        known = [layout for layout in self._layouts.roots() if layout.name in named]
        others = set(named).difference(layout.name for layout in known)  # scans have their own
        known += [named[name] for name in others]
        return KernelProgram(
            plan.kernel,
            plan.machine.name,
            self.title or f"{plan.kernel.name}, by Stretto for {plan.machine.name}.",
            tuple(self._memory()),
            descriptors(plan),
            arguments(plan, {name for agent in agents for name in agent.used}),
            bodies,
            tuple(sorted(known, key=lambda layout: layout.name)),
            plan.bytes,
            plan.scratch,
            plan.workers[0].warps,
            _registers(bodies, plan.machine),
            {turn.name: turn.distance for turn in plan.all_turns()},
            assumed(plan),
            self.tracing,
            self._tiles(),
        )

    def _tiles(self) -> WorkTiles | None:
        """What a launch is told of tiles; None where it asks for blocks."""
        counts = [op for op in self.plan.kernel.walk() if kind_of(op) == TILE_COUNT]
        if not counts:
            return None
        axes = sorted({op.integer("axis") for op in counts})
        return WorkTiles(tuple(axes), counts[0].integer("blocks"))

    def _memory(self) -> Iterator[Declaration]:
        plan = self.plan
        for ring in plan.shared_rings():
            name, depth = ring.name, ring.depth
            yield SharedMemory(name, depth, ring.shape, ring.element, ring.turned)
            if ring.full:
                yield Barriers(f"{name}_full", depth, 1, "full", name)
            if ring.free:
                yield Barriers(f"{name}_free", depth, len(ring.consumers), "free", name)
        for tile in plan.tiles.values():
            name = tile.name
            yield SharedMemory(name, tile.depth, tile.shape, tile.element, tile.turned)
            if tile.loaded:
                yield Barriers(f"{name}_full", tile.depth, 1, "full", name)
                if tile.repeated and len(plan.workers) > 1:
                    yield Barriers(f"{name}_free", tile.depth, tile.readers, "free", name)
        for turn in plan.all_turns():
            depth = turn.depth if turn.depth > 1 else None
            yield Barriers(turn.name, depth, 1, "turn", turn.name)
        for one in plan.sums.values():
            yield from self._sum(one)

    def _sum(self, one: Sum) -> Iterator[Declaration]:
        depth = one.depth if one.repeated else None
        yield TensorMemory(one.name, depth, one.shape, one.block)
        yield Barriers(f"{one.name}_full", depth, 1, "full", one.name)
        if one.free:
            yield Barriers(f"{one.name}_free", depth, 1, "free", one.name)


def _registers(agents: Sequence[AgentProgram], machine: Machine) -> int | None:
    """Registers of a thread before agents share them out anew, or by which blocks share an SM."""
    warps = groups([agent.warps for agent in agents])
    if len(agents) > 1:
        return thread_registers(machine, warps) or REGISTER_FILE // (warps * WARP) // 8 * 8
    if machine.blocks == 1:
        return None
    each = thread_registers(machine, agents[0].warps)
    return None if each is None else min(each, machine.known_limit("thread_registers"))
