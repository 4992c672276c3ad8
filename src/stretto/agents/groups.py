"""A machine whose arithmetic is done by several warpgroups, and the one that bounds them all.

compute 240 registers   ──►   compute, compute.1, compute.2     160 registers each
                        └─►   compute, with room for three      whoever does what: no schedule
                                                                of the three is shorter
"""

from __future__ import annotations

from dataclasses import replace

from stretto.errors import StrettoError
from stretto.machine import Machine, Slot
from stretto.machine.machine import REGISTER_BYTES, WARP, Agent
from stretto.ops.spaces import REGISTERS

REGISTER_STEP = 8
"""Registers of a thread are set in steps of so many (PTX ISA: setmaxnreg)."""
MOST = 4
"""Warpgroups that are tried, where nobody says."""


def arithmetic(machine: Machine) -> Agent:
    """The agent whose threads do arithmetic; StrettoError where the machine names none."""
    agent = machine.agent_for("simt")
    if agent is None:
        told = f"{machine.name} does not say who issues what, so there is nothing to choose"
        raise StrettoError(f"{told}; h200 and b200 do")
    return agent


def registers(machine: Machine, count: int) -> int | None:
    """Registers of a thread, where so many warpgroups share what the other agents leave."""
    agent = arithmetic(machine)
    budget = machine.budget(REGISTERS)
    if agent.registers is None or budget is None or budget.bytes is None:
        return agent.registers
    others = sum(
        a.warps * a.replicas * WARP * (a.registers or 0) for a in machine.agents if a is not agent
    )
    left = budget.bytes // REGISTER_BYTES - others
    share = left // (count * agent.warps * WARP) // REGISTER_STEP * REGISTER_STEP
    return min(agent.registers, share)


def own_slots(machine: Machine) -> tuple[str, ...]:
    """Slots that each warpgroup has to itself: its issue slot, and those that replicas have."""
    name = arithmetic(machine).name
    units = (s.name for s in machine.slots if s.name != name and machine.has_slot(f"{s.name}.1"))
    return (name, *units)


def slot_of(machine: Machine, slot: str, agent: str) -> str:
    """The slot that an operation of a warpgroup holds, where the first one's would hold this."""
    number = agent.rpartition(".")[2] if agent != arithmetic(machine).name else ""
    return f"{slot}.{number}" if number and slot in own_slots(machine) else slot


def with_groups(machine: Machine, count: int) -> Machine:
    """The machine with so many warpgroups for arithmetic, and the registers that each has then."""
    agent = arithmetic(machine)
    last = max(s.id for s in machine.slots)
    missing = [
        replace(machine.slot(like), name=name)
        for like in own_slots(machine)
        for n in range(1, count)
        if not machine.has_slot(name := f"{like}.{n}")
    ]
    slots = tuple(replace(slot, id=last + n) for n, slot in enumerate(missing, 1))
    many = replace(agent, replicas=count, registers=registers(machine, count), crowded=())
    return replace(
        machine,
        slots=(*machine.slots, *slots),
        agents=tuple(many if one is agent else one for one in machine.agents),
    )


def merged(machine: Machine, count: int) -> Machine:
    """One group with the room of all and any number of registers: it bounds every choice."""
    agent, own = arithmetic(machine), own_slots(machine)

    def wider(slot: Slot) -> Slot:
        each = slot.capacity if slot.name in own else None
        return slot if each is None else replace(slot, capacity=count * each)

    free = replace(agent, replicas=1, registers=None, crowded=())
    return replace(
        machine,
        slots=tuple(wider(slot) for slot in machine.slots),
        agents=tuple(free if one is agent else one for one in machine.agents),
    )
