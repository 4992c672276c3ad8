"""The best placement at the II found: nothing spills, few stages, few bytes, few registers.

    found        8 stages   401,920 bytes   548 of 512 registers: spills
    fewer stages 5 stages                                     kernel/moving.py: part, fit, close
    polished     5 stages   344,576 bytes   354 registers            kernel/moving.py: polish

The search ends with the first complete placement at an II. Whoever runs the kernel loses most by a
spill, then by a longer prologue, then by bytes that another stage of a ring could use, then by
registers; so placements are compared in this order, and where they are equal by the rest of the
cost vector: bank pressure, then structural distance. Work is counted in moves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from stretto.generate.kernel.board import NEVER, Board, Links, Worth
from stretto.generate.kernel.core import Core, core_of
from stretto.generate.kernel.moving import OPEN, REFUTED, Moving
from stretto.generate.ladder.rau import SMALL
from stretto.generate.ladder.rings import overflow
from stretto.generate.problem import IMPROVE, Problem
from stretto.generate.seating.partial import Partial
from stretto.loop.parts import cached_property
from stretto.ops.spaces import REGISTERS
from stretto.problem import strong_components

WORK = {"quick": 100_000, "normal": 2_500_000, "thorough": 25_000_000}
"""Dependences and nodes that `fit` may look at, by effort: all of them are, in each move."""
LARGE = 4_000
"""Rooms above which lives are not worth measuring again and again."""
WAYS = ((64, 200), (32, 20), (32, 50), (32, 200))
"""How `fit` goes about it, round by round: the II over how hot it is, and its patience."""
CLOSING, HOT, PATIENCE = 3_000, 16, 30
"""Moves of one try of `close`, the II over how hot it is, and its patience."""
LIKE = 1_000
"""Nodes from which on a loop is worth all moves of `close`; a smaller one, the square of it."""
FEW = 256
"""Dependences and nodes up to which a move looks at about all of them."""
ROUND, LOOK = 15_000, 6_000
"""Moves of one round of `fit`, and those after which it is given up if it was nowhere near."""
FEW_ROUNDS, SOON = 2, 1_500
"""Who has moves for more than a look and for fewer rounds than this goes down stage by stage, and
gives up so soon: random loops of 30 and of 100 operations come to no more stages so, in 0.7 of the
time."""
LOOKS = 80_000
"""Dependences, or holds beyond one each, that may be looked at to part what collides, before `fit`
tries: most numbers of stages that cannot be are refuted after ten looks at all of them."""
FEW_ARCS = 128
"""Dependences, or holds beyond one each, above which parting seldom comes to an end: it is given
ever less. No plan waits for it above so many dependences."""
SEED = 837_832
"""Of the sequence that chooses moves. Any is right; of eight that were tried, this one and two
others reach the fewest stages of attention forward, attention backward and layer norm alike."""
POLISH = {"quick": 100, "normal": 600, "thorough": 6_000}
"""Moves of `polish`, at most, by effort."""
EACH = {"quick": 10, "normal": 60, "thorough": 600}
"""Moves of `polish` for each that holds something, by effort: nobody else is moved."""
PLENTY = 3
"""The part of these moves that is made where fewer stages cannot be, there is no ring, and half the
registers are free: nobody would lose by one more."""
AGAIN = {"quick": 0, "normal": 1, "thorough": 30}
"""Times that what spills is sought anew, by effort."""


def improve(
    problem: Problem,
    placement: Partial,
    core: Core | None = None,
    shorter: Callable[[Partial], Partial] | None = None,
) -> Partial:
    """The best placement at the same II that some moves come to; the same where none is better.

    `shorter`: plans of fewer stages, asked where parting does not settle how few it takes.
    """
    if shorter is not None and (core is None or sum(map(len, core.succs)) > FEW_ARCS):
        placement, shorter = shorter(placement), None
    rows = rows_of(problem, placement, core)
    board = rows.board()
    if len(board.room_bytes) > LARGE:
        return placement if shorter is None else shorter(placement)
    moving = Moving(board)
    moving.seed = SEED
    moving.take(rows.starts(placement))
    first = moving.starts()
    found = [first]
    if shorter is not None and not _parted(moving, found):
        few = rows.placed(found[-1], placement)
        placement = shorter(placement)
        return improve(problem, min(placement, few, key=lambda p: p.stage_count), core)
    if problem.pinned:
        if not moving.fix(*rows.cycles()):
            return placement
        moving.take(rows.starts(placement))  # legal, with cycles that are told kept from here on
    effort = problem.options.effort
    moves = WORK[effort] // _work(board)
    polish = _polish(moving, board, effort)
    roomy = not problem.rotating and 2 * moving.worth().registers <= board.registers
    if roomy and shorter is not None:
        polish //= PLENTY
    if problem.pinned or (shorter is None and moving.fitted <= SMALL):
        first = moving.starts()
        found = [first, *_leaner(problem, moving, first, moves)]
    elif shorter is None:
        found += _closer(problem, moving, WORK[effort])
    best: list[tuple[Worth, list[int]]] = []
    for starts in reversed(found):
        problem.deadline.check()
        moving.take(starts)
        moving.polish(polish)
        best.append((moving.worth(), moving.starts()))
        if not moving.worth().spills:
            break
    stages = best[0][0].stages
    again = AGAIN[effort] if len(found) > 1 else 0
    while again and min(best)[0].spills:
        problem.deadline.check()
        moving.seed = again * 999_983
        moving.take(first)
        hot, patience = WAYS[again % len(WAYS)]
        deeper = again % 2 if effort == "thorough" else 0  # one stage more may be what it takes
        moving.fit(stages + deeper, ROUND, board.ii // hot, patience)
        moving.polish(polish)
        best.append((moving.worth(), moving.starts()))
        again -= 1
    least = min(worth for worth, _ in best)
    if least.spills and shorter is not None:  # from elsewhere on it may not
        return improve(problem, shorter(placement), core)
    equal = [rows.placed(starts, placement) for worth, starts in best if worth == least]
    return min(equal, key=_rest_of_cost) if len(equal) > 1 else equal[0]


def _work(board: Board) -> int:
    """What one move of `fit` is worth: in a large loop it looks at few of its dependences."""
    size = len(board.arcs) + board.fitted
    return 1 + min(size, FEW) + max(0, size - FEW) // 16


def _polish(moving: Moving, board: Board, effort: str) -> int:
    """Moves of `polish` that a loop is worth."""
    most = min(POLISH[effort], EACH[effort] * moving.movers)
    return min(most, WORK[effort] // (2 * _looks(board)))


def _looks(board: Board) -> int:
    """What one move of `polish` looks at: dependences, nodes, lives and what they add up to."""
    lives = len(board.room_bytes)
    return len(board.every) + len(board.order) + lives + min(lives**2, lives + board.ii)


def honoured(problem: Problem, placement: Partial) -> Partial | None:
    """A placement that stands where it is told to, from one that may not; None: not found.

    What is told its cycle goes there first, and whoever is in the way moves on; then stages and
    starts are sought as fewer stages are.
    """
    ii = placement.ii
    if not problem.unmet(ii, placement.whole()):
        return placement
    rows = rows_of(problem, placement)
    board = rows.board()
    moving = Moving(board)
    moving.take(rows.starts(placement))
    if any(low > high for low, high in zip(board.first, board.last, strict=True)):
        return None
    if not moving.fix(*rows.cycles()):
        return None
    told = max(_pin(problem, i, ii)[0] for i in problem.pinned) // ii
    moves = WORK[problem.options.effort] // _work(board)
    for more, (hot, patience) in zip((1, 4, 1, 4), WAYS, strict=True):
        problem.deadline.check()
        stages = max(placement.stage_count, told + 1) + more
        if moving.fit(stages, min(ROUND, moves), ii // hot, patience):
            found = rows.placed(moving.starts(), placement)
            if not problem.unmet(ii, found.whole()):
                return found
    return None


def eased(problem: Problem, placement: Partial) -> Partial | None:
    """A placement at the same II for which the registers of agents do; None: not found.

    What lives is shortened by moves; then starts are sought anew, in as many stages and in more.
    """
    rows = rows_of(problem, placement)
    board = rows.board()
    if problem.pinned or len(board.room_bytes) > LARGE:
        return None
    effort = problem.options.effort
    moving = Moving(board)
    polish = _polish(moving, board, effort)
    moves = min(ROUND, WORK[effort] // _work(board))
    moving.seed = SEED
    first, stages = rows.starts(placement), placement.stage_count
    for n, (hot, patience) in enumerate(WAYS):
        problem.deadline.check()
        moving.take(first)
        if n:
            moving.fit(stages + n % 2, moves, board.ii // hot, patience)
        moving.polish(polish)
        if not moving.worth().spills:
            found = rows.placed(moving.starts(), placement)
            if found is not placement:
                return found
    return None


def _rest_of_cost(placement: Partial) -> tuple[int, int]:
    """What the cost vector says of placements that are worth the same."""
    from stretto.generate.seating.cost import inversions  # noqa: PLC0415 - few are
    from stretto.generate.seating.evaluators import (  # noqa: PLC0415
        bank_cost,
        bank_pressure,
        seating_of,
    )

    seats = seating_of(placement)
    return bank_cost(bank_pressure(seats), None) or 0, inversions(seats)


def _looks_of(moving: Moving) -> int:
    """Looks that a number of stages is worth to part what collides; each looks at all."""
    size = 1 + max(moving.arcs, moving.segs - moving.fitted)
    return LOOKS // size if size <= FEW_ARCS else LOOKS * FEW_ARCS**2 // size**3


def _parted(moving: Moving, found: list[list[int]]) -> bool:
    """Whether parting alone settles how few stages it takes; all of fewer that are found."""
    failed, stages = 0, moving.worth().stages
    while failed + 1 < stages:
        target = (failed + stages) // 2
        known = moving.part(target, _looks_of(moving))
        if known == REFUTED:
            failed = target
        elif known == OPEN or moving.worth().stages >= stages:
            return False
        else:
            stages = moving.worth().stages
            found.append(moving.starts())
    return True


def _leaner(problem: Problem, moving: Moving, first: list[int], moves: int) -> Iterator[list[int]]:
    """Placements of ever fewer stages, halving what lies between failures and successes.

    Whoever has few moves cannot pay for many failures: one stage less at first, then two, then
    four, each from the best placement so far on. What collides is parted first: where that finds a
    placement, or proves that there is none, no move is needed.
    """
    few = LOOK < moves < FEW_ROUNDS * ROUND
    look = SOON if few else LOOK
    failed, stages, step = 0, moving.worth().stages, 1
    while moves > 0 and failed + 1 < stages:
        target = (failed + stages) // 2
        if few and not failed:
            target = max(1, stages - step)
        known = OPEN
        if not problem.pinned:  # a pin may ask for a cycle, which parting leaves
            known = moving.part(target, _looks_of(moving))
        for hot, patience in WAYS if known == OPEN else ():
            problem.deadline.check()
            moving.take(first)
            before = moving.tried
            moving.fit(target, min(ROUND, max(0, moves)), moving.ii // hot, patience, look)
            moves -= moving.tried - before
            if moving.worth().stages < stages or moving.tried - before <= look:
                break
        if moving.worth().stages < stages:
            stages, step = moving.worth().stages, 2 * step
            first = moving.starts() if few else first
            yield moving.starts()
        else:
            failed = target


def _closer(problem: Problem, moving: Moving, work: int) -> Iterator[list[int]]:
    """Placements of ever fewer stages of a large loop, each from the one before.

    A stage is taken out where that breaks least; where it cannot be repaired, at the next time.
    """
    work = work * min(moving.fitted, LIKE) ** 2 // LIKE**2
    end = moving.tried + moving.pushed + work
    turn = 0
    while turn < moving.worth().stages - 1 and moving.tried + moving.pushed < end:
        problem.deadline.check()
        before = moving.tried
        if moving.close(turn, CLOSING, moving.ii // HOT, PATIENCE):
            turn = 0
            yield moving.starts()
        elif moving.tried == before:  # windows prove that there are no fewer
            return
        else:
            turn += 1


@dataclass(frozen=True)
class Rows:
    """A problem at one II, by node."""

    problem: Problem
    core: Core
    ii: int
    nodes: list[tuple[tuple[int, int], ...]]
    """By node: (operation, offset from the node's start); those of the core first."""
    fitted: int
    links: Links
    """Between nodes of the core."""
    segments: Sequence[Sequence[tuple[int, int, int, int]]]

    @cached_property
    def home(self) -> tuple[list[int], list[int]]:
        """By operation: its node; and its offset there."""
        node, offset = [0] * self.problem.size, [0] * self.problem.size
        for n, ops in enumerate(self.nodes):
            for i, off in ops:
                node[i], offset[i] = n, off
        return node, offset

    def board(self) -> Board:
        """As rows of numbers."""
        problem, ii, rank, (node, offset) = self.problem, self.ii, self.problem.rank, self.home
        done = [off + end for off, end in zip(offset, problem.completion, strict=True)]
        seats = list(zip(node, offset, strict=True))
        rooms = problem.rooms
        kept = (*rooms.rotating, *rooms.values, *rooms.registers)
        agents = problem.registers
        owners = list(agents.limits) if agents.bound else []
        spaces = tuple(dict.fromkeys((*rooms.single_bytes, *(r.space for r in rooms.rotating))))
        registers = problem.machine.budget(REGISTERS)
        first, last = self._first(), self._last()
        for i in problem.pinned:
            low, high = _pin(problem, i, ii)
            n, off = node[i], offset[i]
            first[n], last[n] = max(first[n], low - off), min(last[n], high - off)
        every = self._every()
        return Board(
            ii=ii,
            arcs=self.links,
            every=every,
            order=sorted(
                range(len(self.nodes)), key=[rank[ops[0][0]] for ops in self.nodes].__getitem__
            ),
            segments=[*self.segments, *([()] * (len(self.nodes) - self.fitted))],
            limits=self.core.limits,
            fitted=self.fitted,
            first=first,
            last=last,
            reach=self._reach(every),
            pinned=bool(problem.pinned),
            groups=[
                [(node[i], offset[i] + ii * problem.ahead[i]) for i in members]
                for members in problem.members
            ],
            writers=[
                *[[*map(seats.__getitem__, room.writers)] for room in kept],
                *([(node[i], offset[i] + at) for i, at in life.begins] for life in agents.lives),
            ],
            accessors=[
                *[
                    [(node[i], done[i] + ii * distance) for i, distance in room.accessors]
                    for room in kept
                ],
                *(
                    [(node[i], offset[i] + at + ii * distance) for i, at, distance in life.ends]
                    for life in agents.lives
                ),
            ],
            room_bytes=[*[room.bytes for room in kept], *(life.bytes for life in agents.lives)],
            room_space=[
                *[spaces.index(room.space) for room in rooms.rotating],
                *[-1] * (len(kept) - len(rooms.rotating)),
                *(-2 - owners.index(life.owner) for life in agents.lives),
            ],
            base=[rooms.single_bytes.get(space, 0) for space in spaces],
            budget=[rooms.budgets.get(space, NEVER) for space in spaces],
            always=rooms.always,
            unit=registers.unit if registers else 1,
            registers=(
                NEVER
                if owners
                or registers is None
                or registers.bytes is None  # who has its own, keeps it
                else registers.bytes // registers.unit
            ),
            agents=[agents.limits[owner] - agents.always[owner] for owner in owners],
        )

    def _every(self) -> Links:
        ii, (node, offset) = self.ii, self.home
        return Links(
            len(self.nodes),
            [
                (node[src], node[dst], latency - ii * distance + offset[src] - offset[dst])
                for src, dst, latency, distance in self.problem.between.edges
            ],
        )

    def _first(self) -> list[int]:
        """By node: the first start that what was folded away before it leaves it."""
        floors = self.core.floors(self.ii)
        if not any(floors):
            return [0] * len(self.nodes)
        lead = {i: n for n, ops in enumerate(self.core.nodes) for i in ops}
        found = [max(floors[lead[i]] - off for i, off in ops) for ops in self.nodes[: self.fitted]]
        return [max(0, first) for first in found] + [0] * (len(self.nodes) - self.fitted)

    def _last(self) -> list[int]:
        """By node: the last start that depth limits leave it."""
        limits, ii = self.problem.max_stage, self.ii
        found = [NEVER] * len(self.nodes)
        if self.problem.staged:
            for n, ops in enumerate(self.nodes):
                for i, off in ops:
                    stage = limits[i]
                    if stage is not None:
                        found[n] = min(found[n], (stage + 1) * ii - 1 - off)
        return found

    def _reach(self, every: Links) -> list[int]:
        """By node: from its start to the last one in it, or folded away behind it."""
        found = [ops[0][1] if len(ops) == 1 else max([off for _, off in ops]) for ops in self.nodes]
        if self.fitted < len(self.nodes):
            for src, dst, gain in reversed(list(every)):
                if dst >= self.fitted:
                    found[src] = max(found[src], gain + found[dst])
        return found

    def cycles(self) -> tuple[list[int], list[int]]:
        """Nodes that are told their cycle, and the cycles."""
        nodes: list[int] = []
        cycles: list[int] = []
        for i in self.problem.pinned:
            asked, n, off = self.problem.loop.ops[i].constraint, self.home[0][i], self.home[1][i]
            cycle = asked.start if asked.start is not None else asked.cycle
            if cycle is not None:
                nodes.append(n)
                cycles.append(cycle - off)
        return nodes, cycles

    def starts(self, placement: Partial) -> list[int]:
        """The start of each node in a placement."""
        starts = placement.whole()
        return [starts[ops[0][0]] - ops[0][1] for ops in self.nodes]

    def placed(self, starts: Sequence[int], before: Partial) -> Partial:
        """The placement of these starts, if its rings fit; who kept its place keeps its rung."""
        problem, ii = self.problem, self.ii
        found = [0] * problem.size
        for ops, start in zip(self.nodes, starts, strict=True):
            for i, off in ops:
                found[i] = start + off
        if not problem.staged:
            low = min(found)
            found = [start - low for start in found]
        if overflow(problem, ii, found) or problem.unmet(ii, found):
            return before
        better = Partial.of(problem, ii, found, before.fused.values(), IMPROVE)
        shifts = [new - old for new, old in zip(found, before.whole(), strict=True)]
        moved = Counter(shifts)
        common = max(moved, key=lambda shift: (moved[shift], -shift))
        for i, shift in enumerate(shifts):
            if shift == common:
                better.seated_by[i] = before.seated_by[i]
        return better


def rows_of(problem: Problem, placement: Partial, core: Core | None = None) -> Rows:
    """The nodes of a placement: what is fused or tied by a recurrence moves as one."""
    ii = placement.ii
    if core is None or set(core.fused()) != set(placement.fused.values()):
        core = core_of(problem, placement.fused.values())
    links = Links(
        core.size,
        [
            (src, dst, latency - ii * distance)
            for src, steps in enumerate(core.succs)
            for dst, latency, distance in steps
        ],
    )
    held = core.segments(ii)
    gone = [((i, 0),) for i in core.rest.gone]
    tied = _tied(core, links)
    if len(tied) == core.size:  # everybody is a node
        nodes = [tuple([(i, 0) for i in ops]) for ops in core.nodes]
        segments = [[(c, offset % ii, n, amount) for c, offset, n, amount in row] for row in held]
        return Rows(problem, core, ii, nodes + gone, core.size, links, segments)
    joined: list[tuple[tuple[int, int], ...]] = []
    pieces: list[list[tuple[int, int, int, int]]] = []
    home = [(0, 0)] * core.size
    for number, members in enumerate(tied):
        joined.append(tuple((i, off) for n, off in members for i in core.nodes[n]))
        pieces.append(
            [
                (column, (offset + off) % ii, length, amount)
                for n, off in members
                for column, offset, length, amount in held[n]
            ]
        )
        for n, off in members:
            home[n] = (number, off)
    between = Links(
        len(joined),
        [
            (home[src][0], home[dst][0], gain + home[src][1] - home[dst][1])
            for src, dst, gain in links
        ],
    )
    return Rows(problem, core, ii, joined + gone, len(joined), between, pieces)


def _tied(core: Core, links: Links) -> list[list[tuple[int, int]]]:
    """Nodes of the core that recurrences without slack tie to each other, each with its offset.

    Around such a recurrence every dependence is tight whatever the schedule; so these are what
    tight dependences of the earliest starts connect both ways.
    """
    around = {n for members in core.recurrences for n in members}
    if not around:
        return [[(n, 0)] for n in range(core.size)]
    turning = [link for link in links if link[0] in around and link[1] in around]
    early = [0] * core.size
    moved = True
    while moved:
        moved = False
        for src, dst, gain in turning:
            if early[src] + gain > early[dst]:
                early[dst] = early[src] + gain
                moved = True
    nodes = sorted(around)
    local = {n: k for k, n in enumerate(nodes)}
    tight: list[list[int]] = [[] for _ in nodes]
    for src, dst, gain in turning:
        if early[src] + gain == early[dst]:
            tight[local[src]].append(local[dst])
    tied = {n: [n] for n in range(core.size)}
    for members in strong_components(tight):
        if len(members) > 1:
            first, *others = sorted([nodes[k] for k in members])
            tied[first] += others
            for n in others:
                del tied[n]
    found: list[list[tuple[int, int]]] = []
    for members in tied.values():
        low = min([early[n] for n in members])
        found.append([(n, early[n] - low) for n in members])
    return found


def _pin(problem: Problem, i: int, ii: int) -> tuple[int, int]:
    """First and last start that a pin leaves an operation, its cycle aside."""
    asked = problem.loop.ops[i].constraint
    low, high = 0, NEVER
    if asked.stage is not None:
        low, high = asked.stage * ii, (asked.stage + 1) * ii - 1
    if asked.start is not None:
        low, high = max(low, asked.start), min(high, asked.start)
    return low, high
