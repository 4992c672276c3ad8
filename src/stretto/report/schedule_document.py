"""Everything that is known of a schedule, as one entry of a document (`stretto.schedule/1`).

    analysis     ii, bounds, ops, storages, table, proof, refused ...    what was found: reads back
    beside it    slots, dependences, occupancy, prediction, program,     what follows from it, for
                 remedies, options, machine_digest                       those who look at it

What follows is never read back: whoever reads a schedule derives it again.
All times are cycles, all memory is bytes, registers are those of one thread.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from stretto.errors import StrettoError
from stretto.loop import Loop
from stretto.lower_bounds.remedies import ties
from stretto.machine import Machine
from stretto.machine.digest import digest
from stretto.ops.spaces import REGISTERS, SPACES
from stretto.report import on_machine
from stretto.report.bounds import remedy_to_json
from stretto.solution import ScheduleAnalysis, Witness, limit, spilling
from stretto.solution.json import analysis_to_json
from stretto.solution.margins import Margin, margins, slack
from stretto.solution.views import Load, pool_loads, prediction, profile, register_lives, slot_loads

if TYPE_CHECKING:
    from stretto.machine.machine import Unit
    from stretto.materialization import Program
    from stretto.report.schedule import Report
    from stretto.schemas.schedule import LoopPrediction, PipelineProgram, ResourceLoad


def entry(report: Report) -> dict[str, Any]:
    """The report as an entry of `loops`."""
    analysis, loop, machine = report.analysis, report.resolved(), report.machine
    found = analysis_to_json(analysis, loop, machine)
    found["warnings"] += report.notes
    found |= on_machine(machine, report.machine_why)
    found["machine_digest"] = digest(machine)
    found["options"] = dict(report.options)
    if not analysis.success:
        found["errors"] = [f"{analysis.loop}: {report.failure()}"]
        return found
    found["spills"] = bool(spilling(analysis))
    found["prediction"] = _prediction(loop, analysis, machine.unit)
    found["slots"] = [_load(load) | {"id": load.id} for load in slot_loads(analysis, machine)]
    found["pools"] = [_load(load) for load in pool_loads(analysis, machine)]
    found["dependences"] = _dependences(loop, analysis)
    found["occupancy"] = _occupancy(loop, machine, analysis)
    program = program_of(report)
    found["program"] = None if program is None else _program(program, machine)
    found |= _advice(report)
    _extend_ops(found["ops"], loop, analysis, program)
    _extend_storages(found["storages"], loop, analysis)
    return found


def _prediction(loop: Loop, analysis: ScheduleAnalysis, unit: Unit) -> LoopPrediction:
    told = prediction(loop, analysis)
    return {
        "fixed": told.fixed,
        "per_iteration": told.per_iteration,
        "prologue": told.prologue,
        "epilogue": told.epilogue,
        "unit": unit,
    }


def _load(load: Load) -> ResourceLoad:
    return {
        "name": load.name,
        "capacity": load.capacity,
        "held": load.held,
        "utilization": round(load.utilization, 4),
        "limiting": load.limiting,
    }


def _dependences(loop: Loop, analysis: ScheduleAnalysis) -> list[dict[str, Any]]:
    """Every dependence with what the schedule leaves of it; those of the critical recurrence."""
    ii, starts = analysis.ii, analysis.starts
    assert ii is not None
    critical = _critical(analysis)
    return [
        {
            "src": d.src,
            "dst": d.dst,
            "latency": d.latency,
            "distance": d.distance,
            "kind": d.kind,
            "via": d.via,
            "slack": slack(d, ii, starts),
            "critical": (d.src, d.dst, d.latency, d.distance) in critical,
        }
        for d in loop.dependences
    ]


def _critical(analysis: ScheduleAnalysis) -> set[tuple[str, str, int, int]]:
    """The steps of the recurrence that bounds the II, if one does at all."""
    if analysis.bounds is None or analysis.bounds.recurrence.kind != "cycle":
        return set()
    parts = analysis.bounds.recurrence.parts
    names = [part.ops[0] for part in parts]
    return {
        (a, b, part.amount, part.distance)
        for part, a, b in zip(parts, names, names[1:] + names[:1], strict=True)
    }


def _occupancy(loop: Loop, machine: Machine, analysis: ScheduleAnalysis) -> list[dict[str, Any]]:
    """What is alive in each cycle of the interval, space by space, as steps."""
    ii, starts = analysis.ii, analysis.starts
    assert ii is not None
    spans: dict[str, list[tuple[int, int, int]]] = {row.space: [] for row in analysis.memory}
    for row, storage in zip(analysis.storages, loop.storages, strict=True):
        if SPACES[row.space].budgeted:
            writers = loop.storage_writers[storage.name]
            begin = min((starts[op.name] for op in writers), default=0)
            spans[row.space].append((row.bytes, begin, begin + row.lifetime))
    found = [
        _steps(row.space, "bytes", row.budget, *profile(spans[row.space], ii))
        for row in analysis.memory
    ]
    if analysis.pressure is not None:
        cycles, live = profile(register_lives(loop, ii, starts), ii)
        budget = machine.budget(REGISTERS)
        unit = budget.unit if budget else 1
        counts = [-(-amount // unit) for amount in live]
        words = "registers" if unit > 1 else "bytes"
        found.append(_steps(REGISTERS, words, analysis.pressure.budget, cycles, counts))
    return found


def _steps(
    space: str, unit: str, budget: int | None, cycles: list[int], live: list[int]
) -> dict[str, Any]:
    steps = [{"cycle": cycle, "live": amount} for cycle, amount in zip(cycles, live, strict=True)]
    return {"space": space, "unit": unit, "budget": budget, "steps": steps}


# The program ------------------------------------------------------------------------------


def program_of(report: Report) -> Program | None:
    """The specialized program of the schedule; None where it cannot become one."""
    from stretto.materialization import materialize  # noqa: PLC0415 - text asks for none

    try:
        return materialize(report.resolved(), report.machine, report.analysis, "specialized")
    except StrettoError:
        return None


def _program(program: Program, machine: Machine) -> PipelineProgram:
    warps = {agent.name: agent.warps for agent in machine.agents}
    return {
        "mode": program.mode,
        "agents": [
            {"name": a.name, "role": a.role, "ops": list(a.ops), "warps": warps.get(a.name)}
            for a in program.agents
        ],
        "pipes": [
            {
                "name": pipe.name,
                "ring": pipe.ring,
                "space": pipe.payload.space,
                "bytes": pipe.payload.bytes,
                "depth": pipe.depth,
                "producers": list(pipe.producers),
                "consumers": [{"op": c.op, "distance": c.distance} for c in pipe.consumers],
                "trivial": pipe.trivial,
            }
            for pipe in program.pipes
        ],
        "mutexes": [
            {
                "name": mutex.name,
                "holder": mutex.holder,
                "waiters": [{"op": w.op, "distance": w.distance} for w in mutex.waiters],
                "excludes": list(mutex.excludes),
            }
            for mutex in program.mutexes
        ],
    }


# Advice -----------------------------------------------------------------------------------


def _advice(report: Report) -> dict[str, Any]:
    """What would make it faster; where no single change would, what stands in the way."""
    found, bounds = report.advice(), report.analysis.bounds
    asked = report.options
    fuse, stages = bool(asked.get("fuse", True)), asked.get("max_stages")
    tied: tuple[Witness, ...] = ()
    if bounds is not None and not found:
        tied = ties(report.resolved(), report.machine, bounds, fuse=fuse, max_stages=stages)
    return {
        "remedies": [remedy_to_json(remedy) for remedy in found],
        "ties": [limit(witness) for witness in tied],
    }


# Operations and storages ------------------------------------------------------------------


def _extend_ops(
    rows: list[dict[str, Any]],
    loop: Loop,
    analysis: ScheduleAnalysis,
    program: Program | None,
) -> None:
    agents = program.agent_of if program is not None else {}
    free = margins(loop, analysis)
    for row in rows:
        op = loop.op(row["name"])
        costs = {"latency": op.ready, "completion": op.completion}
        row.update(costs, agent=agents.get(op.name))
        row.update(_margin(free[op.name]))
        row["location"] = None if op.written is None else asdict(op.written)


def _margin(margin: Margin) -> dict[str, Any]:
    return {
        "slack": {"earlier": margin.earlier, "later": margin.later},
        "bound_by": {"earlier": list(margin.held_earlier), "later": list(margin.held_later)},
    }


def _extend_storages(rows: list[dict[str, Any]], loop: Loop, analysis: ScheduleAnalysis) -> None:
    starts = analysis.starts
    for row in rows:
        storage = loop.storage(row["name"])
        writers = [op.name for op in loop.storage_writers[storage.name]]
        readers = loop.storage_readers[storage.name]
        row["fixed"] = storage.fixed
        row["begin"] = min((starts[name] for name in writers), default=None)
        row["writers"] = writers
        row["readers"] = [{"op": op.name, "distance": distance} for op, distance in readers]
