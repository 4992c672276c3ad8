"""One iteration's numbers leave the registers before the next one's products fill them.

    qk ── wait ── max ── exp ── sum ── narrow ── rescale     a product that adds to nothing takes
     ▲                                              │        registers, while the numbers of the
     ╰───────────── of the next iteration ◄─────────╯        iteration before still hold theirs

Side by side they need registers for both, and compilers see arithmetic in pieces that they would
have merged. So the loop says: what a warpgroup computes in an iteration comes in the order of
the text, sums that products add to last, and the next iteration's first product behind all of it.
Products that add to such sums are issued before the next iteration's are waited for.

    wait qk ── max ── wait pv ── exp ── sum ── ...           pv runs on long after the first max

Assemblers move a wait up to where threads would stand still anyway: into the first reduction, of
which they then work out one row after the other. Where a product takes far longer than that, it is
waited for right behind the reduction, whose rows stay together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from stretto.kernel import Operation
from stretto.kernel.wiring import LoopWiring
from stretto.loop import Dependence, Loop, Op
from stretto.ops.opcodes import opcode

LONG = 2
"""Times a wait and the reduction behind it that a product takes at least to be waited for there."""


def one_at_a_time(wiring: LoopWiring, agents: Iterable[str], timed: Loop) -> list[LoopWiring]:
    """The loop with such orders for each of its agents, what is preferred first; none without any.

    `timed` is the loop with what its operations hold.
    """
    asked: list[Dependence] = []
    waits: list[Dependence] = []
    for agent in agents:
        mine = [op for op in wiring.loop.ops if op.agent == agent]
        asked += in_order(mine, wiring)
        waits += _waits_behind(mine, wiring, timed)

    def stating(orders: list[Dependence]) -> LoopWiring:
        return replace(wiring, loop=replace(wiring.loop, stated=(*wiring.loop.stated, *orders)))

    return [stating(orders) for orders in ([*asked, *waits], asked)[not waits :]] if asked else []


def in_order(ops: list[Op], wiring: LoopWiring) -> list[Dependence]:
    """What an agent computes comes as the text has it, the next first product behind all of it."""
    products = [op for op in ops if opcode(op.kind).accumulator is not None]
    fresh = [op.name for op in products if not adds(wiring.operations[op.name])]
    computed = [op for op in ops if op not in products and _computes(op)]
    computed.sort(key=lambda op: bool(op.facts.accumulates))
    names = [op.name for op in computed]
    if not fresh or not names:
        return []
    found = [Dependence(a, b, 0, 0, "order") for a, b in pairwise(names)]
    found.append(Dependence(names[-1], fresh[0], 1, 1, "order"))
    waits = [op.name for op in ops if opcode(op.kind).awaits and awaited(op, wiring) in fresh]
    adding = [op.name for op in products if op.name not in fresh]
    return found + [Dependence(a, b, 1, 1, "order") for a in adding for b in waits]


def _waits_behind(ops: list[Op], wiring: LoopWiring, timed: Loop) -> list[Dependence]:
    """Waits for sums of the iteration before, in front of what follows the first reduction."""
    computed = [op for op in ops if _computes(op) and opcode(op.kind).accumulator is None]
    pair = next(((a, b) for a, b in pairwise(computed) if a.kind.startswith("reduce.")), None)
    if pair is None:
        return []
    reduced = _longest(timed, pair[0].name)
    found: list[Dependence] = []
    for op in ops:
        if opcode(op.kind).awaits and adds(wiring.operations[awaited(op, wiring)]):
            uses = timed.op(awaited(op, wiring)).uses or ()
            runs = min((use.duration for use in uses if use.slot != op.agent), default=0)
            if runs >= LONG * (_longest(timed, op.name) + reduced):
                found.append(Dependence(op.name, pair[1].name, 0, 1, "order"))
    return found


def _longest(loop: Loop, name: str) -> int:
    """Cycles that an operation holds a slot at most."""
    return max((use.duration for use in loop.op(name).uses or ()), default=0)


def awaited(op: Op, wiring: LoopWiring) -> str:
    """The product that an operation waits for."""
    return wiring.made[wiring.operations[op.name].operands[0]][0]


def adds(operation: Operation) -> bool:
    """Whether a product adds to what is there."""
    return any(operation.integers("groups")[2:3])


def _computes(op: Op) -> bool:
    row = opcode(op.kind)
    return not row.view and not row.awaits
