"""The contract of a program, checked when it is built: a hard postcondition.

    each operation once an iteration, for every trip count, in the order of its agent's time
    write ─► commit, wait ─► read ─► release, an iterator of the right ring, one step on

Whether the waits are the right ones is not asked here: the simulator runs the program and sees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from stretto.materialize.errors import RegionError
from stretto.materialize.instructions import (
    Acquire,
    Advance,
    Arrive,
    Await,
    Commit,
    Direct,
    Instruction,
    Issue,
    Read,
    Release,
    Stream,
    Through,
    Wait,
    Write,
)
from stretto.materialize.types import Agent, Program


def require_sound(program: Program) -> None:
    """RegionError where the program breaks its contract."""
    faults = region_faults(program)
    if faults:
        raise RegionError(program.loop.name, faults)


def region_faults(program: Program) -> tuple[str, ...]:
    """Every way in which a program breaks its contract."""
    faults = [*_names(program), *_pipes(program)]
    if not faults:
        for agent in program.agents:
            faults += _bundles(program, agent)
            faults += _coverage(program, agent)
    return tuple(dict.fromkeys(faults))


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


# Bundles ----------------------------------------------------------------------------------


def _bundles(program: Program, agent: Agent) -> Iterator[str]:
    """The instructions around each operation, in the order of its protocol."""
    stream = agent.stream
    everything = (*stream.prologue, *stream.kernel, *stream.epilogue)
    for _, bundle in groupby(everything, key=lambda i: (i.op, i.at)):
        yield from _bundle(program, tuple(bundle))


def _bundle(program: Program, bundle: Sequence[Instruction]) -> Iterator[str]:
    op = bundle[0].op
    issues = [n for n, i in enumerate(bundle) if isinstance(i, Issue)]
    if len(issues) != 1:
        yield f"`{op}` is issued {len(issues)} times in one place"
        return
    at = issues[0]
    done: set[tuple[str, str]] = set()
    for n, instruction in enumerate(bundle):
        match instruction:
            case Wait(pipe=pipe) | Acquire(pipe=pipe):
                late = n > at
                yield from _when(late, op, type(instruction).__name__, pipe, "after its operation")
            case Read(pipe=pipe):
                wrong = n > at or ("Wait", pipe) not in done
                yield from _when(wrong, op, "Read", pipe, "without a wait before it")
            case Write(pipe=pipe):
                missing = _acquires(program, op, pipe) and ("Acquire", pipe) not in done
                yield from _when(n < at or missing, op, "Write", pipe, "without its slot")
            case Commit(pipe=pipe):
                wrong = ("Write", pipe) not in done
                yield from _when(wrong, op, "Commit", pipe, "before its write")
            case Release(pipe=pipe):
                wrong = n < at or ("Read", pipe) not in done
                yield from _when(wrong, op, "Release", pipe, "before its read")
            case Issue():
                yield from _operands(program, instruction, done)
            case Await(mutex=mutex) | Arrive(mutex=mutex):
                if mutex not in program.mutex_of:
                    yield f"`{op}` uses mutex `{mutex}`, which is not declared"
            case Advance():
                pass
        if isinstance(instruction, Acquire | Write | Commit | Wait | Read | Release):
            done.add((type(instruction).__name__, instruction.pipe))
            yield from _walks(program, instruction.pipe, instruction.iterator)
    yield from _advances(bundle)


def _when(wrong: bool, op: str, what: str, pipe: str, why: str) -> Iterator[str]:
    if wrong:
        yield f"`{op}`: {what.lower()} of `{pipe}` {why}"


def _acquires(program: Program, op: str, pipe: str) -> bool:
    return (
        pipe in program.pipe_of
        and program.pipe_of[pipe].reused
        and (program.pipe_of[pipe].owner == op)
    )


def _walks(program: Program, pipe: str, iterator: str) -> Iterator[str]:
    if pipe not in program.pipe_of:
        yield f"pipe `{pipe}` is used and not declared"
    elif iterator not in program.iterator_of:
        yield f"iterator `{iterator}` is used and not declared"
    elif program.iterator_of[iterator].ring != program.pipe_of[pipe].ring:
        ring = program.iterator_of[iterator].ring
        yield f"iterator `{iterator}` walks `{ring}`; `{pipe}` is on `{program.pipe_of[pipe].ring}`"


def _operands(program: Program, issue: Issue, done: set[tuple[str, str]]) -> Iterator[str]:
    for source in issue.operands:
        if isinstance(source, Through) and ("Read", source.pipe) not in done:
            yield f"`{issue.op}` takes `{source.path.values[0]}` from `{source.pipe}` unread"
        if isinstance(source, Direct) and program.agent_of[source.op] != program.agent_of[issue.op]:
            yield f"`{issue.op}` takes `{source.path.origin}` directly from another agent"


def _advances(bundle: Sequence[Instruction]) -> Iterator[str]:
    """Each iterator that a bundle uses goes on once, at its end."""
    used: dict[str, None] = {}
    for i in bundle:
        if isinstance(i, Acquire | Write | Commit | Wait | Read | Release):
            used[i.iterator] = None
        if isinstance(i, Issue):
            slots = (*i.reads, *i.writes)
            used.update({slot.iterator: None for slot in slots if slot.iterator is not None})
    advanced = Counter(i.iterator for i in bundle if isinstance(i, Advance))
    for name in dict.fromkeys((*used, *advanced)):
        if advanced[name] != 1 or name not in used:
            yield f"iterator `{name}` goes on {advanced[name]} times where `{bundle[0].op}` stands"


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
