"""A machine whose arithmetic is done by several warpgroups, and the one that bounds them all.

compute 240 registers   ──►   compute, compute.1, compute.2     160 registers each
                        └─►   compute, with room for three      whoever does what: no schedule
                                                                of the three is shorter
"""

from __future__ import annotations

from dataclasses import replace

from stretto.errors import StrettoError
from stretto.machine import Machine, Slot
from stretto.machine.machine import Agent
from stretto.machine.replicas import own_slots, with_replicas

MOST = 4
"""Warpgroups that are tried, where nobody says."""


def arithmetic(machine: Machine) -> Agent:
    """The agent whose threads do arithmetic; StrettoError where the machine names none."""
    agent = machine.agent_for("simt")
    if agent is None:
        told = f"{machine.name} does not say who issues what, so there is nothing to choose"
        raise StrettoError(f"{told}; h200 and b200 do")
    return agent


def with_groups(machine: Machine, count: int) -> Machine:
    """The machine with so many warpgroups for arithmetic, and the registers that each has then."""
    return with_replicas(machine, arithmetic(machine), count)


def merged(machine: Machine, count: int) -> Machine:
    """One group with the room of all and any number of registers: it bounds every choice."""
    agent = arithmetic(machine)
    own = own_slots(machine, agent)

    def wider(slot: Slot) -> Slot:
        each = slot.capacity if slot.name in own else None
        return slot if each is None else replace(slot, capacity=count * each)

    free = replace(agent, replicas=1, registers=None, crowded=())
    return replace(
        machine,
        slots=tuple(wider(slot) for slot in machine.slots),
        agents=tuple(free if one is agent else one for one in machine.agents),
    )
