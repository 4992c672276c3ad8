"""One program of a launch while it runs: its agents, its memory, its barriers, what is wrong.

fork ── partitions with clocks ── join          every operation asks `current()` for it
"""

# What kernels hand over has no static type.
# pyright: basic

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from stretto.sanitizer.barriers import Barrier, NamedBarrier
from stretto.sanitizer.finding import NOWHERE, Access, Coverage, Finding, LoopTrips, Proxy, Site
from stretto.sanitizer.history import History
from stretto.sanitizer.memory import Allocation, Key, peak
from stretto.sanitizer.scheduler import (
    Agent,
    Policy,
    Scheduler,
    StepsExceededError,
    StopRun,
    merge,
)

SHARED_BYTES = 232_448
"""Shared memory of a block on Hopper and Blackwell."""
TENSOR_COLUMNS = 512
"""Of 128 lanes and 32 bits."""
REGISTERS = 65_536
"""Of a multiprocessor, 32 bits each."""
STEPS = 12_000
"""Synchronizing operations of an agent before its program is left."""
_ASSIGNED = re.compile(r"^\s*(?:self\.)?(\w+)\s*(?::[^=]+)?=[^=]")


class NotCoveredError(Exception):
    """Something that the sanitizer does not know; told, never guessed."""

    def __init__(self, what: str, site: Site = NOWHERE) -> None:
        self.what, self.site = what, site
        super().__init__(what)


class KernelError(Exception):
    """The program at hand cannot go on: a finding says why."""


@dataclass(eq=False)
class Sources:
    """The files that are checked: whose lines findings are about."""

    shown: dict[str, str] = field(default_factory=dict[str, str])
    """Of each file as compiled: how it is told."""
    lines: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    _positions: dict[Any, Any] = field(default_factory=dict[Any, Any])
    _called_from: dict[Site, tuple[tuple[str, int], ...]] = field(
        default_factory=dict[Site, tuple[tuple[str, int], ...]]
    )

    def path(self, most: int = 64) -> tuple[tuple[Any, int], ...]:
        """The instruction at which the kernel is, and those that called it."""
        frame = sys._getframe(1)
        found: list[tuple[Any, int]] = []
        while frame is not None and len(found) < most:
            if frame.f_code.co_filename in self.shown:
                found.append((frame.f_code, frame.f_lasti))
            frame = frame.f_back
        return tuple(found)

    def site(self) -> Site:
        """Where the kernel is."""
        key = found = self.path(4)
        if not found:
            return NOWHERE
        known = self._positions.get(key)
        if known is None:
            code, at = found[0]
            line, _, column, _ = list(code.co_positions())[at // 2]
            callers = tuple(
                (list(c.co_positions())[i // 2][0] or c.co_firstlineno) for c, i in found[1:]
            )
            shown = self.shown[code.co_filename]
            known = Site(shown, line or code.co_firstlineno, (column or 0) + 1, callers)
            self._positions[key] = known
            self._called_from[known] = tuple(
                (c.co_filename, at) for (c, _), at in zip(found[1:], callers, strict=True)
            )
        return known

    def assigned(self, site: Site) -> str:
        """The name that a line assigns to; where it is not one, what else to call it."""
        own = next((file for file, shown in self.shown.items() if shown == site.file), "")
        # What a helper makes goes by the name that its caller gives it.
        called = self._called_from.get(site, ())[::-1]
        for file, line in (*called, (own, site.line), (own, site.line - 1)):
            lines = self.lines.get(file, [])
            found = _ASSIGNED.match(lines[line - 1]) if 0 < line <= len(lines) else None
            if found:
                return found[1]
        return f"line {site.line}"


@dataclass(frozen=True, slots=True)
class Raced:
    """Two accesses that nothing orders; told when the program is over."""

    kind: str
    allocation: Allocation
    key: Key
    first: Access
    second: Access
    vacuous: tuple[tuple[Barrier, Site, int], ...]
    """The second's last waits, where they passed on what was known already."""


class Block:
    """A program of a launch."""

    def __init__(
        self,
        sources: Sources,
        policy: Policy,
        coverage: Coverage,
        launch: str,
        at: tuple[int, int, int],
        grid: tuple[int, int, int],
        options: dict[str, Any],
        steps: int = STEPS,
    ) -> None:
        self.sources, self.coverage, self.launch = sources, coverage, launch
        self.at, self.grid, self.options = at, grid, options
        self.policy = policy
        self.scheduler = Scheduler(policy, steps)
        self.allocations: list[Allocation] = []
        self.places: dict[Any, Allocation] = {}
        """Where each place of the source allocates."""
        self.columns: list[tuple[Allocation, int]] = []
        """Tensor memory, and how many columns it takes."""
        self.cluster = int(options.get("num_ctas", 1))
        """Blocks of a cluster: all run in step, each with clocks and memory of its own."""
        self._acting: Agent | None = None
        self.paired = False
        """Whether products are those of two blocks."""
        self.barriers: dict[tuple[int, int, int], Barrier] = {}
        self.named: dict[int, NamedBarrier] = {}
        self.findings: list[Finding] = []
        self._raced: dict[tuple[Any, ...], Raced] = {}
        self._components = 0
        self._clock = 0
        self.landing: dict[int, Barrier] = {}
        """Of each copy: the barrier that it completes."""
        self.fenced = False
        """Whether the compiler inserts proxy fences within a partition."""
        self.left = False
        """Whether it was not run to its end."""
        self.glimpsed = False
        """Whether its kernel was run so often that it need not be."""
        self.history = History()
        """What was begun, and by whom, in this order."""
        self.program = 0
        """Its number in the run: global memory remembers it."""

    # Agents -------------------------------------------------------------------------------------

    def new_component(self) -> int:
        """A number in the clocks."""
        self._components += 1
        return self._components

    def now(self) -> int:
        """Ever more."""
        self._clock += 1
        return self._clock

    @property
    def agent(self) -> Agent:
        """Who runs; where all blocks of a cluster are gone through, the one at hand."""
        running = self.scheduler.current
        assert running is not None
        acting = self._acting
        return running if acting is None or acting.peers[0] is not running else acting

    def ctas(self) -> Iterator[Agent]:
        """The partition at hand in each block of the cluster; it acts until the next is asked for.

        Nobody else may run meanwhile.
        """
        try:
            for peer in self.agent.peers:
                self._acting = peer
                yield peer
        finally:
            self._acting = None

    def acting(self, cta: int) -> Agent:
        """The partition at hand in one block of the cluster, which acts from here on."""
        self._acting = self.agent.peers[cta]
        return self._acting

    def meet_cluster(self) -> None:
        """The partition at hand hears in each block of the cluster what it knows in the others."""
        peers = self.agent.peers
        if len(peers) > 1:
            clock, fenced = {}, {}
            for peer in peers:
                merge(clock, peer.clock)
                merge(fenced, peer.fenced)
            for peer in peers:
                merge(peer.clock, clock)
                merge(peer.fenced, fenced)
                peer.tick()

    def own(self, what: str) -> int:
        """The component of one of an agent's asynchronous queues."""
        context = self.agent.context
        if what not in context:
            context[what] = self.new_component()
        return context[what]

    def access(
        self, what: str, proxy: Proxy = "generic", component: int | None = None, time: int = 0
    ) -> Access:
        """What the agent at hand does, at the place where it is."""
        agent, site = self.agent, self.sources.site()
        turn = agent.visits.get((site, what), 0)
        agent.visits[site, what] = turn + 1
        if component is None:
            component, time = agent.component, agent.clock[agent.component]
        access = Access(component, time, agent.name, what, site, turn, proxy)
        self.history.add(access)
        return access

    def _agent(self, name: str, warps: int, parent: Agent | None = None) -> Agent:
        """A partition, in each block of the cluster."""
        made: list[Agent] = []
        for cta in range(self.cluster):
            component = self.new_component()
            clock = dict(parent.peers[cta].clock) if parent else {}
            fenced = dict(parent.peers[cta].fenced) if parent else {}
            clock[component] = 1
            told = f"{name}, block {cta}" if self.cluster > 1 else name
            made.append(Agent(told, component, clock, fenced, warps, cta))
        for agent in made:
            agent.peers = made
        return made[0]

    def run(self, work: Callable[[], None], warps: int) -> None:
        """All of it; findings are there afterwards."""
        global _CURRENT  # noqa: PLW0603 - one program runs at a time
        main = self._agent("the program", warps)

        def whole() -> None:
            self._to_end(main, work)
            if not self._raced and all(f.note for f in self.findings):
                self._require_landed()

        main.work = whole
        _CURRENT = self
        try:
            self.scheduler.spawn(main)
            self.scheduler.run(self._deadlock)
        except KernelError:
            pass
        except StepsExceededError:
            self.left = True
            if not self.glimpsed:
                self.coverage.leave_out(
                    f"{self.launch}: program {self.at} was left after {self.scheduler.steps} "
                    "synchronizing operations of one agent"
                )
        except NotCoveredError as error:
            where = f"{error.site}: " if error.site is not NOWHERE else ""
            self.coverage.leave_out(f"{where}{error.what}")
            self.left = True
        finally:
            _CURRENT = None
            self._finish()

    def _to_end(self, agent: Agent, work: Callable[[], None]) -> None:
        try:
            with np.errstate(all="ignore"):
                work()
        except (StopRun, KernelError, NotCoveredError, StepsExceededError):
            raise
        except Exception as error:
            site = self._raised_at(error)
            told = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            if isinstance(error, AssertionError | AttributeError | TypeError):
                # More likely something that a stand-in lacks than a fault of a pipeline.
                raise NotCoveredError(f"the kernel fails here: {told}", site) from error
            self.report("failure", site, f"the kernel fails: {told}", agents=(agent.name,))
            raise KernelError from error
        self.require_over(agent)

    def _raised_at(self, error: Exception) -> Site:
        trace, found = error.__traceback__, NOWHERE
        while trace is not None:
            file = trace.tb_frame.f_code.co_filename
            if file in self.sources.shown:
                found = Site(self.sources.shown[file], trace.tb_lineno, 1)
            trace = trace.tb_next
        return found

    def require_over(self, agent: Agent) -> None:
        """Nothing of an agent may be in flight when it ends."""
        stores, products = agent.context.get("stores", []), agent.context.get("products", [])
        if stores:
            self.report(
                "in-flight-at-exit",
                stores[0].site,
                f"{len(stores)} TMA store(s) still read shared memory when {agent.name} ends",
                agents=(agent.name,),
            )
        if products:
            self.report(
                "in-flight-at-exit",
                products[0].site,
                f"{len(products)} product(s) are in flight when {agent.name} ends",
                agents=(agent.name,),
            )

    def _require_landed(self) -> None:
        """No copy may be on its way when the program ends."""
        for barrier in self.barriers.values():
            if barrier.flying:
                copy = barrier.flying[0]
                self.report(
                    "in-flight-at-exit",
                    copy.access.site,
                    f"a copy to `{barrier.name}` is on its way when the program ends",
                    first=copy.access,
                    agents=(copy.access.agent,),
                )

    def fork(self, parts: list[tuple[str, Callable[[], Any], int]]) -> Any:
        """Partitions from here on, the first of them in the warps at hand, until all have ended."""
        parent = self.agent
        agents: list[Agent] = []
        results: list[Any] = [None] * len(parts)

        def work_of(number: int, agent: Agent, work: Callable[[], Any]) -> Callable[[], None]:
            def run() -> None:
                def body() -> None:
                    results[number] = work()

                self._to_end(agent, body)

            return run

        for number, (name, work, warps) in enumerate(parts):
            agent = self._agent(name, warps, parent)
            agent.work = work_of(number, agent, work)
            agents.append(agent)
        for peer in parent.peers:
            peer.tick()
        for agent in agents:
            self.scheduler.spawn(agent)
        self.scheduler.block(
            lambda: all(agent.done for agent in agents), lambda: "the end of its partitions"
        )
        for peer in parent.peers:
            for agent in agents:
                merge(peer.clock, agent.peers[peer.cta].clock)
                merge(peer.fenced, agent.peers[peer.cta].fenced)
            peer.tick()
        return results[0]

    # Loops --------------------------------------------------------------------------------------

    def trips(self, count: int) -> None:
        """A loop of the kernel is run through so often."""
        site = self.sources.site()
        self.coverage.loops.setdefault(site, LoopTrips(site)).counts.add(count)

    # What is wrong ------------------------------------------------------------------------------

    def report(self, rule: str, site: Site, message: str, **more: Any) -> None:
        """Keep a finding."""
        self.findings.append(
            Finding(rule, site, message, launch=self.launch, seed=self.policy.seed, **more)
        )

    def refuse(self, rule: str, message: str, **more: Any) -> KernelError:
        """A finding after which the program cannot go on."""
        self.report(rule, self.sources.site(), message, agents=(self.agent.name,), **more)
        return KernelError(message)

    def race(self, kind: str, where: Allocation, key: Key, first: Access, second: Access) -> None:
        """Two accesses that nothing orders."""
        vacuous = tuple(
            (barrier, *barrier.last_known[second.agent])
            for barrier in self.barriers.values()
            if second.agent in barrier.last_known
        )
        found = Raced(kind, where, key, first, second, vacuous)
        self._raced.setdefault((kind, first.site, second.site), found)

    def unfenced(self, where: Allocation, key: Key, first: Access, second: Access) -> None:
        """Threads wrote, the asynchronous proxy reads or writes, with no fence on the way."""
        if self.fenced and first.agent == second.agent:
            return
        self._raced.setdefault(
            ("fence", first.site, second.site), Raced("fence", where, key, first, second, ())
        )

    def reused_unfenced(self, where: Allocation, key: Key, first: Access, second: Access) -> None:
        """Threads read, the asynchronous proxy writes, with no fence on the way."""
        self._raced.setdefault(
            ("reuse", first.site, second.site), Raced("reuse", where, key, first, second, ())
        )

    def never_written(self, where: Allocation, key: Key, access: Access) -> None:
        """Memory is read that nobody filled."""
        slot = where.slot_of(key)
        self.report(
            "never-written",
            access.site,
            f"{access.agent} reads `{slot}` ({access.what}, turn {access.turn}), which nothing "
            "has written",
            slot=slot,
            second=access,
            agents=(access.agent,),
        )

    def overrun(self, barrier: Barrier, completion: int, wait: Access) -> None:
        """A barrier may complete again before somebody has waited."""
        by = barrier.arrivals[-1] if barrier.arrivals else None
        self.report(
            "phase-overrun",
            wait.site,
            f"`{barrier.name}` can complete its phase {completion} before {wait.agent} has waited "
            f"for phase {completion - 1} (turn {wait.turn}): the wait then misses its phase",
            slot=barrier.name,
            first=wait,
            second=by,
            agents=(wait.agent,),
            details=barrier.who(),
        )

    def _deadlock(self, waiting: list[Agent]) -> None:
        stuck = [b for b in self.barriers.values() if b.stuck_bytes()]
        asleep = [a for a in waiting if a.why is not None]
        details = [
            f"{a.name} waits for {_why(a)}" for a in asleep if "its partitions" not in _why(a)
        ]
        told = "; ".join(details)
        for barrier in self.barriers.values():
            if any(f"`{barrier.name}`" in line for line in details):
                details += [f"`{barrier.name}`: {told}" for told in barrier.who()]
        for barrier in stuck:
            asked = sum(number for number, _ in barrier.expected)
            place = barrier.expected[-1][1] if barrier.expected else NOWHERE
            self.report(
                "expected-bytes",
                place,
                f"`{barrier.name}` expects {asked} bytes in its phase {barrier.completed}; its "
                f"copies brought {asked - barrier.bytes}: the phase never completes",
                slot=barrier.name,
                agents=tuple(a.name for a in asleep),
                details=tuple(details),
            )
        if stuck:
            return
        first = next((a for a in asleep if "end of its partitions" not in _why(a)), asleep[0])
        site = first.context.get("waits_at", NOWHERE)
        names = [a.name for a in asleep if "end of its partitions" not in _why(a)]
        self.report(
            "deadlock",
            site,
            f"deadlock in program {self.at}: {told}",
            agents=tuple(names),
            details=tuple(details),
        )

    def _finish(self) -> None:
        """Say what is known only at the end."""
        from stretto.sanitizer.telling import told_race  # noqa: PLC0415 - it knows blocks

        for raced in self._raced.values():
            self.findings.append(told_race(self, raced))
        clean = all(f.note for f in self.findings)
        for named in self.named.values():
            if named.threads and clean and named.last is not None:
                self.report(
                    "unbalanced-barrier",
                    named.last.site,
                    f"named barrier {named.number} is left with {named.threads} of "
                    f"{named.count} threads when the program ends",
                    agents=(named.last.agent,),
                )
        self._budgets()
        self.findings = [
            replace(f, excerpt=self.history.excerpt((f.first, f.second), f.agents))
            if f.agents
            else f
            for f in self.findings
        ]

    def _budgets(self) -> None:
        most, live = peak([(a, a.bytes) for a in self.allocations if a.kind == "shared"])
        if most > SHARED_BYTES:
            self.report(
                "shared-memory",
                max(live, key=lambda each: each[1])[0].site,
                f"{most} bytes of shared memory are live at once; a block has {SHARED_BYTES}",
                details=tuple(f"`{a.name}`: {n} bytes (line {a.site.line})" for a, n in live),
            )
        most, live = peak(self.columns)
        if most > TENSOR_COLUMNS:
            self.report(
                "tensor-memory",
                live[-1][0].site,
                f"{most} columns of tensor memory are live at once; there are {TENSOR_COLUMNS}",
                details=tuple(f"`{a.name}`: {n} columns" for a, n in live),
            )


def _why(agent: Agent) -> str:
    return agent.why() if agent.why is not None else ""


_CURRENT: Block | None = None


def current() -> Block:
    """The program that runs."""
    if _CURRENT is None:
        raise KernelError("an operation of kernels outside of a launch")
    return _CURRENT


def running() -> bool:
    """Whether a program runs."""
    return _CURRENT is not None
