"""Runs a program: agents issue in order, block at waits, and time passes.

    heap of events     arrival at a barrier     agent wakes up
    at one cycle       arrivals first, then agents in the order of the kernel's sequence

An operation issues at the cycle its place says, or when its last wait is over, whichever is later.
Values are computed as operations issue; `knowledge.py` says whether anything made them wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush

from stretto.materialize.pipelined import (
    Acquire,
    Advance,
    Arrive,
    Await,
    Commit,
    Instruction,
    Issue,
    Program,
    Read,
    Release,
    Wait,
    Write,
)
from stretto.simulate.barriers import Barrier, Counter
from stretto.simulate.findings import Findings
from stretto.simulate.issuing import Issuer, Made
from stretto.simulate.knowledge import Known, Levels
from stretto.simulate.memory import Memory, Moment
from stretto.simulate.needs import requirements
from stretto.simulate.outcome import Blocked, Issued
from stretto.simulate.signals import Signal, Signals
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
class Run:
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
) -> Run:
    """Run a program; `starts` are those the schedule promised.

    `late` is asked how many cycles an agent is late, each time it goes on to another operation. A
    sound program may then stall, but what it computes stays the same.
    """
    return _Running(program, starts, domain, trip_count, late or (lambda: 0)).run()


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
        self._findings = Findings()
        self._trace = Trace()
        self._issued: dict[tuple[str, int], int] = {}
        self._log: list[Issued] = []
        self._memory = Memory(
            program, domain, self._levels, self._findings, self._trace, self._issued
        )
        self._issuer = Issuer(program, starts, domain, needs, self._levels, self._memory)
        self._signals = Signals(program, self._levels, self._memory)
        self._agents = [
            _State(n, agent.name, self._levels.nothing(), agent.stream.run(trip_count))
            for n, agent in enumerate(program.agents)
        ]
        self._rank = {op: n for n, op in enumerate(program.sequence)}
        self._heap: list[tuple[int, int, int, int, _State | Signal]] = []
        self._pushed = 0

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
                assert isinstance(what, Signal)
                self._arrive(now, what.at, what.known)
        self._memory.finish()
        return Run(self._trace, tuple(self._log), self._findings, self._blocked())

    def _push(self, cycle: int, kind: int, rank: int, what: _State | Signal) -> None:
        self._pushed += 1
        heappush(self._heap, (cycle, kind, rank, self._pushed, what))

    def _fetch(self, agent: _State, now: int) -> None:
        """The next instruction, whenever it comes."""
        agent.next = next(agent.run, None)
        if agent.next is not None:
            self._expect(agent, *agent.next, now)

    def _expect(self, agent: _State, step: int, instruction: Instruction, now: int) -> None:
        """An agent goes on at the cycle of its next instruction, or now if that is past."""
        due = max(now, step * self._program.ii + instruction.at.cycle)
        self._push(due + self._late(), AGENT, self._rank[instruction.op], agent)

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
                self._expect(agent, step, instruction, now)
                return

    def _execute(self, agent: _State, step: int, instruction: Instruction, now: int) -> int | None:
        """None: done. A later cycle: try again then. This cycle: blocked, to be woken."""
        iteration = step - instruction.at.stage
        moment = Moment(instruction.op, iteration, now, agent.known, self._trip_count)
        match instruction:
            case Wait() | Acquire() | Await():
                at = self._signals.awaited(instruction, moment)
                return None if at is None else self._block(agent, at, now)
            case Issue():
                return self._issue(agent, step, instruction, moment)
            case Write():
                self._signals.write(instruction, agent.made.get(moment.op), moment)
            case Commit():
                self._send(self._signals.commit(instruction, moment))
            case Release():
                self._send(self._signals.release(instruction, moment))
            case Arrive():
                self._send(self._signals.arrive(instruction, moment))
            case Advance(iterator=iterator):
                if iteration >= self._program.iterator_of[iterator].distance:
                    self._memory.position[iterator] += 1
            case Read():
                pass  # the operation looks into the slot when it issues
        return None

    def _send(self, signal: Signal | None) -> None:
        if signal is not None:
            self._push(signal.when, ARRIVAL, 0, signal)

    def _block(self, agent: _State, at: Barrier | Counter, now: int) -> int:
        agent.blocked = at
        at.waiting.append(agent.number)
        return now

    def _issue(self, agent: _State, step: int, issue: Issue, moment: Moment) -> int | None:
        later = self._issuer.ready(issue, step, agent.made, moment)
        if later > moment.cycle:
            return later
        results = self._issuer.issue(issue, step, agent.made, moment)
        key, now = (issue.op, moment.iteration), moment.cycle
        agent.made[issue.op] = Made(step, moment.iteration, now, results)
        self._issued[key] = now
        self._trace.results[key] = results
        self._log.append(Issued(*key, now, agent.name))
        self._levels.learn(agent.known, issue.op, 0, moment.iteration)
        return None

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
