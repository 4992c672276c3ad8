"""Schedules of a kernel's loops: by the generators, by the solver, or as they stood on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from stretto.compile.bisection import shortened
from stretto.compile.iteration_order import one_at_a_time
from stretto.compile.product_overlap import overlapped
from stretto.compile.rooms import Rooms
from stretto.compile.scheduled import ONCE, ScheduledLoop, kept, scheduled
from stretto.deadline import Deadline
from stretto.exact import WORK, limits_of
from stretto.extraction.kernels import RunnableLoop
from stretto.generate import SERIAL
from stretto.kernel.wiring import LoopWiring
from stretto.loop import Loop
from stretto.machine import Machine
from stretto.ops.spaces import STAGING
from stretto.resources.prepare import prepare
from stretto.solve.scheduling import lifted

SOLVED_WORK = 1.0
"""Units of the solver's deterministic work for an II; 0: it is not asked."""
OVERLAPPED_STAGES = 4
"""Stages of a schedule in which consumers overlap their products."""
APART = 2
"""Consumers up to which a search overlaps products of each by itself."""


Known = dict[object, ScheduledLoop | None]
"""Schedules by all that they were made of but the loop's name; None where none was found."""


class LoopSchedules:
    """Makes schedules of one kernel's loops; what its configurations share is made once.

    `known` is what others made of the same loops, such as those of the same kernel with other
    blocks, and takes what is made here.
    """

    def __init__(
        self, rooms: Rooms, seed: int, effort: str, until: Deadline, known: Known | None = None
    ) -> None:
        self.until = until
        """When the search for one schedule ends."""
        self.counted = True
        """Whether schedules keep to the registers of agents; not, where none does."""
        self.overdue = False
        """Whether a search was ended before all was tried."""
        self._rooms = rooms
        self._limits = limits_of(WORK, 1, seed)
        self._effort = effort
        self._known: Known = {} if known is None else known

    def of(
        self,
        loop: RunnableLoop,
        consumers: int,
        stages: int,
        depth: int | None,
        *,
        solve: bool = False,
        serial: bool = False,
    ) -> tuple[LoopWiring, ScheduledLoop]:
        """A loop with its schedule, of so many stages at most and rings of so many slots.

        By the solver if `solve`, without any search if `serial`.
        """
        rooms, wiring = self._rooms, loop.wiring
        room = rooms.room(consumers, loop)
        if not self.counted or serial or rooms.mode == "unspecialized":
            room = lifted(room)  # one warpgroup has no agents
        known = rooms.given.schedules.get(wiring.loop.name)
        if known is not None:
            stated = replace(room, agents=rooms.machine.agents)  # where it was found legal
            return wiring, kept(known, prepare(wiring.loop, stated))
        if depth:
            wiring = _capped(wiring, depth)
        if serial:
            return wiring, scheduled(wiring.loop, room, SERIAL)
        if solve:
            wiring, found = self._solved(wiring, consumers, room, stages)
        else:
            found = self._generated(wiring.loop, room, stages)
        self.overdue = self.overdue or found.overdue
        if consumers > APART and found.success and not found.spilled:
            agents, most = rooms.agents(consumers), OVERLAPPED_STAGES
            ii = found.ii or 1
            again = self._once(
                wiring.loop,
                (room, agents, ii, most),
                lambda: overlapped(wiring, room, agents, ii, max_stages=most, deadline=self.until),
            )
            found = again or found
        return wiring, found

    def _once(
        self, loop: Loop, asked: object, make: Callable[[], ScheduledLoop | None]
    ) -> ScheduledLoop | None:
        """What is made of a loop, or what was made of one that differs in its name alone."""
        key = (replace(loop, name=""), asked)
        if key not in self._known:
            self._known[key] = make()
        found = self._known[key]
        if found is None or found.loop == loop.name:
            return found
        problem = replace(found.problem, loop=replace(found.problem.loop, name=loop.name))
        return replace(found, loop=loop.name, problem=problem)

    def _generated(self, loop: Loop, room: Machine, stages: int) -> ScheduledLoop:
        """A loop by the generators; kernels of several loops have some of them in common."""
        asked = (room, stages, self._effort)
        found = self._once(loop, asked, lambda: self._anew(loop, room, stages))
        assert found is not None
        return found

    def _anew(self, loop: Loop, room: Machine, stages: int) -> ScheduledLoop:
        return scheduled(
            loop, room,
            max_stages=stages, effort=self._effort, without=ONCE, limits=self._limits,
            deadline=self.until,
        )  # fmt: skip

    def _solved(
        self, wiring: LoopWiring, consumers: int, room: Machine, stages: int
    ) -> tuple[LoopWiring, ScheduledLoop]:
        """A loop by the solver, one iteration at a time, where that is shorter."""
        generated = self._generated(wiring.loop, room, stages)
        agents = self._rooms.agents(consumers)
        limits = replace(self._limits, work=SOLVED_WORK, runs=False)
        if generated.bounds is None or generated.ii is None:
            return wiring, generated
        for apart in one_at_a_time(wiring, agents, generated.problem.loop):
            found = shortened(
                apart.loop, room, generated.bounds.ungrouped, generated.ii,
                max_stages=stages, limits=limits, deadline=self.until,
            )  # fmt: skip
            if found is not None:
                return apart, replace(found, bounds=generated.bounds)
        return wiring, generated


def _capped(wiring: LoopWiring, depth: int) -> LoopWiring:
    """The same loop with rings in shared memory of at most so many slots."""
    storages = tuple(
        s if s.fixed or s.space != STAGING else replace(s, depth=min(depth, s.depth or depth))
        for s in wiring.loop.storages
    )
    return replace(wiring, loop=replace(wiring.loop, storages=storages))
