"""Who does what: the warpgroup of each operation, chosen together with the schedule.

    loop ──► Flows ──► choices ──► with_agents ──► bounds, generate, exact, verify, as for any loop
             who may   who does    a hand-over of
             do what   what        each tile that crosses

A choice makes a loop like any other, so nothing that schedules or verifies knows of choices. What
holds for every choice comes from `merged`: the machine whose warpgroups are one with the room of
all. A schedule as short as that is optimal among all choices of agents and all schedules.
"""

from stretto.agents.choices import Choice
from stretto.agents.search import Found, Search, chosen

__all__ = ["Choice", "Found", "Search", "chosen"]
