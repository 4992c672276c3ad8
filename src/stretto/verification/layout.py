"""What the rules look at: a schedule laid out in absolute time.

    iteration 0   |load───|write──|                        II = 15
    iteration 1                  |load───|write──|
    iteration 2                                 |load───|write──|
                                                ^── window ──^

An operation of iteration i starts at start + i × II. A *window* of II cycles is opened so late that
everything is present in it that will ever be present together. The iterations that touch it are
found by whole division from begin and end, never by walking there: a far start and a long hold cost
nothing. Of each span one iteration begins and one ends inside the window; those are swept.

Two counts are made of it: how many copies of a storage are alive at once (`kept_of`), and when more
is held of a slot or drawn from a pool than there is (`overfull`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import merge
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Literal, get_args

from stretto.loop import Dependence, Loop, Op, Storage
from stretto.loop.parts import cached_property, quickly
from stretto.machine import Machine
from stretto.solution import ScheduleAnalysis
from stretto.verification.requirements import (
    Touch,
    flows_inside,
    stated_and_flows,
    touches,
    waits_inside,
)

if TYPE_CHECKING:
    from stretto.schemas.verification import RuleViolation

Rule = Literal[
    "dependence", "slot", "pool", "depth", "group", "storage", "registers", "fusion", "pin", "order"
]
RULES: tuple[Rule, ...] = get_args(Rule)

Detail = tuple[tuple[str, int | str], ...]


@dataclass(frozen=True, slots=True)
class Violation:
    """One way in which a schedule is not legal."""

    rule: Rule
    message: str
    """A sentence with all its numbers."""
    ops: tuple[str, ...] = ()
    """The operations involved, in program order where they have one."""
    detail: Detail = ()
    """The numbers again, by name."""

    def to_json(self) -> RuleViolation:
        """The violation as a JSON object."""
        return {
            "rule": self.rule,
            "message": self.message,
            "ops": list(self.ops),
            "detail": dict(self.detail),
        }


@quickly
@dataclass(frozen=True, slots=True)
class Span:
    """Something that one iteration holds for a while; times are those of iteration 0."""

    owner: tuple[str, ...]
    begin: int
    end: int
    amount: int = 1


@quickly
@dataclass(frozen=True, slots=True)
class Running:
    """A span as consecutive iterations have it at one time."""

    span: Span
    first: int
    last: int

    @property
    def count(self) -> int:
        """How many iterations they are."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class Moment:
    """A time at which the sum of what is held changed, and all that is held then."""

    cycle: int
    load: int
    held: tuple[Running, ...]
    """In the order of the spans."""


def listed(names: Iterable[str]) -> str:
    """Operations that act as one, for a message."""
    return " + ".join(f"`{name}`" for name in names)


@dataclass(frozen=True)
class Layout:
    """A schedule under examination: operations that are placed, each at its first mention."""

    loop: Loop
    machine: Machine
    analysis: ScheduleAnalysis
    max_stages: int | None = None

    @cached_property
    def starts(self) -> dict[str, int]:
        """Start of each operation of the loop that is placed."""
        found = {each.op: each.start for each in reversed(self.analysis.placements)}
        names = [op.name for op in self.loop.ops]
        return {name: found[name] for name in names if name in found}

    @cached_property
    def placed(self) -> tuple[Op, ...]:
        """Operations that are placed, in program order."""
        starts = self.starts
        return tuple([op for op in self.loop.ops if op.name in starts])

    @cached_property
    def complete(self) -> bool:
        """Whether every operation is placed once and nothing else is."""
        placed = [placement.op for placement in self.analysis.placements]
        names = [op.name for op in self.loop.ops]
        return placed == names or sorted(placed) == sorted(names)

    @cached_property
    def ii(self) -> int:
        """The II; the caller has seen that there is one."""
        if self.analysis.ii is None:
            raise ValueError("a schedule without an II has no times")
        return self.analysis.ii

    def stage(self, op: str) -> int:
        """Whole intervals before the start."""
        return self.starts[op] // self.ii

    @cached_property
    def stage_count(self) -> int:
        """Stages of what is placed."""
        return max(self.starts.values()) // self.ii + 1 if self.starts else 0

    def at(self, op: str, iteration: int) -> int:
        """Absolute start of an operation in some iteration."""
        return self.starts[op] + iteration * self.ii

    @cached_property
    def asked(self) -> tuple[Dependence, ...]:
        """What is stated, and what operands ask for."""
        return stated_and_flows(self.loop)

    @cached_property
    def flows(self) -> dict[str, set[tuple[str, str, int]]]:
        """Storage to who makes and who reads what lies in it, and how far apart they are."""
        return flows_inside(self.loop)

    @cached_property
    def touched(self) -> dict[str, list[Touch]]:
        """Storage to all that touch it, in program order."""
        return touches(self.loop)

    @cached_property
    def kept(self) -> dict[str, Kept | None]:
        """Storage to what was counted of it; None while who touches it has no place."""
        return {storage.name: kept_of(self, storage) for storage in self.loop.storages}

    @cached_property
    def predecessors(self) -> dict[str, list[str]]:
        """Orders of one iteration, as who waits for whom."""
        return waits_inside(self.loop, self.asked, self.touched)

    @cached_property
    def levels(self) -> dict[str, int]:
        """Round in which each operation becomes ready; empty when some never does."""
        predecessors = self.predecessors
        missing = {name: len(before) for name, before in predecessors.items()}
        after: dict[str, list[str]] = {name: [] for name in missing}
        for name, before in predecessors.items():
            for other in before:
                after[other].append(name)
        level: dict[str, int] = {}
        ready, rounds = [name for name, count in missing.items() if not count], 0
        while ready:
            level.update(dict.fromkeys(ready, rounds))
            freed: list[str] = []
            for name in ready:
                for other in after[name]:
                    missing[other] -= 1
                    if not missing[other]:
                        freed.append(other)
            ready, rounds = freed, rounds + 1
        return level if len(level) == len(missing) else {}

    def running(self, span: Span, cycle: int) -> Running:
        """The iterations that have a span at a time; none where `last` is below `first`.

        Iteration i has begun when begin + i × II <= cycle, and has not ended while
        cycle < end + i × II.
        """
        return Running(span, (cycle - span.end) // self.ii + 1, (cycle - span.begin) // self.ii)

    def copies(self, span: Span) -> int:
        """How many iterations have a span at once: those that begin before the first one ends."""
        return self.running(span, span.end - 1).last + 1

    def moments(self, spans: Iterable[Span], above: int) -> Iterator[Moment]:
        """Sweep the window: every time something begins and more than `above` is held.

        What is held together only grows when something begins, and every span that lasts begins
        once in the window, so no other time needs a look.
        """
        lasting = [span for span in spans if span.end > span.begin]
        if not lasting:
            return
        ii, load = self.ii, 0
        held = [(span.begin, span.end, span.amount) for span in lasting]
        stages = max(0, max(held)[0]) // ii + 1
        longest = max([end - begin for begin, end, _ in held])
        opens = (stages + longest // ii) * ii
        changes: list[tuple[int, int]] = []
        for begin, end, amount in held:
            # As `running` has it: the first that has not ended, and the first that has not begun.
            first, fresh = (opens - 1 - end) // ii + 1, (opens - 1 - begin) // ii + 1
            load += amount * (fresh - first)
            changes.append((end + first * ii, -amount))
            changes.append((begin + fresh * ii, amount))
        changes.sort()  # at one time, what ends goes before what begins
        if max(accumulate([change for _, change in changes], initial=load)) <= above:
            return  # never so much, not even inside one time
        for n, (cycle, change) in enumerate(changes):
            load += change
            more = n + 1 < len(changes) and changes[n + 1][0] == cycle
            if load > above and change > 0 and not more:
                runs = (self.running(span, cycle) for span in lasting)
                yield Moment(cycle, load, tuple(run for run in runs if run.count > 0))


# Copies -----------------------------------------------------------------------------------


@quickly
@dataclass(frozen=True, slots=True)
class Kept:
    """What was counted of one storage.

        iteration 0   load ████████████████ read       born when the first writer issues,
        iteration 1          ████████████████          dead when the last accessor is done:
        iteration 2                 ████████████████   three copies alive at once

    Fixed storages and storages that the loop only reads have one copy, which lives always.
    """

    storage: Storage
    lifetime: int
    copies: int
    accessors: tuple[str, ...]

    @property
    def bytes(self) -> int:
        """Of all copies."""
        return self.storage.bytes * self.copies


def kept_of(laid: Layout, s: Storage) -> Kept | None:
    """Copies alive at once; None while an operation that touches it has no place."""
    touched, starts, ii = laid.touched[s.name], laid.starts, laid.ii
    writers = [touch.op.name for touch in touched if touch.writes]
    accessors = tuple(dict.fromkeys([*writers, *[touch.op.name for touch in touched]]))
    if not starts.keys() >= {*accessors}:
        return None
    if s.fixed or not writers:
        return Kept(s, ii, 1, accessors)
    born = min([starts[name] for name in writers])
    dead = max([starts[t.op.name] + t.back * ii + t.op.completion for t in touched])
    copies = max(1, laid.copies(Span(accessors, born, dead)))
    return Kept(s, dead - born, copies, accessors)


# Too much at once -------------------------------------------------------------------------

SHOWN = 6
"""Holders that a message names before it says how many more there are."""


@quickly
@dataclass(frozen=True, slots=True)
class Limit:
    """A slot's capacity or a pool's cap, with the words of its rule."""

    rule: Literal["slot", "pool"]
    name: str
    most: int

    def __str__(self) -> str:
        word = "capacity" if self.rule == "slot" else "cap"
        return f"{self.rule} `{self.name}` ({word} {self.most})"

    @property
    def verb(self) -> str:
        """What one operation does with it."""
        return "holds" if self.rule == "slot" else "draws"

    @property
    def total(self) -> str:
        """What is done with it by all."""
        return "held" if self.rule == "slot" else "drawn"

    def violation(self, message: str, ops: tuple[str, ...], **numbers: int) -> Violation:
        """A violation of its rule, with these numbers."""
        detail = ((self.rule, self.name), ("limit", self.most), *numbers.items())
        return Violation(self.rule, message, ops, detail)


def overfull(laid: Layout, limit: Limit, spans: list[Span]) -> Iterator[Violation]:
    """Every distinct way in which too much is held at once.

        limit 1       a of iteration 0   ████████
                      b of iteration 0          ████████        a, b of one moment: 2 are held
                      a of iteration 1              ████████    a, b of another

    Each distinct set of holders is told once, from the oldest iteration that takes part.
    """
    fitting: list[Span] = []
    for span in spans:
        # Over the limit on average: it meets itself, and everything else meets it.
        if span.amount * (span.end - span.begin) > limit.most * laid.ii:
            yield _alone(laid, limit, span)
        elif span.amount:
            fitting.append(span)
    seen: set[frozenset[tuple[tuple[str, ...], int, int]]] = set()
    for moment in laid.moments(fitting, limit.most):
        oldest = min(run.first for run in moment.held)
        holders = frozenset((r.span.owner, r.first - oldest, r.last - oldest) for r in moment.held)
        if holders not in seen:
            seen.add(holders)
            yield _together(laid, limit, moment, oldest)


def _alone(laid: Layout, limit: Limit, span: Span) -> Violation:
    cycles = span.end - span.begin
    message = (
        f"{listed(span.owner)} alone {limit.verb} {span.amount} of {limit} for {cycles} cycles; "
        f"II {laid.ii} leaves at most {limit.most * laid.ii // span.amount}"
    )
    return limit.violation(message, span.owner, cycles=cycles, amount=span.amount, ii=laid.ii)


def _together(laid: Layout, limit: Limit, moment: Moment, oldest: int) -> Violation:
    """Told from the oldest iteration that takes part, as iteration 0."""
    cycle = moment.cycle - oldest * laid.ii
    lines = [
        f"{listed(span.owner)} of iteration {iteration} {limit.verb} {span.amount} "
        f"from {begin} to {begin + span.end - span.begin}"
        for begin, iteration, span in islice(_by_begin(laid, moment.held, oldest), SHOWN)
    ]
    holders = sum(run.count for run in moment.held)
    if holders > SHOWN:
        lines.append(f"and {holders - SHOWN} more")
    message = (
        f"of {limit}, {moment.load} is {limit.total} at cycle {cycle} (II {laid.ii}): "
        f"{'; '.join(lines)}"
    )
    owners = names_of([run.span for run in moment.held])
    return limit.violation(message, owners, cycle=cycle, load=moment.load, ii=laid.ii)


def _by_begin(
    laid: Layout, runs: tuple[Running, ...], oldest: int
) -> Iterator[tuple[int, int, Span]]:
    """Begin and iteration of all that is held, the earliest first, told from the oldest."""

    def each(run: Running) -> Iterator[tuple[int, int, Span]]:
        for iteration in range(run.first - oldest, run.last - oldest + 1):
            yield run.span.begin + iteration * laid.ii, iteration, run.span

    return merge(*map(each, runs), key=lambda held: held[0])


def names_of(spans: list[Span]) -> tuple[str, ...]:
    """Who holds, each once, in the order of the spans."""
    return tuple(dict.fromkeys(name for span in spans for name in span.owner))
