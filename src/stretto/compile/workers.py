"""The agents that a kernel has: who computes, who copies, and how many warps each takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from stretto.compile.emitted import EmitMode
from stretto.emission import EmitError
from stretto.extraction.kernels import RunnableKernel
from stretto.kernel.lowering.held import GROUP_ROWS, groups_of
from stretto.kernel.lowering.written import TMA_LOAD
from stretto.kernel.partition import ONE_CONSUMER
from stretto.kernel.tree import kind_of
from stretto.kernel.types import Buffer, Tile, shape_of
from stretto.machine import Machine
from stretto.machine.sharing import registers_left
from stretto.ops.opcodes import opcode
from stretto.program.builder import Worker
from stretto.solution import counted


def workers_of(
    ready: RunnableKernel,
    machine: Machine,
    agents: Sequence[str],
    mode: EmitMode,
    asked: Iterable[str] = (),
) -> list[Worker]:
    """The agents of a lowered kernel; `asked` are those that have something beside the usual."""
    multiply = machine.agents_of_products()
    compute = machine.agent_for("simt") or multiply
    most = machine.known_limit("thread_registers")
    made = [
        op.results[0].type
        for op in ready.kernel.walk()
        if op.name == f"nv_tileas.{machine.products[0].opcode}"
    ]
    rows = [type.shape[0] for type in made if isinstance(type, Tile)]
    sums = [type.shape[1] for type in made if isinstance(type, Buffer)]
    held = [op for op in ready.kernel.walk() if opcode(kind_of(op)).multiplies]
    if held and len(agents) > 1:
        least = min(shape_of(op.result.type)[-2] for op in held)
        told = f"{counted(len(agents), 'consumer')} would multiply {least} rows each"
        raise EmitError(told, held[0], f"a warpgroup multiplies {GROUP_ROWS}: {ONE_CONSUMER}")
    groups = groups_of(min(rows, default=GROUP_ROWS), alone=len(agents) == 1)
    if sums and max(sums) > machine.known_limit("sum_columns"):
        groups = 2
    warps = groups * compute.warps
    if mode == "unspecialized":
        stated = ready.kernel.warps or compute.warps
        copied = any(kind_of(op) == TMA_LOAD for op in ready.kernel.walk())
        if held and copied and 1 < stated < compute.warps:
            stated = compute.warps  # with two, an H200 read tiles that were not there yet
        if sums:  # one group reads tensor memory, or two
            stated = min(stated, 2 * compute.warps)
        return [Worker("all", max(warps, stated) if made else stated, most)]
    computing = agents if compute is multiply else [compute.name]
    found = [Worker(name, warps, compute.registers or most) for name in computing]
    copy = machine.agent_for("tma")
    wanted = {*asked, multiply.name, "" if copy is None else copy.name}
    others = [
        Worker(agent.name, agent.warps, agent.registers or most, False, agent is multiply)
        for agent in machine.agents
        if agent.name in wanted and agent is not compute
    ]
    if machine.blocks > 1:
        beside = [(worker.warps, worker.registers) for worker in others]
        left = registers_left(machine, warps * len(computing), beside)
        found = [replace(worker, registers=min(worker.registers, left)) for worker in found]
    found += others
    return sorted(found, key=lambda worker: copy is not None and worker.name == copy.name)
