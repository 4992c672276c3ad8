"""Who does what: agents with their operations, what is handed over, and the schedule below.

attention_forward on b200: 2 warpgroups for arithmetic, II 1325: optimal among all choices of agents
  compute    240 registers  holds its issue slot  434 of 1325 cycles: load_o, rescale_o, store_o
  compute.1  240 registers  holds its issue slot  843 of 1325 cycles: load_s, row_max, …
  handed over: alpha, 512 bytes, from compute.1 to compute
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stretto.agents import Found, Search
from stretto.loop.json import loop_to_json
from stretto.report import NO_BREAK, Told, columns, notes, wrapped
from stretto.report.schedule import Report
from stretto.resources.prepare import Prepared
from stretto.solution import counted

if TYPE_CHECKING:
    from stretto.schemas.assignment import AgentResources, SearchEffort

SCHEMA = "stretto.assignment/1"


@dataclass(frozen=True, slots=True)
class AssignmentReport(Told):
    """The choice of agents for one loop on one machine."""

    ready: Prepared
    found: Found
    schedule: Report
    warnings: tuple[str, ...]

    def _groups(self) -> list[dict[str, Any]]:
        """Each warpgroup for arithmetic: its registers, what it holds and what it does."""
        machine, agents = self.ready.machine, self.found.choice.agents
        rows: list[dict[str, Any]] = []
        for name in sorted(set(agents.values())):
            found = machine.replica_for(name, "simt")
            held = sum(
                use.duration
                for op in self.ready.loop.ops
                for use in op.uses or ()
                if use.slot == name
            )
            rows.append(
                {
                    "name": name,
                    "registers": found[0].registers if found else None,
                    "held": held,
                    "ops": [op.name for op in self.ready.loop.ops if op.agent == name],
                }
            )
        return rows

    def _resources(self) -> AgentResources:
        """What a checker has to know of the machine."""
        machine = self.ready.machine
        agent = machine.agent_for("simt")
        names = [] if agent is None else [agent.replica(n) for n in range(agent.replicas)]
        return {
            "slots": {slot.name: slot.capacity for slot in machine.slots},
            "bytes": {budget.space: budget.bytes for budget in machine.budgets},
            "registers": {name: agent.room(agent.replicas) for name in names if agent is not None},
        }

    def _handed(self) -> list[dict[str, Any]]:
        loop, agents = self.ready.loop, self.found.choice.agents
        sizes = {storage.name: storage.bytes for storage in loop.storages}
        return [
            {
                "tile": tile,
                "bytes": sizes[f"{tile}_handed"],
                "from": agents[loop.producers[tile]],
                "to": [str(r.agent) for r in loop.ops if f"{tile}_handed" in _rings(r.reads)],
            }
            for tile in self.found.choice.handed
        ]

    def to_json(self) -> dict[str, Any]:
        """As an entry of `loops` in an assignment document."""
        found = self.found
        return {
            "name": self.ready.loop.name,
            "machine": self.ready.machine.name,
            "success": True,
            "ii": found.analysis.ii,
            "lower": found.lower,
            "optimal": found.optimal,
            "groups": self._groups(),
            "resources": self._resources(),
            "handed": self._handed(),
            "searches": [_search(search) for search in found.searches],
            "loop": loop_to_json(self.ready.loop),
            "schedule": self.schedule.to_json(),
            "warnings": list(self.warnings),
            "seconds": found.seconds,
        }

    def to_text(self) -> list[str]:
        """For people."""
        found, ii = self.found, self.found.analysis.ii
        groups = self._groups()
        best = "optimal among all choices of agents"
        if not found.optimal:
            best = f"no choice of agents has less than {found.lower}"
        head = f"{self.ready.loop.name} on {self.ready.machine.name}: "
        head += f"{counted(max(1, len(groups)), 'warpgroup')} for arithmetic, II {ii}: {best}"
        lines = wrapped(head, "", "  ")
        lines += columns(
            [
                (
                    row["name"],
                    f"{row['registers']} registers" if row["registers"] else "any registers",
                    f"holds its issue slot {row['held']} of {ii} cycles: {', '.join(row['ops'])}",
                )
                for row in groups
            ],
            "  ",
        )
        for row in self._handed():
            told = f"{row['tile']}, {row['bytes']:,} bytes, from {row['from']} to "
            lines += wrapped(f"handed over: {told}{', '.join(row['to'])}", "  ", "  ")
        lines += wrapped("; ".join(_told(search) for search in found.searches), "  ", "  ")
        return lines + notes(self.warnings) + self.schedule.to_text()


def _rings(reads: Any) -> list[str]:
    return [access.storage for access in reads]


def _search(search: Search) -> SearchEffort:
    return {
        "groups": search.groups,
        "registers": search.registers,
        "lower": search.lower,
        "ii": search.ii,
        "scheduled": search.scheduled,
        "complete": search.complete,
    }


def _told(search: Search) -> str:
    count = counted(search.groups, "warpgroup").replace(" ", NO_BREAK)
    if search.ii is not None:
        found = f"II {search.ii} found"
    else:
        found = f"no gain, II >= {search.lower}" if search.complete else "no gain found"
    return f"{count}: {found}"
