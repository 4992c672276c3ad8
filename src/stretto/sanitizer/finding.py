"""What the sanitizer has to say: rules, places in the source, accesses, findings, coverage.

Finding ── rule ── first access, second access ── slot ── barrier that would order them
Report  ── findings of all launches ── what was run ── what was not
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from stretto.schemas import check
    from stretto.schemas.check import MemoryAccess

SCHEMA = "stretto.check/1"


class Rule(NamedTuple):
    """One class of findings."""

    name: str
    title: str
    hint: str


RULES: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule(
            "read-too-early",
            "a slot is read before what fills it is waited for",
            "wait on the barrier that the write completes before the read",
        ),
        Rule(
            "overwritten-too-early",
            "a slot is written while it may still be read",
            "let the reader arrive on a barrier when it is done, and wait there before the write",
        ),
        Rule(
            "two-writers",
            "a slot is written twice and nothing orders the writes",
            "wait for the first write before the second is issued",
        ),
        Rule(
            "accumulator-in-flight",
            "an accumulator is used while products still add to it",
            "wait for the product (warpgroup_mma_wait, or the barrier of tcgen05_commit) first",
        ),
        Rule(
            "wrong-phase",
            "a wait passes on a phase that was already over",
            "start with phase 0 for what will be filled, 1 for what is free from the start, and "
            "flip the phase each time the ring begins anew",
        ),
        Rule(
            "phase-overrun",
            "a barrier completes a second phase before somebody has waited for the first",
            "whoever waits on a barrier must be waited for before its next phase may complete",
        ),
        Rule(
            "never-written",
            "memory is read that nothing has written",
            "fill the slot first, or predicate the read",
        ),
        Rule(
            "deadlock",
            "everybody waits and nothing is on its way",
            "compare who arrives on each barrier, and how often, with its count",
        ),
        Rule(
            "too-many-arrivals",
            "a barrier gets more arrivals than its count",
            "initialize the barrier with the number of arrivals of one phase",
        ),
        Rule(
            "expected-bytes",
            "the bytes that a barrier expects are not those that its copies bring",
            "expect the sum of the bytes of all copies of the phase",
        ),
        Rule(
            "missing-fence",
            "threads wrote what the asynchronous proxy uses, without a fence between",
            "call fence_async_shared() after the write and before the arrival or the copy",
        ),
        Rule(
            "unfenced-copy",
            "cp.async wrote what the asynchronous proxy uses, without a fence between",
            "call fence_async_shared() after the wait for the copies",
        ),
        Rule(
            "unfenced-reuse",
            "threads read what a TMA copy overwrites, without a proxy fence between",
            "call fence_async_shared() after the read and before the arrival",
        ),
        Rule(
            "in-flight-at-exit",
            "a program ends while something of it is in flight",
            "wait for every copy, store and product before the end",
        ),
        Rule(
            "threads-without-barrier",
            "threads of one partition read what others of it wrote, with no barrier between",
            "call gl.barrier() (gl.thread_barrier() in older versions) between the accesses",
        ),
        Rule(
            "global-race",
            "global memory is read or written with nothing that orders the accesses",
            "order them: a barrier, store_wait(0, read_only=False), an acquire and release pair",
        ),
        Rule(
            "unfenced-barrier",
            "a barrier is used by the asynchronous proxy without a fence after its initialization",
            "call fence_async_shared() after mbarrier.init",
        ),
        Rule(
            "unbalanced-barrier",
            "a named barrier is left with arrivals that nobody waits for",
            "let every arrival be met by a wait before the program ends",
        ),
        Rule("out-of-bounds", "memory is touched outside of an array", "mask the access"),
        Rule(
            "barrier-uninitialized",
            "a barrier is used before it is initialized, or after it was invalidated",
            "call mbarrier.init before the partitions begin, mbarrier.invalidate after they end",
        ),
        Rule(
            "barrier-reinitialized",
            "a barrier is initialized or invalidated while others may still use it",
            "do so before the partitions begin or after they end",
        ),
        Rule("shared-memory", "more shared memory than a block can have", "use fewer slots"),
        Rule("tensor-memory", "more tensor memory than there is: 512 columns", "use fewer slots"),
        Rule("barriers", "more named barriers than the 16 of a block", "reuse the numbers"),
        Rule("registers", "the partitions' registers do not fit", "ask for fewer, or fewer warps"),
        Rule("illegal", "an operation that the hardware or the compiler does not have", ""),
        Rule("different-result", "the result differs from the reference", ""),
        Rule("failure", "the kernel's own code fails", ""),
    )
}
"""Every class of findings, by name."""

NOTES = frozenset({"unfenced-reuse", "unfenced-copy", "unfenced-barrier", "unbalanced-barrier"})
"""What fails a check only where it is strict."""


class Site(NamedTuple):
    """A place in the source, and how it was come by."""

    file: str
    line: int
    column: int
    callers: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


NOWHERE = Site("<unknown>", 0, 0)


Proxy = Literal["generic", "copy", "async"]
"""What memory is touched by: threads, or hardware that goes its own way."""


class Access(NamedTuple):
    """Something done to a slot, and the clock's component that orders it."""

    component: int
    time: int
    agent: str
    what: str
    site: Site
    turn: int
    """How often the agent had been at this place before: the iteration, where it is in a loop."""
    proxy: Proxy = "generic"

    def told(self) -> str:
        """For people."""
        return f"{self.agent}, {self.what}, turn {self.turn}"


class Step(NamedTuple):
    """Something that was done near a finding."""

    access: Access
    slot: str
    """What it touches: a slot or a barrier."""
    number: int
    """Its place among all that the program did."""
    accused: bool
    """Whether the finding is about it."""


class Order(NamedTuple):
    """A step that another heard of when its wait passed, and the barrier between."""

    first: int
    second: int
    barrier: str


class Excerpt(NamedTuple):
    """The part of a run around a finding, in the order in which it was run."""

    steps: tuple[Step, ...]
    orders: tuple[Order, ...]
    total: int
    """Steps of the whole program."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong."""

    rule: str
    site: Site
    message: str
    slot: str = ""
    first: Access | None = None
    second: Access | None = None
    barrier: str = ""
    """Which would order the two, and how."""
    agents: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    """One line each: who waits for whom, arrivals and counts."""
    launch: str = ""
    seed: int = 0
    excerpt: Excerpt | None = None
    """What was run around it."""

    @property
    def note(self) -> bool:
        """Whether it fails a strict check only."""
        return self.rule in NOTES

    @property
    def key(self) -> tuple[Any, ...]:
        """Two findings of one key are one."""
        first = self.first.site if self.first else None
        return self.rule, self.site, first

    def to_json(self) -> check.Finding:
        """As a document."""
        return {
            "rule": self.rule,
            "level": "note" if self.note else "error",
            "site": _site(self.site),
            "message": self.message,
            "slot": self.slot,
            "first": _access(self.first),
            "second": _access(self.second),
            "barrier": self.barrier,
            "agents": list(self.agents),
            "details": list(self.details),
            "hint": RULES[self.rule].hint,
            "launch": self.launch,
            "seed": self.seed,
            "excerpt": _excerpt(self.excerpt),
        }


def _site(site: Site) -> check.Site:
    return {
        "file": site.file,
        "line": site.line,
        "column": site.column,
        "callers": list(site.callers),
    }


def _excerpt(excerpt: Excerpt | None) -> check.Excerpt | None:
    if excerpt is None:
        return None
    return {
        "steps": [
            {
                "number": step.number,
                "agent": step.access.agent,
                "what": step.access.what,
                "slot": step.slot,
                "site": _site(step.access.site),
                "turn": step.access.turn,
                "accused": step.accused,
            }
            for step in excerpt.steps
        ],
        "orders": [
            {"first": o.first, "second": o.second, "barrier": o.barrier} for o in excerpt.orders
        ],
        "total": excerpt.total,
    }


def _access(access: Access | None) -> MemoryAccess | None:
    if access is None:
        return None
    return {
        "agent": access.agent,
        "what": access.what,
        "site": _site(access.site),
        "turn": access.turn,
        "proxy": access.proxy,
    }


@dataclass(slots=True)
class LoopTrips:
    """How often a loop of a kernel was run through."""

    site: Site
    counts: set[int] = field(default_factory=set[int])


@dataclass(slots=True)
class Coverage:
    """What was run, and what was not."""

    launches: list[str] = field(default_factory=list[str])
    seeds: list[int] = field(default_factory=list[int])
    programs: int = 0
    loops: dict[Site, LoopTrips] = field(default_factory=dict[Site, LoopTrips])
    depths: set[int] = field(default_factory=set[int])
    """Slots of the rings that were allocated."""
    left_out: list[str] = field(default_factory=list[str])
    """What was not covered, and why."""

    def leave_out(self, why: str) -> None:
        """Say it once."""
        if why not in self.left_out:
            self.left_out.append(why)


@dataclass(slots=True)
class Report:
    """What a check found."""

    file: str
    findings: list[Finding] = field(default_factory=list[Finding])
    coverage: Coverage = field(default_factory=Coverage)
    stopped: bool = False
    """Whether the time limit ended it."""
    seconds: float = 0.0

    def add(self, finding: Finding) -> None:
        """Unless the same was found before."""
        if all(finding.key != other.key for other in self.findings):
            self.findings.append(finding)

    def failed(self, strict: bool = False) -> bool:
        """Whether something is wrong."""
        return any(strict or not finding.note for finding in self.findings)
