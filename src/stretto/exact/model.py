"""The scheduling problem at one II as a CP-SAT model, one method a rule of legality.

    start[i] = stage[i] × II + cycle[i]        0 <= cycle[i] < II

    dependence   start[dst] >= start[src] + latency - II × distance
    slot, pool   Σ of the holders in every modulo cycle <= capacity              (circular.py)
    depth        start[i] - origin <= (max_depth[i] + 1) × II - 1
    group        stage[i] - offset[i] = stage[j] - offset[j]
    storage      ring × II >= start[a] + completion[a] + II × distance - start[w]
                 Σ bytes × ring <= budget
    registers    Σ bytes of what lives with an agent in every modulo cycle <= its own (lives.py)
    fusion       one leader a member, one hold a group                            (fusion.py)
    order        stage and order follow from the starts, so there is nothing to state

After A. Eichenberger, E. Davidson and S. Abraham, "Optimum modulo schedules for minimum register
requirements" (1995), with the cycle as one integer instead of II booleans, so that the size of the
model does not depend on the II and cycle counts need no scaling.

The origin is where stage 0 begins: cycle 0 where groups tie operations to stages; else any cycle
no later than the first start, and the rows may turn (symmetry.py). Where the stage count is
limited, the first start is the origin, and every operation has the window that paths leave it
behind that; where the windows are narrow, they are worth more than a hold at a known cycle, and the
origin is cycle 0 again. How far stages must reach for a refutation to be a proof is told in
horizon.py.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, field
from itertools import pairwise

from ortools.sat.python import cp_model

from stretto.errors import StrettoError
from stretto.exact.case import Case, Solution
from stretto.exact.circular import Sector, capacity
from stretto.exact.cp import never, total, when
from stretto.exact.fusion import Choice, choose, keep_acyclic
from stretto.exact.horizon import last_stages
from stretto.exact.lives import Rule
from stretto.exact.reasons import Reason, of_edge
from stretto.exact.symmetry import Anchor, anchor, in_order, twins
from stretto.problem.paths import earliest, heights

NARROW = 2
"""IIs of slack below which windows stand still and rows are turned: either was tried."""
LARGEST = 1 << 60
"""The solver counts in 64 bits, with some to spare for sums."""


@dataclass(slots=True)
class Model:
    """Variables and constraints at one II."""

    case: Case
    ii: int
    conditional: bool = False
    """Whether every reason has a literal that switches its constraints."""
    stages: int | None = None
    """A stage count that is not to be exceeded, beside the user's limit."""
    contracted: bool = False
    """Whether what holds nothing is left out: enough to find or to refute a schedule."""
    late: bool = False
    """Whether operations may stand anywhere in `stages`, later than any rule asks of them."""
    cp: cp_model.CpModel = field(default_factory=cp_model.CpModel)
    literals: dict[Reason, cp_model.IntVar] = field(default_factory=dict[Reason, cp_model.IntVar])
    cycle: list[cp_model.IntVar] = field(default_factory=list[cp_model.IntVar])
    stage: list[cp_model.IntVar] = field(default_factory=list[cp_model.IntVar])
    start: list[cp_model.LinearExpr] = field(default_factory=list[cp_model.LinearExpr])
    choices: list[Choice] = field(default_factory=list[Choice])
    rings: dict[str, cp_model.IntVar] = field(default_factory=dict[str, cp_model.IntVar])
    """Ring depth of each rotating storage."""
    lives: list[Rule] = field(default_factory=list[Rule])
    """What is asked of the registers of each agent."""
    last: list[int] = field(default_factory=list[int])
    """The last stage that each operation may need."""
    origin: cp_model.IntVar | int = 0
    anchor: Anchor | None = None
    """The hold that fixes how far rows are turned; None: the first start does, or nothing."""
    turns: bool = False
    """Whether rows may be turned."""

    @property
    def _left_out(self) -> Container[int]:
        return self.case.rest.gone if self.contracted else ()

    def __post_init__(self) -> None:
        self.case.deadline.check()
        self._places()
        self._dependence()
        self._fusion()
        self._slot()
        self._pool()
        self._depth()
        self._group()
        self._pin()
        self._storage()
        self._registers()
        if not self.conditional:
            for members in twins(self.case):
                for i, j in pairwise([i for i in members if i not in self._left_out]):
                    self.cp.add(self.start[i] <= self.start[j])

    def enforce(self, constraint: cp_model.Constraint, reason: Reason) -> None:
        """Let a constraint hold as long as its reason does."""
        if self.conditional:
            when(constraint, self.literal(reason))

    def literal(self, reason: Reason) -> cp_model.IntVar:
        """What switches a reason on."""
        if reason not in self.literals:
            self.literals[reason] = self.cp.new_bool_var(f"{reason.kind} {reason.name}")
        return self.literals[reason]

    # Where operations may stand -----------------------------------------------------------------

    def _places(self) -> None:
        ii, case = self.ii, self.case
        windows = self._windows()
        found = anchor(case, ii)
        self.turns = found is not None
        if found is not None and all(last - first >= NARROW * ii for first, last in windows):
            self.anchor = found
            self.origin = self.cp.new_int_var(0, ii - 1, "origin")
        self.last = list(last_stages(case, ii))
        self._check_range()
        most = None if self.stages is None else self.stages - (self.anchor is None)
        for i in range(case.size):
            if i in self._left_out:
                fixed = self.cp.new_constant(0)
                self.cycle.append(fixed)
                self.stage.append(fixed)
                self.start.append(fixed + 0)
                continue
            first, last = 0, ii - 1
            if self.anchor is not None and self.anchor.op == i:
                first = last = self.anchor.cycle
            if most is not None:
                self.last[i] = most if self.late else min(self.last[i], most)
            stage = self.cp.new_int_var(0, self.last[i], f"stage_{i}")
            self.cycle.append(self.cp.new_int_var(first, last, f"cycle_{i}"))
            self.stage.append(stage)
            self.start.append(stage * ii + self.cycle[i])
        self._within(windows)
        for reader, writer in case.problem.instant_pairs if case.spaced else ():
            self.cp.add(self.cycle[reader] != self.cycle[writer])

    def _windows(self) -> list[tuple[int, int]]:
        """First and last start behind the origin that paths leave in `stages`; none: no limit."""
        if self.stages is None:
            return []
        graph, end = self.case.problem.graph, self.stages * self.ii - 1
        ahead = earliest(graph, self.ii, self.case.deadline)
        behind = heights(graph, [0] * self.case.size, self.ii, self.case.deadline)
        return [(first, end - rest) for first, rest in zip(ahead, behind, strict=True)]

    def _within(self, windows: list[tuple[int, int]]) -> None:
        """``first <= start - origin <= last``, and somebody starts at the origin."""
        if not windows and self.anchor is not None:
            for i, start in enumerate(self.start):
                if i not in self._left_out:
                    self.cp.add(start >= self.origin)
        for start, (first, last) in zip(self.start, windows, strict=False):
            self.cp.add(start - self.origin >= first)
            self.cp.add(start - self.origin <= last)
        sources = [i for i, (first, _) in enumerate(windows) if first == 0]
        if sources and self.turns:
            begins = [self.cp.new_bool_var("") for _ in sources]
            self.cp.add_bool_or(begins)
            for i, literal in zip(sources, begins, strict=True):
                when(self.cp.add(self.start[i] == self.origin), literal)

    def _check_range(self) -> None:
        """StrettoError where a start, or bytes times a start, is no number of the solver's."""
        case, loop = self.case, self.case.loop
        far = [d.distance for _, _, d in case.edges]
        far += [distance for ring in case.problem.rotating for _, distance in ring.accessors]
        longest = max([*case.problem.completion, *(d.latency for _, _, d in case.edges)])
        cycles = self.ii * (max(self.last) + 2 + max(far, default=0)) + longest
        held = [h.amount for _, holds in (case.slots | case.pools).values() for h in holds]
        sizes = [s.bytes for s in loop.storages] + [v.register_bytes for v in loop.values]
        if max(cycles, sum(sizes) * cycles, sum(held)) > LARGEST:
            raise StrettoError(
                f"at II {self.ii} starts may be as late as cycle {cycles:,}; "
                "its cycle counts, bytes or occupancies are too large for the solver",
                loop.name,
            )

    # The rules ------------------------------------------------------------------------------------

    def _dependence(self) -> None:
        """``start[dst] >= start[src] + latency - II × distance``."""
        if self.contracted:
            if not self.case.rest.turns_at(self.ii):
                never(self.cp)
            for src, dst, latency, distance in self.case.heart:
                self.case.deadline.check()
                self.cp.add(self.start[dst] >= self.start[src] + latency - self.ii * distance)
            return
        for k, (src, dst, d) in enumerate(self.case.edges):
            self.case.deadline.check()
            needed = d.latency - self.ii * d.distance
            if src == dst:
                if needed > 0:
                    self.enforce(never(self.cp), of_edge(self.case, k))
                continue
            constraint = self.cp.add(self.start[dst] >= self.start[src] + needed)
            self.enforce(constraint, of_edge(self.case, k))

    def _fusion(self) -> None:
        """A choice of groups in every class, whose contraction is acyclic."""
        for c in self.case.classes:
            self.choices.append(choose(self.cp, self.case, c, self.start))
        # Where every latency is positive, starts rise along dependences and are the order that
        # keeps contraction acyclic; unless a dependence may be switched off.
        rising = all(d.latency > 0 for _, _, d in self.case.edges if d.distance == 0)
        if self.choices and (self.conditional or not rising):
            keep_acyclic(self.cp, self.case, self.choices)

    def _slot(self) -> None:
        """Σ occupancy of the holders in every modulo cycle <= capacity."""
        shared: dict[str, list[Sector]] = {}
        for choice in self.choices:
            for (leader, held), present in choice.holds.items():
                for use in held:
                    place = self._held(leader, use.offset, use.duration, use.occupancy, present)
                    shared.setdefault(use.slot, []).append(place)
        for slot, (limit, holds) in self.case.slots.items():
            held = [self._held(h.op, h.offset, h.duration, h.amount) for h in holds]
            constraint = capacity(self.cp, self.ii, held + shared.get(slot, []), limit)
            self.enforce(constraint, Reason("slot", slot))

    def _pool(self) -> None:
        """Σ demand in every modulo cycle <= cap."""
        for pool, (cap, holds) in self.case.pools.items():
            held = [self._held(h.op, h.offset, h.duration, h.amount) for h in holds]
            self.enforce(capacity(self.cp, self.ii, held, cap), Reason("pool", pool))

    def _held(
        self,
        op: int,
        offset: int,
        duration: int,
        amount: int,
        present: cp_model.IntVar | None = None,
    ) -> Sector:
        self.case.deadline.check()
        return Sector(self.cycle[op], offset, duration, amount, present)

    def _depth(self) -> None:
        """``stage <= max_depth``, stages counted from the origin; the stage count likewise."""
        for i, depth in self.case.problem.depths.items():
            constraint = self.cp.add(self.start[i] - self.origin <= (depth + 1) * self.ii - 1)
            self.enforce(constraint, Reason("depth", self.case.loop.ops[i].name))
        if self.case.max_stages is not None:
            for start in self.start:
                constraint = self.cp.add(start - self.origin <= self.case.max_stages * self.ii - 1)
                self.enforce(constraint, Reason("stages"))

    def _group(self) -> None:
        """``stage[i] - offset[i] = stage[j] - offset[j]``."""
        ahead = self.case.problem.ahead
        for k, members in enumerate(self.case.problem.members):
            for i, j in pairwise(members):
                constraint = self.cp.add(self.stage[i] + ahead[i] == self.stage[j] + ahead[j])
                self.enforce(constraint, Reason("group", number=k))

    def _pin(self) -> None:
        """``start = s``, ``stage = k``, ``cycle = c``; and somebody stands in stage 0."""
        pinned = self.case.problem.pinned
        for i in pinned:
            op = self.case.loop.ops[i]
            asked, reason = op.constraint, Reason("pin", op.name)
            if asked.start is not None:
                self.enforce(self.cp.add(self.start[i] == asked.start), reason)
            if asked.stage is not None:
                self.enforce(self.cp.add(self.stage[i] == asked.stage), reason)
            if asked.cycle is not None:
                self.enforce(self.cp.add(self.cycle[i] == asked.cycle), reason)
        if pinned:
            self.cp.add_min_equality(0, self.stage)

    def _storage(self) -> None:
        """``ring × II >= lifetime`` and ``Σ bytes × ring <= budget``."""
        case, ii = self.case, self.ii
        for ring in case.problem.rotating:
            longest = max(
                ii * (self.last[i] + 1 + distance) + case.problem.completion[i]
                for i, distance in ring.accessors
            )
            depth = self.cp.new_int_var(1, -(-longest // ii), f"ring_{ring.name}")
            self.rings[ring.name] = depth
            for i, distance in ring.accessors:
                lives = case.problem.completion[i] + ii * distance
                for writer in ring.writers:
                    if i == writer:
                        self.cp.add(depth * ii >= lives)
                    else:
                        self.cp.add(depth * ii >= self.start[i] + lives - self.start[writer])
        self._caps()
        rooms = case.problem.rooms
        for space, budget in rooms.budgets.items():
            sizes = [r.bytes * self.rings[r.name] for r in rooms.rotating if r.space == space]
            needed = total(sizes) + rooms.single_bytes.get(space, 0)
            if sizes:
                fits = self.cp.add(needed <= min(budget, LARGEST))
                self.enforce(fits, Reason("storage", space))
            elif rooms.single_bytes.get(space, 0) > budget:
                self.enforce(never(self.cp), Reason("storage", space))

    def _caps(self) -> None:
        """``cap × II >= lifetime``."""
        for ring in self.case.bound_rings:
            for i, distance in ring.accessors if ring.cap is not None else ():
                lives = self.case.problem.completion[i] + self.ii * distance
                for writer in ring.writers:
                    most = (ring.cap or 0) * self.ii
                    if i != writer:
                        within = self.cp.add(self.start[i] + lives - self.start[writer] <= most)
                        self.enforce(within, Reason("ring", ring.name))
                    elif lives > most:
                        self.enforce(never(self.cp), Reason("ring", ring.name))

    def _registers(self) -> None:
        """``Σ bytes of what lives with an agent in every modulo cycle <= its own``.

        Everywhere at once where it may be switched off, else where a solution shows the need.
        """
        registers = self.case.problem.registers
        self.lives = [Rule(self, owner) for owner in registers.owners] if registers.bound else []
        for rule in self.lives if self.conditional else ():
            for place in tuple(rule.places):
                rule.ask(place)

    def asks_more(self, solution: Solution) -> bool:
        """Whether a solution has too much alive in registers; the model then forbids it."""
        worst = [(rule, rule.worst(self.ii, solution.starts)) for rule in self.lives]
        for rule, place in worst:
            if place is not None:
                rule.ask(place)
        return any(place is not None for _, place in worst)

    # In and out -----------------------------------------------------------------------------------

    def hint(self, solution: Solution) -> None:
        """Start from a schedule: turned as the model is, and with twins in order."""
        ii, starts = self.ii, solution.starts
        turn = -min(starts) if self.turns else 0
        if self.anchor is not None:
            turn = (self.anchor.cycle - starts[self.anchor.op]) % ii
        place = in_order(() if self.conditional else twins(self.case), starts)
        leader = {i: group[0] for group in solution.fused for i in group}
        for i in range(self.case.size):
            if i not in self._left_out:
                start = starts[place[i]] + turn
                self.cp.add_hint(self.cycle[i], start % ii)
                self.cp.add_hint(self.stage[i], start // ii)
        if place == list(range(self.case.size)):
            for choice in self.choices:
                for (i, to), var in choice.joins.items():
                    self.cp.add_hint(var, leader.get(i, i) == to)
        if not isinstance(self.origin, int):
            self.cp.add_hint(self.origin, turn + min(starts))

    def read(self, value: Callable[[cp_model.LinearExprT], int]) -> Solution:
        """The schedule of a solved model, its first stage being 0."""
        starts = [value(start) for start in self.start]
        if self.contracted:
            starts = self.case.filled(self.ii, starts)
        first = min(starts)
        back = first if self.turns else first - first % self.ii
        fused: list[tuple[int, ...]] = []
        for choice in self.choices:
            joined = {pair: bool(value(var)) for pair, var in choice.joins.items()}
            fused += choice.groups(joined)
        return Solution(self.ii, tuple(s - back for s in starts), tuple(sorted(fused)))
