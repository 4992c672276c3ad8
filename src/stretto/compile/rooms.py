"""A kernel lowered for each number of consumers, and what it leaves to each of its loops.

machine ──► less the shared memory of all else ──► with the warps that compute ──► a loop's machine
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from stretto.compile.emitted import EmitMode
from stretto.compile.given import GivenKernel, TileKernel
from stretto.compile.scheduled import ScheduledLoop
from stretto.compile.workers import workers_of
from stretto.errors import StrettoError, listed
from stretto.extraction.kernels import RunnableKernel, RunnableLoop
from stretto.kernel import Operation, Value
from stretto.kernel.types import Buffer, Tile
from stretto.machine import Machine
from stretto.machine.machine import REGISTER_BYTES
from stretto.machine.replicas import crowded
from stretto.ops.spaces import STAGING
from stretto.problem.registers import Registers
from stretto.program.builder import Worker
from stretto.program.builder.scratch import with_scratch
from stretto.solve.scheduling import lifted


class Rooms:
    """A kernel, lowered once for each number of consumers, and the machine that a loop has."""

    def __init__(self, given: GivenKernel, mode: EmitMode) -> None:
        self.given = given
        self.mode: EmitMode = mode
        self.scratch: dict[int, int] = {}
        """Bytes of shared memory that Triton takes by itself, with so many consumers."""
        self._lowered: dict[int, RunnableKernel] = {}
        self._rooms: dict[tuple[int, str, int], Machine] = {}

    @property
    def machine(self) -> Machine:
        """What the kernel is emitted for."""
        return self.given.machine

    def crowd(self, consumers: int) -> None:
        """Have as many replicas as are asked for, where the machine allows more than it has."""
        machine = crowded(self.machine, consumers)
        if machine is not self.machine and isinstance(self.given, TileKernel):
            self.given = replace(self.given, machine=machine)

    def lowered(self, consumers: int) -> RunnableKernel:
        """The kernel, split between consumers and lowered."""
        if consumers not in self._lowered:
            ready = self.given.ready(consumers)
            warps = self._workers(ready, consumers)[0].warps
            known = self.given.schedules  # legal as they were told, without scratch
            loops = tuple(
                loop
                if loop.wiring.loop.name in known
                else replace(loop, wiring=with_scratch(loop.wiring, ready.kernel, warps))
                for loop in ready.loops
            )
            self._lowered[consumers] = replace(ready, loops=loops)
        return self._lowered[consumers]

    def placed(self, consumers: int, placed: Mapping[str, str]) -> RunnableKernel:
        """The kernel, lowered, with operations given to agents."""
        ready = self.lowered(consumers)
        if not placed:
            return ready
        return _with_agents(ready, placed, self.machine, self.agents(consumers))

    def agents(self, consumers: int) -> tuple[str, ...]:
        """Replicas of the agent that multiplies."""
        return self.machine.replicas_of_products(consumers)

    def workers(self, consumers: int, asked: Iterable[str] = ()) -> list[Worker]:
        """The agents of the kernel; `asked`: those that have something beside the usual."""
        return self._workers(self.lowered(consumers), consumers, asked)

    def _workers(
        self, ready: RunnableKernel, consumers: int, asked: Iterable[str] = ()
    ) -> list[Worker]:
        return workers_of(ready, self.machine, self.agents(consumers), self.mode, asked)

    def room(self, consumers: int, loop: RunnableLoop) -> Machine:
        """The machine with what the rest of the kernel leaves to a loop, and its warps."""
        scratch = self.scratch.get(consumers, 0)
        key = (consumers, loop.wiring.loop.name, scratch)
        if key not in self._rooms:
            ready = self.lowered(consumers)
            beside = _beside(ready, loop.operation, self.machine, scratch)
            self._rooms[key] = _staffed(beside, self.workers(consumers), consumers)
        return self._rooms[key]

    def over(self, consumers: int, analyses: Sequence[ScheduledLoop]) -> int:
        """Registers of a thread that are too many, by the rule `registers`."""
        found = 0
        loops = self.lowered(consumers).loops if self.mode == "specialized" else ()
        for loop, analysis in zip(loops, analyses, strict=False):
            prepared = analysis.problem.loop
            starts = [analysis.starts[op.name] for op in prepared.ops]
            for peak in Registers(prepared, self.room(consumers, loop)).peaks(
                analysis.ii or 1, starts
            ):
                over = peak.bytes - peak.most
                found = max(found, -(-over // (peak.threads * REGISTER_BYTES)))
        return found


def _with_agents(
    ready: RunnableKernel, placed: Mapping[str, str], machine: Machine, replicas: Sequence[str]
) -> RunnableKernel:
    """Operations of its loops given to agents; StrettoError where there is no such."""
    compute = machine.agents_of_products()
    known = [a.name for a in machine.agents if a is not compute] + list(replicas)
    names = [op.name for loop in ready.loops for op in loop.wiring.loop.ops]
    for op, agent in placed.items():
        if op not in names:
            raise StrettoError(f"no operation `{op}` in a loop; there are: {listed(names)}")
        if agent not in known:
            raise StrettoError(f"no agent `{agent}` for `{op}`; there are: {listed(known)}")
    loops: list[RunnableLoop] = []
    for one in ready.loops:
        loop = one.wiring.loop
        ops = tuple(replace(op, agent=placed.get(op.name, op.agent)) for op in loop.ops)
        loops.append(replace(one, wiring=replace(one.wiring, loop=replace(loop, ops=ops))))
    return replace(ready, loops=tuple(loops))


def _beside(ready: RunnableKernel, loop: Operation, machine: Machine, scratch: int) -> Machine:
    """The machine with the shared memory that the rest of the kernel leaves to a loop."""
    read = {value for op in loop.regions[0].walk() for value in op.operands}
    # Loops that come one after the other share their rings.
    inside = {op for other in ready.loops for op in other.operation.regions[0].walk()}
    roots: dict[Value, Value] = {}
    taken = machine.known_limit("barrier_bytes") + scratch
    for op in ready.kernel.walk():
        if op.results and op.operands and isinstance(op.results[0].type, Buffer):
            last = op.operands[-1] if op.name.endswith(("_load", "_write")) else op.operands[0]
            roots[op.results[0]] = roots.get(last, last)
    for op in ready.kernel.walk():
        if op in inside or not op.results or op.operands:
            continue
        buffer = op.results[0]
        if not isinstance(buffer.type, Buffer) or buffer.type.space != STAGING:
            continue
        if not any(roots.get(v, v) is buffer for v in read):
            taken += Tile(buffer.type.shape, buffer.type.element).elements * (
                buffer.type.element.bits // 8
            )
    budgets = tuple(
        replace(b, bytes=b.bytes - taken) if b.space == STAGING and b.bytes else b
        for b in machine.budgets
    )
    return replace(machine, budgets=budgets)


def _staffed(machine: Machine, workers: Sequence[Worker], consumers: int) -> Machine:
    """The machine with the agents that a kernel has: warps and registers of those that compute."""
    compute = machine.agent_for("simt") or machine.agents_of_products()
    has = next(worker for worker in workers if worker.computes)
    found = replace(compute, warps=has.warps, registers=has.registers, replicas=consumers)
    if compute is not machine.agents_of_products():
        found = replace(found, replicas=1)
    return replace(machine, agents=tuple(found if a is compute else a for a in machine.agents))


def endless(machine: Machine) -> Machine:
    """The machine with as much shared memory and as many registers as anybody wants."""
    budgets = tuple(replace(b, bytes=None) if b.space == STAGING else b for b in machine.budgets)
    return lifted(replace(machine, budgets=budgets))
