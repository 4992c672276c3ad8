"""Runs a program: agents issue in order, block at waits, and time passes.

    heap of events     arrival at a barrier     agent wakes up
    at one cycle       arrivals first, then agents in the order of the kernel's sequence

An operation issues at the cycle its position says, or when its last wait is over, whichever is
later. Values are computed as operations issue, and it is asked whether each should be issuing at
all:

    operands   direct, through a pipe, out of a storage      not there: unwritten
    waits      tokens of the same agent                      later than the schedule: stall
    knowledge  everything the loop asks for                  by luck alone: unwritten, overwritten
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush

from stretto.materialization.program import (
    Acquire,
    Advance,
    Alias,
    Arrive,
    Await,
    Commit,
    Direct,
    Instruction,
    Issue,
    LiveIn,
    Path,
    Program,
    Read,
    Release,
    Stored,
    Supply,
    Through,
    Wait,
    Write,
)
from stretto.simulation.domains import Datum, Domain, Trace
from stretto.simulation.needs import Known, Levels, Requirement, Told, requirements
from stretto.simulation.outcome import Act, Blocked, Findings, Issued
from stretto.simulation.ring_memory import Memory
from stretto.simulation.signals import Barrier, MutexCount, Signal, Signals

ARRIVAL, AGENT = 0, 1
"""At one cycle, what arrives is there before anybody looks."""


@dataclass(frozen=True, slots=True)
class Execution:
    """What came of it."""

    trace: Trace
    issued: tuple[Issued, ...]
    findings: Findings
    blocked: tuple[Blocked, ...]


def run_program(
    program: Program,
    starts: Mapping[str, int],
    domain: Domain,
    trip_count: int,
    late: Callable[[], int] | None = None,
) -> Execution:
    """Run a program; `starts` are those the schedule promised.

    `late` is asked how many cycles an agent is late, each time it goes on to another operation. A
    sound program may then stall, but what it computes stays the same.
    """
    return _Running(program, starts, domain, trip_count, late or (lambda: 0)).run()


@dataclass(frozen=True, slots=True)
class LastResults:
    """What an agent has of an operation: registers hold the last results."""

    step: int
    iteration: int
    cycle: int
    results: tuple[Datum, ...]


Registers = dict[str, LastResults]


# Time -------------------------------------------------------------------------------------


@dataclass(slots=True)
class _State:
    """An agent at work."""

    number: int
    name: str
    known: Known
    run: Iterator[tuple[int, Instruction]]
    made: Registers = field(default_factory=Registers)
    next: tuple[int, Instruction] | None = None
    blocked: Barrier | MutexCount | None = None


class _Running:
    def __init__(
        self,
        program: Program,
        starts: Mapping[str, int],
        domain: Domain,
        trip_count: int,
        late: Callable[[], int],
    ) -> None:
        self._program = program
        self._late = late
        self._trip_count = trip_count
        needs = requirements(program.loop)
        self._levels = Levels(program.loop, needs)
        self._memory = Memory(program, domain, self._levels)
        self._issuer = Issuer(self._memory, starts, needs)
        self._signals = Signals(self._memory)
        self._agents = [
            _State(n, agent.name, self._levels.nothing(), agent.stream.run(trip_count))
            for n, agent in enumerate(program.agents)
        ]
        self._rank = {op: n for n, op in enumerate(program.sequence)}
        self._log: list[Issued] = []
        self._heap: list[tuple[int, int, int, int, _State | Signal]] = []
        self._pushed = 0

    def run(self) -> Execution:
        for agent in self._agents:
            agent.next = next(agent.run, None)
            self._expect(agent, 0)
        while self._heap:
            now, _, _, _, what = heappop(self._heap)
            if isinstance(what, Signal):
                self._arrive(now, what.at, what.told)
            else:
                self._step(what, now)
        self._memory.finish()
        memory = self._memory
        return Execution(memory.trace, tuple(self._log), memory.findings, self._blocked())

    def _push(self, cycle: int, kind: int, rank: int, what: _State | Signal) -> None:
        self._pushed += 1
        heappush(self._heap, (cycle, kind, rank, self._pushed, what))

    def _expect(self, agent: _State, now: int) -> None:
        """An agent goes on at the cycle of its next instruction, or now if that is past."""
        if agent.next is not None:
            step, instruction = agent.next
            due = max(now, step * self._program.ii + instruction.at.cycle)
            self._push(due + self._late(), AGENT, self._rank[instruction.op], agent)

    def _arrive(self, now: int, at: Barrier | MutexCount, told: Told) -> None:
        """An arrival; where it is the last, all that wait for it go on."""
        if at.arrive(told):
            waiting, at.waiting = at.waiting, []
            for agent in (self._agents[number] for number in waiting):
                agent.blocked = None
                assert agent.next is not None
                self._push(now, AGENT, self._rank[agent.next[1].op], agent)

    def _step(self, agent: _State, now: int) -> None:
        """One instruction, and those that follow it without another operation between."""
        assert agent.next is not None
        step, instruction = agent.next
        while True:
            later = self._execute(agent, step, instruction, now)
            if later is not None:
                if later > now:
                    self._push(later, AGENT, self._rank[instruction.op], agent)
                return
            bundle = step, instruction.op, instruction.at
            agent.next = next(agent.run, None)
            if agent.next is None:
                return
            step, instruction = agent.next
            if (step, instruction.op, instruction.at) != bundle:
                self._expect(agent, now)
                return

    def _execute(self, agent: _State, step: int, instruction: Instruction, now: int) -> int | None:
        """None: done. A later cycle: try again then. This cycle: blocked, to be woken."""
        iteration = step - instruction.at.stage
        act = Act(instruction.op, iteration, now, agent.known, self._trip_count)
        match instruction:
            case Wait() | Acquire() | Await():
                agent.blocked = self._signals.awaited(instruction, act)
                if agent.blocked is not None:
                    agent.blocked.waiting.append(agent.number)
                    return now
            case Issue():
                return self._issue(agent, step, instruction, act)
            case Write():
                made = agent.made.get(act.op)
                if made is not None and made.iteration != iteration:
                    made = None
                self._signals.write(instruction, made.results if made else None, act)
            case Commit():
                self._send(self._signals.commit(instruction, act))
            case Release():
                self._send(self._signals.release(instruction, act))
            case Arrive():
                self._send(self._signals.arrive(instruction, act))
            case Advance(iterator=iterator):
                if iteration >= self._program.iterator_of[iterator].distance:
                    self._memory.position[iterator] += 1
            case Read():
                pass  # the operation looks into the slot when it issues
        return None

    def _send(self, signal: Signal | None) -> None:
        if signal is not None:
            self._push(signal.when, ARRIVAL, 0, signal)

    def _issue(self, agent: _State, step: int, issue: Issue, act: Act) -> int | None:
        later = self._issuer.ready(issue, step, agent.made, act)
        if later > act.cycle:
            return later
        results = self._issuer.issue(issue, step, agent.made, act)
        agent.made[issue.op] = LastResults(step, act.iteration, act.cycle, results)
        self._log.append(Issued(act.op, act.iteration, act.cycle, agent.name))
        self._levels.learn(agent.known, issue.op, 0, act.iteration)
        return None

    def _blocked(self) -> tuple[Blocked, ...]:
        """Who waits for whom, where nothing moves any more."""
        found: list[Blocked] = []
        for agent in self._agents:
            at = agent.blocked
            if at is not None and agent.next is not None:
                step, instruction = agent.next
                names = tuple(dict.fromkeys(self._program.agent_of[op] for op in at.arrivers))
                iteration = step - instruction.at.stage
                found.append(Blocked(agent.name, instruction.op, iteration, at.name, names))
        return tuple(found)


# One operation issues ---------------------------------------------------------------------


class Issuer:
    """Issues operations for all agents."""

    def __init__(
        self,
        memory: Memory,
        starts: Mapping[str, int],
        needs: Mapping[str, tuple[Requirement, ...]],
    ) -> None:
        self._memory, self._domain, self._levels = memory, memory.domain, memory.levels
        self._findings = memory.findings
        self._ii, self._loop = memory.program.ii, memory.program.loop
        self._starts = starts
        self._needs = needs

    def ready(self, issue: Issue, step: int, made: Registers, act: Act) -> int:
        """The cycle at which its tokens and direct operands allow it; learns what they tell."""
        ready = act.cycle
        for source in issue.operands:
            if isinstance(source, Direct) and act.iteration >= source.path.distance:
                found = made.get(source.op)
                if found is not None and found.step == step:
                    ready = max(ready, found.cycle + source.latency)
                    self._levels.learn(act.known, source.op, source.latency, found.iteration)
        for token in issue.after:
            iteration = act.iteration - token.distance
            began = self._memory.issued.get((token.op, iteration))
            if began is not None:
                ready = max(ready, began + token.latency)
                self._levels.learn(act.known, token.op, token.latency, iteration)
        return ready

    def issue(self, issue: Issue, step: int, made: Registers, act: Act) -> tuple[Datum, ...]:
        """Compute, write, and look for what is wrong."""
        op, key = self._loop.op(issue.op), (act.op, act.iteration)
        self._check_once(act)
        self._check_time(act)
        self._check_needs(act)
        if any(isinstance(source, Alias) for source in issue.operands):
            results: tuple[Datum, ...] = (self._domain.alias(op, act.iteration),)
        else:
            reads = [self._memory.read(access, act) for access in issue.reads]
            operands = [self._operand(s, step, made, act, reads) for s in issue.operands]
            results = self._domain.apply(op, act.iteration, operands, reads)
        for access in issue.writes:
            self._memory.write(op, access, results, act)
        self._memory.issued[key] = act.cycle
        self._memory.trace.results[key] = results
        return results

    # Operands ---------------------------------------------------------------------------------

    def _operand(
        self, source: Supply, step: int, made: Registers, act: Act, reads: list[Datum]
    ) -> Datum:
        match source:
            case Stored(read=read, views=views):
                datum = reads[read]
                for name in reversed(views):
                    (datum,) = self._domain.apply(self._loop.op(name), act.iteration, [datum], [])
                return datum
            case LiveIn(path=path):
                return self._along(path, act, lambda j: self._domain.live_in(path.origin, j))
            case Through(path=path, pipe=pipe, iterator=iterator):
                ring = self._memory.program.pipe_of[pipe].ring
                return self._along(path, act, lambda j: self._memory.take(ring, iterator, j, act))
            case Direct(path=path):
                return self._along(path, act, lambda j: self._beside(source, step, made, j, act))
            case Alias():
                return None

    def _along(self, path: Path, act: Act, origin: Callable[[int], Datum]) -> Datum:
        """The origin of a path, or what was there before the loop, seen through its views."""
        at = act.iteration
        iterations: list[int] = []
        datum: Datum = None
        for n, (value, distance) in enumerate(zip(path.values, path.distances, strict=True)):
            at -= distance
            iterations.append(at)
            if at < 0:
                datum = self._domain.initial(value, at)
                break
            if n == len(path.views):
                datum = origin(at)
        for n in reversed(range(len(iterations) - 1)):
            view = self._loop.op(path.views[n])
            (datum,) = self._domain.apply(view, iterations[n], [datum], [])
        return datum

    def _beside(self, source: Direct, step: int, made: Registers, wanted: int, act: Act) -> Datum:
        found, value = made.get(source.op), source.path.origin
        if found is None or found.step != step or found.iteration != wanted:
            why = f"; `{source.op}` of iteration {wanted} has not issued in this step"
            self._findings.at(act, "unwritten", f"takes `{value}`", why, (source.op,))
            return None
        return found.results[self._loop.op(self._loop.producers[value]).results.index(value)]

    # Checks -----------------------------------------------------------------------------------

    def _check_once(self, act: Act) -> None:
        before = self._memory.issued.get((act.op, act.iteration))
        if before is not None:
            why = f" once more; it did at {before}"
            self._findings.at(act, "value", "issues", why, about="again")

    def _check_time(self, act: Act) -> None:
        start = self._starts[act.op]
        due = start + self._ii * act.iteration
        if act.cycle != due:
            late = act.cycle - due
            why = f", {abs(late)} cycles {'after' if late > 0 else 'before'} the {due} of the "
            why += f"schedule (start {start}, II {self._ii})"
            self._findings.at(act, "stall" if late > 0 else "early", "issues", why)

    def _check_needs(self, act: Act) -> None:
        for need in self._needs[act.op]:
            iteration = act.iteration - need.distance
            if not 0 <= iteration < act.trip_count:
                continue
            began = self._memory.issued.get((need.src, iteration))
            if began is None:
                why = f"`{need.src}` of iteration {iteration} has not issued"
            elif began + need.latency > act.cycle:
                ready = began + need.latency
                why = f"`{need.src}` of iteration {iteration} has come far enough at {ready}"
            elif act.known.last[self._levels.number(need.src, need.latency)] < iteration:
                why = f"nothing makes it wait for `{need.src}` of iteration {iteration}"
            else:
                continue
            via = f" for the sake of `{need.via}`" if need.via else ""
            self._findings.at(act, need.lack, "issues", f"; {why}{via}", (need.src,), need.via)
