"""mbarriers and named barriers, with what those knew that arrived.

    completion   -1      0        1        2       a wait with phase p passes on the first
    parity        1      0        1        0       completion of that parity that whoever waits
                                                   does not know to be over: whatever the timing

A completion hands on what its arrivals knew. Who waits for completion k must be known to whoever
brings about completion k + 1: else the barrier can run ahead of the wait.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stretto.sanitizer.finding import Access, Site
from stretto.sanitizer.scheduler import Agent, Clock, merge

if TYPE_CHECKING:
    from stretto.sanitizer.block import Block


@dataclass(eq=False)
class Copy:
    """A copy on its way to a barrier."""

    bytes: int
    clock: Clock
    fenced: Clock
    access: Access


@dataclass(eq=False)
class Barrier:
    """An mbarrier."""

    block: Block
    name: str
    component: int
    """In the clocks: how many completions are known."""
    copies: int = 0
    """In the clocks: copies of how many phases are known to have landed."""
    count: int = 0
    pending: int = 0
    bytes: int = 0
    completed: int = 0
    initialized: bool = False
    heard: Clock = field(default_factory=dict[int, int])
    heard_fenced: Clock = field(default_factory=dict[int, int])
    causes: Clock = field(default_factory=dict[int, int])
    """What those knew that began the copies of the phase at hand; a copy does not hand that on."""
    done: list[tuple[Clock, Clock]] = field(default_factory=list[tuple[Clock, Clock]])
    waits: dict[int, list[Access]] = field(default_factory=dict[int, list[Access]])
    """Of each completion: who has waited for it."""
    flying: list[Copy] = field(default_factory=list[Copy])
    arrivals: list[Access] = field(default_factory=list[Access])
    """Of the phase at hand."""
    brought: list[Access] = field(default_factory=list[Access])
    """Copies that have landed in the phase at hand."""
    done_by: list[tuple[Access, ...]] = field(default_factory=list[tuple[Access, ...]])
    """Of each completion: its arrivals and copies."""
    arrived_by: dict[tuple[str, Site], int] = field(default_factory=dict[tuple[str, Site], int])
    waited_by: dict[tuple[str, Site], int] = field(default_factory=dict[tuple[str, Site], int])
    expected: list[tuple[int, Site]] = field(default_factory=list[tuple[int, Site]])
    """Of the phase at hand."""
    last_known: dict[str, tuple[Site, int]] = field(default_factory=dict[str, tuple[Site, int]])
    """Of each agent: its last wait, where that passed on what it knew already."""
    born: Access | None = None
    """Its initialization, as long as somebody may use it without knowing of that."""
    begun: Access | None = None
    """Its initialization."""
    users: dict[int, Access] = field(default_factory=dict[int, Access])
    """Of each agent: its last use."""

    def init(self, count: int) -> None:
        """Begin anew."""
        self.count = self.pending = count
        self.bytes = self.completed = 0
        self.initialized = True
        self.heard, self.heard_fenced, self.causes = {}, {}, {}
        self.done.clear()
        self.done_by.clear()
        self.brought.clear()
        self.waits.clear()
        self.last_known.clear()
        self.users.clear()
        # Whoever knows completions of an earlier life knows none of this one.
        self.component = self.block.new_component()
        self.copies = self.block.new_component()
        self.block.landing[self.copies] = self

    def arrive(self, count: int, access: Access, clock: Clock, fenced: Clock) -> None:
        """So many arrivals of somebody who knows so much."""
        key = (access.agent, access.site)
        self.arrived_by[key] = self.arrived_by.get(key, 0) + 1
        if count > self.pending:
            self.block.report(
                "too-many-arrivals",
                access.site,
                f"`{self.name}` gets {self.count - self.pending + count} arrivals in its phase "
                f"{self.completed}, its count is {self.count}",
                slot=self.name,
                second=access,
                details=tuple(f"arrived: {a.told()} at line {a.site.line}" for a in self.arrivals),
                agents=(access.agent,),
            )
            return
        self.pending -= count
        self.arrivals.append(access)
        merge(self.heard, clock)
        merge(self.heard_fenced, fenced)
        self._turn()

    def expect(self, number: int, access: Access) -> None:
        """Bytes that the phase waits for as well."""
        self.bytes += number
        self.expected.append((number, access.site))

    def landed(self, copy: Copy) -> None:
        """A copy has brought its bytes."""
        self.flying.remove(copy)
        self.brought.append(copy.access)
        self.bytes -= copy.bytes
        merge(self.causes, copy.clock)
        self.heard[self.copies] = max(copy.access.time, self.heard.get(self.copies, 0))
        merge(self.heard_fenced, copy.fenced)
        self._turn()

    def _turn(self) -> None:
        if self.pending or self.bytes or not self.initialized:
            return
        if self.flying:
            self._told_bytes()
        knows = self.heard
        knows[self.component] = self.completed + 1
        for wait in self.waits.get(self.completed - 1, ()):
            known = max(knows.get(wait.component, 0), self.causes.get(wait.component, 0))
            if known < wait.time:
                self.block.overrun(self, self.completed, wait)
        self.done.append((knows, self.heard_fenced))
        self.done_by.append((*self.arrivals, *self.brought))
        self.heard, self.heard_fenced, self.causes = {}, {}, {}
        self.completed += 1
        self.pending = self.count
        self.arrivals.clear()
        self.brought.clear()
        self.expected.clear()

    def _told_bytes(self) -> None:
        late = self.flying[0]
        line = late.access.site.line
        asked = sum(number for number, _ in self.expected)
        self.block.report(
            "expected-bytes",
            self.expected[-1][1] if self.expected else late.access.site,
            f"`{self.name}` completes its phase {self.completed} with the {asked} bytes it "
            f"expects while a copy of {late.bytes} bytes to it (line {line}) is still on "
            "its way",
            slot=self.name,
            agents=(late.access.agent,),
            details=tuple(
                f"on its way: {c.bytes} bytes, copied at line {c.access.site.line}"
                for c in self.flying
            ),
        )

    def brought_about_by(self, clock: Clock) -> bool:
        """Whether somebody knows of all that the last completion took."""
        by = self.done_by[-1]
        return all(clock.get(one.component, 0) >= one.time for one in by)

    def known_to(self, clock: Clock) -> int:
        """The last completion that somebody knows of; -1: none."""
        return clock.get(self.component, 0) - 1

    def wait(self, parity: int, agent: Agent, access: Access) -> int:
        """Ask for a completion of the parity; which one that is."""
        key = (access.agent, access.site)
        self.waited_by[key] = self.waited_by.get(key, 0) + 1
        known = self.known_to(agent.clock)
        over = known % 2 == parity
        target = known if over else known + 1
        self.waits.setdefault(target, []).append(access)
        if over:
            self.last_known[agent.name] = (access.site, known)
        else:
            self.last_known.pop(agent.name, None)
        if self.completed > target + 1:
            self.block.overrun(self, self.completed - 1, access)
        return target

    def hear(self, target: int, agent: Agent, access: Access) -> None:
        """A completion that was waited for is there: know what its arrivals knew."""
        if target >= 0 and target < len(self.done):
            clock, fenced = self.done[target]
            self.block.history.passed(access, self.name, self.done_by[target])
            merge(agent.clock, clock)
            merge(agent.fenced, fenced)
        agent.tick()

    def waiting(self, parity: int, target: int) -> str:
        """What somebody waits for, for people."""
        asked = f"`{self.name}`, phase {parity} (its completion {target})"
        if not self.initialized:
            return f"{asked}, which is not initialized"
        state = f"{self.count - self.pending} of {self.count} arrivals"
        if self.bytes:
            state += f", {self.bytes} bytes outstanding" if self.bytes > 0 else ""
            state += f", {-self.bytes} bytes more than expected" if self.bytes < 0 else ""
        return f"{asked}: completed {self.completed} times, {state}"

    def stuck_bytes(self) -> bool:
        """Whether only bytes are missing that nobody brings."""
        return self.initialized and not self.pending and self.bytes != 0 and not self.flying

    def who(self) -> tuple[str, ...]:
        """Who arrives on it, for people."""
        told = [f"{name} arrives at line {site.line}" for name, site in self.arrived_by]
        return tuple(told) or ("nobody has ever arrived",)


@dataclass(eq=False)
class NamedBarrier:
    """One of the sixteen hardware barriers of a block (`bar.sync id, count`)."""

    block: Block
    number: int
    threads: int = 0
    count: int = 0
    turns: int = 0
    last: Access | None = None
    met: list[Access] = field(default_factory=list[Access])
    """Who is there, of the turn at hand."""
    met_in: list[tuple[Access, ...]] = field(default_factory=list[tuple[Access, ...]])
    heard: list[tuple[Clock, Clock]] = field(default_factory=list[tuple[Clock, Clock]])
    """In each block of a cluster, which has such a barrier of its own."""
    done: list[list[tuple[Clock, Clock]]] = field(default_factory=list[list[tuple[Clock, Clock]]])

    def meet(self, agent: Agent, count: int, access: Access, stays: bool) -> None:
        """Arrive with all threads of a partition; where it stays, until so many have arrived."""
        if self.threads and count != self.count:
            self.block.report(
                "illegal",
                access.site,
                f"named barrier {self.number} is met by {count} threads here, by {self.count} "
                "elsewhere in the same turn",
                agents=(agent.name,),
            )
        self.count, self.last = count, access
        self.threads += agent.warps * 32
        if self.threads > count:
            self.block.report(
                "too-many-arrivals",
                access.site,
                f"named barrier {self.number} is met by {self.threads} threads, its count is "
                f"{count}",
                agents=(agent.name,),
            )
            self.threads = count
        self.heard = self.heard or [({}, {}) for _ in agent.peers]
        for peer, (clock, fenced) in zip(agent.peers, self.heard, strict=True):
            merge(clock, peer.clock)
            merge(fenced, peer.fenced)
            peer.tick()
        self.met.append(access)
        turn = self.turns
        if self.threads == count:
            self.done.append(self.heard)
            self.met_in.append(tuple(self.met))
            self.heard, self.threads = [], 0
            self.met.clear()
            self.turns += 1
        if not stays:
            self.block.scheduler.pause()
            return
        self.block.scheduler.block(
            lambda: self.turns > turn,
            lambda: f"named barrier {self.number}: {self.threads} of {count} threads are there",
        )
        others = tuple(one for one in self.met_in[turn] if one is not access)
        self.block.history.passed(access, f"barrier {self.number}", others)
        for peer, (clock, fenced) in zip(agent.peers, self.done[turn], strict=True):
            merge(peer.clock, clock)
            merge(peer.fenced, fenced)
