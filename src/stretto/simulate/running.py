"""Runs a program: agents issue in order, block at waits, and time passes.

    heap of events     arrival at a barrier     agent wakes up
    at one cycle       arrivals first, then agents in the order of the kernel's sequence

An operation issues at the cycle its place says, or when its last wait is over, whichever is later.
Values are computed as operations issue; `knowledge.py` says whether anything made them wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush

from stretto.materialize.instructions import (
    Acquire,
    Advance,
    Arrive,
    Await,
    Commit,
    Instruction,
    Issue,
    Read,
    Release,
    Wait,
    Write,
)
from stretto.materialize.region import run_of
from stretto.materialize.types import Pipe, Program
from stretto.simulate.barriers import Barrier, Counter, barrier
from stretto.simulate.findings import Findings
from stretto.simulate.issuing import Issuer, Made
from stretto.simulate.knowledge import Known, Levels, merge, requirements
from stretto.simulate.memory import Memory, Moment
from stretto.simulate.outcome import Blocked, Issued
from stretto.simulate.values import Domain, Trace

ARRIVAL, AGENT = 0, 1
"""At one cycle, what arrives is there before anybody looks."""


@dataclass(slots=True)
class _State:
    """An agent at work."""

    number: int
    name: str
    known: Known
    run: Iterator[tuple[int, Instruction]]
    made: dict[str, Made] = field(default_factory=dict[str, Made])
    """The last result of each operation of its own."""
    next: tuple[int, Instruction] | None = None
    blocked: Barrier | Counter | None = None


@dataclass(frozen=True, slots=True)
class _Arrival:
    """A signal on its way, with all that its sender knew."""

    at: Barrier | Counter
    known: Known


@dataclass(frozen=True, slots=True)
class Run:
    """What came of it."""

    trace: Trace
    issued: tuple[Issued, ...]
    findings: Findings
    blocked: tuple[Blocked, ...]


def run_program(
    program: Program, starts: Mapping[str, int], domain: Domain, trip_count: int
) -> Run:
    """Run a program; `starts` are those the schedule promised."""
    return _Running(program, starts, domain, trip_count).run()


class _Running:
    def __init__(
        self, program: Program, starts: Mapping[str, int], domain: Domain, trip_count: int
    ) -> None:
        self._program = program
        self._trip_count = trip_count
        needs = requirements(program.loop)
        self._levels = Levels(program.loop, needs)
        self._findings = Findings()
        self._trace = Trace()
        self._issued: dict[tuple[str, int], int] = {}
        self._log: list[Issued] = []
        self._memory = Memory(
            program, domain, self._levels, self._findings, self._trace, self._issued
        )
        self._issuer = Issuer(program, starts, domain, needs, self._levels, self._memory)
        nothing = self._levels.nothing()
        self._full: dict[tuple[str, int], Barrier] = {}
        self._free: dict[tuple[str, int], Barrier] = {}
        for pipe in program.pipes:
            self._add_barriers(pipe, nothing)
        self._mutexes = {m.name: Counter(m.name, m.holder) for m in program.mutexes}
        self._filled: dict[tuple[str, int, str], int] = {}
        self._agents = [
            _State(n, agent.name, list(nothing), run_of(agent.stream, trip_count))
            for n, agent in enumerate(program.agents)
        ]
        self._rank = {op: n for n, op in enumerate(program.sequence)}
        self._heap: list[tuple[int, int, int, int, _State | _Arrival]] = []
        self._pushed = 0

    def _add_barriers(self, pipe: Pipe, nothing: Known) -> None:
        takers = tuple(c.op for c in pipe.consumers)
        for slot in range(pipe.depth):
            name = f"{pipe.name}[{slot}]"
            makers = pipe.producers[-1:]
            self._full[pipe.name, slot] = barrier(f"{name} to be full", 1, makers, nothing)
            free = barrier(f"{name} to be free", len(takers), takers, nothing)
            self._free[pipe.name, slot] = free

    # Time -------------------------------------------------------------------------------------

    def run(self) -> Run:
        for agent in self._agents:
            self._fetch(agent, 0)
        while self._heap:
            now, kind, _, _, what = heappop(self._heap)
            if kind == AGENT:
                assert isinstance(what, _State)
                self._step(what, now)
            else:
                assert isinstance(what, _Arrival)
                self._arrive(now, what.at, what.known)
        self._memory.finish()
        return Run(self._trace, tuple(self._log), self._findings, self._blocked())

    def _push(self, cycle: int, kind: int, rank: int, what: _State | _Arrival) -> None:
        self._pushed += 1
        heappush(self._heap, (cycle, kind, rank, self._pushed, what))

    def _fetch(self, agent: _State, now: int) -> None:
        """The next instruction, at its cycle or now."""
        agent.next = next(agent.run, None)
        if agent.next is not None:
            step, instruction = agent.next
            due = step * self._program.ii + instruction.at.cycle
            self._push(max(now, due), AGENT, self._rank[instruction.op], agent)

    def _arrive(self, now: int, at: Barrier | Counter, known: Known) -> None:
        if at.arrive(known):
            waiting, at.waiting = at.waiting, []
            for number in waiting:
                self._wake(self._agents[number], now)

    def _wake(self, agent: _State, now: int) -> None:
        agent.blocked = None
        assert agent.next is not None
        self._push(now, AGENT, self._rank[agent.next[1].op], agent)

    # Instructions -----------------------------------------------------------------------------

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
                due = step * self._program.ii + instruction.at.cycle
                self._push(max(now, due), AGENT, self._rank[instruction.op], agent)
                return

    def _execute(self, agent: _State, step: int, instruction: Instruction, now: int) -> int | None:
        """None: done. A later cycle: try again then. This cycle: blocked, to be woken."""
        iteration = step - instruction.at.stage
        op = instruction.op
        match instruction:
            case Wait() | Acquire():
                return self._wait(agent, instruction, iteration, now)
            case Await(mutex=name, distance=distance):
                wanted = iteration - distance
                counter = self._mutexes[name]
                if 0 <= wanted < self._trip_count:
                    if len(counter.times) <= wanted:
                        return self._block(agent, counter, now)
                    merge(agent.known, counter.times[wanted])
            case Issue():
                return self._issue(agent, step, instruction, now)
            case Write(pipe=pipe, iterator=iterator):
                self._write(agent, op, pipe, iterator, iteration, now)
            case Commit(pipe=pipe, iterator=iterator):
                self._commit(agent, op, pipe, iterator, iteration, now)
            case Release(pipe=pipe, iterator=iterator):
                self._release(agent, op, pipe, iterator, iteration, now)
            case Arrive(mutex=name):
                latency = self._program.mutex_of[name].latency
                began = self._issued.get((op, iteration))
                self._signal(agent, self._mutexes[name], op, iteration, began, latency, now)
            case Advance(iterator=iterator):
                if iteration >= self._program.iterator_of[iterator].distance:
                    self._memory.position[iterator] += 1
            case Read():
                pass  # the operation looks into the slot when it issues
        return None

    def _wait(self, agent: _State, wait: Wait | Acquire, iteration: int, now: int) -> int | None:
        iterator = self._program.iterator_of[wait.iterator]
        if iteration < iterator.distance:
            return None
        barriers = self._full if isinstance(wait, Wait) else self._free
        at = barriers[wait.pipe, self._memory.slot(wait.iterator)]
        lap = self._memory.lap(wait.iterator)
        if not at.passes((lap + iterator.phase) % 2):
            return self._block(agent, at, now)
        # In the first round a slot is free though nobody has released it.
        told = at.tells(lap if isinstance(wait, Wait) else lap - 1)
        if told is not None:
            merge(agent.known, told)
        return None

    def _block(self, agent: _State, at: Barrier | Counter, now: int) -> int:
        agent.blocked = at
        at.waiting.append(agent.number)
        return now

    def _issue(self, agent: _State, step: int, issue: Issue, now: int) -> int | None:
        iteration = step - issue.at.stage
        moment = Moment(issue.op, iteration, now, agent.known, self._trip_count)
        later = self._issuer.ready(issue, step, agent.made, moment)
        if later > now:
            return later
        results = self._issuer.issue(issue, step, agent.made, moment)
        agent.made[issue.op] = Made(step, iteration, now, results)
        self._issued[issue.op, iteration] = now
        self._trace.results[issue.op, iteration] = results
        self._log.append(Issued(issue.op, iteration, now, agent.name))
        self._levels.learn(agent.known, issue.op, 0, iteration)
        return None

    def _write(
        self, agent: _State, op: str, pipe: str, iterator: str, iteration: int, now: int
    ) -> None:
        ring = self._program.ring_of[self._program.pipe_of[pipe].ring]
        self._filled[pipe, self._memory.slot(iterator), op] = self._issued.get((op, iteration), now)
        if ring.value is not None and op in agent.made:
            moment = Moment(op, iteration, now, agent.known, self._trip_count)
            number = self._program.loop.op(op).results.index(ring.value)
            self._memory.put(ring.name, iterator, agent.made[op].results[number], moment)

    def _commit(
        self, agent: _State, op: str, pipe: str, iterator: str, iteration: int, now: int
    ) -> None:
        slot = self._memory.slot(iterator)
        began = self._filled.pop((pipe, slot, op), None)
        if began is None:
            told = f"`{op}` of iteration {iteration} commits {pipe}[{slot}] at {now}"
            self._findings.add(
                "unwritten", f"{told}, in which it has written nothing", (op,), now, pipe
            )
        latency = self._program.pipe_of[pipe].latency
        self._signal(agent, self._full[pipe, slot], op, iteration, began, latency, now)

    def _release(
        self, agent: _State, op: str, pipe: str, iterator: str, iteration: int, now: int
    ) -> None:
        if iteration >= self._program.iterator_of[iterator].distance:
            at = self._free[pipe, self._memory.slot(iterator)]
            done = self._program.loop.op(op).completion
            began = self._issued.get((op, iteration))
            self._signal(agent, at, op, iteration, began, done, now)

    def _signal(
        self,
        agent: _State,
        at: Barrier | Counter,
        op: str,
        iteration: int,
        began: int | None,
        latency: int,
        now: int,
    ) -> None:
        """Arrive when an operation has come so far; at once, and with nothing, if it has not."""
        known = list(agent.known)
        when = now
        if began is not None:
            self._levels.learn(known, op, latency, iteration)
            when = max(now, began + latency)
        self._push(when, ARRIVAL, 0, _Arrival(at, known))

    # The end ----------------------------------------------------------------------------------

    def _blocked(self) -> tuple[Blocked, ...]:
        """Who waits for whom, where nothing moves any more."""
        found: list[Blocked] = []
        for agent in self._agents:
            if agent.blocked is None or agent.next is None:
                continue
            step, instruction = agent.next
            at = agent.blocked
            ops = at.arrivers if isinstance(at, Barrier) else (at.holder,)
            names = dict.fromkeys(self._program.agent_of[op] for op in ops)
            iteration = step - instruction.at.stage
            blocked = Blocked(agent.name, instruction.op, iteration, at.name, tuple(names))
            found.append(blocked)
        return tuple(found)
