"""The reservation table as one would write it on the first day: lists of counts, cycle by cycle.

    counts["tma"] = [1, 1, 1, 0, 0]      for k in range(duration): counts[(start + k) % II] += 1

The golden twin of `stretto.resources.table`: no masks, no folding, no cleverness.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from stretto.loop import ResourceVector
from stretto.machine import Machine
from stretto.resources.table import Conflict, ConflictError

Key = tuple[str, str]
"""("slot", name) or ("pool", name)."""


class NaiveTable:
    """Counts per slot, pool and modulo cycle."""

    def __init__(self, machine: Machine, ii: int) -> None:
        self.machine = machine
        self.ii = ii
        self.limits: dict[Key, int | None] = {("slot", s.name): s.capacity for s in machine.slots}
        self.limits |= {("pool", p.name): p.cap for p in machine.pools}
        self.counts: dict[Key, list[int]] = {key: [0] * ii for key in self.limits}
        self.placed: dict[str, int] = {}
        self.vectors: dict[str, ResourceVector] = {}
        self.words = all(slot.id <= 64 for slot in machine.slots)

    def _holds(self, vector: ResourceVector) -> Iterator[tuple[Key, int, int]]:
        """(column, cycles after the start, amount), one for every cycle held."""
        for use in vector.uses:
            for k in range(use.offset, use.offset + use.duration):
                yield ("slot", use.slot), k, use.occupancy
        for demand in vector.demands:
            for k in range(vector.duration):
                yield ("pool", demand.pool), k, demand.units

    def _needs(self, vector: ResourceVector) -> list[tuple[list[int], int, int, int]]:
        """(counts, cycle for a start at 0, amount, limit) of every limited modulo cycle."""
        total: Counter[tuple[Key, int]] = Counter()
        for key, k, amount in self._holds(vector):
            total[key, k % self.ii] += amount
        needs: list[tuple[list[int], int, int, int]] = []
        for (key, cycle), amount in total.items():
            limit = self.limits[key]
            if limit is not None and amount:
                needs.append((self.counts[key], cycle, amount, limit))
        return needs

    def _free(self, needs: list[tuple[list[int], int, int, int]], start: int) -> bool:
        ii = self.ii
        for counts, cycle, amount, limit in needs:
            if counts[(start + cycle) % ii] + amount > limit:
                return False
        return True

    def fits(self, vector: ResourceVector, start: int) -> bool:
        return self._free(self._needs(vector), start)

    def legal_starts(self, vector: ResourceVector) -> set[int]:
        needs = self._needs(vector)
        return {t for t in range(self.ii) if self._free(needs, t)}

    def earliest(self, vector: ResourceVector, low: int, high: int) -> int | None:
        needs = self._needs(vector)
        for start in range(low, min(high, low + self.ii - 1) + 1):
            if self._free(needs, start):
                return start
        return None

    def latest(self, vector: ResourceVector, low: int, high: int) -> int | None:
        needs = self._needs(vector)
        for start in range(high, max(low, high - self.ii + 1) - 1, -1):
            if self._free(needs, start):
                return start
        return None

    def conflict(self, vector: ResourceVector, start: int, op: str = "") -> Conflict | None:
        wanted: Counter[tuple[Key, int]] = Counter()
        for key, k, amount in self._holds(vector):
            wanted[key, (start + k) % self.ii] += amount
        parts = [(("slot", u.slot), u, u.offset, u.duration, u.occupancy) for u in vector.uses]
        parts += [(("pool", d.pool), None, 0, vector.duration, d.units) for d in vector.demands]
        for key, use, offset, duration, amount in parts:
            limit = self.limits[key]
            for k in range(offset, offset + duration):
                cycle = (start + k) % self.ii
                load = self.counts[key][cycle]
                if limit is None or not amount or load + wanted[key, cycle] <= limit:
                    continue
                return Conflict(
                    op=op,
                    start=start,
                    ii=self.ii,
                    offset=k,
                    use=use,
                    pool=None if use else key[1],
                    wanted=wanted[key, cycle],
                    load=load,
                    limit=limit,
                    holders=self._holders(key, cycle),
                    row=self.row(cycle) if self.words else None,
                )
        return None

    def commit(self, op: str, vector: ResourceVector, start: int) -> None:
        if op in self.placed:
            raise ValueError(op)
        conflict = self.conflict(vector, start, op)
        if conflict is not None:
            raise ConflictError(conflict)
        self.seat(op, vector, start)

    def seat(self, op: str, vector: ResourceVector, start: int) -> None:
        """Commit without the probe, for a caller that has just made it."""
        for key, k, amount in self._holds(vector):
            self.counts[key][(start + k) % self.ii] += amount
        self.placed[op] = start
        self.vectors[op] = vector

    def release(self, op: str) -> None:
        if op not in self.placed:
            raise ValueError(op)
        start = self.placed.pop(op)
        for key, k, amount in self._holds(self.vectors.pop(op)):
            self.counts[key][(start + k) % self.ii] -= amount

    def _holders(self, key: Key, cycle: int) -> tuple[str, ...]:
        return tuple(
            op
            for op, vector in self.vectors.items()
            if any(
                held == key and amount and (self.placed[op] + k) % self.ii == cycle
                for held, k, amount in self._holds(vector)
            )
        )

    def holders(self, slot: str, cycle: int) -> tuple[str, ...]:
        return self._holders(("slot", slot), cycle % self.ii)

    def occupancy(self, slot: str, cycle: int) -> int:
        return self.counts["slot", slot][cycle % self.ii]

    def pool_load(self, pool: str, cycle: int) -> int:
        return self.counts["pool", pool][cycle % self.ii]

    def column(self, slot: str) -> set[int]:
        return {t for t, count in enumerate(self.counts["slot", slot]) if count}

    def row(self, cycle: int) -> int:
        word = 0
        for slot in self.machine.slots:
            if self.occupancy(slot.name, cycle):
                word |= 1 << (slot.id - 1)
        return word

    def rows(self) -> tuple[int, ...]:
        return tuple(self.row(cycle) for cycle in range(self.ii))
