"""Rings as they are at one act, and what becomes of reads and writes in them.

slot 0   iteration 5   ✓ read by 5         slot 1   iteration 6   being written
         a read that expects 8 finds 5: unwritten; one that expects 2: overwritten

A write lands in its slot when its operation completes, on top of whatever has landed there by then;
a read takes what has landed. Whoever reads what was just written finds it as soon as it is ready,
and an operation that updates a fixed storage finds its own last turn at once. So a write that is
overtaken by another lands too late, and what is read then is not what sequential execution reads.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from stretto.loop import Op
from stretto.materialization.program import Program, RingAccess
from stretto.simulation.domains import BEFORE, Datum, Domain, Trace, rotating
from stretto.simulation.needs import Levels, readable, storage_flows
from stretto.simulation.outcome import Act, Findings


@dataclass(frozen=True, slots=True)
class Flying:
    """A write that has not landed yet."""

    op: Op
    iteration: int
    issued: int
    made: tuple[Datum, ...]

    @property
    def lands(self) -> int:
        """When it is wholly done."""
        return self.issued + self.op.completion


@dataclass(slots=True)
class RingSlot:
    """One slot of a ring."""

    iteration: int | None = None
    """Whose copy it is; None: nobody's yet."""
    datum: Datum = None
    """What has landed."""
    flying: list[Flying] = field(default_factory=list[Flying])
    """In order of issue."""
    reading: list[tuple[str, int, int]] = field(default_factory=list[tuple[str, int, int]])
    """Operation, iteration, and until when it reads."""


class Memory:
    """All rings of a program, and what a run leaves behind."""

    def __init__(self, program: Program, domain: Domain, levels: Levels) -> None:
        self.program = program
        self.domain = domain
        self.levels = levels
        self.findings = Findings()
        self.trace = Trace()
        self.issued: dict[tuple[str, int], int] = {}
        """Cycle at which each operation of each iteration issued."""
        self.position = {iterator.name: 0 for iterator in program.iterators}
        """Slots that each iterator has gone past."""
        loop = program.loop
        self._cells = {r.name: [RingSlot() for _ in range(r.depth)] for r in program.rings}
        self._one_copy = {
            s.name: RingSlot(datum=domain.content(s.name, BEFORE))
            for s in loop.storages
            if s.name not in rotating(loop)
        }
        self._flows = storage_flows(loop)
        self._values = {ring.name for ring in self.program.rings if ring.value is not None}
        self._users: dict[str, list[tuple[str, int]]] = {r.name: [] for r in self.program.rings}
        for op in loop.ops:
            for read in loop.reads[op.name]:
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

    def read(self, slot: RingAccess, act: Act) -> Datum:
        """What an operation finds in a storage."""
        storage = slot.storage
        if storage in self._one_copy:
            return self._found(storage, self._one_copy[storage], act)
        wanted = act.iteration - slot.distance
        if wanted < 0:
            return self.domain.content(storage, wanted)
        return self._found(storage, self._cell(storage, slot.iterator, wanted, act), act)

    def write(self, op: Op, slot: RingAccess, made: tuple[Datum, ...], act: Act) -> None:
        """An operation begins to fill its slot, or to update it."""
        storage = slot.storage
        cell = self._one_copy.get(storage)
        if cell is None:
            cell = self._claim(storage, slot.iterator, act)
        self._land(storage, cell, act.cycle)
        self._check_alone(storage, cell, act)
        cell.flying.append(Flying(op, act.iteration, act.cycle, made))
        self._land(storage, cell, act.cycle)

    def finish(self) -> None:
        """Let everything land, and record what storages of one copy hold in the end."""
        for storage in self.program.loop.storages:
            name = storage.name
            for cell in [self._one_copy[name]] if name in self._one_copy else self._cells[name]:
                self._land(name, cell, None)
        self.trace.final.update({name: cell.datum for name, cell in self._one_copy.items()})

    # What has landed --------------------------------------------------------------------------

    def _land(self, storage: str, cell: RingSlot, now: int | None) -> None:
        """Put on top of each other all writes that are done by now; None: all there are."""
        done = [w for w in cell.flying if now is None or w.lands <= now]
        for write in sorted(done, key=lambda w: w.lands):
            cell.datum = self.domain.stored(write.op, storage, write.made, cell.datum)
            self.trace.writes[write.op.name, write.iteration, storage] = cell.datum
            cell.flying.remove(write)

    def _found(self, storage: str, cell: RingSlot, act: Act) -> Datum:
        """What a reader finds: all that has landed, and what is ready for it in particular."""
        self._land(storage, cell, act.cycle)
        done = act.cycle + self.program.loop.op(act.op).completion
        cell.reading = [r for r in cell.reading if r[2] > act.cycle]
        cell.reading.append((act.op, act.iteration, done))
        datum = cell.datum
        for write in sorted(cell.flying, key=lambda w: w.lands):
            if self._ready(storage, write, act):
                datum = self.domain.stored(write.op, storage, write.made, datum)
        return datum

    def _ready(self, storage: str, write: Flying, act: Act) -> bool:
        """Whether a reader finds a write that has not landed."""
        fixed, apart = storage in self._one_copy, act.iteration - write.iteration
        if fixed and write.op.name == act.op:
            return True
        latency = readable(self._flows, storage, fixed, write.op, act.op, apart)
        return write.issued + latency <= act.cycle

    def _check_alone(self, storage: str, cell: RingSlot, act: Act) -> None:
        """A write begins when all that touch its slot are done, except its own last update."""
        fixed = storage in self._one_copy
        updates = any(read.storage == storage for read in self.program.loop.reads[act.op])
        busy = [(w.op.name, w.iteration, w.lands, "writes") for w in cell.flying]
        busy += [(*reader, "reads") for reader in cell.reading if reader[2] > act.cycle]
        for op, iteration, until, what in busy:
            own = op == act.op and (iteration == act.iteration or (fixed and updates))
            if not own:
                why = f"; `{op}` of iteration {iteration} {what} it until {until}"
                self.findings.at(act, "overwritten", f"writes `{storage}`", why, (op,), storage)

    # Register values --------------------------------------------------------------------------

    def put(self, ring: str, iterator: str, datum: Datum, act: Act) -> None:
        """A value goes into its ring."""
        self._claim(ring, iterator, act).datum = datum

    def take(self, ring: str, iterator: str, wanted: int, act: Act) -> Datum:
        """A value comes out of its ring."""
        return self._cell(ring, iterator, wanted, act).datum

    # Both -------------------------------------------------------------------------------------

    def _cell(self, ring: str, iterator: str | None, wanted: int, act: Act) -> RingSlot:
        """The slot that is read; it must have the iteration that is wanted."""
        cell = self._cells[ring][self.slot(iterator) if iterator else 0]
        if cell.iteration != wanted:
            empty = cell.iteration is None or cell.iteration < wanted
            held = "nothing" if cell.iteration is None else f"iteration {cell.iteration}"
            name = "unwritten" if empty else "overwritten"
            what = f"reads `{ring}` of iteration {wanted}"
            self.findings.at(act, name, what, f"; the slot has {held}", about=ring)
        return cell

    def _claim(self, ring: str, iterator: str | None, act: Act) -> RingSlot:
        """The slot for this iteration; it must be free of the iteration it had."""
        number = self.slot(iterator) if iterator else 0
        cell = self._cells[ring][number]
        if cell.iteration == act.iteration:
            return cell
        if cell.iteration is not None:
            self._check_free(ring, cell.iteration, act)
        if ring not in self._values:
            self._land(ring, cell, act.cycle)
        cell.iteration, cell.datum = act.iteration, None
        return cell

    def _check_free(self, ring: str, old: int, act: Act) -> None:
        for user, distance in self._users[ring]:
            iteration = old + distance
            if iteration >= act.trip_count or (user, iteration) == (act.op, act.iteration):
                continue
            done = self.program.loop.op(user).completion
            began = self.issued.get((user, iteration))
            level = self.levels.number(user, done)
            if began is None or began + done > act.cycle:
                until = "is still to come" if began is None else f"needs it until {began + done}"
                why = f"`{user}` of iteration {iteration} {until}"
            elif act.known.last[level] < iteration:
                why = f"nothing makes it wait for `{user}` of iteration {iteration}"
            else:
                continue
            what = f"takes the slot of `{ring}` of iteration {old}"
            self.findings.at(act, "overwritten", what, f"; {why}", (user,), ring)
