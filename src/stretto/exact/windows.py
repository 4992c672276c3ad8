"""One II as a program of literals: which operation has begun by when.

    window at this II     a: 0 .. 3           begun[a, 0] <= begun[a, 1] <= begun[a, 2]
    a ──3──► b            "b by t + 3" => "a by t"       begun[b, t + 3] <= begun[a, t]
    row 2 of a slot       a@2 + b@2 + b@6 <= capacity    (II 4; a@2: begun[a, 2] - begun[a, 1])

Windows come from the longest paths inside a recurrence, one operation of which stands in [0, II):
the one that leaves the others the least room. A dependence is not one row on two starts but one
for each cycle, on two literals: what the linear relaxation of such rows cannot have, it refutes at
once (the structured formulation of A. E. Eichenberger and E. S. Davidson, "Efficient formulation
for optimal modulo schedulers", PLDI 1997).

It knows dependences inside recurrences and what holds slots and pools; so it is a relaxation, and
what it refutes is refuted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from stretto.exact.case import Case, Solution
from stretto.exact.ranges import Row, parts_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST = 40_000
"""Literals above which nothing is asked."""
CELLS = 60_000
"""Cells of rows that they fill, above which nothing is asked."""
MEMBERS = 600
"""Operations of a recurrence above which nothing is asked: all pairs of them are looked at."""
NONE = -(1 << 60)
"""Below every path; half of it still is."""

Stand = tuple[int, int | None, int | None]
"""A start, the literal of having begun by then (None: certainly), and of having begun before (None:
certainly not)."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A recurrence, or an operation in none, at one II."""

    members: Sequence[int]
    paths: NDArray[np.int64]
    """Longest paths between its members, by place among them."""
    holders: Sequence[int]
    """The places of those that hold a slot or pool."""
    lead: int
    """The place of the one that stands in [0, II), or at 0."""
    late: int
    """Its last start."""

    def window(self, place: int) -> tuple[int, int]:
        """The first and last start of a member."""
        back = int(self.paths[place, self.lead])
        return int(self.paths[self.lead, place]), self.late - back

    def rows(self) -> Iterator[tuple[int, int, int]]:
        """(source, destination, cycles) that no windows and no others between the two imply.

        One that stands a fixed number of cycles from either of the two is not asked for the way
        between them, lest two rows each leave the other out.
        """
        holders, paths = list(self.holders), self.paths
        fixed = paths + paths.T == 0
        windows = {place: self.window(place) for place in holders}
        for a in holders:
            for b in holders:
                ahead = int(paths[a, b])
                if a == b or windows[b][0] - windows[a][1] >= ahead:
                    continue
                around = paths[a, holders] + paths[holders, b] >= ahead
                if not (around & ~fixed[a, holders] & ~fixed[b, holders]).any():
                    yield a, b, ahead


class Windows:
    """The program of one II."""

    def __init__(self, case: Case, ii: int) -> None:
        self.case, self.ii = case, ii
        self.impossible = case.contractible and not case.rest.turns_at(ii)
        """Whether a recurrence alone is longer than the II allows."""
        self.held = [(limit, held) for limit, held in (case.slots | case.pools).values()]
        self.holders = {h.op for _, held in self.held for h in held}
        self.parts: list[Part] = []
        self.size = 0
        """Literals."""
        self.certain: list[int] = []
        """Those that are true."""
        self.implied: list[tuple[int, int]] = []
        """(literal, what it implies)."""
        self.at: dict[int, list[Stand]] = {}
        """By operation that holds something."""
        self.worth = bool(self.holders) and self._places()
        """Whether it is small enough to be asked."""
        if self.worth:
            for part in self.parts:
                self._write(part)

    def _rows(self) -> list[Row]:
        case = self.case
        if case.contractible:
            return list(case.heart)
        return [(src, dst, d.latency, d.distance) for src, dst, d in case.edges]

    def _places(self) -> bool:
        """Recurrences and their windows; whether all that is small enough."""
        gone = self.case.rest.gone if self.case.contractible else {}
        late = 0
        parts = parts_of(self.case.size, self._rows())
        for members, rows in sorted(parts, key=lambda part: -len(part[0])):
            if len(members) == 1 and members[0] in gone:
                continue
            if len(members) > MEMBERS:
                return False
            self.case.deadline.check()
            paths = _longest(members, rows, self.ii)
            if paths is None:
                return False
            if (paths.diagonal() > 0).any():
                self.impossible = True
                return False
            holders = [k for k, i in enumerate(members) if i in self.holders]
            room = (-paths.T - paths)[:, holders].sum(axis=1)
            lead = min(holders or [0], key=lambda k: int(room[k]))
            self.parts.append(Part(members, paths, holders, lead, late))
            late = self.ii - 1
        widths: dict[int, int] = {}
        for part in self.parts:
            for place in part.holders:
                first, last = part.window(place)
                widths[part.members[place]] = last - first + 1
        cells = sum(widths[h.op] * h.duration for _, held in self.held for h in held)
        return sum(widths.values()) <= MOST and cells <= CELLS

    def _write(self, part: Part) -> None:
        """The literals of a recurrence, and what they imply."""
        begun: dict[int, range] = {}
        for place in part.holders:
            first, last = part.window(place)
            own = begun[place] = range(self.size, self.size + last - first)
            self.size = own.stop
            self.implied += pairwise(own)
            starts, by = range(first, last + 1), [*own, None]
            self.at[part.members[place]] = list(zip(starts, by, [None, *own], strict=True))
        for a, b, ahead in part.rows():
            self.case.deadline.check()
            (first, _), (low, high) = part.window(a), part.window(b)
            for t, literal in enumerate(begun[a], first):
                if t + ahead >= high:
                    self.certain.append(literal)
                elif t + ahead >= low:
                    self.implied.append((begun[b][t + ahead - low], literal))

    def capacities(self) -> Iterator[tuple[int, list[tuple[int, Stand]]]]:
        """What there is in a modulo cycle of a slot or pool, and (amount, start) that fill it."""
        for limit, held in self.held:
            cells: list[list[tuple[int, Stand]]] = [[] for _ in range(self.ii)]
            for h in held:
                self.case.deadline.check()
                for stand in self.at[h.op]:
                    for k in range(h.duration):
                        cells[(stand[0] + h.offset + k) % self.ii].append((h.amount, stand))
            yield from ((limit, cell) for cell in cells if cell)

    def solution(self, begun: Sequence[bool]) -> Solution:
        """A schedule by these rules: each recurrence moved by whole IIs, as those before it ask."""
        starts = [0] * self.case.size
        home: dict[int, int] = {}
        for k, part in enumerate(self.parts):
            for i, start in zip(part.members, self._seated(part, begun), strict=True):
                home[i], starts[i] = k, start
        for k, later in enumerate(self._shifts(home, starts)):
            for i in self.parts[k].members:
                starts[i] += self.ii * later
        if self.case.contractible:
            starts = self.case.filled(self.ii, starts)
        least = min(starts) // self.ii * self.ii
        return Solution(self.ii, tuple(start - least for start in starts))

    def _seated(self, part: Part, begun: Sequence[bool]) -> list[int]:
        """Starts of a recurrence; what holds nothing starts as soon as the others let it."""
        if not part.holders:
            return part.paths[part.lead].tolist()
        at: dict[int, int] = {}
        for place in part.holders:
            stands = self.at[part.members[place]]
            at[place] = next(t for t, by, _ in stands if by is None or begun[by])
        places = range(len(part.members))
        after = {k: max(t + int(part.paths[one, k]) for one, t in at.items()) for k in places}
        return [at.get(k, after[k]) for k in places]

    def _shifts(self, home: dict[int, int], starts: Sequence[int]) -> list[int]:
        """By how many IIs each recurrence is moved."""
        known = [row for row in self._rows() if row[0] in home and row[1] in home]
        between = [row for row in known if home[row[0]] != home[row[1]]]
        shift = [0] * len(self.parts)
        changed = True
        while changed:  # ends: between recurrences dependences lead one way
            changed = False
            for src, dst, latency, distance in between:
                ready = starts[src] + latency - self.ii * distance
                later = -((starts[dst] - ready) // self.ii) + shift[home[src]]
                if later > shift[home[dst]]:
                    shift[home[dst]] = later
                    changed = True
        return shift


def _longest(members: Sequence[int], rows: Sequence[Row], ii: int) -> NDArray[np.int64] | None:
    """Longest paths between all members (R. W. Floyd, 1962); None: too long for 64 bits."""
    import numpy as np  # noqa: PLC0415 - heavy, and only this function needs it

    number = {i: k for k, i in enumerate(members)}
    heaviest = max((latency + ii * distance for _, _, latency, distance in rows), default=0)
    if heaviest * (len(members) + 1) >= -NONE // 4:
        return None
    paths = np.full((len(members), len(members)), NONE, dtype=np.int64)
    np.fill_diagonal(paths, 0)
    for src, dst, latency, distance in rows:
        a, b = number[src], number[dst]
        paths[a, b] = max(int(paths[a, b]), latency - ii * distance)
    for k in range(len(members)):
        np.maximum(paths, paths[:, k : k + 1] + paths[k], out=paths)
        if paths[k, k] > 0:  # longer than the II allows, and longer every time round
            break
    return paths
