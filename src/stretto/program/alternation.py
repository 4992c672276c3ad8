"""Consumers that issue their products in turns, kept by named barriers of the hardware.

    compute      turn ─ scores, sum ─ hand on      softmax         turn ─ scores, sum ...
    compute.1    waits for its turn                turn ─ scores, sum ─ hand on   softmax

While one has the tensor core, another works on what it got from it; left to themselves, consumers
drift until they want the same unit at the same time. A turn is what a consumer issues together with
the first product of an iteration; so all have as many turns as the loop has iterations, whichever
way each goes through it, and also for steps that a mask hides from it.

    bar.sync   N, 256    the one whose turn it is: waits for the one before       barrier N: its own
    bar.arrive N, 256    the one before: hands on, and goes on

The last consumer hands the first turn on before its first; at its end the first takes the one that
is left. Triton's own barriers have numbers from 0 on, one for each agent and two more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from stretto.program.instructions import (
    For,
    If,
    Instruction,
    NamedArrive,
    NamedSync,
    Pipelined,
    Product,
    Settle,
    Step,
    While,
)
from stretto.program.kernel_program import AgentProgram, KernelProgram, NamedBarrier
from stretto.program.walk import walk

LAST = 15
"""The highest number of a named barrier."""
OWN = 2
"""Numbers that Triton uses beside one an agent."""
_WARP = 32


def alternating(program: KernelProgram) -> KernelProgram:
    """The program with its consumers' products in turns; itself where it has nothing to order."""
    consumers = [agent for agent in program.agents if _loops(agent)]
    if len(consumers) < 2 or len({len(_loops(agent)) for agent in consumers}) > 1:
        return program
    if any(_first(loop) is None for agent in consumers for loop in _loops(agent)):
        return program
    lowest = LAST + 1 - len(consumers)
    if lowest < len(program.agents) + OWN:
        return program
    barriers = [
        NamedBarrier(f"turn_{number}", LAST - number, _threads(consumers, number))
        for number in range(len(consumers))
    ]
    agents: list[AgentProgram] = []
    for agent in program.agents:
        if agent not in consumers:
            agents.append(agent)
            continue
        number = consumers.index(agent)
        turn = _Turn(barriers[number].name, barriers[(number + 1) % len(barriers)].name)
        body = turn.body(agent.body)
        if number == 0:
            body = (*body, NamedSync(turn.mine))
        elif number == len(consumers) - 1:
            body = (NamedArrive(turn.next), *body)
        agents.append(replace(agent, body=body))
    return replace(program, agents=tuple(agents), named=tuple(barriers))


def _threads(consumers: Sequence[AgentProgram], number: int) -> int:
    """Those of the one whose turn it is, and of the one who hands it on."""
    return (consumers[number].warps + consumers[number - 1].warps) * _WARP


def _loops(agent: AgentProgram) -> list[Pipelined]:
    """Loops with products of its own."""
    return [
        one
        for one in walk(agent.body)
        if isinstance(one, Pipelined) and any(isinstance(p, Product) for p in walk(one.body))
    ]


def _first(loop: Pipelined) -> str | None:
    """The operation whose product begins an iteration's; None where it has but one."""
    issued = {one.origin.op: one for one in walk(loop.body) if isinstance(one, Product)}
    if len(issued) < 2:
        return None
    fresh = [op for op in loop.order if op in issued and not issued[op].adds]
    return fresh[0] if fresh else next(op for op in loop.order if op in issued)


class _Turn:
    """One consumer's."""

    def __init__(self, mine: str, next: str) -> None:
        self.mine, self.next = mine, next
        self._first: str | None = None

    def body(self, body: Iterable[Instruction]) -> tuple[Instruction, ...]:
        """A body with its turns."""
        found: list[Instruction] = []
        for one in body:
            match one:
                case Pipelined():
                    self._first = _first(one) if _has_products(one) else None
                    found.append(replace(one, body=self.body(one.body)))
                    self._first = None
                case Step() if self._first is not None:
                    found.append(replace(one, body=self._step(one.body)))
                case For(hands_back=True) if self._first is not None:
                    passed = (NamedSync(self.mine), NamedArrive(self.next))
                    found.append(replace(one, body=(*passed, *one.body)))
                case For() | While() | Step():
                    found.append(replace(one, body=self.body(one.body)))
                case If():
                    other = None if one.otherwise is None else self.body(one.otherwise)
                    found.append(replace(one, body=self.body(one.body), otherwise=other))
                case _:
                    found.append(one)
        return tuple(found)

    def _step(self, body: tuple[Instruction, ...]) -> tuple[Instruction, ...]:
        """Around the products of a step that are issued with the first of an iteration."""
        issued = [n for n, one in enumerate(body) if isinstance(one, Product)]
        anchor = next((n for n in issued if body[n].origin.op == self._first), None)
        if anchor is None:
            return body
        settled = [n for n, one in enumerate(body) if isinstance(one, Settle) and not one.silent]
        before = max((n for n in settled if n < anchor), default=-1)
        behind = min((n for n in settled if n > anchor), default=len(body))
        begin = min(n for n in issued if before < n)
        end = max(n for n in issued if n < behind) + 1
        mine = NamedSync(self.mine, origin=body[begin].origin)
        hand_on = NamedArrive(self.next, origin=body[end - 1].origin)
        return (*body[:begin], mine, *body[begin:end], hand_on, *body[end:])


def _has_products(loop: Pipelined) -> bool:
    return any(isinstance(one, Product) for one in walk(loop.body))
