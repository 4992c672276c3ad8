"""Who runs next: agents as threads of which one runs at a time, and asynchronous jobs between.

    agents   ready ──► running ──► blocked on a condition ──► ready …
    jobs     queues of copies and products: the head of each may run, or be put off

All choices come from a policy with a seed, so a run can be had again; nothing depends on time. If
no agent is ready and no job is left, that is a deadlock, known at once.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

Clock = dict[int, int]
"""Of each agent, copy and queue: up to where its work is known."""


class StopRun(BaseException):
    """Unwinds an agent: the run is over."""


def merge(into: Clock, other: Clock) -> None:
    """Hear of what another knows."""
    known = into.get
    for component, time in other.items():
        if known(component, 0) < time:
            into[component] = time


@dataclass(eq=False)
class Agent:
    """A partition of a program."""

    name: str
    component: int
    clock: Clock
    fenced: Clock
    """Up to where what threads wrote is visible to the asynchronous proxy."""
    warps: int
    cta: int = 0
    """Which block of the cluster it belongs to."""
    peers: list[Agent] = field(default_factory=list["Agent"])
    """The same partition in every block of the cluster; all run in step."""
    work: Callable[[], None] | None = None
    until: Callable[[], bool] | None = None
    """What it waits for; None: it is ready."""
    why: Callable[[], str] | None = None
    """Says what it waits for."""
    done: bool = False
    wake: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    spins: bool = False
    """Whether it looks at memory again and again: it goes on when nobody else can."""
    visits: dict[Any, int] = field(default_factory=dict[Any, int])
    """How often it was at each place."""
    steps: int = 0
    rank: float = 0.0
    """Its place in the order in which agents are preferred."""
    context: dict[str, Any] = field(default_factory=dict[str, Any])
    """What operations keep of it: groups in flight, counters."""

    def __post_init__(self) -> None:
        self.peers = self.peers or [self]

    def tick(self) -> None:
        """What it does from here on is later than what it has told."""
        self.clock[self.component] += 1


@dataclass(frozen=True, slots=True)
class Policy:
    """How unkind a run is."""

    seed: int
    slow: str = ""
    """An agent that runs only when no other can."""

    @property
    def told(self) -> str:
        """For the report."""
        known = {0: "copies as late as can be", 1: "copies at once, last partition first"}
        return known.get(self.seed, "in random order")


class Scheduler:
    """Runs agents and jobs, one at a time, until all are done."""

    def __init__(self, policy: Policy, steps: int) -> None:
        self.policy, self.steps = policy, steps
        self._random = random.Random(policy.seed)
        self._home = threading.Semaphore(0)
        self.agents: list[Agent] = []
        self.current: Agent | None = None
        self._queues: dict[Hashable, list[Callable[[], None]]] = {}
        self.failure: BaseException | None = None
        self.stopping = False
        self._spread = 0

    # For agents ---------------------------------------------------------------------------------

    def spawn(self, agent: Agent) -> None:
        """Let another agent take part."""
        count = len(self.agents)
        seed = self.policy.seed
        agent.rank = {0: count, 1: -count}.get(seed, self._random.random())
        if agent.name == self.policy.slow:
            agent.rank = float("inf")
        self.agents.append(agent)
        threading.Thread(target=self._run, args=(agent,), name=agent.name, daemon=True).start()

    def put(self, queue: Hashable, job: Callable[[], None]) -> None:
        """For later; jobs of one queue run in their order."""
        if self.policy.seed == 1:
            job()
            return
        self._queues.setdefault(queue, []).append(job)

    def count(self) -> Agent:
        """One operation more of the agent that runs: who does too many does not end."""
        agent = self.current
        assert agent is not None
        agent.steps += 1
        if agent.steps > self.steps:
            raise StepsExceededError(agent.name)
        return agent

    def spin(self) -> None:
        """Whatever is looked at may be changed by somebody else: all others go first."""
        agent = self.count()
        agent.spins = True
        self._leave(agent)
        agent.spins = False

    def pause(self) -> None:
        """Somebody else may go on here."""
        agent = self.count()
        if self.policy.seed >= 2 and self._random.random() < 0.3:
            if agent.rank != float("inf"):
                agent.rank = self._random.random()
            self._leave(agent)

    def block(self, until: Callable[[], bool], why: Callable[[], str]) -> None:
        """Wait for a condition."""
        agent = self.current
        assert agent is not None
        if until():
            self.pause()
            return
        agent.until, agent.why = until, why
        self._leave(agent)
        agent.until = agent.why = None

    def _leave(self, agent: Agent) -> None:
        self._home.release()
        agent.wake.acquire()
        if self.stopping:
            raise StopRun

    def _run(self, agent: Agent) -> None:
        agent.wake.acquire()
        try:
            if not self.stopping and agent.work is not None:
                agent.work()
        except StopRun:
            pass
        except BaseException as error:  # told by whoever runs the program
            self.failure = self.failure or error
            self.stopping = True
        finally:
            agent.done = True
            self._home.release()

    # For the program ----------------------------------------------------------------------------

    def run(self, deadlock: Callable[[list[Agent]], None]) -> None:
        """Until all agents are done and all jobs have run; then raise what an agent raised."""
        while not self.stopping:
            ready = [a for a in self.agents if not a.done and (a.until is None or a.until())]
            queues = [q for q, jobs in self._queues.items() if jobs]
            awake = [a for a in ready if not a.spins]
            ready = awake if awake or queues else ready
            if not ready and not queues:
                waiting = [a for a in self.agents if not a.done]
                if waiting:
                    deadlock(waiting)
                break
            if queues and (not ready or self._job_first()):
                self._step(queues)
            else:
                self._resume(max(ready, key=lambda a: -a.rank))
        self.stopping = True
        for agent in self.agents:
            while not agent.done:
                self._resume(agent)
        if self.failure is not None:
            raise self.failure

    def _job_first(self) -> bool:
        return self.policy.seed >= 2 and self._random.random() < 0.35

    def _step(self, queues: list[Hashable]) -> None:
        queue = queues[-1] if self.policy.seed == 0 else queues[self._random.randrange(len(queues))]
        jobs = self._queues[queue]
        job = jobs.pop(0)
        if not jobs:
            del self._queues[queue]
        job()

    def _resume(self, agent: Agent) -> None:
        self.current = agent
        agent.wake.release()
        self._home.acquire()
        self.current = None


class StepsExceededError(Exception):
    """An agent did more than it is given room for: a loop that does not end, or a long one."""
