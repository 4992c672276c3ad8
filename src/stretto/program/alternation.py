"""Consumers that issue their products in turns, kept by named barriers of the hardware.

    compute      turn ─ scores, sum ─ hand on      softmax         turn ─ scores, sum ...
    compute.1    waits for its turn                turn ─ scores, sum ─ hand on   softmax

While one has the tensor core, another works on what it got from it; left to themselves, consumers
drift until they want the same unit at the same time. A turn is what a consumer issues together with
the first product of an iteration; so all have as many turns as the loop has iterations, whichever
way each goes through it.

Turns are taken where all products of a step are issued together: the next scores, and the sum that
the last ones are for. Where a step has others that wait for these, where some consumers leave out
steps that a mask hides, or where steps are too short for what a turn takes, each goes by itself. On
an H200 turns made attention forward faster by 1 to 5 % (docs/attention.md).

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
LONG = 1_400
"""Cycles of an iteration from which on turns pay: on an H200 they cost 1.5 % at 917, make no
difference at 1,224, and gain 1 to 8 % from 1,880 on (docs/attention.md)."""
_WARP = 32


def alternating(program: KernelProgram, lengths: Sequence[int]) -> KernelProgram:
    """The program with its consumers' products in turns; itself where it has nothing to order, or
    where the kernel states an order between agents. `lengths` are the IIs of its loops."""
    if program.turns:
        return program
    turned = frozenset(n for n in _in_turns(program) if lengths[n] >= LONG)
    consumers = [agent for agent in program.agents if _takes_turns(agent, turned)]
    if len(consumers) < 2:
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
        further = barriers[(number + 1) % len(barriers)]
        turn = _Turn(barriers[number].name, further.name, turned)
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


def _takes_turns(agent: AgentProgram, turned: frozenset[int]) -> bool:
    return any(
        isinstance(loop, Pipelined) and loop.number in turned and bool(_products(loop))
        for loop in walk(agent.body)
    )


def _in_turns(program: KernelProgram) -> frozenset[int]:
    """Numbers of the loops in which consumers take turns."""
    found: dict[int, list[bool]] = {}
    for agent in program.agents:
        for loop in walk(agent.body):
            if isinstance(loop, Pipelined) and _products(loop):
                together = not loop.hidden and _first(loop) is not None
                found.setdefault(loop.number, []).append(together)
    return frozenset(n for n, loops in found.items() if len(loops) > 1 and all(loops))


def _products(loop: Pipelined) -> dict[str, Product]:
    """An agent's, by their operations."""
    return {one.origin.op: one for one in walk(loop.body) if isinstance(one, Product)}


def _first(loop: Pipelined) -> str | None:
    """The operation whose product begins an iteration's, where a step issues all of them together;
    None where it does not, or has but one."""
    issued = _products(loop)
    fresh = [op for op in loop.order if op in issued and not issued[op].adds]
    steps = [one for one in walk(loop.body) if isinstance(one, Step) and one.kind == "kernel"]
    if len(issued) < 2 or not fresh or not steps:
        return None
    begin, end = _burst(steps[0].body, fresh[0])
    together = {one.origin.op for one in steps[0].body[begin:end] if isinstance(one, Product)}
    return fresh[0] if together == issued.keys() else None


def _burst(body: Sequence[Instruction], first: str) -> tuple[int, int]:
    """Where the products begin and end that a step issues with one of them, before it waits for
    any; nothing where it does not issue that one."""
    issued = [n for n, one in enumerate(body) if isinstance(one, Product)]
    anchor = next((n for n in issued if body[n].origin.op == first), None)
    if anchor is None:
        return 0, 0
    settled = [n for n, one in enumerate(body) if isinstance(one, Settle) and not one.silent]
    before = max((n for n in settled if n < anchor), default=-1)
    behind = min((n for n in settled if n > anchor), default=len(body))
    return min(n for n in issued if before < n), max(n for n in issued if n < behind) + 1


class _Turn:
    """One consumer's."""

    def __init__(self, mine: str, next: str, turned: frozenset[int]) -> None:
        self.mine, self.next = mine, next
        self._turned = turned
        """Numbers of loops."""
        self._first: str | None = None

    def body(self, body: Iterable[Instruction]) -> tuple[Instruction, ...]:
        """A body with its turns."""
        found: list[Instruction] = []
        for one in body:
            match one:
                case Pipelined():
                    self._first = _first(one) if one.number in self._turned else None
                    found.append(replace(one, body=self.body(one.body)))
                    self._first = None
                case Step() if self._first is not None:
                    found.append(replace(one, body=self._step(one.body)))
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
        assert self._first is not None
        begin, end = _burst(body, self._first)
        if begin == end:
            return body
        mine = NamedSync(self.mine, origin=body[begin].origin)
        hand_on = NamedArrive(self.next, origin=body[end - 1].origin)
        return (*body[:begin], mine, *body[begin:end], hand_on, *body[end:])
