"""Clocks in emitted source: what a kernel writes down of itself while it runs.

    trace[block, agent] ── begin, end          of the agent, in cycles of its SM
                        ├─ from, to            the same in nanoseconds
                        └─ cycles, steps       of the steady part of each loop

With `marks`, the first steps of a loop's steady part are written down too, one clock a mark: before
each wait, behind it, behind each product and copy that is issued.

    trace[block, agent, RECORD + (step * marks + mark)]

The host's `write_trace(trace, "trace.json")` leaves them in a file that names the source it is of.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal

Tracing = Literal["loops", "marks"]
"""Cycles of loops alone, which disturbs little; or a clock at each mark."""

RECORD = 16
"""Numbers of an agent before its marks."""
LOOPS = 4
"""Loops of a kernel that have room in a record."""
STEPS = 24
"""Steps of each loop that are written down, mark by mark."""
MARKS = 128
"""Marks of a step that there is room for."""
BLOCKS = 8
"""Blocks that write marks."""

FUNCTIONS = '''
@gluon.jit
def clock():
    """Cycles of this SM."""
    return gl.inline_asm_elementwise(
        "mov.u64 $0, %clock64;", "=l", [], gl.int64, is_pure=False, pack=1
    )


@gluon.jit
def nanoseconds():
    """Time of the whole GPU."""
    return gl.inline_asm_elementwise(
        "mov.u64 $0, %globaltimer;", "=l", [], gl.int64, is_pure=False, pack=1
    )


@gluon.jit
def block():
    """The number of this block in its grid."""
    inner = gl.program_id(1) + gl.num_programs(1) * gl.program_id(2)
    return gl.program_id(0) + gl.num_programs(0) * inner
'''

SCHEMA = "stretto.clocks/1"
"""Of the file in which a launch leaves its marks."""

_READ_BACK = '''

TRACED = "{digest}"
TRACE_BLOCK = {each}  # numbers of 64 bits, zero at first, that `trace` has for each block


def write_trace(trace, file):
    """Leave the clocks of a launch in a file, for `stretto predict --measured`."""
    import json

    clocks = [int(clock) for clock in trace.reshape(-1)[: {blocks} * TRACE_BLOCK].tolist()]
    with open(file, "w") as out:
        json.dump({{"schema": "{schema}", "traced": TRACED, "clocks": clocks}}, out)
'''


def read_back(text: str, agents: int) -> str:
    """The host's function that writes marks to a file, and the source's own name in it."""
    digest = sha256(text.encode()).hexdigest()[:32]
    each = agents * size("marks")
    return _READ_BACK.format(digest=digest, each=each, blocks=BLOCKS, schema=SCHEMA)


def traced(source: str) -> str:
    """The name that a source with marks has for itself; empty where it has none."""
    _, found, behind = source.partition('\nTRACED = "')
    return behind.partition('"')[0] if found else ""


def size(tracing: Tracing | None) -> int:
    """Numbers that each agent of a block writes."""
    return RECORD + (STEPS * MARKS if tracing == "marks" else 0)


@dataclass(frozen=True)
class Mark:
    """A place in a step at which a clock is read."""

    what: Literal["before", "behind"]
    op: str
    """The operation that waits or is issued."""
    thing: str
    """`full RING`, `free RING`, `products`, `product`, `copy`, `work`."""


@dataclass
class Tracer:
    """Writes the clocks of one agent; its lines go where `say` puts them."""

    tracing: Tracing
    agent: int
    agents: int
    loops: list[str] = field(default_factory=list[str])
    """Names of the loops, in the order of their numbers in a record."""
    marks: dict[str, list[Mark]] = field(default_factory=dict[str, list[Mark]])
    """Of each loop: the marks of a step, in order."""

    def begin(self) -> list[str]:
        """At the top of the agent's function."""
        each = size(self.tracing)
        found = [
            f"trace_at = trace + (block() * {self.agents} + {self.agent}) * {each}",
            "gl.store(trace_at, clock())",
            "gl.store(trace_at + 2, nanoseconds())",
        ]
        if self.tracing == "marks":
            found.append(f"trace_on = block() < {BLOCKS}")
        return found

    def enter(self, loop: str) -> list[str]:
        """Before the steady part of a loop."""
        if loop not in self.loops:
            self.loops.append(loop)
        return ["trace_in = clock()"]

    def leave(self) -> list[str]:
        """Behind it."""
        return ["trace_out = clock()"]

    def settle(self, loop: str, steps: str, *, once: bool = False) -> list[str]:
        """When no product is in flight any more: what was read is added to what is there.

        Where the loop runs `once`, nothing is there, and nobody waits for a load of it.
        """
        n = 4 + 2 * min(self.loops.index(loop), LOOPS - 1)
        added = {n: "trace_out - trace_in", n + 1: steps}
        if once:
            return [f"gl.store(trace_at + {at}, {what})" for at, what in added.items()]
        return [
            f"gl.store(trace_at + {at}, gl.load(trace_at + {at}) + ({what}))"
            for at, what in added.items()
        ]

    def mark(self, loop: str, what: Literal["before", "behind"], op: str, thing: str) -> list[str]:
        """One clock in a step, where marks are asked for."""
        if self.tracing != "marks" or loop not in self.loops[:1]:
            return []
        known = self.marks.setdefault(loop, [])
        number = len(known)
        if number >= MARKS:
            return []
        known.append(Mark(what, op, thing))
        at = f"{RECORD} + trace_step * {MARKS} + {number}"
        return [f"gl.store(trace_at + ({at}), clock(), mask=trace_on & (trace_step < {STEPS}))"]

    def end(self) -> list[str]:
        """At the bottom of the agent's function."""
        return ["gl.store(trace_at + 1, clock())", "gl.store(trace_at + 3, nanoseconds())"]
