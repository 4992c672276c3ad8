"""The contract of a program, checked when it is built: a hard postcondition.

each operation once an iteration, for every trip count, in the order of its agent's time

consumer    wait ─► read ─► the operation ─► release          all of it, and each once
producer    acquire ─► the operation ─► write ─► commit       by the owner, by the last
iterators   of this operation, of the right ring and side; each goes on once, at the end

Whether the waits are the right ones is not asked here: the simulator runs the program and sees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from stretto.errors import MaterializeError
from stretto.loop.parts import cached_property
from stretto.materialization.program import (
    Acquire,
    Advance,
    Agent,
    Arrive,
    Await,
    Commit,
    Direct,
    Instruction,
    Issue,
    Program,
    Read,
    Release,
    Side,
    Stored,
    Stream,
    Through,
    Wait,
    Write,
    iterators_of,
)


class RegionError(MaterializeError):
    """The program that was built does not keep the rules of its own region."""

    def __init__(self, loop: str, faults: Sequence[str]) -> None:
        self.faults = tuple(faults)
        told = "".join(f"\n  {fault}" for fault in self.faults)
        super().__init__(
            "the program that was built is not sound; this is a bug of Stretto, please "
            f"report it with the loop{told}",
            loop,
        )

    def __reduce__(self) -> tuple[type[RegionError], tuple[str, tuple[str, ...]]]:
        return RegionError, (self.loop, self.faults)


def require_sound(program: Program) -> None:
    """RegionError where the program breaks its contract."""
    faults = region_faults(program)
    if faults:
        raise RegionError(program.loop.name, faults)


def region_faults(program: Program) -> tuple[str, ...]:
    """Every way in which a program breaks its contract."""
    faults = [*declaration_faults(program)]
    if not faults:
        protocol = _Protocol(program)
        for agent in program.agents:
            faults += protocol.faults(agent)
            faults += _coverage(program, agent)
    return tuple(dict.fromkeys(faults))


def declaration_faults(program: Program) -> tuple[str, ...]:
    """What is declared twice, or not at all, or does not fit together: nothing can be run."""
    return (*_names(program), *_pipes(program), *_used(program))


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
        for i in agent.stream.instructions:
            for name in (i.op, *_ways(i), *iterators_of(i)):
                if name not in known:
                    yield f"`{name}` is used and not declared"
            if isinstance(i, Issue):
                for source in i.operands:
                    if isinstance(source, Stored) and source.read >= len(i.reads):
                        yield f"`{i.op}` takes `{source.value}` from a read that it has not"


def _ways(i: Instruction) -> list[str]:
    """The pipes and mutexes that an instruction means."""
    match i:
        case Issue():
            return [source.pipe for source in i.operands if isinstance(source, Through)]
        case Await() | Arrive():
            return [i.mutex]
        case Advance():
            return []
        case _:
            return [i.pipe]


# Trip counts ------------------------------------------------------------------------------


def _coverage(program: Program, agent: Agent) -> Iterator[str]:
    """Every operation once an iteration, in time order, whatever the trip count."""
    stream = agent.stream
    longest = stream.last - stream.first + 2
    for trip_count in (longest,) if _regular(stream) else range(longest + 1):
        seen: Counter[tuple[str, int]] = Counter()
        before = 0
        for step, instruction in stream.run(trip_count):
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


def _regular(stream: Stream) -> bool:
    """Whether every operation stands in each step of prologue and epilogue that has an iteration
    of it, and runs where there is that iteration: what is so for one trip count is so for all.
    """
    before: list[tuple[str, int, int, int]] = []
    after: list[tuple[str, int, int, int]] = []
    for i in stream.kernel:
        if isinstance(i, Issue):
            op, stage = i.op, i.at.stage
            begin = max(stage, stream.first)
            before += [(op, stage, n, n - stage + 1) for n in range(begin, stream.last)]
            after += [(op, stage, n, stream.last - n) for n in range(stream.first, stage)]
    return sorted(before) == _places(stream.prologue) and sorted(after) == _places(stream.epilogue)


def _places(instructions: Sequence[Instruction]) -> list[tuple[str, int, int, int]]:
    return sorted(
        (i.op, i.at.stage, i.at.step, i.at.needs) for i in instructions if isinstance(i, Issue)
    )


# Around each operation --------------------------------------------------------------------

Asked = tuple[str, str, int]
"""The kind of an instruction, its pipe or mutex, and the distance."""

Walk = tuple[str, Side, str, int]
"""An iterator as it is used: its name, its side, the ring, the distance."""


def _unplaced(i: Instruction) -> tuple[object, ...]:
    """All that an instruction says but where it stands, which its class has first."""
    return (type(i), *[getattr(i, name) for name in i.__match_args__[1:]])


@dataclass(frozen=True)
class _Protocol:
    """The rules of the bundles of a program whose declarations are sound."""

    program: Program

    def faults(self, agent: Agent) -> Iterator[str]:
        """What is wrong around each operation of an agent."""
        sound: dict[str, list[tuple[object, ...]]] = {}
        for (op, _), found in groupby(agent.stream.instructions, key=lambda i: (i.op, i.at)):
            bundle = tuple(found)
            parts = [_unplaced(i) for i in bundle]
            if parts == sound.get(op):  # it stands in every step that it runs in
                continue
            faults = [*self._bundle(bundle)]
            yield from faults
            if not faults:
                sound[op] = parts

    def _bundle(self, bundle: Sequence[Instruction]) -> Iterator[str]:
        op = bundle[0].op
        issues = [(n, i) for n, i in enumerate(bundle) if isinstance(i, Issue)]
        if len(issues) != 1:
            yield f"`{op}` is issued {len(issues)} times in one place"
            return
        yield from self._parts(bundle)
        yield from self._sequence(bundle, issues[0][0])
        yield from self._accesses(issues[0][1])
        for instruction in bundle:
            for walk in self._walks(instruction):
                yield from self._walked(op, *walk)
        yield from self._advances(bundle)

    # Everything there, and once ---------------------------------------------------------------

    @cached_property
    def _asked(self) -> dict[str, Counter[Asked]]:
        """What pipes and mutexes ask of each operation."""
        found: dict[str, Counter[Asked]] = {op.name: Counter() for op in self.program.loop.ops}
        for pipe in self.program.pipes:
            if pipe.trivial:
                continue
            for c in pipe.consumers:
                parts = ("Wait", "Read", "Release") if pipe.reused else ("Wait", "Read")
                found[c.op].update((part, pipe.name, c.distance) for part in parts)
            for op in pipe.producers:
                found[op]["Write", pipe.name, 0] += 1
            found[pipe.producers[-1]]["Commit", pipe.name, 0] += 1
            if pipe.reused and pipe.owner is not None:
                found[pipe.owner]["Acquire", pipe.name, 0] += 1
        for mutex in self.program.mutexes:
            found[mutex.holder]["Arrive", mutex.name, 0] += 1
            for w in mutex.waiters:
                found[w.op]["Await", mutex.name, w.distance] += 1
        return found

    def _parts(self, bundle: Sequence[Instruction]) -> Iterator[str]:
        op, asked = bundle[0].op, self._asked[bundle[0].op]
        there = Counter(part for i in bundle for part in self._part(i))
        for part in dict.fromkeys((*asked, *there)):
            if asked[part] != there[part]:
                kind, name, distance = part
                back = f" at distance {distance}" if distance else ""
                told = f"{there[part]} times, {asked[part]} are asked for"
                yield f"`{op}`: {kind.lower()} of `{name}`{back} stands there {told}"

    def _part(self, i: Instruction) -> Iterator[Asked]:
        kind = type(i).__name__
        match i:
            case Acquire() | Write() | Commit() | Wait() | Read() | Release():
                yield kind, i.pipe, self.program.iterator_of[i.iterator].distance
            case Await(mutex=mutex, distance=distance):
                yield kind, mutex, distance
            case Arrive(mutex=mutex):
                yield kind, mutex, 0
            case Issue() | Advance():
                pass

    # In the right order -----------------------------------------------------------------------

    def _sequence(self, bundle: Sequence[Instruction], at: int) -> Iterator[str]:
        """Before and after the operation at `at`."""
        op = bundle[0].op
        done: set[tuple[str, str]] = set()
        for n, i in enumerate(bundle):
            match i:
                case Wait(pipe=name) | Acquire(pipe=name) | Await(mutex=name):
                    wrong, why = n > at, "after its operation"
                case Read(pipe=name):
                    wrong = n > at or ("Wait", name) not in done
                    why = "without a wait before it"
                case Write(pipe=name):
                    pipe = self.program.pipe_of[name]
                    acquires = pipe.reused and pipe.owner == op
                    wrong = n < at or (acquires and ("Acquire", name) not in done)
                    why = "without its slot"
                case Commit(pipe=name):
                    wrong, why = ("Write", name) not in done, "before its write"
                case Release(pipe=name):
                    wrong, why = n < at or ("Read", name) not in done, "before its read"
                case Arrive(mutex=name):
                    wrong, why = n < at, "before its operation"
                case Issue():
                    yield from self._operands(i, done)
                    continue
                case Advance():
                    continue
            kind = type(i).__name__
            if wrong:
                yield f"`{op}`: {kind.lower()} of `{name}` {why}"
            done.add((kind, name))

    def _operands(self, issue: Issue, done: set[tuple[str, str]]) -> Iterator[str]:
        agent_of = self.program.agent_of
        for source in issue.operands:
            if isinstance(source, Through) and ("Read", source.pipe) not in done:
                yield f"`{issue.op}` takes `{source.path.values[0]}` from `{source.pipe}` unread"
            if isinstance(source, Direct) and agent_of.get(source.op) != agent_of[issue.op]:
                yield f"`{issue.op}` takes `{source.path.origin}` directly from another agent"

    def _accesses(self, issue: Issue) -> Iterator[str]:
        """The operation touches what it touches in the loop."""
        op = self.program.loop.op(issue.op)
        reads = [(read.storage, read.distance) for read in self.program.loop.reads[op.name]]
        writes = [(name, 0) for name in op.writes]
        for what, slots, asked in (("reads", issue.reads, reads), ("writes", issue.writes, writes)):
            found = [(slot.storage, slot.distance) for slot in slots]
            if found != asked:
                yield f"`{op.name}` {what} {found}; in the loop it {what} {asked}"
        if len(issue.operands) != len(op.operands):
            yield f"`{op.name}` has {len(issue.operands)} operands; in the loop {len(op.operands)}"
        for slot in (*issue.reads, *issue.writes):
            ring = self.program.ring_of.get(slot.storage)
            if ring is None or ring.fixed != (slot.iterator is None):
                yield f"`{op.name}` has no iterator for `{slot.storage}`, or needs none"

    # Iterators --------------------------------------------------------------------------------

    def _walks(self, i: Instruction) -> Iterator[Walk]:
        match i:
            case Acquire() | Write() | Commit():
                yield i.iterator, "producer", self._ring(i.pipe), 0
            case Wait() | Read() | Release():
                distance = self.program.iterator_of[i.iterator].distance
                yield i.iterator, "consumer", self._ring(i.pipe), distance
            case Issue():
                for source in i.operands:
                    if isinstance(source, Through):
                        ring = self._ring(source.pipe)
                        yield source.iterator, "consumer", ring, source.path.distance
                for slot in i.reads:
                    if slot.iterator is not None:
                        yield slot.iterator, "consumer", slot.storage, slot.distance
                for slot in i.writes:
                    if slot.iterator is not None:
                        yield slot.iterator, "producer", slot.storage, slot.distance
            case Await() | Arrive() | Advance():
                pass

    def _ring(self, pipe: str) -> str:
        return self.program.pipe_of[pipe].ring

    def _walked(self, op: str, name: str, side: Side, ring: str, distance: int) -> Iterator[str]:
        known = self.program.iterator_of[name]
        have = (known.op, known.side, known.ring, known.distance)
        if have != (op, side, ring, distance):
            there = f"`{known.op}`, {known.side}, `{known.ring}`, distance {known.distance}"
            asked = f"`{op}`, {side}, `{ring}`, distance {distance}"
            yield f"iterator `{name}` is that of {there}; it is used for {asked}"
        first = 1 if side == "producer" else 0
        if known.phase != first:
            yield f"iterator `{name}` begins in phase {known.phase}; a {side} begins in {first}"

    def _advances(self, bundle: Sequence[Instruction]) -> Iterator[str]:
        """Each iterator that a bundle uses goes on once, after its last use."""
        last = {walk[0]: n for n, i in enumerate(bundle) for walk in self._walks(i)}
        gone = [(n, i.iterator) for n, i in enumerate(bundle) if isinstance(i, Advance)]
        advanced = Counter(name for _, name in gone)
        for name in dict.fromkeys((*last, *advanced)):
            if advanced[name] != 1 or name not in last:
                told = f"goes on {advanced[name]} times where `{bundle[0].op}` stands"
                yield f"iterator `{name}` {told}"
        for n, name in gone:
            if last.get(name, n) > n:
                yield f"iterator `{name}` goes on before `{bundle[0].op}` is done with it"
