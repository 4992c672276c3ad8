"""Faults put into sound programs on purpose, one class each.

Each takes a program and gives back one that is wrong in a single way; the simulator must say so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from stretto.materialization import Agent, Instruction, Program, Stream
from stretto.materialization.program import Acquire, Arrive, Await, Commit, Wait, Write

Rewrite = Callable[[list[Instruction]], list[Instruction]]


def rewritten(program: Program, rewrite: Rewrite) -> Program:
    """Every section of every stream, rewritten."""

    def stream(old: Stream) -> Stream:
        return replace(
            old,
            prologue=tuple(rewrite(list(old.prologue))),
            kernel=tuple(rewrite(list(old.kernel))),
            epilogue=tuple(rewrite(list(old.epilogue))),
        )

    def agent(old: Agent) -> Agent:
        return replace(old, stream=stream(old.stream))

    changed = replace(program, agents=tuple(agent(a) for a in program.agents))
    assert changed != program, "the fault changes nothing"
    return changed


def too_shallow(program: Program, ring: str) -> Program:
    """A ring, and every pipe on it, one slot too small."""
    assert program.ring_of[ring].depth > 1
    rings = [replace(r, depth=r.depth - 1) if r.name == ring else r for r in program.rings]
    pipes = [replace(p, depth=p.depth - 1) if p.ring == ring else p for p in program.pipes]
    return replace(program, rings=tuple(rings), pipes=tuple(pipes))


def without_acquire(program: Program, pipe: str) -> Program:
    """The owner of a pipe does not wait for its slot to be free."""

    def drop(section: list[Instruction]) -> list[Instruction]:
        return [i for i in section if not (isinstance(i, Acquire) and i.pipe == pipe)]

    return rewritten(program, drop)


def without_mutex(program: Program, mutex: str) -> Program:
    """Nobody waits for a mutex's holder any more."""
    assert mutex in program.mutex_of
    kept = tuple(m for m in program.mutexes if m.name != mutex)

    def drop(section: list[Instruction]) -> list[Instruction]:
        return [i for i in section if not (isinstance(i, Await | Arrive) and i.mutex == mutex)]

    return replace(rewritten(program, drop), mutexes=kept)


def committed_too_soon(program: Program, pipe: str) -> Program:
    """Commit and write of a pipe change places."""

    def swap(section: list[Instruction]) -> list[Instruction]:
        places = [n for n, i in enumerate(section) if isinstance(i, Write) and i.pipe == pipe]
        for n in places:
            other = next(
                m
                for m, i in enumerate(section)
                if isinstance(i, Commit) and (i.pipe, i.at) == (pipe, section[n].at)
            )
            section[n], section[other] = section[other], section[n]
        return section

    return rewritten(program, swap)


def other_stage(program: Program, op: str, by: int) -> Program:
    """An operation works on a neighbouring iteration in each of its steps."""

    def move(section: list[Instruction]) -> list[Instruction]:
        return [
            replace(i, at=replace(i.at, stage=i.at.stage + by)) if i.op == op else i
            for i in section
        ]

    return rewritten(program, move)


def without_wait(program: Program, pipe: str, op: str) -> Program:
    """A consumer does not wait for its slot to be full."""

    def drop(section: list[Instruction]) -> list[Instruction]:
        return [i for i in section if not (isinstance(i, Wait) and i.pipe == pipe and i.op == op)]

    return rewritten(program, drop)


def other_phase(program: Program, iterator: str) -> Program:
    """An iterator begins in the wrong phase."""
    assert iterator in program.iterator_of
    return replace(
        program,
        iterators=tuple(
            replace(i, phase=1 - i.phase) if i.name == iterator else i for i in program.iterators
        ),
    )
