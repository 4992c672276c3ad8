"""Replicas that all issue the next iteration's product before they add to this one's sum.

    one waits for each        qk ─ wait ─ softmax ─ pv ─ wait ─ qk ─ wait ─ softmax ─ pv ─ wait
    this module               qk ─ pv of before ─ wait for both ─ softmax ─ qk ─ pv ─ wait for both

A search that has several replicas to place finds room for one that never has two products in
flight: its II says nothing against that, since others use the tensor core meanwhile. On hardware
each such wait is idle time of its warps. So the loop says, for an II at hand, that a product which
adds to a sum comes an II behind the first product of its iteration: behind that of the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stretto.compile.iteration_order import adds, awaited, in_order
from stretto.compile.scheduled import ONCE, ScheduledLoop, for_problem, scheduled
from stretto.deadline import NEVER, Deadline
from stretto.errors import StrettoError
from stretto.kernel.wiring import LoopWiring
from stretto.loop import Dependence, Loop, Op
from stretto.machine import Machine
from stretto.ops.opcodes import opcode
from stretto.resources.prepare import prepare

LONGER, PART = 6, 8
"""An II is tried that is longer by an eighth, and so on: overlap is worth more than its II says."""


def overlapped(
    wiring: LoopWiring,
    machine: Machine,
    agents: Sequence[str],
    ii: int,
    *,
    max_stages: int,
    deadline: Deadline = NEVER,
) -> ScheduledLoop | None:
    """A schedule of the loop in which all replicas overlap so, at some II from one on; None where
    none was found."""
    if not any(_orders(wiring, agent, ii) for agent in agents):
        return None
    for more in range(LONGER):
        wanted = ii + more * ii // PART
        orders = [order for agent in agents for order in _orders(wiring, agent, wanted)]
        found = scheduled(
            _stating(wiring.loop, orders), machine,
            max_ii=wanted, max_stages=max_stages, effort="quick", without=ONCE, deadline=deadline,
        )  # fmt: skip
        if found.success and not found.spilled:
            try:
                return replace(
                    for_problem(found, prepare(wiring.loop, machine)), bounds=found.bounds
                )
            except StrettoError:
                continue
        if deadline.over:
            return None
    return None


def _orders(wiring: LoopWiring, agent: str, ii: int) -> list[Dependence]:
    """Of a replica, at an II: numbers come as the text has them; sums are added to behind the next
    iteration's first product, and both are waited for before anything is computed of either."""
    mine = [op for op in wiring.loop.ops if op.agent == agent]
    products = _products(wiring.loop, agent)
    fresh = [op.name for op in products if not adds(wiring.operations[op.name])]
    adding = [op.name for op in products if op.name not in fresh]
    if not fresh or not adding:
        return []
    waits = {op.name: awaited(op, wiring) for op in mine if opcode(op.kind).awaits}
    reduced = [op.name for op in mine if op.kind.startswith("reduce.")][:1]
    found = in_order(mine, wiring)
    found += [Dependence(fresh[0], name, ii, 0, "order") for name in adding]
    found += [
        Dependence(wait, name, 0, 1, "order")
        for wait, of in waits.items()
        for name in reduced
        if of in adding
    ]
    return found


def _products(loop: Loop, agent: str) -> list[Op]:
    return [op for op in loop.ops if op.agent == agent and opcode(op.kind).accumulator is not None]


def _stating(loop: Loop, orders: Sequence[Dependence]) -> Loop:
    return replace(loop, stated=(*loop.stated, *orders))
