"""An oracle of values: a schedule carried out cycle by cycle, against the loop run one by one.

    sequential   iteration 0, iteration 1, ...        every input of every operation, as a term
    scheduled    whatever the clock says is there     the same terms, or something else

No pipes, no agents, no waits: operations start at their cycle and take what they find. A write is
under way on its copy from start to completion; who reads by a flow sees it at the flow's latency,
who reads it directly at the writer's latency, an in-place updater sees its own at once. What
is not there yet, what is overwritten while it is read, and what two operations write at a time is
garbage. Terms are numbers: equal numbers are equal terms.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

from absolute import timeline
from stretto.loop import Loop
from stretto.solution import ScheduleAnalysis
from timeline import Event, Timeline, ranks

Term = int


@dataclass
class Terms:
    """Terms by what they are made of, each once."""

    known: dict[tuple[str | int, ...], Term] = field(
        default_factory=dict[tuple[str | int, ...], int]
    )

    def make(self, *parts: str | int) -> Term:
        """The term of these parts."""
        return self.known.setdefault(parts, len(self.known))

    def garbage(self) -> Term:
        """A term that equals no other."""
        return self.make("garbage", len(self.known))


Trace = dict[Event, tuple[Term, ...]]
"""What each operation found: its operands, then its listed reads."""


def misread(loop: Loop, analysis: ScheduleAnalysis, iterations: int | None = None) -> list[str]:
    """The operations whose inputs are not those of the sequential loop."""
    line = timeline(loop, analysis)
    if iterations is not None:
        line = Timeline(loop, line.ii, line.starts, line.rings, iterations)
    terms = Terms()
    scheduled = _Scheduled(line, terms)
    if scheduled.circle:
        return [f"no order inside one cycle: {scheduled.circle}"]
    expected, found = _sequential(line, terms), scheduled.run()
    wrong = [line.named(event) for event in line.events if found[event] != expected[event]]
    if scheduled.final() != _final(line, terms, expected):
        wrong.append("what is left in the storages")
    return wrong


def _result(line: Timeline, terms: Terms, event: Event, inputs: tuple[Term, ...]) -> Term:
    """What an operation makes of its inputs: another thing in every iteration."""
    return terms.make("made", line.op(event).name, event[0], *inputs)


def _reads(line: Timeline, event: Event) -> list[tuple[str, int]]:
    """Storage and instance of its listed reads."""
    return [
        (read.storage, event[0] - read.distance if read.storage in line.rotating else 0)
        for read in line.op(event).reads
    ]


# One by one ---------------------------------------------------------------------------------


def _sequential(line: Timeline, terms: Terms) -> Trace:
    """Every iteration after the one before it, on instances that nobody shares."""
    content: dict[tuple[str, int], Term] = {}
    trace: Trace = {}

    def held(storage: str, instance: int) -> Term:
        return content.get((storage, instance), terms.make("before", storage, instance))

    for event in line.events:
        iteration, op = event[0], line.op(event)
        inputs: list[Term] = []
        for operand in op.operands:
            home = line.home[operand.value]
            value, back = line.origin(operand.value)
            at = iteration - operand.distance - back
            if home is not None:
                inputs.append(held(home, at if home in line.rotating else 0))
            else:
                inputs.append(_register(line, terms, trace, value, at))
        inputs += [held(storage, instance) for storage, instance in _reads(line, event)]
        trace[event] = () if line.is_view(op) else tuple(inputs)
        for storage in op.writes:
            made = _result(line, terms, event, trace[event])
            content[storage, iteration if storage in line.rotating else 0] = made
    return trace


def _register(line: Timeline, terms: Terms, trace: Trace, value: str, iteration: int) -> Term:
    if value not in line.maker or iteration < 0:
        return terms.make("before", value, iteration if value in line.maker else 0)
    event = (iteration, line.position[line.maker[value].name])
    made = _result(line, terms, event, trace[event])
    return terms.make("result", value, made)


def _final(line: Timeline, terms: Terms, trace: Trace) -> dict[tuple[str, int], Term]:
    """What the last writer of each copy, in the order of the program, leaves there."""
    left: dict[tuple[str, int], Term] = {}
    for event in line.events:
        for storage in line.op(event).writes:
            copy = line.copy(storage, event[0])
            left[storage, copy] = _result(line, terms, event, trace[event])
    return left


# By the clock -------------------------------------------------------------------------------


class _Scheduled:
    """The schedule, carried out."""

    def __init__(self, line: Timeline, terms: Terms) -> None:
        self.line = line
        self.terms = terms
        self.trace: Trace = {}
        rank = ranks(line.in_one_cycle())
        self.circle = ", ".join(map(line.named, rank[:4])) if isinstance(rank, list) else ""
        inside: dict[Event, int] = {} if isinstance(rank, list) else rank
        self.clock = sorted(line.events, key=lambda e: (line.start(e), inside.get(e, 0), e))
        self.at = {event: n for n, event in enumerate(self.clock)}
        self.writes: dict[tuple[str, int], list[Event]] = {}
        """By copy: who writes it, in the order of the clock."""
        for event in self.clock:
            for storage in line.op(event).writes:
                self.writes.setdefault((storage, line.copy(storage, event[0])), []).append(event)

    def run(self) -> Trace:
        """What every operation finds."""
        line = self.line
        for event in self.clock:
            op = line.op(event)
            inputs: list[Term] = []
            if not line.is_view(op):
                for operand in op.operands:
                    inputs.append(self._operand(event, operand.value, operand.distance))
                    if self._early(event, operand.value, operand.distance, operand.latency):
                        inputs[-1] = self.terms.garbage()
                for storage, instance in _reads(line, event):
                    inputs.append(self._found(event, storage, instance))
            self.trace[event] = tuple(inputs)
        return self.trace

    def final(self) -> dict[tuple[str, int], Term]:
        """What is left on every copy that was written."""
        return {
            copy: self._written(copy[0], events, len(events) - 1)
            for copy, events in self.writes.items()
        }

    def _early(self, event: Event, value: str, distance: int, latency: int | None) -> bool:
        """Whether a value, or a view on the way to it, is not ready yet."""
        line = self.line
        maker = line.maker.get(value)
        if maker is None or event[0] < distance:
            return False
        source = (event[0] - distance, line.position[maker.name])
        ready = maker.ready if latency is None else latency
        if line.start(event) < line.start(source) + ready:
            return True
        if not line.is_view(maker):
            return False
        operand = maker.operands[0]
        return self._early(source, operand.value, operand.distance, operand.latency)

    def _operand(self, event: Event, value: str, distance: int) -> Term:
        line = self.line
        home = line.home[value]
        origin, back = line.origin(value)
        at = event[0] - distance - back
        if home is not None:
            return self._found(event, home, at if home in line.rotating else 0)
        if origin in line.maker and at >= 0:
            source = (at, line.position[line.maker[origin].name])
            if source not in self.trace:
                return self.terms.garbage()
        return _register(line, self.terms, self.trace, origin, at)

    def _found(self, event: Event, storage: str, instance: int) -> Term:
        """What a reader finds on a copy while it reads."""
        line, now = self.line, self.at[event]
        events = self.writes.get((storage, line.copy(storage, instance)), [])
        before = bisect_left(events, now, key=self.at.__getitem__)
        after = before + (1 if before < len(events) and events[before] == event else 0)
        if after < len(events):
            spoiler = events[after]
            if line.start(spoiler) < line.done(event) and not self._updates(
                storage, event, spoiler
            ):
                return self.terms.garbage()
        if before == 0:
            return self.terms.make("before", storage, instance)
        writer = events[before - 1]
        if line.start(event) < line.start(writer) + self._seen(storage, writer, event):
            return self.terms.garbage()
        return self._written(storage, events, before - 1)

    def _seen(self, storage: str, writer: Event, reader: Event) -> int:
        """Cycles from the start of a write until a reader sees it."""
        line, op = self.line, self.line.op(writer)
        distance = reader[0] - writer[0]
        if self._updates(storage, writer, reader):
            return 0
        if (op.name, line.op(reader).name, distance, storage) in line.flows:
            return 0  # `_early` knows the latency of the flow
        return op.completion if storage in line.in_place and distance else op.ready

    def _written(self, storage: str, events: list[Event], n: int) -> Term:
        """The content after the n-th write; garbage where another is still under way."""
        line = self.line
        for earlier in events[:n]:
            under_way = line.done(earlier) > line.start(events[n])
            if under_way and not self._updates(storage, earlier, events[n]):
                return self.terms.garbage()
        return _result(line, self.terms, events[n], self.trace[events[n]])

    def _updates(self, storage: str, one: Event, other: Event) -> bool:
        """Whether both are the same in-place updater of a fixed storage."""
        line = self.line
        if one[1] != other[1] or storage not in line.in_place:
            return False
        return any(
            name == storage and touch.reads and touch.writes for name, touch in line.touches(one)
        )
