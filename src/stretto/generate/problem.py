"""A compiled loop made ready for search: what is asked for, and what only search looks at.

    Compiled (graph, holds, rooms)  +  Options (last II, rungs to leave out, deadline)  ──►  Problem

Made once for a loop and its options; everything here is read-only while generators run.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from stretto.deadline import NEVER, Deadline
from stretto.loop import Loop
from stretto.loop.parts import cached_property
from stretto.machine import Machine
from stretto.problem import Compiled, Room, compile_loop

RUNGS = ("rau", "deepest-depth", "initial", "cost-based")
"""The strategy ladder, in order."""
IMPROVE = "improve"
"""What moves a complete placement to a better one at the same II, after the ladder."""
RETRIES = "retries"
"""What comes after a search that does not meet the bound: without limits, in fewer stages, by the
solver."""
TIES = "ties"
"""What holds members of a group within an II of each other, so that refinement moves them whole."""
ARMS = ("permute", "fuse", "retry", "cost-based")
"""The placement arms, in the order that breaks ties."""

COSTS = ("feasibility", "pipe-slot", "spill", "bank", "structural", "anchors")
"""The components of the cost vector, in order."""
RECOVERIES = ("depth", "table", "group")
"""Gates that can be left out: the depth horizon; and the ways to recover, to bump a seat and to
reorder a group."""
PARTS = (
    *RUNGS,
    *(f"arm:{arm}" for arm in ARMS),
    *(f"cost:{component}" for component in COSTS),
    *(f"gate:{gate}" for gate in RECOVERIES),
    IMPROVE,
    RETRIES,
    TIES,
)
"""What may be left out, to see what it is worth."""

EFFORTS = {"quick": 100, "normal": 800, "thorough": 8_000}
"""Steps of search that each operation of a small loop is worth."""
SMALL = 1_000
"""Operations from which on a loop's work grows no more in proportion: at this size it is half."""
LONG = 60
"""Seats that a long plan by start may take, for each operation."""
SWEPT, TRIES = 48_000_000, 400
"""Seats that a small loop is worth to try IIs by Rau's own method, and how many IIs at most: so
many up to 1,000 operations, 66 at 3,000."""

FULL = 128
"""Operations up to which each has its full share of the work to save stages."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the user may ask of the generators."""

    max_ii: int | None = None
    """The last II tried; None: the II of the serial schedule."""
    max_stages: int | None = None
    fuse: bool = True
    serial_threshold: int = 2
    """Loops of fewer operations are scheduled serially."""
    strict: bool = False
    """Fail instead of warning when a constraint cannot be honoured."""
    without: frozenset[str] = field(default_factory=frozenset[str])
    """Parts (``rau``, ``arm:fuse``, ``cost:spill``) to leave out, to see what they are worth."""
    effort: str = "normal"
    """How much work a loop is worth: one of EFFORTS."""
    deadline: Deadline = NEVER
    """When to stop looking, whatever is left to try."""


@dataclass(frozen=True)
class Problem(Compiled):
    """A compiled loop, with options."""

    options: Options

    @property
    def deadline(self) -> Deadline:
        """When to stop looking: asked at every step that may take long."""
        return self.options.deadline

    def wants(self, part: str) -> bool:
        """Whether a rung (``rau``) or an arm (``arm:fuse``) is to be used.

        Strictly, what is pending is seated last: by arms, which keep to it, and by nobody else.
        """
        if self.options.strict and part in {RUNGS[0], IMPROVE} and any(self.pending):
            return False
        return part not in self.options.without

    @cached_property
    def pending(self) -> tuple[bool, ...]:
        """Operations that are to be seated last."""
        return tuple(op.constraint.pending for op in self.loop.ops)

    @cached_property
    def claimants(self) -> tuple[Room, ...]:
        """What claims a bank of tensor memory or a named barrier."""
        from stretto.problem.banks import claimants  # noqa: PLC0415 - few loops ask

        return claimants(self.loop)

    @cached_property
    def instant(self) -> dict[int, frozenset[int]]:
        """Operations that may tie a knot in one cycle, and those they must not share it with."""
        found: dict[int, set[int]] = {}
        for reader, writer in self.instant_pairs:
            found.setdefault(reader, set()).add(writer)
            found.setdefault(writer, set()).add(reader)
        return {i: frozenset(others) for i, others in found.items()}

    @cached_property
    def staged(self) -> bool:
        """Whether some operation has a last stage, or a group to share its stage with."""
        limited = self.max_stages is not None or self.depths
        return bool(self.members or self.pinned or limited)

    @cached_property
    def repeats(self) -> frozenset[int]:
        """Operations with several uses of one slot, which may meet each other at some II."""
        return frozenset(
            [
                i
                for i, vector in enumerate(self.vectors)
                if len(vector.uses) > 1 and len(vector.uses) > len({u.slot for u in vector.uses})
            ]
        )

    @property
    def worth(self) -> int:
        """Its operations, of which a large loop counts ever fewer, as of its work."""
        return self.size if self.size <= FULL else self.size * (SMALL + FULL) // (SMALL + self.size)

    @property
    def work(self) -> int:
        """Steps of search that the loop is worth, at its effort.

        A step looks at every claim of an operation; of operations with many, fewer are worth it.
        """
        claims = sum(map(len, self.claims))
        steps = EFFORTS[self.options.effort] * self.size * SMALL // (SMALL + self.size)
        return max(200, steps * 2 * self.size // max(2 * self.size, claims))

    @property
    def swept(self) -> int:
        """IIs below the one found at which the loop is worth a try of Rau's own method."""
        scale = EFFORTS[self.options.effort] / EFFORTS["normal"]
        seats = SWEPT * SMALL // (SMALL + self.size)
        return int(scale * min(TRIES, seats // (LONG * self.size)))


def make_problem(loop: Loop, machine: Machine, options: Options) -> Problem:
    """Compile a resolved, checked loop for search."""
    compiled = compile_loop(loop, machine, fuse=options.fuse, max_stages=options.max_stages)
    return for_search(compiled, options)


def for_search(compiled: Compiled, options: Options) -> Problem:
    """A loop that was compiled with these options' fusion and stages, with the rest of them."""
    parts = {part.name: getattr(compiled, part.name) for part in fields(Compiled)}
    return Problem(**parts, options=options)
