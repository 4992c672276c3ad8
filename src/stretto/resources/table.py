"""The modulo reservation table: who holds what in each cycle of the II, for all iterations at once.

    II 15          0              14
    tma            ████████·······     load at 0 holds tma and tp_smem_wr for 8 cycles
    tp_smem_wr     ███████████████     write at 8 holds it for 7: it fits, and the slot is full
    tp_smem_rd     ········███████     read at 8

The table is stored by column: per slot and pool, one count a cycle in bit planes (`Counters`).
All illegal starts of an operation come from a few operations on integers of II bits: compare the
counts with the room it needs, dilate by its duration in log2 steps, rotate by its offset, OR over
its uses. The earliest legal start in a window is then a rotation and a lowest bit. The cost does
not depend on durations and hardly on the II, so cycle counts need no scaling.

Every commitment is probed first and a refused one changes nothing; release is exact. Row words are
a view; the planes decide.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from stretto.errors import StrettoError
from stretto.loop import ResourceVector, Use
from stretto.machine import Machine
from stretto.resources import Fold, columns_of, fold, has_row_words, require_row_words
from stretto.solution import TableRow

# Counts by cycle: no function walks over cycles. They are circular: cycle II is cycle 0. -----


def arc(first: int, length: int, cycles: int) -> int:
    """The mask of `length` cycles from `first` on, around the end; both below or at `cycles`."""
    mask = ((1 << length) - 1) << first
    return (mask | mask >> cycles) & ((1 << cycles) - 1)


def rotate(mask: int, by: int, cycles: int) -> int:
    """Bit t of the result is bit (t + by) mod `cycles` of the mask, 0 <= by < `cycles`."""
    return (mask >> by | mask << (cycles - by)) & ((1 << cycles) - 1) if by else mask


def touching(mask: int, length: int, cycles: int) -> int:
    """Starts whose next `length` cycles touch the mask, 1 <= length <= `cycles`.

    A dilation: doubling the reach takes log2(length) steps. Two turns laid side by side make
    every step a plain shift.
    """
    mask |= mask << cycles
    reach = 1
    while 2 * reach <= length:
        mask |= mask >> reach
        reach *= 2
    if reach < length:
        mask |= mask >> (length - reach)
    return mask & ((1 << cycles) - 1)


def lowest(mask: int) -> int:
    """The place of the lowest bit of a mask that is not empty."""
    return (mask & -mask).bit_length() - 1


class Counters:
    """One count per modulo cycle, starting at zero, in bit planes: many cycles change at a time.

        cycle       0 1 2 3 4 5 6 7
        count       0 0 1 3 3 2 2 0        use of a slot of capacity 3
        plane 0     · · █ █ █ · · ·        bit 0 of every count: one integer of II bits
        plane 1     · · · █ █ █ █ ·        bit 1 of every count
        above(1)    · · · █ █ █ █ ·        cycles with no room for 2 more

    Binary planes, not thermometer code (plane j = cycles with count >= j): a capacity of 1 is one
    plane either way, but a pool of 2048 units takes 12 planes instead of 2048, and a capacity of a
    million takes 20. The price is a ripple of carries when a claim is made and a comparison when a
    limit is asked for, both a few integer operations a plane; the comparison is kept until the
    counts change.
    """

    __slots__ = ("_above", "_planes", "cycles", "full")

    def __init__(self, cycles: int) -> None:
        self.cycles = cycles
        self.full = (1 << cycles) - 1
        """The mask of all cycles."""
        self._planes: list[int] = []
        self._above: dict[int, int] = {}

    def add(self, mask: int, amount: int) -> None:
        """Count `amount` more in every cycle of the mask."""
        if not mask:
            return
        self._above.clear()
        planes = self._planes
        carry, k = 0, 0
        while carry or amount >> k:
            if k == len(planes):
                planes.append(0)
            plane = planes[k]
            addend = mask if amount >> k & 1 else 0
            half = plane ^ addend
            planes[k] = half ^ carry
            carry = plane & addend | half & carry
            k += 1

    def subtract(self, mask: int, amount: int) -> None:
        """Count `amount` less in every cycle of the mask; exactly undoes `add`."""
        if not mask:
            return
        self._above.clear()
        planes = self._planes
        borrow, k = 0, 0
        while borrow or amount >> k:
            plane = planes[k]
            taken = mask if amount >> k & 1 else 0
            half = plane ^ taken
            planes[k] = half ^ borrow
            borrow = ~plane & taken | ~half & borrow
            k += 1
        while planes and not planes[-1]:
            planes.pop()

    def above(self, limit: int) -> int:
        """The cycles whose count is greater than `limit`."""
        known = self._above.get(limit)
        if known is None:
            known = self._above[limit] = self._compare(limit)
        return known

    def _compare(self, limit: int) -> int:
        """Compare from the top plane down: greater at the first bit where the two differ.

        `level` holds the cycles that are not less so far; those already greater may stay in it.
        """
        if limit < 0:
            return self.full
        if limit >> len(self._planes):
            return 0
        greater, level = 0, self.full
        for k in range(len(self._planes) - 1, -1, -1):
            plane = self._planes[k]
            if limit >> k & 1:
                level &= plane
            else:
                greater |= level & plane
        return greater

    def count(self, cycle: int) -> int:
        """The count of one cycle."""
        return sum((plane >> cycle & 1) << k for k, plane in enumerate(self._planes))

    @property
    def changes(self) -> int:
        """The cycles whose count is another than that of the cycle before; never the first."""
        found = 0
        for plane in self._planes:
            found |= plane ^ plane << 1
        return found & self.full & ~1

    @property
    def planes(self) -> int:
        """How many planes the counts take now."""
        return len(self._planes)


# The table --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Conflict:
    """The first cycle of the first use (or pool demand) of an operation that does not fit.

        II 15        load   ████████·······     cycles 0 to 7
        tp_smem_wr   write  ████········███     12, 13, 14 and, around the end, 0 to 3
                            ^ `write` wants tp_smem_wr at cycle 0 (start 12 + 3, II 15):
                              held by `load` (1 of 1)

    A conflict carries its numbers; the sentence is a view of them.
    """

    op: str
    """The operation that was tried; empty when only its vector was."""
    start: int
    ii: int
    offset: int
    """Cycles after the start."""
    use: Use | None
    """The use that does not fit; None when it is a pool."""
    pool: str | None
    """The pool that does not give; None when it is a slot."""
    wanted: int
    """What the operation takes of the slot or pool in this modulo cycle, all its uses together."""
    load: int
    """What others hold of it in this modulo cycle."""
    limit: int
    """The slot's capacity or the pool's cap."""
    holders: tuple[str, ...]
    """Who holds the slot or draws on the pool in this modulo cycle, in order of commitment."""
    row: int | None
    """The row word of the cycle; None on machines of more than 64 slots."""

    @property
    def cycle(self) -> int:
        """The modulo cycle."""
        return (self.start + self.offset) % self.ii

    def __str__(self) -> str:
        who = f"`{self.op}`" if self.op else "the operation"
        if self.use is None:
            what, verb = f"draws {self.wanted} from {self.pool}", "drawn"
        else:
            amount = "" if self.wanted == 1 else f"{self.wanted} of "
            what, verb = f"wants {amount}{self.use.slot}", "held"
        where = f"at cycle {self.cycle} (start {self.start} + {self.offset}, II {self.ii})"
        if self.wanted > self.limit:
            why = f"it takes {self.wanted} of {self.limit} by itself"
        else:
            names = ", ".join(f"`{name}`" for name in self.holders)
            why = f"{verb} by {names} ({self.load} of {self.limit})"
        return f"{who} {what} {where}: {why}"


class ConflictError(StrettoError):
    """An operation was committed where it does not fit; `conflict` says why."""

    def __init__(self, conflict: Conflict) -> None:
        self.conflict = conflict
        super().__init__(str(conflict))

    def __reduce__(self) -> tuple[type[ConflictError], tuple[Conflict]]:
        return ConflictError, (self.conflict,)


class ReservationTable:
    """What is held in each cycle modulo `ii` on `machine`.

    Starts are absolute, at least 0; the table sees them modulo II. A slot refuses when the
    occupancies of its holders would exceed its capacity in some modulo cycle, a pool when demands
    would exceed its cap; a slot of unlimited capacity never does. Slots that a loop brings along
    must be part of the machine (`Machine.with_slots`).
    """

    def __init__(self, machine: Machine, ii: int) -> None:
        if ii < 1:
            raise ValueError(f"an initiation interval is at least 1, not {ii}")
        self.machine = machine
        self.ii = ii
        self._full = (1 << ii) - 1
        self._columns = columns_of(machine)
        self._counters = [Counters(ii) for _ in self._columns.limits]
        self._folds: dict[ResourceVector, Fold] = {}
        self._starts: dict[str, int] = {}
        self._held: dict[str, Fold] = {}

    # Probes: they change nothing --------------------------------------------------------------

    def illegal_starts(self, vector: ResourceVector) -> int:
        """The mask of cycles t at which a start at t (mod II) does not fit."""
        illegal = 0
        for column, offset, length, slack in self._fold(vector).guards:
            crowded = self._counters[column].above(slack)
            if crowded:
                illegal |= touching(rotate(crowded, offset, self.ii), length, self.ii)
        return illegal

    def legal_starts(self, vector: ResourceVector) -> int:
        """The mask of cycles t at which a start at t (mod II) fits."""
        return self._full ^ self.illegal_starts(vector)

    def earliest(self, vector: ResourceVector, low: int, high: int) -> int | None:
        """The earliest start from `low` to `high`, both included, that fits; None: there is none.

        Starts repeat every II cycles, so only the first II of the window matter.
        """
        first = self._cycle(low)
        legal = self.legal_starts(vector)
        if not legal:
            return None
        start = low + lowest(rotate(legal, first, self.ii))
        return start if start <= high else None

    def latest(self, vector: ResourceVector, low: int, high: int) -> int | None:
        """The latest start from `low` to `high`, both included, that fits; None: there is none."""
        self._cycle(low)
        legal = self.legal_starts(vector)
        if not legal:
            return None
        after = high + 1 - self.ii  # the last II cycles that end with `high`
        start = after + rotate(legal, after % self.ii, self.ii).bit_length() - 1
        return start if start >= low else None

    def fits(self, vector: ResourceVector, start: int) -> bool:
        """Whether an operation may start there."""
        return self._admits(self._fold(vector), self._cycle(start))

    def conflict(self, vector: ResourceVector, start: int, op: str = "") -> Conflict | None:
        """Why an operation may not start there: its first conflict, by use, then by cycle.

        Uses come in the order of the vector, then pool demands. None: it fits.
        """
        cycle = self._cycle(start)
        folded = self._fold(vector)
        if self._admits(folded, cycle):
            return None
        crowded = self._crowded(folded, cycle)
        for column, use, pool, offset, duration in self._claims(vector):
            seen = rotate(crowded.get(column, 0), (cycle + offset) % self.ii, self.ii)
            seen &= (1 << min(duration, self.ii)) - 1
            if not seen:
                continue
            k = offset + lowest(seen)
            at = (start + k) % self.ii
            return Conflict(
                op=op,
                start=start,
                ii=self.ii,
                offset=k,
                use=use,
                pool=pool,
                wanted=self._taken(folded, cycle, column, at),
                load=self._counters[column].count(at),
                limit=self._columns.limits[column] or 0,
                holders=self._holders(column, at),
                row=self._word(at) if has_row_words(self.machine) else None,
            )
        raise AssertionError(f"{vector} is refused at {start} and no use of it conflicts")

    # Changes ----------------------------------------------------------------------------------

    def commit(self, op: str, vector: ResourceVector, start: int) -> None:
        """Seat an operation; raises `ConflictError` and changes nothing if it does not fit."""
        if op in self._starts:
            raise ValueError(f"`{op}` is already seated at {self._starts[op]}; release it first")
        cycle = self._cycle(start)
        folded = self._fold(vector)
        if not self._admits(folded, cycle):
            conflict = self.conflict(vector, start, op)
            assert conflict is not None
            raise ConflictError(conflict)
        for column, offset, length, amount in folded.segments:
            self._counters[column].add(arc((cycle + offset) % self.ii, length, self.ii), amount)
        self._starts[op] = start
        self._held[op] = folded

    def release(self, op: str) -> None:
        """Unseat an operation: the table is as if it had never been seated."""
        if op not in self._starts:
            raise ValueError(f"`{op}` is not seated")
        cycle = self._starts.pop(op) % self.ii
        for column, offset, length, amount in self._held.pop(op).segments:
            mask = arc((cycle + offset) % self.ii, length, self.ii)
            self._counters[column].subtract(mask, amount)

    # Views ------------------------------------------------------------------------------------

    @property
    def placed(self) -> Mapping[str, int]:
        """Start of every seated operation, in order of commitment; a live, read-only view."""
        return MappingProxyType(self._starts)

    def occupancy(self, slot: str, cycle: int) -> int:
        """What is held of a slot in a cycle (mod II)."""
        return self._counters[self._columns.slots[slot]].count(cycle % self.ii)

    def pool_load(self, pool: str, cycle: int) -> int:
        """What is drawn from a pool in a cycle (mod II)."""
        return self._counters[self._columns.pools[pool]].count(cycle % self.ii)

    def column(self, slot: str) -> int:
        """The mask of cycles in which a slot has any holder."""
        return self._counters[self._columns.slots[slot]].above(0)

    def holders(self, slot: str, cycle: int) -> tuple[str, ...]:
        """The operations that hold a slot in a cycle (mod II), in order of commitment."""
        return self._holders(self._columns.slots[slot], cycle % self.ii)

    def row(self, cycle: int) -> int:
        """The row word of a cycle (mod II): the slots that have any holder."""
        require_row_words(self.machine)
        return self._word(cycle % self.ii)

    def rows(self) -> tuple[int, ...]:
        """The row words of all II cycles."""
        require_row_words(self.machine)
        return tuple(self._word(cycle) for cycle in range(self.ii))

    def steps(self) -> tuple[TableRow, ...]:
        """All II cycles, those in a row that are alike together."""
        columns = [(i, c) for i, c in enumerate(self._counters) if c.planes]
        change = 1
        for _, counters in columns:
            change |= counters.changes
        firsts: list[int] = []
        while change:
            firsts.append(lowest(change))
            change &= change - 1
        slots, pools = self.machine.slots, self.machine.pools
        words = has_row_words(self.machine)
        rows: list[TableRow] = []
        for first, following in zip(firsts, [*firsts[1:], self.ii], strict=True):
            amounts = [(i, n) for i, counters in columns if (n := counters.count(first))]
            held = [(slots[i], n) for i, n in amounts if i < len(slots)]
            rows.append(
                TableRow(
                    first,
                    following - first,
                    sum(1 << (slot.id - 1) for slot, _ in held) if words else None,
                    tuple((slot.name, n) for slot, n in held),
                    tuple((pools[i - len(slots)].name, n) for i, n in amounts if i >= len(slots)),
                )
            )
        return tuple(rows)

    # Inside: cycles are modulo II from here on ------------------------------------------------

    def _fold(self, vector: ResourceVector) -> Fold:
        folded = self._folds.get(vector)
        if folded is None:
            folded = fold(vector, self.ii, self._columns, self.machine.name)
            self._folds[vector] = folded
        return folded

    def _cycle(self, start: int) -> int:
        if start < 0:
            raise ValueError(f"starts are at least 0, not {start}")
        return start % self.ii

    def _admits(self, folded: Fold, cycle: int) -> bool:
        for column, offset, length, slack in folded.guards:
            crowded = self._counters[column].above(slack)
            if crowded and crowded & arc((cycle + offset) % self.ii, length, self.ii):
                return False
        return True

    def _crowded(self, folded: Fold, cycle: int) -> dict[int, int]:
        """By column, the cycles that a folded vector at a start wants and cannot have."""
        crowded: dict[int, int] = {}
        for column, offset, length, slack in folded.guards:
            wanted = arc((cycle + offset) % self.ii, length, self.ii)
            refused = self._counters[column].above(slack) & wanted
            crowded[column] = crowded.get(column, 0) | refused
        return crowded

    def _claims(
        self, vector: ResourceVector
    ) -> Iterator[tuple[int, Use | None, str | None, int, int]]:
        """(column, use, pool, offset, duration) of all that a vector holds and draws."""
        for use in vector.uses:
            if use.occupancy:
                yield self._columns.slots[use.slot], use, None, use.offset, use.duration
        for demand, cycles in vector.draws:
            column = self._columns.pools[demand.pool]
            yield column, None, demand.pool, 0, cycles

    def _taken(self, folded: Fold, start: int, column: int, cycle: int) -> int:
        """What a folded vector at a start takes of a column in a cycle."""
        for of_column, offset, length, amount in folded.segments:
            if of_column == column and (cycle - start - offset) % self.ii < length:
                return amount
        return 0

    def _holders(self, column: int, cycle: int) -> tuple[str, ...]:
        starts = self._starts
        return tuple(
            op
            for op, folded in self._held.items()
            if self._taken(folded, starts[op], column, cycle)
        )

    def _word(self, cycle: int) -> int:
        return sum(
            1 << (slot.id - 1)
            for slot, counters in zip(self.machine.slots, self._counters, strict=False)
            if counters.above(0) >> cycle & 1
        )
