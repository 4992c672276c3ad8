"""How many stages a refutation must look at before it is a proof, and how many IIs.

    load ──556──► mma ──16──► store    II 100: mma at most 7 stages behind load, store 2 behind it:
      0            ≤ 7         ≤ 9     nobody needs a stage beyond 9, in whatever cycle each stands

Fix a cycle (0 .. II-1) for every operation and a depth for every ring. Every rule that is left
asks one stage to be at least another plus a constant:

- dependence: stage[dst] >= stage[src]
  + ceil((latency - II × distance + cycle[src] - cycle[dst]) / II)
- storage: stage[writer] >= stage[accessor]
  + ceil((completion + II × distance - II × depth + cycle[accessor] - cycle[writer]) / II),
  since an instance must be dead when its place in the ring comes round
- registers: as of a ring, with the cycles that what lives in them has in place of the depth;
  none at all is the least that it can have
- group: both ways at least the difference of the offsets; fusion: both ways at least 0
- depth: stage[op] at most a constant, in starts counted from the first one
- pin: stage[op] at least and at most a constant

If such a system has a solution with stages >= 0, it has a least one, which keeps every limit from
above that any solution keeps. In it each stage is the length of a longest path, and a longest path
is simple: it leaves each operation at most once. So no stage of the least solution is above the sum
of the largest steps on the way to it; that sum, over the strongly connected parts of the graph, is
the bound. Where starts are counted from the first of them, which stands somewhere in stage 0, that
adds one step to the way at most; so the bound returned is one larger. Differences of cycles are at
most II - 1 and depths at least 1, which makes it hold for every choice of cycles and depths; slots
and pools ask nothing of stages.

So: if any schedule is legal at this II, one is within these stages, and so is one of the fewest
stages (a limit on the stage count is a depth limit of all) and one of the fewest bytes at that
stage count. Taking rules away shortens paths only: the bound serves a relaxed problem as well.

It does not serve the register objective: no rule asks an operation to stand close to those that
read its result, so the schedule of the lowest peak may have it later than the least solution has.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations

from stretto.exact.case import Case
from stretto.problem import strong_components


def last_stages(case: Case, *ends: int) -> tuple[int, ...]:
    """For each operation, a stage beyond which no schedule needs it, at any II between the ends.

    What a step asks for only grows or only falls with the II.
    """
    steps: list[dict[int, int]] = [{} for _ in range(case.size)]
    for src, dst, step in chain.from_iterable(_steps(case, ii) for ii in ends):
        if src != dst:
            # One that asks for less than 0 is on the way of longer ones all the same.
            steps[src][dst] = max(step, steps[src].get(dst, step))
    found = [0] * case.size
    for i in case.problem.pinned:
        asked = case.loop.ops[i].constraint
        found[i] = max(asked.stage or 0, (asked.start or 0) // min(ends))
    parts = list(strong_components([list(after) for after in steps]))
    for part in reversed(parts):  # sources first
        inside = set(part)
        enter = max(found[i] for i in part)
        most = {i: max([0, *(w for j, w in steps[i].items() if j in inside)]) for i in part}
        total = sum(most.values())
        for i in part:
            found[i] = enter + total - most[i]
        for i in part:
            for j, step in steps[i].items():
                if j not in inside:
                    found[j] = max(found[j], found[i] + step)
    return tuple(stage + 1 for stage in found)


def last_ii(case: Case) -> int:
    """An II above which none is the smallest: if any schedule is legal, one has at most this II.

    An operation is busy from its start until it is done and all that it hands on is ready, and
    for one cycle at least. Where II is more than all of these together, some modulo cycle finds
    nobody busy. Cut it out of every round: whoever waits for a busy one waits as long as before,
    holds and stages stay what they were, and no lifetime spans more rounds than it did.
    """
    busy = [max(1, done) for done in case.problem.completion]
    for src, _, d in case.edges:
        busy[src] = max(busy[src], d.latency)
    asked = [case.loop.ops[i].constraint for i in case.problem.pinned]
    # What is pinned stands before the cycle that is cut out, if that lies behind all pins.
    return sum(busy) + max([0, *(1 + max(a.start or 0, a.cycle or 0) for a in asked)])


def _steps(case: Case, ii: int) -> Iterator[tuple[int, int, int]]:
    """(source, destination, the most stages it can ask for)."""
    for src, dst, d in case.edges:
        yield src, dst, _ceil(d.latency - ii * d.distance + ii - 1, ii)
    for ring in case.bound_rings:
        for i, distance in ring.accessors:
            for writer in ring.writers:
                yield i, writer, _ceil(case.problem.completion[i] + ii * distance - ii + ii - 1, ii)
    for life in case.problem.registers.lives:
        for i, offset, distance in life.ends:
            for writer, begin in life.begins:
                yield i, writer, _ceil(offset + ii * distance - begin + ii - 1, ii)
    ahead = case.problem.ahead
    for members in case.problem.members:
        for a, b in combinations(members, 2):
            case.deadline.check()
            yield a, b, ahead[a] - ahead[b]
            yield b, a, ahead[b] - ahead[a]
    for c in case.classes:
        for a, b in combinations(c.members, 2):
            case.deadline.check()
            yield a, b, 0
            yield b, a, 0


def _ceil(a: int, b: int) -> int:
    return -(-a // b)
