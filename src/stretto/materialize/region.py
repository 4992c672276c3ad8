"""The contract of a program, checked when it is built: a hard postcondition.

    each operation once an iteration, for every trip count, in the order of its agent's time
    around each operation what its pipes and mutexes ask for (`protocol.py`)

Whether the waits are the right ones is not asked here: the simulator runs the program and sees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from stretto.materialize.errors import RegionError
from stretto.materialize.instructions import (
    Advance,
    Arrive,
    Await,
    Instruction,
    Issue,
    Stored,
    Stream,
    Through,
)
from stretto.materialize.protocol import Protocol
from stretto.materialize.types import Agent, Program


def require_sound(program: Program) -> None:
    """RegionError where the program breaks its contract."""
    faults = region_faults(program)
    if faults:
        raise RegionError(program.loop.name, faults)


def region_faults(program: Program) -> tuple[str, ...]:
    """Every way in which a program breaks its contract."""
    faults = [*declaration_faults(program)]
    if not faults:
        protocol = Protocol(program)
        for agent in program.agents:
            faults += protocol.faults(agent)
            faults += _coverage(program, agent)
    return tuple(dict.fromkeys(faults))


def declaration_faults(program: Program) -> tuple[str, ...]:
    """What is declared twice, or not at all, or does not fit together: nothing can be run."""
    return (*_names(program), *_pipes(program), *_used(program))


def run_of(stream: Stream, trip_count: int) -> Iterator[tuple[int, Instruction]]:
    """What a stream runs for a trip count, each instruction with its step."""
    for instruction in stream.prologue:
        if trip_count >= instruction.at.needs:
            yield instruction.at.step, instruction
    for step in range(stream.last, trip_count + stream.first):
        for instruction in stream.kernel:
            yield step, instruction
    for instruction in stream.epilogue:
        if trip_count >= instruction.at.needs:
            yield trip_count + instruction.at.step, instruction


# Names ------------------------------------------------------------------------------------


def _names(program: Program) -> Iterator[str]:
    named = {
        "ring": [ring.name for ring in program.rings],
        "pipe": [pipe.name for pipe in program.pipes],
        "mutex": [mutex.name for mutex in program.mutexes],
        "iterator": [iterator.name for iterator in program.iterators],
        "agent": [agent.name for agent in program.agents],
    }
    for what, names in named.items():
        for name, count in Counter(names).items():
            if count > 1:
                yield f"{what} `{name}` is declared {count} times"
    issued = Counter(op for agent in program.agents for op in agent.ops)
    for op in program.loop.ops:
        if issued[op.name] != 1:
            yield f"`{op.name}` belongs to {issued[op.name]} agents"
    for name in issued:
        if name not in program.loop.index:
            yield f"an agent has `{name}`, which is no operation of the loop"
    if Counter(program.sequence) != Counter(op.name for op in program.loop.ops):
        yield "the sequence of a step does not have every operation once"
    for iterator in program.iterators:
        if iterator.ring not in program.ring_of:
            yield f"iterator `{iterator.name}` walks `{iterator.ring}`, which is no ring"


def _pipes(program: Program) -> Iterator[str]:
    known = program.loop.index
    for pipe in program.pipes:
        ring = program.ring_of.get(pipe.ring)
        if ring is None:
            yield f"pipe `{pipe.name}` has no ring"
        elif ring.depth != pipe.depth or pipe.depth < 1:
            yield f"pipe `{pipe.name}` has depth {pipe.depth}; its ring has {ring.depth}"
        ends = (*pipe.producers, *(c.op for c in pipe.consumers))
        for op in ends:
            if op not in known:
                yield f"pipe `{pipe.name}` ends at `{op}`, which is no operation"
        if pipe.trivial == bool(pipe.producers):
            yield f"pipe `{pipe.name}` has {len(pipe.producers)} producers, trivial {pipe.trivial}"
        if not pipe.consumers:
            yield f"pipe `{pipe.name}` has no consumer"
        if pipe.producers and pipe.owner not in pipe.producers:
            yield f"pipe `{pipe.name}` is owned by `{pipe.owner}`, which does not produce"
    for mutex in program.mutexes:
        for op in (mutex.holder, *(w.op for w in mutex.waiters)):
            if op not in known:
                yield f"mutex `{mutex.name}` ends at `{op}`, which is no operation"


def _used(program: Program) -> Iterator[str]:
    """Names in the streams that nothing declares."""
    known = {*program.pipe_of, *program.mutex_of, *program.iterator_of, *program.loop.index}
    for agent in program.agents:
        stream = agent.stream
        for i in (*stream.prologue, *stream.kernel, *stream.epilogue):
            for name in _names_of(i):
                if name not in known:
                    yield f"`{name}` is used and not declared"
            if isinstance(i, Issue):
                yield from _unread(i)


def _unread(issue: Issue) -> Iterator[str]:
    for source in issue.operands:
        if isinstance(source, Stored) and source.read >= len(issue.reads):
            yield f"`{issue.op}` takes `{source.value}` from a read that it has not"


def _names_of(i: Instruction) -> Iterator[str]:
    yield i.op
    match i:
        case Issue():
            for source in i.operands:
                if isinstance(source, Through):
                    yield source.pipe
                    yield source.iterator
            for slot in (*i.reads, *i.writes):
                if slot.iterator is not None:
                    yield slot.iterator
        case Await() | Arrive():
            yield i.mutex
        case Advance():
            yield i.iterator
        case _:
            yield i.pipe
            yield i.iterator


# Trip counts ------------------------------------------------------------------------------


def _coverage(program: Program, agent: Agent) -> Iterator[str]:
    """Every operation once an iteration, in time order, whatever the trip count."""
    stream = agent.stream
    for trip_count in range(stream.last - stream.first + 3):
        seen: Counter[tuple[str, int]] = Counter()
        before = 0
        for step, instruction in run_of(stream, trip_count):
            if not isinstance(instruction, Issue):
                continue
            seen[instruction.op, step - instruction.at.stage] += 1
            now = step * program.ii + instruction.at.cycle
            if now < before:
                yield f"`{instruction.op}` comes at {now}, after something at {before}"
            before = now
        for op in agent.ops:
            for iteration in range(trip_count):
                if seen[op, iteration] != 1:
                    count = seen[op, iteration]
                    yield f"`{op}` of iteration {iteration} of {trip_count} runs {count} times"
        if len(seen) > trip_count * len(agent.ops):
            yield f"agent `{agent.name}` runs iterations beyond the {trip_count} there are"
