"""A program run by clocks alone, for every trip count that matters: no tile is worked out.

trips   0, 1, 2, and about as many as there are stages: the prologue, the first steady step
        one more than there are slots, and than twice as many: each slot and phase comes round
turns   of loops around those: the second and third, for tiles that are filled again
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from stretto.kernel.tree import kind_of
from stretto.program.clocks.agents import AgentRun, Choices, agents_of
from stretto.program.clocks.orders import FaultError, Orders
from stretto.program.instructions import For, If, Pipelined, While
from stretto.program.kernel_program import Barriers, KernelProgram
from stretto.program.walk import walk

TURNS = 2
"""Of loops around those that run by schedules."""
MORE_TURNS = 3
"""The same, where an iteration or two are all that there are."""
FEW = 2


@dataclass(frozen=True)
class Covered:
    """What was run."""

    trips: tuple[int, ...]
    """Of loops that run by schedules; empty: none, or the kernel says how often they go round."""
    runs: int
    events: int
    """Accesses, waits and arrivals of all runs."""


def check_program(program: KernelProgram, most: int | None = None) -> Covered:
    """All runs; FaultError where one may go wrong, or has more events than `most`."""
    runs = list(choices_of(program))
    names: dict[int, frozenset[str]] = {}
    events = sum(run(program, choices, names, most) for choices in runs)
    counted = sorted({choices.trips for choices in runs}) if _open_loops(program) else []
    return Covered(tuple(counted), len(runs), events)


def choices_of(program: KernelProgram) -> Iterator[Choices]:
    """What the host may decide, as far as it makes a difference."""
    instructions = [one for agent in program.agents for one in walk(agent.body)]
    around = any(isinstance(one, While | For) and one.operation is not None for one in instructions)
    branches = any(isinstance(one, If) and one.operation is not None for one in instructions)
    trips = _trips(program)
    for count, branch in product(trips, (True, False) if branches else (True,)):
        turns = 1 if not around else MORE_TURNS if count <= FEW else TURNS
        yield Choices(count, turns, branch)
    if any(loop.needed > 1 for loop in _open_loops(program)):
        # Slots go round in that way too, which is a program by itself.
        yield Choices(trips[-1], TURNS if around else 1, branch=True, singly=True)


def _open_loops(program: KernelProgram) -> list[Pipelined]:
    """Loops that run by schedules, of which the kernel does not say how often they go round."""
    found = [one for agent in program.agents for one in walk(agent.body)]
    return [one for one in found if isinstance(one, Pipelined) and one.known is None]


def _trips(program: KernelProgram) -> list[int]:
    loops = _open_loops(program)
    if not loops:
        return [1]
    found = {0, 1, 2}
    for loop in loops:
        found |= {loop.hidden + loop.needed + more for more in (-1, 0, 1)}
        found |= {many + 1 for many in loop.together[:1]}
    depths = [one.depth or 1 for one in program.memory if isinstance(one, Barriers)]
    deepest = max(depths, default=0)
    return sorted(found | {deepest + 1, 2 * deepest + 1})


def run(
    program: KernelProgram,
    choices: Choices,
    names: dict[int, frozenset[str]],
    most: int | None = None,
) -> int:
    """One run of all agents: how many events it had; FaultError where it may go wrong."""
    orders = Orders(program.barriers, str(choices), most)
    drive(agents_of(program, orders, choices, names), orders)
    return len(orders.events)


def drive(
    agents: Sequence[AgentRun], orders: Orders, land: Callable[[], bool] = lambda: False
) -> None:
    """All agents to their ends, each as far as it comes; FaultError where they cannot go on.

    `land` has something happen that goes on beside agents, when all of them wait; whether it did.
    """
    running = [(agent, agent.run()) for agent in agents]
    while running:
        before, left = len(orders.events), len(running)
        running = [(agent, steps) for agent, steps in running if _goes_on(steps)]
        stuck = len(orders.events) == before and len(running) == left
        if stuck and not land():
            raise _deadlock(orders, [agent for agent, _ in running])
    while land():
        pass
    bodies = [agent.agent.body for agent in agents if agent.agent.body]
    if bodies:
        orders.finish(bodies[0][-1])


def _goes_on(steps: Iterator[None]) -> bool:
    """Runs an agent until it waits; whether it does."""
    return next(steps, False) is None


def _deadlock(orders: Orders, agents: list[AgentRun]) -> FaultError:
    told: list[str] = []
    for agent in agents:
        assert agent.waits is not None
        origin = agent.waits.origin
        name = origin.op or ("" if origin.operation is None else kind_of(origin.operation))
        of = f" for `{name}`" if name else ""
        where = agent.waits.barrier
        named = where if isinstance(where, str) else where.name
        told.append(f"{agent.agent.name} waits at `{named}`{of}")
    waiting = agents[0].waits
    assert waiting is not None
    return orders.fault(f"nobody goes on: {'; '.join(told)}", waiting)
