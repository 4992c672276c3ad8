"""`stretto.assign`: which warpgroup does what, chosen together with the schedule.

stretto.assign(loop, "b200")   ──►  .ii 1325, .optimal, .agents {"load_o": "compute.1", …}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from stretto.agents import Found, chosen
from stretto.agents.groups import MOST
from stretto.api import Result, deadline_of, fields_of, for_each, made_ready
from stretto.api.solving import ScheduleResult
from stretto.deadline import Deadline
from stretto.errors import StrettoError
from stretto.kinds import checked
from stretto.loop import Loop
from stretto.machine import Machine
from stretto.report.assignment import SCHEMA, AssignmentReport
from stretto.resources.prepare import Prepared
from stretto.solution import Proof
from stretto.solve import Progress


@dataclass(frozen=True, repr=False)
class AssignResult(Result):
    """The agents of a loop's operations, and the schedule that goes with them.

    Its problem is the loop with its agents and hand-overs, which bounds, schedules and verifies
    like any other.
    """

    SCHEMA: ClassVar[str] = SCHEMA

    found: Found
    schedule: ScheduleResult = field(kw_only=True)

    @property
    def ii(self) -> int:
        """Cycles from one iteration to the next."""
        assert self.schedule.ii is not None
        return self.schedule.ii

    @property
    def agents(self) -> Mapping[str, str]:
        """Of each operation that was free: whose it is."""
        return self.found.choice.agents

    @property
    def optimal(self) -> bool:
        """Whether no choice of agents and no schedule is shorter."""
        return self.found.optimal

    @property
    def lower(self) -> int:
        """No choice of agents has a smaller II."""
        return self.found.lower

    def view(self) -> AssignmentReport:
        """What text and JSON are made by."""
        return AssignmentReport(self.problem, self.found, self.schedule.view(), self.noted)

    def line(self) -> str:
        """How fast, by how many, and whether that is the best."""
        on = f"{self.problem.loop.name} on {self.problem.machine.name}"
        count = max(1, len(set(self.agents.values())))
        best = "optimal" if self.optimal else f"at least {self.lower}"
        return f"Assignment {on}: {count} for arithmetic, II {self.ii}, {best}"


@for_each
@checked
def assign(
    loop: Loop | Prepared,
    machine: Machine | str | None = None,
    *,
    groups: int = MOST,
    time_limit: float | Deadline | None = None,
    progress: Progress | None = None,
) -> AssignResult:
    """The warpgroup of each operation and a schedule, chosen together; verified.

    Of what `read` gives, or of a list of loops: a tuple with the answer for each. The machine has
    to say who issues what, as `b200` does. At most `groups` warpgroups do arithmetic: the shortest
    schedule is taken, with the fewest of them. What goes from one warpgroup to another in
    registers is handed over through shared memory, at its price.
    """
    if not 1 <= groups <= MOST_GROUPS:
        raise StrettoError(f"{groups} warpgroups; 1 to {MOST_GROUPS} can be asked for")
    ready = made_ready(loop, machine)
    deadline = deadline_of(time_limit)
    found = chosen(ready.loop, ready.machine, groups=groups, deadline=deadline, progress=progress)
    proved = found.analysis
    if found.optimal and proved.ii is not None:  # no choice is better, so this one's schedule is
        proved = replace(proved, proof=Proof(True, proved.ii, "solver"))
    analysis = ScheduleResult(**fields_of(proved), problem=found.choice.ready)
    return AssignResult(found, problem=found.choice.ready, schedule=analysis)


MOST_GROUPS = 8
"""Warpgroups of a block: 1,024 threads."""
