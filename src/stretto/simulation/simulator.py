"""The whole comparison: sequential against pipelined, values and time.

    simulate(loop, machine, analysis, iterations=9, mode="specialized")
      ──►  equal, no deadlock, II 256 = 256 cycles an iteration, prologue 512, epilogue 956

The pace and the prologue are properties of the program, not of one trip count: where the run is too
short to show them, a longer one is made for the purpose. What is held in every absolute cycle is
counted from the cycles at which operations really issued:

    slot TC, capacity 1     mma(0) ████████  mma(1) ████████      never two at once

Fused operations that issue together hold each of their slots once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from stretto.errors import StrettoError
from stretto.limits import INSTRUCTIONS
from stretto.loop import Loop, Op
from stretto.machine import Machine
from stretto.materialization import Mode, Program, materialize
from stretto.materialization.program import iterators_of
from stretto.materialization.region import declaration_faults
from stretto.ops.spaces import SPACES
from stretto.simulation.domains import Domain, Symbolic, Trace, run_sequential
from stretto.simulation.execution import Execution, run_program
from stretto.simulation.outcome import Findings, Issued, Simulation
from stretto.simulation.space import space_taken
from stretto.solution import ScheduleAnalysis

STEADY = 3
"""Iterations beyond the number of stages that show the steady state."""


def simulate(
    loop: Loop,
    machine: Machine,
    analysis: ScheduleAnalysis,
    iterations: int | None = None,
    mode: Mode = "unspecialized",
    *,
    agents: Mapping[str, str] | None = None,
    domain: Domain | None = None,
    trusted: bool = False,
) -> Simulation:
    """Materialize a schedule and run it; loop and machine as `prepare` gives them.

    Iterations default to enough for a steady state. The domain defaults to symbolic values. Of a
    schedule that is trusted, what its operations hold is not looked at.
    """
    program = materialize(loop, machine, analysis, mode, agents=agents, trusted=trusted)
    if iterations is None:
        iterations = program.stage_count + STEADY
    return simulate_program(program, machine, analysis.starts, iterations, domain, trusted=trusted)


def simulate_program(
    program: Program,
    machine: Machine,
    starts: Mapping[str, int],
    iterations: int,
    domain: Domain | None = None,
    *,
    trusted: bool = False,
) -> Simulation:
    """Run a program as it is; `starts` are those the schedule promised."""
    if iterations < 0:
        raise StrettoError(f"{iterations} iterations; 0 or more are needed", program.loop.name)
    count = iterations * len(program.loop.ops)
    if count > INSTRUCTIONS:
        told = f"{iterations:,} iterations of {len(program.loop.ops)} operations"
        limit = f"a run has at most {INSTRUCTIONS:,}"
        raise StrettoError(f"{told} are {count:,}; {limit}", program.loop.name)
    faults = declaration_faults(program)
    if faults:
        raise StrettoError(f"the program cannot run: {'; '.join(faults)}", program.loop.name)
    domain = domain or Symbolic()
    run = run_program(program, starts, domain, iterations)
    findings = run.findings
    expected = run_sequential(program.loop, domain, iterations)
    equal = _compare(program.loop, domain, expected, run.trace, findings)
    if not trusted:
        check_holds(program, machine, run.issued, findings)
    check_rings(program, machine, findings)
    _check_iterators(program, findings)
    enough = program.stage_count + STEADY
    long = run if iterations >= enough else run_program(program, starts, Symbolic(), enough)
    gaps = _gaps(program, long)
    full = _full_after(program, long.issued)
    loop = program.loop
    last = max((one.cycle + loop.op(one.op).completion for one in run.issued), default=0)
    epilogue = last - iterations * program.ii if iterations else 0
    _check_shape(program, starts, iterations, (gaps, full, epilogue), findings)
    _tell_deadlock(run if run.blocked else long, findings)
    return Simulation(
        loop=program.loop.name,
        machine=machine.name,
        mode=program.mode,
        iterations=iterations,
        ii=program.ii,
        stage_count=program.stage_count,
        equal=equal,
        cycles_per_iteration=max(gaps, default=None),
        prologue_cycles=full,
        epilogue_cycles=epilogue,
        memory=space_taken(program, machine),
        violations=findings.all(),
        blocked=run.blocked or long.blocked,
        issued=run.issued,
        trace=run.trace,
    )


# Values -----------------------------------------------------------------------------------


def _compare(loop: Loop, domain: Domain, expected: Trace, found: Trace, findings: Findings) -> bool:
    """Whether the same values are in the same places; each operation's first difference is told."""
    before = len(findings.all())
    for (op, iteration), made in expected.results.items():
        other = found.results.get((op, iteration))
        where = f"`{op}` of iteration {iteration}"
        if other is None:
            findings.add("value", f"{where} never issued", (op,), about="missing")
        elif not all(domain.same(a, b) for a, b in zip(made, other, strict=True)):
            message = f"{where} made another value than in sequential execution"
            findings.add("value", message, (op,), about="result")
    for key in found.results:
        if key not in expected.results:
            message = f"`{key[0]}` issued for iteration {key[1]}, which does not exist"
            findings.add("value", message, (key[0],), about="extra")
    for (op, iteration, storage), content in expected.writes.items():
        key, where = (op, iteration, storage), f"`{op}` of iteration {iteration}"
        if key not in found.writes:
            if (op, iteration) in found.results:
                findings.add("value", f"{where} wrote nothing to `{storage}`", (op,), about=storage)
        elif not domain.same(content, found.writes[key]):
            message = f"{where} left something else in `{storage}`"
            findings.add("value", message, (op,), about=storage)
    for storage, content in expected.final.items():
        if not domain.same(content, found.final[storage]):
            message = f"`{storage}` holds something else in the end"
            writers = tuple(op.name for op in loop.ops if storage in op.writes)
            findings.add("value", message, writers, about="final")
    return len(findings.all()) == before


# Who moves what ---------------------------------------------------------------------------


def _check_iterators(program: Program, findings: Findings) -> None:
    """An agent looks at its own iterators only: where another's stands is a matter of luck."""
    for agent in program.agents:
        for instruction in agent.stream.instructions:
            for name in iterators_of(instruction):
                mover = program.agent_of[program.iterator_of[name].op]
                if mover != agent.name:
                    op = instruction.op
                    message = f"`{op}`, of agent {agent.name}, goes by iterator `{name}`, which "
                    findings.add("unordered", message + f"agent {mover} moves", (op,), None, name)


# What is held ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _InUse:
    begin: int
    end: int
    amount: int
    op: str
    iteration: int


def check_holds(
    program: Program, machine: Machine, issued: Sequence[Issued], findings: Findings
) -> None:
    """Find every slot and pool that is overbooked."""
    slots: dict[str, list[_InUse]] = {}
    pools: dict[str, list[_InUse]] = {}
    for (cycle, iteration), ops in _together(program, issued):
        for op in ops:
            end = cycle + op.vector.duration
            for demand in op.demands:
                hold = _InUse(cycle, end, demand.units, op.name, iteration)
                pools.setdefault(demand.pool, []).append(hold)
        for slot, hold in _held(ops, cycle, iteration):
            slots.setdefault(slot, []).append(hold)
    for name, holds in slots.items():
        capacity = machine.slot(name).capacity
        if capacity is not None:
            _sweep("slot", name, capacity, holds, findings)
    for name, holds in pools.items():
        _sweep("pool", name, machine.pool(name).cap, holds, findings)


def check_rings(program: Program, machine: Machine, findings: Findings) -> None:
    """Find every ring that is deeper than its storage may be, and every space that is too full."""
    for storage in program.loop.storages:
        depth = program.ring_of[storage.name].depth
        most = 1 if storage.fixed else storage.depth
        if most is not None and depth > most:
            told = f"the ring of `{storage.name}` has {depth} slots; it may have {most}"
            findings.add("overbooked", told, (), None, storage.name)
    for taken in space_taken(program, machine):
        if taken.over and SPACES[taken.space].budgeted:
            told = f"{taken.space} holds {taken.budget:,} bytes; the rings take {taken.rings:,}"
            told += f" and the barriers {taken.barriers:,}" if taken.barriers else ""
            findings.add("overbooked", told, (), None, taken.space)


def _together(program: Program, issued: Iterable[Issued]) -> list[tuple[tuple[int, int], list[Op]]]:
    """Operations that hold as one: members of a fused group that issued in the same cycle."""
    group = {op: n for n, members in enumerate(program.fused) for op in members}
    found: dict[tuple[int, int, int | str], list[Op]] = {}
    for one in issued:
        key = (one.cycle, one.iteration, group.get(one.op, one.op))
        found.setdefault(key, []).append(program.loop.op(one.op))
    return [((cycle, iteration), ops) for (cycle, iteration, _), ops in found.items()]


def _held(ops: Sequence[Op], cycle: int, iteration: int) -> list[tuple[str, _InUse]]:
    """The holds of operations that act as one: their first use of a slot is one hold, and so on."""
    joined: dict[tuple[str, int], _InUse] = {}
    for op in ops:
        seen: dict[str, int] = {}
        for use in sorted(op.vector.uses, key=lambda use: use.offset):
            if use.duration == 0:
                continue
            number = seen.get(use.slot, 0)
            seen[use.slot] = number + 1
            begin = cycle + use.offset
            hold = _InUse(begin, begin + use.duration, use.occupancy, op.name, iteration)
            known = joined.get((use.slot, number))
            if known is not None:
                hold = _InUse(
                    min(known.begin, hold.begin),
                    max(known.end, hold.end),
                    max(known.amount, hold.amount),
                    known.op,
                    iteration,
                )
            joined[use.slot, number] = hold
    return [(slot, hold) for (slot, _), hold in joined.items()]


def _sweep(what: str, name: str, most: int, holds: list[_InUse], findings: Findings) -> None:
    """Go through time; whenever something begins, look at the sum."""
    events = [(h.begin, 1, h.amount, h) for h in holds if h.end > h.begin]
    events += [(h.end, 0, -h.amount, h) for h in holds if h.end > h.begin]
    events.sort(key=lambda event: event[:2])
    load = 0
    active: dict[tuple[str, int, int], _InUse] = {}
    for cycle, begins, amount, hold in events:
        load += amount
        key = (hold.op, hold.iteration, hold.begin)
        if not begins:
            active.pop(key, None)
            continue
        active[key] = hold
        if load > most:
            told = ", ".join(f"`{h.op}` of iteration {h.iteration}" for h in active.values())
            findings.add(
                "overbooked",
                f"{what} `{name}` has {most}; at cycle {cycle}, {load} is held by {told}",
                tuple(sorted({h.op for h in active.values()})),
                cycle,
                name,
            )


# Time -------------------------------------------------------------------------------------


def _gaps(program: Program, run: Execution) -> list[int]:
    """Cycles from iteration to iteration of each operation, the last few of a run."""
    cycles: dict[str, dict[int, int]] = {}
    for one in run.issued:
        cycles.setdefault(one.op, {})[one.iteration] = one.cycle
    if run.blocked or len(cycles) < len(program.loop.ops):
        return []
    gaps: list[int] = []
    for at in cycles.values():
        last = max(at)
        pairs = [(i - 1, i) for i in (last - 1, last)]
        gaps += [at[i] - at[h] for h, i in pairs if h in at and i in at]
    return gaps


def _full_after(program: Program, issued: Sequence[Issued]) -> int | None:
    """Whole intervals that pass before one in which every operation issues."""
    names = {op.name for op in program.loop.ops}
    seen: dict[int, set[str]] = {}
    for one in issued:
        seen.setdefault(one.cycle // program.ii, set()).add(one.op)
    full = [interval for interval, ops in seen.items() if ops == names]
    return min(full) * program.ii if full else None


def _check_shape(
    program: Program,
    starts: Mapping[str, int],
    iterations: int,
    measured: tuple[list[int], int | None, int],
    findings: Findings,
) -> None:
    """Pace, prologue and epilogue as the schedule predicts them."""
    gaps, full, epilogue = measured
    uneven = sorted({gap for gap in gaps if gap != program.ii})
    if uneven:
        told = ", ".join(map(str, uneven))
        message = f"neighbouring iterations are {told} cycles apart; the II is {program.ii}"
        findings.add("pace", message, ())
    stages = max(starts.values()) // program.ii + 1
    if full is not None and full != (stages - 1) * program.ii:
        message = f"the pipeline is full after {full} cycles; {stages} stages of {program.ii} "
        findings.add("prologue", message + f"promise {(stages - 1) * program.ii}", ())
    done = max(starts[op.name] + op.completion for op in program.loop.ops)
    promised = done - program.ii
    if iterations and epilogue != promised:
        message = f"the last completion is {epilogue} cycles after {iterations} intervals of "
        findings.add("epilogue", message + f"{program.ii}; the schedule promises {promised}", ())


def _tell_deadlock(run: Execution, findings: Findings) -> None:
    if not run.blocked:
        return
    lines = [
        f"agent {b.agent} waits at `{b.op}` of iteration {b.iteration} for {b.what}, "
        f"which is up to {' and '.join(b.agents) or 'nobody'}"
        for b in run.blocked
    ]
    findings.add("deadlock", "; ".join(lines), tuple(b.op for b in run.blocked))
