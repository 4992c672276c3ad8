"""Rings as they are at one moment, and what becomes of reads and writes in them.

slot 0   iteration 5   ✓ read by 5         slot 1   iteration 6   being written
         a read that expects 8 finds 5: unwritten; one that expects 2: overwritten
"""

from __future__ import annotations

from dataclasses import dataclass, field

from stretto.loop import Op
from stretto.materialize.instructions import Slot
from stretto.materialize.types import Program
from stretto.simulate.findings import Findings
from stretto.simulate.knowledge import Known, Levels
from stretto.simulate.values import BEFORE, Datum, Domain, Trace, written


@dataclass(slots=True)
class Cell:
    """One slot of a ring."""

    iteration: int | None = None
    """Whose copy it is; None: nobody's yet."""
    datum: Datum = None


@dataclass(frozen=True, slots=True)
class Moment:
    """Who does something, and when."""

    op: str
    iteration: int
    cycle: int
    known: Known
    trip_count: int


@dataclass
class Memory:
    """All rings of a program."""

    program: Program
    domain: Domain
    levels: Levels
    findings: Findings
    trace: Trace
    issued: dict[tuple[str, int], int]
    """Cycle at which each operation of each iteration issued."""
    position: dict[str, int] = field(default_factory=dict[str, int])
    """Slots that each iterator has gone past."""

    def __post_init__(self) -> None:
        loop = self.program.loop
        self._cells = {r.name: [Cell() for _ in range(r.depth)] for r in self.program.rings}
        self.position = {iterator.name: 0 for iterator in self.program.iterators}
        rotating = {s.name for s in loop.storages if not s.fixed} & written(loop)
        self._one_copy = {
            s.name: self.domain.content(s.name, BEFORE)
            for s in loop.storages
            if s.name not in rotating
        }
        self._users: dict[str, list[tuple[str, int]]] = {r.name: [] for r in self.program.rings}
        for op in loop.ops:
            for read in op.reads:
                self._users[read.storage].append((op.name, read.distance))
            for name in op.writes:
                self._users[name].append((op.name, 0))
        for pipe in self.program.pipes:
            if self.program.ring_of[pipe.ring].value is not None:
                self._users[pipe.ring] += [(c.op, c.distance) for c in pipe.consumers]

    def slot(self, iterator: str) -> int:
        """The slot an iterator stands at."""
        return self.position[iterator] % len(self._cells[self.program.iterator_of[iterator].ring])

    def lap(self, iterator: str) -> int:
        """How often an iterator has been round."""
        return self.position[iterator] // len(self._cells[self.program.iterator_of[iterator].ring])

    # Storages ---------------------------------------------------------------------------------

    def read(self, slot: Slot, moment: Moment) -> Datum:
        """What an operation finds in a storage."""
        if slot.storage in self._one_copy:
            return self._one_copy[slot.storage]
        wanted = moment.iteration - slot.distance
        if wanted < 0:
            return self.domain.content(slot.storage, wanted)
        return self._take(slot.storage, slot.iterator, wanted, moment)

    def write(self, op: Op, slot: Slot, made: tuple[Datum, ...], moment: Moment) -> None:
        """An operation fills its slot, or updates it."""
        storage = slot.storage
        if storage in self._one_copy:
            after = self.domain.stored(op, storage, made, self._one_copy[storage])
            self._one_copy[storage] = after
        else:
            cell = self._claim(storage, slot.iterator, moment)
            after = self.domain.stored(op, storage, made, cell.datum)
            cell.datum = after
        self.trace.writes[op.name, moment.iteration, storage] = after

    def finish(self) -> None:
        """Record what storages of one copy hold in the end."""
        self.trace.final.update(self._one_copy)

    # Register values --------------------------------------------------------------------------

    def put(self, ring: str, iterator: str, datum: Datum, moment: Moment) -> None:
        """A value goes into its ring."""
        self._claim(ring, iterator, moment).datum = datum

    def take(self, ring: str, iterator: str, wanted: int, moment: Moment) -> Datum:
        """A value comes out of its ring."""
        return self._take(ring, iterator, wanted, moment)

    # Both -------------------------------------------------------------------------------------

    def _take(self, ring: str, iterator: str | None, wanted: int, moment: Moment) -> Datum:
        cell = self._cells[ring][self.slot(iterator) if iterator else 0]
        if cell.iteration != wanted:
            empty = cell.iteration is None or cell.iteration < wanted
            held = "nothing" if cell.iteration is None else f"iteration {cell.iteration}"
            self.findings.add(
                "unwritten" if empty else "overwritten",
                f"`{moment.op}` of iteration {moment.iteration} reads `{ring}` of iteration "
                f"{wanted} at {moment.cycle}; the slot has {held}",
                (moment.op,),
                moment.cycle,
                ring,
            )
        return cell.datum

    def _claim(self, ring: str, iterator: str | None, moment: Moment) -> Cell:
        """The slot for this iteration; it must be free of the iteration it had."""
        number = self.slot(iterator) if iterator else 0
        cell = self._cells[ring][number]
        if cell.iteration == moment.iteration:
            return cell
        if cell.iteration is not None:
            self._check_free(ring, cell.iteration, moment)
        fresh = Cell(moment.iteration)
        self._cells[ring][number] = fresh
        return fresh

    def _check_free(self, ring: str, old: int, moment: Moment) -> None:
        for user, distance in self._users[ring]:
            iteration = old + distance
            if iteration >= moment.trip_count:
                continue
            done = self.program.loop.op(user).completion
            began = self.issued.get((user, iteration))
            level = self.levels.number(user, done)
            if began is None or began + done > moment.cycle:
                until = "is still to come" if began is None else f"needs it until {began + done}"
                why = f"`{user}` of iteration {iteration} {until}"
            elif moment.known[level] < iteration:
                why = f"nothing makes it wait for `{user}` of iteration {iteration}"
            else:
                continue
            self.findings.add(
                "overwritten",
                f"`{moment.op}` of iteration {moment.iteration} takes the slot of `{ring}` of "
                f"iteration {old} at {moment.cycle}; {why}",
                (moment.op, user),
                moment.cycle,
                ring,
            )
