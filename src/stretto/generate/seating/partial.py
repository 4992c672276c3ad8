"""A placement in the making at one II: some operations seated, the table holding what they hold.

    seat(load, 0)   table: tma ████████, tp_smem_wr ████████        window(read) = [8, ...]

The window of an operation comes from its seated neighbours, its depth limit and the stage of its
group. Fused operations are seated together: one start, one hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, cast

from stretto.generate.problem import Problem
from stretto.problem import apply, fused_vector
from stretto.problem.paths import not_after, not_before
from stretto.resources.table import ReservationTable
from stretto.solution import Schedule

if TYPE_CHECKING:
    from stretto.generate.kernel.core import Core

UNBOUNDED = 1 << 62
"""A latest start that nothing limits; compared, never added to."""


class Partial:
    """Seats and holds at one II."""

    def __init__(self, problem: Problem, ii: int) -> None:
        self.problem = problem
        self.ii = ii
        self._table: ReservationTable | None = None
        self.starts: list[int | None] = [None] * problem.size
        self.seated_by: dict[int, tuple[str, str]] = {}
        """Operation to the rung and arm that seated it."""
        self.fused: dict[int, tuple[int, ...]] = {}
        """Leader to all members of its fused group, the leader first."""
        self._leader: dict[int, int] = {}

    @classmethod
    def of(
        cls,
        problem: Problem,
        ii: int,
        starts: Sequence[int | None],
        fused: Iterable[Sequence[int]],
        rung: str,
    ) -> Partial:
        """A placement with these starts, which fit; fused operations share one."""
        partial = cls(problem, ii)
        low = min([start for start in starts if start is not None], default=0)
        shift = -(low // ii) * ii if low < 0 else 0
        partial.starts = [None if start is None else start + shift for start in starts]
        by = (rung, "")
        partial.seated_by = {i: by for i, start in enumerate(starts) if start is not None}
        for members in fused:
            if starts[members[0]] is not None:
                partial._join(members)
        return partial

    @property
    def table(self) -> ReservationTable:
        """What the seated hold; made when it is first asked for."""
        if self._table is None:
            self._table = apply(self.problem, self.ii, self.starts, self.fused.values())
        return self._table

    def beside(self, i: int) -> ReservationTable:
        """What the seated hold of all that an operation wants any of."""
        if self._table is not None or self.fused:
            return self.table
        wanted = {claim[0] for claim in self.problem.claims[i]}
        meeting = [
            None if wanted.isdisjoint([claim[0] for claim in claims]) else start
            for start, claims in zip(self.starts, self.problem.claims, strict=True)
        ]
        return apply(self.problem, self.ii, meeting)

    def row(self, cycle: int) -> int:
        """The row word of a cycle, as the table has it: the slots that have any holder."""
        if self._table is not None or self.fused:
            return self.table.row(cycle)
        problem, ii = self.problem, self.ii
        held = {
            use.slot
            for start, vector in zip(self.starts, problem.vectors, strict=True)
            if start is not None
            for use in vector.uses
            if use.occupancy and (cycle - start - use.offset) % ii < use.duration
        }
        return sum([1 << (slot.id - 1) for slot in problem.machine.slots if slot.name in held])

    @classmethod
    def of_core(
        cls, problem: Problem, ii: int, core: Core, starts: Sequence[int | None], rung: str
    ) -> Partial:
        """What was seated of a problem's heart."""
        found: list[int | None] = [None] * problem.size
        for ops, start in zip(core.nodes, starts, strict=True):
            for i in ops:
                found[i] = start
        return cls.of(problem, ii, found, core.fused(), rung)

    @property
    def count(self) -> int:
        """How many operations are seated."""
        return len(self.seated_by)

    @property
    def complete(self) -> bool:
        """Whether all are."""
        return self.count == self.problem.size

    @property
    def stage_count(self) -> int:
        """Stages of a complete placement."""
        return max(self.whole()) // self.ii + 1

    def window(self, i: int, *, grouped: bool = True) -> tuple[int, int]:
        """First and last start that seated neighbours, depth and group allow; may be empty.

        Not `grouped`: whatever the group says.
        """
        problem, ii, starts = self.problem, self.ii, self.starts
        limit = problem.max_stage[i]
        high = UNBOUNDED if limit is None else (limit + 1) * ii - 1
        low = not_before(problem.preds[i], starts, ii)
        high = not_after(problem.succs[i], starts, ii, high)
        stage = self.group_stage(i) if grouped else None
        if stage is not None:
            low, high = max(low, stage * ii), min(high, (stage + 1) * ii - 1)
        return low, high

    def group_stage(self, i: int) -> int | None:
        """The stage that the seated members of its group leave an operation; None: any."""
        group, ahead = self.problem.group[i], self.problem.ahead
        if group is None:
            return None
        for member in self.problem.members[group]:
            start = self.starts[member]
            if start is not None and member != i:
                return start // self.ii + ahead[member] - ahead[i]
        return None

    def seat(self, members: Sequence[int], start: int, rung: str, arm: str = "") -> None:
        """Seat an operation, or several fused ones together; ConflictError if they do not fit."""
        leader = members[0]
        vector = fused_vector(self.problem, members)
        self.table.commit(self.problem.names[leader], vector, start)
        for i in members:
            self.starts[i] = start
            self.seated_by[i] = (rung, arm)
        if len(members) > 1:
            self._join(members)

    def _join(self, members: Sequence[int]) -> None:
        self.fused[members[0]] = tuple(members)
        self._leader.update(dict.fromkeys(members, members[0]))

    def unseat(self, i: int) -> tuple[int, ...]:
        """Unseat an operation and all that are fused with it; those that were."""
        leader = self._leader.get(i, i)
        members = self.fused.pop(leader, (leader,))
        self.table.release(self.problem.names[leader])
        for member in members:
            self.starts[member] = None
            del self.seated_by[member]
            self._leader.pop(member, None)
        return members

    def move(self, i: int, start: int, rung: str) -> None:
        """Let an operation that is fused with none start elsewhere, where it fits."""
        self._table = None
        self.starts[i] = start
        self.seated_by[i] = (rung, "")

    def copy(self) -> Partial:
        """The same seats, to be changed without changing these."""
        other = Partial(self.problem, self.ii)
        done: set[int] = set()
        for i, (rung, arm) in self.seated_by.items():
            if i in done:
                continue
            leader = self._leader.get(i, i)
            members = self.fused.get(leader, (leader,))
            start = self.starts[leader]
            assert start is not None
            other.seat(members, start, rung, arm)
            done.update(members)
        return other

    @property
    def schedule(self) -> Schedule:
        """A complete placement as it is handed over."""
        return self.problem.schedule(self.ii, self.whole(), self.fused.values())

    def whole(self) -> list[int]:
        """The starts of a complete placement, moved by whole stages so that the first is 0."""
        starts = self.starts
        assert None not in starts
        placed = cast("list[int]", starts)
        shift = min(placed) // self.ii * self.ii
        return [start - shift for start in placed] if shift else placed[:]
