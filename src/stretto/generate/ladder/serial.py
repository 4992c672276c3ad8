"""One operation after the other: no overlap of iterations, no search.

    load ████████
    write        ███████          each starts as early as dependences and slots allow,
    wgmma        ████████         never before the one ahead of it
    read                ███████
                               II = everything done, and what carried dependences ask

Nothing wraps round: all holds end before the II does. So this schedule is legal whenever its rings
fit, and its II is where the search for a better one may end.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from stretto.deadline import GRACE
from stretto.errors import InfeasibleError
from stretto.generate import SERIAL
from stretto.generate.ladder import overflow_refusal
from stretto.generate.ladder.rings import overflow, ring_depth
from stretto.generate.problem import Problem
from stretto.problem import Claim
from stretto.solution import views


@dataclass(frozen=True, slots=True)
class SerialResult:
    """A legal schedule of one stage, or of those that the offsets of groups ask for."""

    problem: Problem
    starts: list[int]
    """By operation number."""
    ii: int

    @property
    def warnings(self) -> tuple[str, ...]:
        """Constraints it does not honour: seating last, and spills; worked out when asked."""
        return _unhonoured(self.problem, self.ii, self.starts)


class SerialError(InfeasibleError):
    """The serial schedule is not to be had; `ii` is what it would have had."""

    def __init__(self, ii: int, message: str, limit: str = "") -> None:
        self.ii = ii
        self.limit = limit
        """The memory space or the rule that refuses it."""
        super().__init__(message)

    def __reduce__(self) -> tuple[type[SerialError], tuple[int, str, str]]:
        return SerialError, (self.ii, self.message, self.limit)


def serial(problem: Problem) -> SerialResult:
    """Schedule a loop serially.

    SerialError when its rings overflow a budget although only one iteration runs at a time, when
    an operation is pinned elsewhere, when the offsets of a group cannot be kept to in the order of
    one iteration, and under `strict` when a constraint is not honoured.
    """
    starts = _walk(problem)
    ii = _interval(problem, starts)
    if any(problem.ahead):
        starts = _apart(problem, ii, starts)
    too_much = overflow(problem, ii, starts)
    if too_much:
        rings = _rings(problem, ii, starts)
        limit = overflow_refusal(ii, too_much, SERIAL).limit
        raise SerialError(ii, f"serially, at II {ii}, {too_much} ({rings})", limit)
    unmet = problem.unmet(ii, starts)
    if unmet:
        told = f"serially, `{problem.names[unmet[0]]}` stands where it starts first"
        raise SerialError(ii, told, "pin")
    result = SerialResult(problem, starts, ii)
    if problem.options.strict and result.warnings:
        raise SerialError(ii, "; ".join(result.warnings), "strict")
    return result


def _walk(problem: Problem) -> list[int]:
    holds = _Holds(problem.holds.limits)
    starts = [0] * problem.size
    seated: set[int] = set()
    now = 0
    patience = problem.deadline.later(GRACE)  # this is the first schedule that there is
    for i in _order(problem):
        patience.check()
        for before, latency, distance in problem.preds[i]:
            if distance == 0:
                now = max(now, starts[before] + latency)
        if any(j in seated and starts[j] == now for j in problem.instant.get(i, ())):
            now += 1
        now = holds.seat(problem.claims[i], now)
        starts[i] = now
        seated.add(i)
    return starts


def _order(problem: Problem) -> list[int]:
    """Of the operations whose predecessors are out, always the first in program order."""
    waiting = [sum(arc.distance == 0 for arc in arcs) for arcs in problem.preds]
    ready = [i for i, count in enumerate(waiting) if count == 0]
    order: list[int] = []
    while ready:
        i = heapq.heappop(ready)
        order.append(i)
        for after, _, distance in problem.succs[i]:
            if distance == 0:
                waiting[after] -= 1
                if waiting[after] == 0:
                    heapq.heappush(ready, after)
    return order


def _interval(problem: Problem, starts: Sequence[int]) -> int:
    """The II at which an iteration is over, or as good as over, before the next begins."""
    done = max(start + c for start, c in zip(starts, problem.completion, strict=True))
    # An operation that takes no time at all still has to stand in stage 0.
    ii = max(1, done, max(starts) + 1)
    for src, dst, latency, distance in problem.graph.edges:
        if distance:
            # start[dst] >= start[src] + latency - II * distance
            lag = starts[src] + latency - starts[dst]
            ii = max(ii, -(-lag // distance))
    return ii


def _apart(problem: Problem, ii: int, starts: Sequence[int]) -> list[int]:
    """The same cycles in the least stages that keep groups apart by their offsets."""
    found, ahead = list(starts), problem.ahead
    for _ in range(problem.size + 1):
        before = list(found)
        for members in problem.members:
            last = max(found[i] // ii + ahead[i] for i in members)
            for i in members:
                found[i] = starts[i] + (last - ahead[i]) * ii
        for src, dst, latency, distance in problem.graph.edges:
            lag = found[src] + latency - ii * distance - found[dst]
            found[dst] += max(0, -(-lag // ii)) * ii
        if found == before:
            break
    else:
        told = "no stages keep to the offsets of groups"
        raise SerialError(ii, f"serially, at II {ii}, {told}", "group")
    low = min(found) // ii * ii
    found = [start - low for start in found]
    for i, last in enumerate(problem.max_stage):
        if last is not None and found[i] // ii > last:
            told = f"`{problem.names[i]}` stands in stage {found[i] // ii}; {last} is its last"
            raise SerialError(ii, f"serially, at II {ii}, {told}", "depth")
    return found


def _rings(problem: Problem, ii: int, starts: Sequence[int]) -> str:
    return " + ".join(
        f"{room.name} {ring_depth(problem, room, ii, starts)} × {room.bytes:,}"
        for room in problem.rotating
    )


def _unhonoured(problem: Problem, ii: int, starts: Sequence[int]) -> tuple[str, ...]:
    """What the walk does not look at: seating last, and spills."""
    warnings = [
        f"`pending` of `{name}` is not honoured: serially, operations start in topological order"
        for name, pending in zip(problem.names, problem.pending, strict=True)
        if pending
    ]
    by_name = problem.starts_by_name(starts)
    registers = views.pressure(problem.loop, problem.machine, ii, by_name)
    if registers.budget is not None and registers.peak > registers.budget:
        warnings.append(
            f"register pressure peaks at {registers.peak} of {registers.budget}: "
            "the serial generator does not weigh spills"
        )
    return tuple(warnings)


# Slots and pools in absolute time ---------------------------------------------------------


class _Hold(NamedTuple):
    """So much of a slot or a pool, from `begin` to before `end`."""

    begin: int
    end: int
    amount: int


class _Holds:
    """What is held from now on, where now only moves forward."""

    def __init__(self, limits: Sequence[int]) -> None:
        self._limits = limits
        self._held: list[list[_Hold]] = [[] for _ in limits]

    def seat(self, claims: Sequence[Claim], low: int) -> int:
        """Hold what an operation claims, at its earliest start from `low` on; that start."""
        wanted: dict[int, list[_Hold]] = {}
        for column, offset, duration, amount in claims:
            hold = _Hold(offset, offset + duration, amount)
            wanted.setdefault(column, []).append(hold)
        rooms: list[_Room] = []
        for column, holds in wanted.items():
            self._held[column] = [hold for hold in self._held[column] if hold.end > low]
            held = _levels(self._held[column])
            rooms.append(_Room(self._limits[column], _levels(holds), held))
        start = low
        while (later := _after(rooms, start)) is not None:
            start = later
        for column, holds in wanted.items():
            self._held[column] += [_later(hold, start) for hold in holds]
        return start


class _Room(NamedTuple):
    """A slot or a pool: its limit, what is wanted of it and what is held, in levels."""

    limit: int
    wanted: list[_Hold]
    held: list[_Hold]


def _after(rooms: Sequence[_Room], start: int) -> int | None:
    """The next start that may fit where this one does not; None: it fits.

    What is in the way stays in the way until it ends, so no start between the two fits.
    """
    for limit, wanted, held in rooms:
        for claim in wanted:
            i = bisect_right(held, start + claim.begin, key=lambda hold: hold.end)
            while i < len(held) and held[i].begin < start + claim.end:
                if held[i].amount + claim.amount > limit:
                    return held[i].end - claim.begin
                i += 1
    return None


def _later(hold: _Hold, start: int) -> _Hold:
    return _Hold(hold.begin + start, hold.end + start, hold.amount)


def _levels(holds: Sequence[_Hold]) -> list[_Hold]:
    """The same in pieces that follow each other, each with the sum of all that is held in it."""
    change: dict[int, int] = {}
    for hold in holds:
        change[hold.begin] = change.get(hold.begin, 0) + hold.amount
        change[hold.end] = change.get(hold.end, 0) - hold.amount
    levels: list[_Hold] = []
    begin, amount = 0, 0
    for moment in sorted(moment for moment, by in change.items() if by):
        if amount:
            levels.append(_Hold(begin, moment, amount))
        begin, amount = moment, amount + change[moment]
    return levels
