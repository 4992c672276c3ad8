"""Bundles into prologue, kernel and epilogue.

    stage 0  a        step 0   a0                 prologue   a0 only if there is an iteration 0
    stage 1  b        step 1   a1 b0      kernel, as often as there are whole steps
    II 10             ...
                      step N      b(N-1)          epilogue   only if step N was not in the prologue

Every instruction says the least trip count at which it runs, so the same program is right for every
trip count, zero and fewer iterations than stages included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from stretto.materialize.instructions import Instruction, Stream
from stretto.materialize.plan import Plan


def expand(
    plan: Plan,
    bundles: Mapping[str, tuple[Instruction, ...]],
    sequence: Sequence[str],
    ops: Iterable[str],
) -> Stream:
    """The stream of an agent that issues `ops`, each step in the order of `sequence`."""
    mine = set(ops)
    order = [op for op in sequence if op in mine]
    stages = [plan.stage[op] for op in order]
    first, last = min(stages), max(stages)
    prologue: list[Instruction] = []
    epilogue: list[Instruction] = []
    for step in range(first, last):
        for op in order:
            stage = plan.stage[op]
            if stage <= step:
                # Iteration step - stage exists.
                prologue += _placed(bundles[op], step, step - stage + 1)
            else:
                # Step N + step comes after those of the prologue.
                epilogue += _placed(bundles[op], step, last - step)
    kernel = [instruction for op in order for instruction in bundles[op]]
    return Stream(first, last, tuple(prologue), tuple(kernel), tuple(epilogue))


def _placed(bundle: Iterable[Instruction], step: int, needs: int) -> list[Instruction]:
    return [replace(i, at=replace(i.at, step=step, needs=needs)) for i in bundle]
