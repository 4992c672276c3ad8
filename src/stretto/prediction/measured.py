"""A measured timeline beside the predicted one: which wait was longer, and by which row.

    trace.json ──► clocks of each mark ──┐
    prediction ──► clocks of each mark ──┴─► compute waits for k_tile: 82 predicted, 382 measured

Both are read the same way: a wait lasts from the mark before it to the mark behind it; what lies
between two marks otherwise is work before a wait, or an issue with the work before it. Medians over
steps (the second half of those that both have) and over blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import Literal

from stretto.document import Cursor, parse_json, unknown_schema
from stretto.emission.gluon.tracing import SCHEMA
from stretto.errors import StrettoError
from stretto.files import read_text
from stretto.prediction.engine import Span
from stretto.prediction.flow import Costing
from stretto.prediction.instructions import Copy, Free, Full, Instruction, Product, Settle, Step
from stretto.prediction.kernel_time import FIRST, Watched
from stretto.prediction.running import Subject, loops_of
from stretto.prediction.score import LoopScore
from stretto.program.traces import MARKS, RECORD, STEPS, Mark, size

Clocks = Sequence[Sequence[float]]
"""Of each step, the clocks of its marks."""
WORK = ("elements", "meeting", "lag", "beside", "special", "arrive", "settle")
"""Timings by which work is predicted, beside the machine's rows of its operations."""
SHOWN = 4
"""Steps of the first block that are kept as they were."""
NOTICED = 1.0
"""Cycles by which a wait has to be longer to be told of."""


@dataclass(frozen=True)
class Trace:
    """What a launch left: of each block, agent by agent, all of its numbers."""

    traced: str
    """The name of the source that it is of."""
    clocks: tuple[int, ...]
    at: Cursor


Effort = Literal["wait", "work", "issue"]
"""What an agent does between two marks: waits, works before a wait, or works until it issues."""


@dataclass(frozen=True)
class Compared:
    """What lies between two marks of an agent: a wait, work before one, or work and an issue."""

    agent: str
    what: Effort
    op: str
    """The operation that waits, or will, or is issued."""
    thing: str
    """`full RING`, `free RING`, `products`, `product`, `copy`."""
    predicted: float
    measured: float
    rows: tuple[str, ...]
    """Timings of the machine from which the prediction has its length."""

    @property
    def longer(self) -> float:
        """Cycles by which it was longer than predicted; below 0, shorter."""
        return self.measured - self.predicted


@dataclass(frozen=True)
class Event:
    """What an agent of the first block did, or waited for, in one step."""

    agent: str
    op: str
    step: int
    start: int
    """In cycles behind the first of all."""
    end: int


@dataclass(frozen=True)
class Measured:
    """All of them, those that were longer by most first."""

    blocks: int
    steps: int
    """Of each block, that were compared."""
    compared: tuple[Compared, ...]
    events: tuple[Event, ...]
    """Some steps of the first block, in the order of their time."""

    @property
    def longest(self) -> Compared | None:
        """The wait that was longer than predicted by most."""
        waits = [one for one in self.compared if one.what == "wait" and one.longer >= NOTICED]
        return max(waits, key=lambda one: one.longer, default=None)


def read_trace(file: str) -> Trace:
    """What `write_trace` of an emitted kernel left in a file."""
    called, text = read_text(file)
    top = parse_json(called, text)
    if top.get("schema").text() != SCHEMA:
        raise unknown_schema(top.get("schema"), SCHEMA)
    name, clocks = top.get("traced").text(), top.get("clocks")
    found = tuple(clock.natural() for clock in clocks.items())
    top.done()
    return Trace(name, found, clocks)


def beside(trace: Trace, subject: Subject, watched: Watched) -> Measured:
    """A trace of a kernel beside what was predicted of its first block."""
    agents = [score.agent for score in subject.score]
    each = size("marks")
    blocks, rest = divmod(len(trace.clocks), each * len(agents))
    if rest or not blocks:
        told = f"has {len(trace.clocks):,} clocks"
        hint = (
            f"expected {each * len(agents):,} for each block: {len(agents)} agents, {each:,} each"
        )
        raise trace.at.fail(told, hint)
    found: list[Compared] = []
    events: list[Event] = []
    compared = STEPS
    for number, agent in enumerate(agents):
        marks = subject.emitted.marks[agent].get(str(FIRST), [])
        if not marks:
            continue
        expected = predicted_clocks(watched, agent, marks)
        seen = [
            _written(trace.clocks, (block * len(agents) + number) * each, len(marks))
            for block in range(blocks)
        ]
        common = min(len(expected), *map(len, seen))
        if common < 2:
            told = f"block 0 to {blocks - 1} of agent {agent} have {common} steps in common"
            raise trace.at.fail(told, "launch it with more trips: at least 2 steady steps")
        compared = min(compared, common - common // 2)
        row_of = _Rows(subject, watched.costing)
        found += _compared(agent, marks, expected, seen, common, row_of.of)
        events += _events(agent, marks, seen[0])
    ordered = sorted(found, key=lambda one: -one.longer)
    return Measured(blocks, compared, tuple(ordered), _from_zero(events))


def _written(clocks: Sequence[int], base: int, marks: int) -> Clocks:
    """Steps of one agent of one block that were written down whole."""
    found: list[Sequence[float]] = []
    for step in range(STEPS):
        at = base + RECORD + step * MARKS
        now = clocks[at : at + marks]
        if not all(now):
            break
        found.append(now)
    return found


def predicted_clocks(watched: Watched, agent: str, marks: Sequence[Mark]) -> Clocks:
    """The clocks that a kernel would write down if it ran as predicted: of its last turn."""
    name = agent if agent in watched.programs else f"0:{agent}"
    _, program = watched.programs[name]
    ends = [n for n, one in enumerate(program) if isinstance(one, Step) and one.key == FIRST]
    turn = watched.steps[agent] + 1
    last = ends[-turn:] if len(ends) >= turn else []
    found: list[Sequence[float]] = []
    for begin, end in pairwise(last):
        clocks = list(_marked(program, watched.outcome.clocks[name], begin, end))
        if len(clocks) < len(marks):
            told = (
                f"agent {agent} has {len(marks)} marks in a step, and {len(clocks)} are predicted"
            )
            raise StrettoError(told)
        found.append(clocks[: len(marks)])
    return found[:STEPS]


def _marked(
    program: Sequence[Instruction], spans: Mapping[int, Span], begin: int, end: int
) -> Iterator[float]:
    for n in range(begin, end):
        match program[n]:
            case Full() | Free() | Settle():
                yield from spans[n]
            case Copy() | Product(rest=False):
                yield spans[n][1]
            case _:
                pass


def _compared(
    agent: str,
    marks: Sequence[Mark],
    expected: Clocks,
    seen: Sequence[Clocks],
    common: int,
    rows: Callable[[str, Mark, float], tuple[str, ...]],
) -> Iterator[Compared]:
    steps = range(common // 2, common)
    for n, mark in enumerate(marks):

        def span(clocks: Clocks, step: int, n: int = n) -> float:
            before = clocks[step][n - 1] if n else clocks[step - 1][-1]
            return clocks[step][n] - before

        predicted = median(span(expected, step) for step in steps)
        measured = median(span(clocks, step) for clocks in seen for step in steps)
        if mark.what == "before":
            what, named = "work", WORK
        else:
            what = "wait" if n and marks[n - 1].what == "before" else "issue"
            named = rows(agent, mark, predicted)
        yield Compared(agent, what, mark.op, mark.thing, predicted, measured, named)


def _events(agent: str, marks: Sequence[Mark], clocks: Clocks) -> Iterator[Event]:
    """What lies between marks of the first steps, one behind the other."""
    last = clocks[0][0]
    for step, row in enumerate(clocks[:SHOWN]):
        for mark, clock in zip(marks, row, strict=True):
            if clock > last:
                yield Event(agent, mark.op, step, int(last), int(clock))
            last = clock


def _from_zero(events: Sequence[Event]) -> tuple[Event, ...]:
    first = min((event.start for event in events), default=0)
    moved = [replace(event, start=event.start - first, end=event.end - first) for event in events]
    return tuple(sorted(moved, key=lambda event: (event.start, event.end)))


class _Rows:
    """From which timings of the machine a prediction has the length of a wait."""

    def __init__(self, subject: Subject, costing: Costing) -> None:
        self._subject = subject
        self._costing = costing

    def of(self, agent: str, mark: Mark, predicted: float) -> tuple[str, ...]:
        """Their names, as the machine's file has them."""
        costs = self._costing.timings.costs
        kind, _, ring = mark.thing.partition(" ")
        warps = next(s.warps for s in self._subject.score if s.agent == agent)
        least = costs.wait + costs.wait_warp * (warps - 4)
        match kind:
            case "full" | "free" if predicted <= least + NOTICED:
                # Predicted to be there: what says that it is, beside what such a wait takes.
                late = self._copies(ring) if kind == "full" else ("arrive", "wake")
                return ("wait", *late)
            case "full":
                return self._copies(ring)
            case "free":
                return ("arrive", "wake")
            case "products":
                return ("product_latency",)
            case "product":
                return ("product_issue",)
            case _:
                return ("expect", "copy_issue")

    def _copies(self, ring: str) -> tuple[str, ...]:
        for score in self._subject.score:
            for loop in loops_of(score.parts):
                for beat in loop.kernel if isinstance(loop, LoopScore) else ():
                    if beat.kind == "copy" and beat.thing == ring and beat.operation is not None:
                        known = self._costing.sources.get(beat.operation, "hbm")
                        source, _, shared = known.partition(",")  # `hbm, shared by 4 ...`
                        rate = "copy_rate_shared" if shared else f"copy_rate_{source}"
                        return (f"copy_latency_{source}", rate)
        return ("wake",)
