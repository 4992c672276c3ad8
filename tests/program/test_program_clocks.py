"""Programs that may go wrong are found by clocks alone, whatever the timing of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import TypeVar

import pytest

import stretto
from gluon_cases import EXAMPLES
from stretto.program import KernelProgram
from stretto.program.clocks import FaultError, check_program
from stretto.program.expressions import Arithmetic, number
from stretto.program.instructions import (
    Advance,
    Arrive,
    Commit,
    CopyIn,
    Expect,
    Fence,
    Flip,
    For,
    If,
    Instruction,
    Pipelined,
    Settle,
    Step,
    StoreWait,
    Wait,
    While,
)
from stretto.program.kernel_program import Barriers
from stretto.program.walk import walk

ORDERING = (Wait, Arrive, Expect, Commit, Settle, Fence, StoreWait, Advance, Flip)
KERNELS = {
    "persistent": ("triton/matmul_persistent.ttir", "h200"),
    "tensor memory": ("triton/matmul_persistent.ttir", "b200"),
    "one agent": ("cutile/softmax.tileirbc", "h200"),
    "attention": ("triton/attention_forward_d64.ttir", "h200"),
    "backward": ("cutile/attention_backward_dq.tileirbc", "h200"),
}
One = TypeVar("One", bound=Instruction)
Body = tuple[Instruction, ...]


@cache
def program(name: str) -> KernelProgram:
    file, machine = KERNELS[name]
    consumers = 2 if name == "attention" else None
    return stretto.emit(EXAMPLES / file, machine, consumers=consumers).emitted.program


def replaced(body: Body, victim: Instruction, by: Instruction | None) -> Body:
    """A body with another instruction in place of one, or without it."""
    found: list[Instruction] = []
    for one in body:
        if one is victim:
            found += [] if by is None else [by]
        elif isinstance(one, For | While | Step | Pipelined):
            found.append(replace(one, body=replaced(one.body, victim, by)))
        elif isinstance(one, If):
            other = None if one.otherwise is None else replaced(one.otherwise, victim, by)
            found.append(replace(one, body=replaced(one.body, victim, by), otherwise=other))
        else:
            found.append(one)
    return tuple(found)


def changed(
    whole: KernelProgram, kinds: type[One] | tuple[type[One], ...], by: Callable[[One], One | None]
) -> Iterator[tuple[Instruction, KernelProgram]]:
    """The program with each instruction of some kinds changed, one at a time."""
    for agent in whole.agents:
        for victim in walk(agent.body):
            if isinstance(victim, kinds) and not victim.silent:
                body = replaced(agent.body, victim, by(victim))
                agents = [replace(a, body=body) if a is agent else a for a in whole.agents]
                yield victim, replace(whole, agents=tuple(agents))


def unfound(mutants: Iterator[tuple[Instruction, KernelProgram]]) -> list[Instruction]:
    """What was changed, and not found; there is something to be changed."""
    missed: list[Instruction] = []
    count = 0
    for victim, mutant in mutants:
        count += 1
        try:
            check_program(mutant)
        except FaultError:
            continue
        missed.append(victim)
    assert count
    return missed


@pytest.mark.parametrize("name", KERNELS)
def test_every_instruction_that_orders_is_missed_when_it_is_gone(name: str) -> None:
    assert unfound(changed(program(name), ORDERING, lambda _: None)) == []


@pytest.mark.parametrize("name", KERNELS)
def test_a_wait_for_the_other_parity_is_found(name: str) -> None:
    def other(wait: Wait) -> Wait:
        return replace(wait, phase=Arithmetic("^", wait.phase, number(1)))

    assert unfound(changed(program(name), Wait, other)) == []


@pytest.mark.parametrize("name", ["persistent", "one agent", "tensor memory"])
@pytest.mark.parametrize("more", [-128, 128])
def test_bytes_that_are_not_those_that_come_are_found(name: str, more: int) -> None:
    def other(expect: Expect) -> Expect:
        return replace(expect, bytes=expect.bytes + more)

    assert unfound(changed(program(name), Expect, other)) == []


@pytest.mark.parametrize("more", [-1, 1])
def test_a_ring_that_is_deeper_than_its_slots_or_less_is_found(more: int) -> None:
    def other(advance: Advance) -> Advance:
        return replace(advance, depth=advance.depth + more)

    assert unfound(changed(program("persistent"), Advance, other)) == []


@pytest.mark.parametrize("more", [-1, 1])
def test_arrivals_that_do_not_come_or_are_too_many_are_found(more: int) -> None:
    whole = program("persistent")
    for barriers in whole.memory:
        if isinstance(barriers, Barriers) and barriers.arrivals + more:
            other = replace(barriers, arrivals=barriers.arrivals + more)
            memory = tuple(other if one is barriers else one for one in whole.memory)
            with pytest.raises(FaultError):
                check_program(replace(whole, memory=memory))


def test_a_settle_that_leaves_one_more_in_flight_is_found() -> None:
    def other(settle: Settle) -> Settle:
        return replace(settle, left=settle.left + 1)

    assert unfound(changed(program("attention"), Settle, other)) == []


def test_a_fault_says_who_meets_whom_and_where() -> None:
    (whole,) = (
        mutant
        for victim, mutant in changed(program("tensor memory"), Wait, lambda _: None)
        if isinstance(victim, Wait) and victim.barrier.name == "a_tile_full"
    )
    with pytest.raises(FaultError) as caught:
        check_program(whole)
    assert "reads" in str(caught.value) or "touches" in str(caught.value)
    assert "matmul_persistent.py:" in str(caught.value)
    assert "trips" in str(caught.value)


def test_agents_that_wait_for_each_other_are_named() -> None:
    found: set[str] = set()
    for _, mutant in changed(program("persistent"), Expect, lambda _: None):
        with pytest.raises(FaultError) as caught:
            check_program(mutant)
        found.add(str(caught.value))
    assert any("nobody goes on: compute waits at" in told for told in found)


def test_trips_go_round_all_slots_twice() -> None:
    covered = check_program(program("persistent"))
    deepest = max(program("persistent").rings.values())
    assert {0, 1, 2, deepest + 1, 2 * deepest + 1} <= set(covered.trips)
    assert covered.runs > len(covered.trips)  # and one by one
    assert covered.events > 1000


def test_a_copy_to_a_slot_that_nobody_waited_for_is_found() -> None:
    """Its bytes count on another barrier."""
    whole = program("persistent")
    barriers = [one.barrier for one in walk(whole.agents[-1].body) if isinstance(one, CopyIn)]
    names = sorted({barrier.name for barrier in barriers})

    def other(copy: CopyIn) -> CopyIn:
        name = next(name for name in names if name != copy.barrier.name)
        return replace(copy, barrier=replace(copy.barrier, name=name))

    assert unfound(changed(whole, CopyIn, other)) == []
