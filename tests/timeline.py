"""A schedule laid out in absolute time: who touches which copy of which storage, and when.

    iteration   0    W────R
                1         W────R
                2              W────R         ring of 2: copy 0 is touched in 0, 2, 4, ...
    copy 0      W────R         W────R

Written from the definitions of a storage alone: no derived dependence, no modulo reservation,
nothing of the code under test but the types of the problem.

An operation accesses a copy from its start to its completion. It *writes* what it lists, this
iteration's instance; it *reads* what it lists, and whatever storage an operand lives in, listed or
not. A view (no time, no accesses, one operand and one result in the same storage) is a name: it
touches nothing, and what is reached through it lies as many iterations back as the way there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from stretto.loop import Loop, Op

Event = tuple[int, int]
"""Iteration and program position of an operation."""


@dataclass(slots=True)
class Touch:
    """One operation, in one iteration, on one instance of a storage."""

    event: Event
    instance: int
    """The iteration whose instance it is; 0 where there is one copy for all."""
    reads: bool
    writes: bool


@dataclass(slots=True)
class Order:
    """`later` starts at least `least` cycles after the start of `earlier`."""

    earlier: Event
    later: Event
    least: int
    why: str


class Timeline:
    """So many iterations of a schedule, each operation at its absolute cycle."""

    def __init__(
        self, loop: Loop, ii: int, starts: Mapping[str, int], rings: Mapping[str, int], count: int
    ) -> None:
        self.loop = loop
        self.ii = ii
        self.starts = starts
        self.rings = rings
        self.count = count
        self.home = {value.name: value.storage for value in loop.values}
        self.maker = {name: op for op in loop.ops for name in op.results}
        self.position = {op.name: i for i, op in enumerate(loop.ops)}
        written = {name for op in loop.ops for name in op.writes}
        self.rotating = {s.name for s in loop.storages if not s.fixed and s.name in written}
        self.in_place = {s.name for s in loop.storages if s.fixed and s.name in written}
        self._first = [starts[op.name] for op in loop.ops]
        self._lasts = [op.completion for op in loop.ops]

    # Events -----------------------------------------------------------------------------------

    def start(self, event: Event) -> int:
        """The cycle at which an operation of an iteration starts."""
        return self._first[event[1]] + self.ii * event[0]

    def op(self, event: Event) -> Op:
        """The operation of an event."""
        return self.loop.ops[event[1]]

    def done(self, event: Event) -> int:
        """The cycle at which it is complete."""
        return self._first[event[1]] + self.ii * event[0] + self._lasts[event[1]]

    def named(self, event: Event) -> str:
        """An event in words."""
        return f"`{self.op(event).name}` of iteration {event[0]} (start {self.start(event)})"

    @cached_property
    def events(self) -> list[Event]:
        """Every event in the order of the sequential program."""
        return [(i, p) for i in range(self.count) for p in range(len(self.loop.ops))]

    # Values -----------------------------------------------------------------------------------

    def is_view(self, op: Op) -> bool:
        """Whether it is only a name of what a storage holds."""
        if op.completion or op.uses or op.reads or op.writes:
            return False
        if len(op.operands) != 1 or len(op.results) != 1:
            return False
        home = self.home[op.operands[0].value]
        return home is not None and home == self.home[op.results[0]]

    def origin(self, value: str) -> tuple[str, int]:
        """The value that is meant, seen through views, and how many iterations back."""
        back = 0
        while value in self.maker and self.is_view(self.maker[value]):
            operand = self.maker[value].operands[0]
            value, back = operand.value, back + operand.distance
        return value, back

    @cached_property
    def flows(self) -> set[tuple[str, str, int, str]]:
        """(producer, consumer, distance, storage) of all values in storages, through views."""
        found: set[tuple[str, str, int, str]] = set()
        for op in self.loop.ops:
            for operand in op.operands:
                home = self.home[operand.value]
                value, back = self.origin(operand.value)
                if home is not None and value in self.maker:
                    maker = self.maker[value].name
                    found.add((maker, op.name, operand.distance + back, home))
        return found

    # Storages ---------------------------------------------------------------------------------

    @cached_property
    def _accesses(self) -> list[dict[tuple[str, int], tuple[bool, bool]]]:
        """By position: (storage, iterations back) to (reads, writes)."""
        found: list[dict[tuple[str, int], tuple[bool, bool]]] = []
        for op in self.loop.ops:
            touched: dict[tuple[str, int], tuple[bool, bool]] = {}
            found.append(touched)
            if self.is_view(op):
                continue
            reads = [(read.storage, read.distance) for read in op.reads]
            for operand in op.operands:
                home = self.home[operand.value]
                if home is not None:
                    reads.append((home, operand.distance + self.origin(operand.value)[1]))
            for storage, back in reads:
                touched[storage, back if storage in self.rotating else 0] = (True, False)
            for storage in op.writes:
                touched[storage, 0] = (touched.get((storage, 0), (False, False))[0], True)
        return found

    def touches(self, event: Event) -> Iterator[tuple[str, Touch]]:
        """What an event touches: storage and instance."""
        iteration, position = event
        for (storage, back), (reads, writes) in self._accesses[position].items():
            instance = iteration - back if storage in self.rotating else 0
            yield storage, Touch(event, instance, reads, writes)

    @property
    def farthest(self) -> int:
        """The largest distance at which anything is reached."""
        backs = [back for touched in self._accesses for _, back in touched]
        backs += [operand.distance for op in self.loop.ops for operand in op.operands]
        backs += [d.distance for d in self.loop.stated]
        return max(backs, default=0)

    def copy(self, storage: str, instance: int) -> int:
        """The copy an instance lives in."""
        return instance % self.rings[storage] if storage in self.rotating else 0

    @cached_property
    def copies(self) -> dict[tuple[str, int], list[Touch]]:
        """All that touches each copy, in the order of the sequential program."""
        found: dict[tuple[str, int], list[Touch]] = {}
        for event in self.events:
            for storage, touch in self.touches(event):
                found.setdefault((storage, self.copy(storage, touch.instance)), []).append(touch)
        for touches in found.values():
            # An instance is done with before the next one on its copy; events are in order.
            touches.sort(key=lambda touch: (touch.instance, touch.event))
        return found

    # Orders -----------------------------------------------------------------------------------

    def flow_orders(self) -> Iterator[Order]:
        """Operands wait for their producers, and what is stated holds."""
        for event in self.events:
            iteration, position = event
            for operand in self.loop.ops[position].operands:
                maker = self.maker.get(operand.value)
                if maker is None or iteration < operand.distance:
                    continue
                earlier = (iteration - operand.distance, self.position[maker.name])
                least = maker.ready if operand.latency is None else operand.latency
                yield Order(earlier, event, least, f"value {operand.value}")
            for stated in self.loop.stated:
                if self.position[stated.dst] == position and iteration >= stated.distance:
                    earlier = (iteration - stated.distance, self.position[stated.src])
                    yield Order(earlier, event, stated.latency, f"stated {stated.kind}")

    def storage_orders(self) -> Iterator[Order]:
        """What every two touches of one copy ask of each other."""
        for (storage, copy), touches in self.copies.items():
            why = f"storage {storage}, copy {copy}"
            writers: list[Touch] = []
            for n, second in enumerate(touches):
                last = writers[-1] if writers else None
                for first in touches[:n] if second.writes else writers:
                    least = self._between(storage, first, second, first is last)
                    if least is not None:
                        yield Order(first.event, second.event, least, why)
                if second.writes:
                    writers.append(second)

    def _between(self, storage: str, first: Touch, second: Touch, is_last: bool) -> int | None:
        """Cycles from the start of the first to that of the second; None: nothing is asked."""
        if first.event == second.event:
            return None
        same = first.event[1] == second.event[1]
        if same and storage in self.in_place and first.reads and first.writes:
            return None  # it updates in place, itself after itself
        if second.writes or not is_last:
            return self._lasts[first.event[1]]
        op = self.op(first.event)
        distance = second.event[0] - first.event[0]
        if (op.name, self.op(second.event).name, distance, storage) in self.flows:
            return None  # the flow has its own latency, and `flow_orders` asks for it
        return op.completion if storage in self.in_place and distance else op.ready

    @cached_property
    def orders(self) -> list[Order]:
        """All of them."""
        return [*self.flow_orders(), *self.storage_orders()]

    def in_one_cycle(self) -> dict[Event, set[Event]]:
        """Events that must come after others of the same cycle: to each, those it comes after."""
        after: dict[Event, set[Event]] = {}
        for order in self.orders:
            if order.least == 0 and self.start(order.earlier) == self.start(order.later):
                after.setdefault(order.later, set()).add(order.earlier)
        return after


def ranks(after: Mapping[Event, set[Event]]) -> dict[Event, int] | list[Event]:
    """A rank for each event, above those it comes after; or the events that wait in a circle."""
    found: dict[Event, int] = {}
    everyone = sorted(set(after).union(*after.values()))
    left, rank = everyone, 0
    while left:
        ready = [event for event in left if after.get(event, set()) <= found.keys()]
        if not ready:
            return left
        found |= dict.fromkeys(ready, rank)
        left, rank = [event for event in left if event not in found], rank + 1
    return found
