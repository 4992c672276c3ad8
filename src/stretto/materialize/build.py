"""From an analysis to a program, step by step.

plan ─► agents ─► solve ─► rings ─► wire ─► bundles ─► expand ─► verify the region
"""

from __future__ import annotations

from collections.abc import Mapping

from stretto.limits import INSTRUCTIONS
from stretto.loop import Loop
from stretto.machine import Machine
from stretto.materialize.agents import Crew, assign, one_agent
from stretto.materialize.bundles import Bundles
from stretto.materialize.errors import BarrierError, MaterializeError
from stretto.materialize.expand import expand
from stretto.materialize.origins import Origins
from stretto.materialize.persistent import Persistent
from stretto.materialize.pipes import wire
from stretto.materialize.plan import Plan, make_plan
from stretto.materialize.region import require_sound
from stretto.materialize.rings import lay_out
from stretto.materialize.solve import Solve
from stretto.materialize.types import MODES, Agent, Mode, Program
from stretto.solution import ScheduleAnalysis


def materialize(
    loop: Loop,
    machine: Machine,
    analysis: ScheduleAnalysis,
    mode: Mode = "unspecialized",
    *,
    agents: Mapping[str, str] | None = None,
    simt_groups: int = 1,
    persistent: Persistent | None = None,
) -> Program:
    """The program of a finished schedule; loop and machine as `prepare` gives them.

    `agents` gives operations to agents by name, in a specialized program. The shapes of a
    persistent loop are checked before anything is solved.
    """
    if mode not in MODES:
        raise MaterializeError(f"mode {mode!r}; known: {', '.join(MODES)}")
    if persistent is not None:
        persistent.require(loop.name)
    plan = make_plan(loop, machine, analysis)
    if plan.stage_count * len(loop.ops) > INSTRUCTIONS:
        told = f"{plan.stage_count:,} stages of {len(loop.ops):,} operations are too many"
        limit = f"a program has room for {INSTRUCTIONS:,} operations; --max-stages asks for fewer"
        raise MaterializeError(f"{told}; {limit}", loop.name)
    crew = assign(loop, agents, simt_groups) if mode == "specialized" else one_agent(loop)
    program = _build(plan, crew, mode, persistent)
    _within_cap(program, machine)
    require_sound(program)
    return program


def _build(plan: Plan, crew: Crew, mode: Mode, persistent: Persistent | None) -> Program:
    loop, origins = plan.loop, Origins(plan.loop)
    solution = Solve(plan, origins, crew.agent_of).run()
    layout = lay_out(plan, solution.skeletons.values())
    wiring = wire(plan, origins, crew.agent_of, solution, layout)
    bundles = Bundles(plan, solution, layout, wiring)
    instructions = bundles.all()
    agents: list[Agent] = []
    for name, role in crew.roles.items():
        ops = tuple(op.name for op in loop.ops if crew.agent_of[op.name] == name)
        stream = expand(plan, instructions, layout.sequence, ops)
        agents.append(Agent(name, role, ops, stream))
    return Program(
        loop=loop,
        machine=plan.machine.name,
        mode=mode,
        ii=plan.ii,
        stage_count=plan.stage_count,
        rings=tuple(layout.rings.values()),
        pipes=wiring.pipes,
        mutexes=wiring.mutexes,
        iterators=tuple(bundles.iterators.values()),
        agents=tuple(agents),
        sequence=layout.sequence,
        fused=plan.fused,
        persistent=persistent,
    )


def _within_cap(program: Program, machine: Machine) -> None:
    cap = machine.limit("named_barriers")
    takers = program.named_barriers
    if cap is not None and len(takers) > cap:
        raise BarrierError(program.loop.name, len(takers), cap, takers)
