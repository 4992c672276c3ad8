"""Replicas of an agent: the slots that each has to itself, and machines that have more of them.

compute, compute.1      240 registers       ──►   compute.2 and sums.2 beside them,
sums, sums.1            of each thread            160 registers of each thread
"""

from __future__ import annotations

from dataclasses import replace

from stretto.machine.machine import REGISTER_BYTES, REGISTER_STEP, WARP, Agent, Machine
from stretto.ops.spaces import REGISTERS


def own_slots(machine: Machine, agent: Agent) -> tuple[str, ...]:
    """Slots that each replica has to itself: its issue slot, and units that the second has too."""
    units = (
        s.name for s in machine.slots if s.name != agent.name and machine.has_slot(f"{s.name}.1")
    )
    return (agent.name, *units)


def more_of(machine: Machine, slot: str, before: int, after: int) -> tuple[str, bool]:
    """What having more of a slot asks for, in words, and whether it is other hardware.

    What is each warp's own comes with more warps: consumers, where the machine allows as many.
    """
    multiplies = machine.agent_for("mma")
    shared = own_slots(machine, multiplies) if multiplies else ()
    count = -(-after // before)
    if multiplies and slot in shared and count <= multiplies.replicas + len(multiplies.crowded):
        return f"by `emit --consumers {count}`", False
    own = slot.partition(".")[0]
    warps = own in shared or any(own == agent.name for agent in machine.agents)
    return ("with more warps", False) if warps else ("on other hardware", True)


def slot_of(machine: Machine, slot: str, usual: Agent | None, named: str | None) -> str:
    """The slot that is meant where an operation of the `usual` agent is given to one by name."""
    if named is not None and usual is not None and slot == usual.name:
        return named if machine.has_slot(named) else slot
    _, dot, number = (named or "").rpartition(".")
    own = f"{slot}.{number}"
    return own if dot and machine.has_slot(own) else slot


def registers(machine: Machine, agent: Agent, count: int) -> int | None:
    """Registers of a thread with so many replicas: as stated, or what other agents leave them."""
    if agent.replicas < count <= agent.replicas + len(agent.crowded):
        return agent.crowded[count - agent.replicas - 1]
    budget = machine.budget(REGISTERS)
    if agent.registers is None or budget is None or budget.bytes is None:
        return agent.registers
    others = sum(
        a.warps * a.replicas * WARP * (a.registers or 0) for a in machine.agents if a is not agent
    )
    left = budget.bytes // REGISTER_BYTES - others
    share = left // (count * agent.warps * WARP) // REGISTER_STEP * REGISTER_STEP
    return min(agent.registers, share)


def with_replicas(machine: Machine, agent: Agent, count: int) -> Machine:
    """The machine with so many replicas of an agent, the slots and registers that each has then,
    and the part of what its products may hold."""
    own = registers(machine, agent, count)
    part = (own or 1) / (agent.registers or own or 1)
    last = max(s.id for s in machine.slots)
    missing = [
        replace(machine.slot(like), name=name)
        for n in range(1, count)
        for like in own_slots(machine, agent)
        if not machine.has_slot(name := f"{like}.{n}")
    ]
    many = replace(agent, replicas=count, registers=own, crowded=())
    return replace(
        machine,
        slots=(*machine.slots, *(replace(s, id=last + n) for n, s in enumerate(missing, 1))),
        agents=tuple(many if one is agent else one for one in machine.agents),
        products=tuple(
            replace(p, held=int(p.held * part), held_of_tiles=int(p.held_of_tiles * part))
            for p in machine.products
        ),
    )


def crowded(machine: Machine, count: int) -> Machine:
    """The machine with so many replicas of the agent that multiplies; itself where it has them
    already, or allows no more."""
    agent = machine.agent_for("mma")
    if agent is None or not agent.replicas < count <= agent.replicas + len(agent.crowded):
        return machine
    return with_replicas(machine, agent, count)
