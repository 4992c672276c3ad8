"""What a schedule has of each objective, and what no schedule can be below; no solver needed.

    stages       max start // II + 1        >= longest path of dependences // II + 1
    bytes        Σ bytes × ring             >= itself, where nothing rotates
    registers    peak of live bytes         >= what one operation reads and writes at its start

A schedule that meets the floor is proved without asking the solver.
"""

from __future__ import annotations

from stretto.bounds.distances import earliest_starts
from stretto.exact.case import Case
from stretto.exact.options import ObjectiveName, no_objective
from stretto.solution import Schedule, views
from stretto.vocabulary.spaces import REGISTERS, SPACES


def value_of(case: Case, schedule: Schedule, name: ObjectiveName) -> int:
    """By the definitions, not by the model."""
    ii, starts = schedule.ii, schedule.starts
    match name:
        case "ii":
            return ii
        case "stages":
            return views.stage_count(ii, starts.values())
        case "bytes":
            uses = views.storage_uses(case.loop, ii, starts)
            return sum(row.used for row in views.memory(case.machine, uses))
        case "registers":
            return views.pressure(case.loop, case.machine, ii, starts).peak
        case _:  # a caller without types
            raise no_objective(name)


def floor_of(case: Case, ii: int, name: ObjectiveName) -> int:
    """What no schedule at this II is below."""
    match name:
        case "ii":
            return 1
        case "stages":
            return max(earliest_starts(case.loop, ii).values()) // ii + 1
        case "bytes":
            once = sum(ring.bytes for ring in case.problem.rotating)
            return once + sum(case.problem.rooms.single_bytes.values())
        case "registers":
            return _register_floor(case)
        case _:  # a caller without types
            raise no_objective(name)


def _register_floor(case: Case) -> int:
    """Live-ins, and the most that one operation needs at once.

    When an operation starts, all that it reads lives (until it completes), and what it writes
    begins to.
    """
    loop = case.loop
    always = sum(v.register_bytes for v in loop.values if v.name not in loop.producers)
    always += sum(s.bytes for s in loop.storages if not SPACES[s.space].budgeted and s.fixed)
    at_once: dict[str, int] = {}
    ready = {(d.src, d.dst, d.distance) for d in loop.dependences if d.latency >= 0}
    for value in loop.values:
        maker = loop.producers.get(value.name)
        if maker is None or not value.register_bytes:
            continue
        users = {(maker, 0)} | {
            (reader, distance)
            for reader, distance in loop.readers[value.name]
            if (maker, reader, distance) in ready
        }
        for user, _ in users:
            if loop.op(user).completion > 0:
                at_once[user] = at_once.get(user, 0) + value.register_bytes
    budget = case.machine.budget(REGISTERS)
    unit = budget.unit if budget else 1
    return -(-(always + max(at_once.values(), default=0)) // unit)
