"""A sum that threads read is waited for in the step that issued its product.

    for step in range(...):
        s = warpgroup_mma(...)            ptxas runs products one after the other (C7514) where one
        ...                               is in flight at the end of a step, and threads read it
        s = warpgroup_mma_wait(0, ...)

The machine says so (`in_step`), the lowering states a group of product and wait, and every rule of
groups keeps to it: no compiler is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from unittest.mock import patch

import pytest

import stretto
from gluon_cases import shipped
from mutation import silent
from stretto.compile import loop_schedules
from stretto.compile.candidates import Emitter
from stretto.loop import Dependence, Loop
from stretto.machine import Machine, load_machine
from stretto.resources.prepare import prepare
from stretto.solve import IllegalScheduleError
from stretto.verification import verify

H200 = load_machine("h200")
ANYWHERE = replace(H200, products=tuple(replace(p, in_step=False) for p in H200.products))
FORWARD = "triton/attention_forward_d128"


def flying(source: str) -> list[str]:
    """Products that are in flight at the end of a step, over all agents of emitted source."""
    found: list[str] = []
    for body in _steps(source):
        pending: list[str] = []
        for line in body:
            issued = re.match(r"(\w+) = warpgroup_mma\(", line)
            awaited = re.search(r"= warpgroup_mma_wait\((\d+),", line)
            if issued:
                pending.append(issued[1])
            elif awaited:
                pending = pending[len(pending) - min(int(awaited[1]), len(pending)) :]
        found += pending
    return found


def _steps(source: str) -> Iterator[list[str]]:
    """The lines of each `for step in ...`."""
    lines = source.splitlines()
    for n, line in enumerate(lines):
        if line.lstrip().startswith("for step in range"):
            inner = len(line) - len(line.lstrip()) + 4
            body: list[str] = []
            for later in lines[n + 1 :]:
                if later.strip() and len(later) - len(later.lstrip()) < inner:
                    break
                body.append(later.strip())
            yield body


def made(machine: Machine, stages: int) -> tuple[int, list[str]]:
    """The generators' II for two consumers, and what flies on in the kernel."""
    with patch.object(loop_schedules, "SOLVED_WORK", 0):
        (found,) = Emitter(shipped(FORWARD), machine).candidates(2, stages=(stages,))
    (ii,) = (analysis.ii for analysis in found.analyses)
    return ii or 0, flying(found.source)


def test_without_the_machine_s_word_attention_has_sums_in_flight_between_steps() -> None:
    """Of this text ptxas 12.8 says C7514."""
    _, flies = made(ANYWHERE, 3)
    assert len(flies) == 1
    assert flies[0].startswith(("scores", "total"))


@pytest.mark.parametrize("stages", [2, 3, 4, 6])
def test_with_it_no_sum_is_in_flight_at_the_end_of_a_step(stages: int) -> None:
    assert made(H200, stages)[1] == []


def lowered(machine: Machine, name: str = FORWARD) -> Loop:
    (loop,) = Emitter(shipped(name), machine).lowered(2).loops
    return loop.wiring.loop


def test_product_and_wait_are_a_group_and_nobody_else() -> None:
    loop = lowered(H200)
    groups = {op.constraint.gid for op in loop.ops} - {None}
    assert len(groups) == 4  # two products of two consumers
    for gid in groups:
        product, wait = (op for op in loop.ops if op.constraint.gid == gid)
        assert (product.kind, wait.kind) == ("async.wgmma", "async.wgmma_wait")
        assert wait.operands[0].value == product.results[0]
        assert product.agent == wait.agent
    assert {op.constraint.gid for op in lowered(ANYWHERE).ops} == {None}


def test_a_sum_that_products_alone_add_to_may_fly_on() -> None:
    loop = lowered(H200, "triton/matmul_descriptors")
    assert {op.constraint.gid for op in loop.ops} == {None}


def test_the_verifier_notices_a_wait_in_another_step() -> None:
    loop = lowered(H200)
    grouped = prepare(loop, H200).loop
    assert not verify(grouped, H200, stretto.schedule(loop, H200, max_stages=3))
    told = verify(grouped, H200, stretto.schedule(lowered(ANYWHERE), H200, max_stages=3))
    assert {violation.rule for violation in told} == {"group"}


def solved(loop: Loop, ii: int) -> bool:
    """Whether the solver has a schedule of just this II."""
    first = loop.ops[0].name
    asked = replace(loop, stated=(*loop.stated, Dependence(first, first, ii, 1, "order")))
    found = stretto.schedule(
        asked, H200, "exact", max_ii=ii, max_stages=3, objective="ii", work_limit=4.0
    )
    return found.success


def test_the_solver_s_constraint_is_what_keeps_product_and_wait_together() -> None:
    """The same solver at the same II, without that constraint, is refused by the verifier."""
    loop = lowered(H200)
    assert solved(loop, 1300)
    with pytest.MonkeyPatch.context() as monkeypatch:
        silent("stretto.exact.model.Model._group")(monkeypatch)
        with pytest.raises(IllegalScheduleError, match=r"group: one group must share a stage"):
            assert [solved(loop, ii) for ii in range(1281, 1320, 4)]
