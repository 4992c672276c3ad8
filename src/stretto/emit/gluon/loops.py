"""One agent's part of a loop that runs by a program: prologue, kernel, epilogue.

    first .. last     stages of the agent's operations
    step              what the kernel's loop counts; an operation of stage s works on step - s
    x__1, x__2        what x was one step ago, two steps ago
    k_tile_slot       where the agent stands in a ring; k_tile_phase: the parity of its barriers

A trip count too small for a prologue goes another way: one iteration after the other. Slots are
taken iteration by iteration on either way, so agents need not go the same.

What threads load is in registers, and one that goes from step to step of a loop is moved to
another: that waits for the load. A loop that is drained has no such: as many iterations as there
are stages run in one step of a loop, written out. What is left over runs in halves: of eight, a
group of four, one of two and one alone, each written out behind a branch.

A product in flight is known by its variable; a wait says how many younger ones may go on. ptxas
wants the same products in flight on every way into a loop, so where some are at the end of a step,
the first step of the kernel stands before its loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from stretto.emit.gluon.agent import AgentWriter
from stretto.emit.gluon.atomics import ATOMIC
from stretto.emit.gluon.expressions import (
    EmitError,
    expression,
    literal,
    unwritten,
    wrapped,
)
from stretto.emit.gluon.layouts import SPLIT
from stretto.emit.gluon.plan import SMEM_READ, SMEM_WRITE, Looped
from stretto.emit.gluon.rings import Ring
from stretto.emit.gluon.steps import Steps, steps_of
from stretto.emit.gluon.sums import on_its_own
from stretto.emit.gluon.tracing import Tracer
from stretto.emit.gluon.trips import known_trips, trips
from stretto.emit.gluon.turns import Turn
from stretto.emit.gluon.values import Shown, computed, half, halves, in_layout, seen_through, whole
from stretto.emit.score import Beat, BeatKind, LoopScore, sizes
from stretto.kernel import Operation, Value
from stretto.kernel.lowering.written import LOAD, STORE, TMA_LOAD, TMA_STORE
from stretto.kernel.tree import kind_of
from stretto.kernel.types import Buffer, Pointer, Scalar, Tile, Token
from stretto.kernel.wiring import Accumulated, Outer, Taken
from stretto.materialize.program import Direct, Issue, LiveIn, Path, Stored, Stream, Through
from stretto.ops.opcodes import opcode
from stretto.program.layouts import Layout, factor

HELD_BITS = 16
HELD_BY = 256
"""Threads of an agent at most: each holds two such numbers in a register."""
_Steps = tuple[tuple[int, tuple[Beat, ...]], ...]
_Parts = tuple[_Steps, tuple[Beat, ...], _Steps]
"""Prologue, kernel, epilogue."""


@dataclass(frozen=True)
class Flight:
    """A product that is not waited for yet."""

    op: str
    variable: str
    keep: tuple[str, ...] = ()
    """Registers it still reads."""
    outside: str = ""
    """A left factor that no step changes, if it has such a one and was issued behind no other."""
    age: int = 0
    """Steps since it was issued."""


@dataclass
class Way:
    """How a path through the loop counts: by steps of the kernel, or by iterations."""

    stages: dict[str, int]
    """Of every operation; 0 where iterations follow one another."""
    step: str = "step"
    """What is counted, as an expression; a number in the prologue."""
    at: int | None = None
    """The number, where it is one."""
    base: str = ""
    """The iteration that the number counts from, where that is not the first."""
    pending: list[Flight] = field(default_factory=list[Flight])
    defined: set[str] = field(default_factory=set[str])
    """Variables of earlier steps that there are."""
    cached: dict[tuple[Value, int], str] = field(default_factory=dict[tuple[Value, int], str])

    def iteration(self, stage: int) -> str:
        """The iteration that a stage works on."""
        if self.at is not None:
            return f"{self.base} + {self.at - stage}" if self.base else str(self.at - stage)
        return f"{self.step} - {stage}" if stage else self.step


class LoopWriter:
    """Writes one loop of one agent."""

    def __init__(self, agent: AgentWriter, loop: Looped) -> None:
        self._a = agent
        self._loop = loop
        self._wiring = loop.wiring
        self._program = loop.program
        self._body = loop.operation.regions[0]
        name = agent.worker.name if len(agent.plan.workers) > 1 else loop.program.agents[0].name
        self._stream: Stream | None = next(
            (a.stream for a in loop.program.agents if a.name == name), None
        )
        self._variables: dict[str, str] = {}
        self._beats: list[Beat] = []
        self._factors: dict[tuple[Value, Layout], str] = {}
        """Left factors from outside, as products take them."""
        self._marked = False
        self._once = len(agent.plan.workers) == 1 and not agent.inside
        """Whether it runs once, in one group of warps, whose own loads clocks would hold up."""

    def write(self) -> None:
        """The whole loop."""
        if self._stream is None:
            return
        self._steps = self._cut([i for i in self._stream.kernel if isinstance(i, Issue)])
        self._issues = self._steps.order
        self._mine = {i.op for i in self._issues}
        self._issue_of = {i.op: i for i in self._issues}
        self._stage = self._steps.stages
        self._before()
        short = Way(dict.fromkeys(self._stage, 0), self._a.names.give("i"))
        long = Way(dict(self._stage))
        flying = self._flying(long)
        steps = self._steps
        needed = self._needed(steps)
        singly: tuple[Beat, ...] = ()
        parts: _Parts = ((), (), ())
        known = self._known
        together = sizes(needed, known) if self._loop.drained and needed > 1 else ()
        if together and flying:
            raise EmitError(f"loop `{self._program.loop.name}`: products fly on, it is not drained")
        if together:
            parts = (), self._drained(long, together), ()
        elif steps.first == steps.last and not flying:
            parts = self._pipelined(long, peel=False)
        elif known is not None and known >= needed:
            parts = self._pipelined(long, peel=flying)
        elif known is not None:
            singly = self._one_by_one(short)
            parts = (), singly, ()
        else:
            with self._a.lines.block(f"if {self._n} >= {needed}:"):
                parts = self._pipelined(long, peel=flying)
            if needed > 1:
                with self._a.lines.block("else:"):
                    singly = self._one_by_one(short)
        prologue, kernel, epilogue = parts
        lower, upper, step = self._loop.operation.operands[:3]
        first = steps.first if together else steps.last + flying
        self._a.scored(
            LoopScore(
                self._number, lower, upper, step, prologue, kernel, epilogue, first,
                steps.first, needed, singly, together,
            )
        )  # fmt: skip
        self._after()

    def _needed(self, steps: Steps) -> int:
        """Trips below which iterations run one after the other.

        Agents that wait for each other's turns go the same way.
        """
        if not self._a.plan.turns[self._loop.operation] or steps.first == steps.last:
            return steps.last - steps.first + 1
        streams = [agent.stream for agent in self._program.agents]
        return max(s.last for s in streams) - min(s.first for s in streams) + 1

    @property
    def _number(self) -> int:
        return list(self._a.plan.loops).index(self._loop.operation)

    def _beat(
        self, kind: BeatKind, i: Issue, way: Way, thing: str = "", left: int = 0, bytes: int = 0
    ) -> None:
        """What was just written, for whoever asks what the program does."""
        operation = self._wiring.operations[i.op]
        self._beats.append(Beat(kind, i.op, thing, way.stages[i.op], left, bytes, operation))

    def _scored(self) -> tuple[Beat, ...]:
        """What was written since this was asked last."""
        found, self._beats = tuple(self._beats), []
        return found

    def _mark(self, what: Literal["before", "behind"], i: Issue, thing: str) -> None:
        """A clock, where marks are asked for."""
        if self._marked and self._a.tracer is not None:
            for line in self._a.tracer.mark(str(self._number), what, i.op, thing):
                self._a.say(line)

    def _cut(self, issues: Sequence[Issue]) -> Steps:
        """Where steps begin: with the first product that adds to nothing, where there is one."""
        fresh = [
            i.op
            for i in issues
            if opcode(kind_of(self._wiring.operations[i.op])).accumulator is not None
            and not any(self._wiring.operations[i.op].integers("groups")[2:3])
        ]
        starts = self._program.starts
        begins = min(fresh, key=lambda op: starts[op], default=None)
        written = frozenset(
            i.op
            for i in issues
            if not (opcode(kind_of(self._wiring.operations[i.op])).view or self._pure(i.op))
        )
        every = frozenset(i.op for i in issues)
        if self._a.plan.turns[self._loop.operation]:  # agents count each other's steps
            return steps_of(issues, every, None, self._awaited_by)
        return steps_of(issues, written or every, begins, self._awaited_by)

    def _awaited_by(self, i: Issue) -> str | None:
        """The product that an operation waits for, if it is a wait."""
        operation = self._wiring.operations[i.op]
        return self._awaited(i) if opcode(kind_of(operation)).awaits else None

    # Before and after --------------------------------------------------------------------------

    def _before(self) -> None:
        """Everything from outside, the trip count, and where carried values begin."""
        a = self._a
        lower, upper, step = (a.value(v).text for v in self._loop.operation.operands[:3])
        self._lower, self._by = lower, step
        for i in self._issues:
            operation = self._wiring.operations[i.op]
            for wire in self._wiring.wires[i.op]:
                if isinstance(wire, Outer) and not self._inside(wire.value):
                    self._prepare(wire.value)
            for source in i.operands:
                if isinstance(source, LiveIn):
                    self._prepare(self._wiring.live_ins[source.path.origin])
                elif isinstance(source, Through | Direct):
                    self._prepare_scalars(source.path.origin)
            if opcode(kind_of(operation)).accumulator is not None:
                result = operation.results[0]
                if isinstance(result.type, Tile) and not operation.integers("groups")[2]:
                    a.zeros(result.type.shape, a.layouts.of(result))
                self._lay_out(operation)
        self._n = a.names.give("n")
        # Triton fails on a branch that is never taken: a count that is known decides here.
        self._known = known_trips(self._loop.operation, a.plan.maker)
        a.say(f"{self._n} = {trips(lower, upper, step, self._known)}")
        self._ends: list[tuple[Value, Shown]] = []
        for argument, value, result in zip(
            self._body.arguments[1:],
            self._body.terminator.operands,
            self._loop.operation.results,
            strict=True,
        ):
            made = self._wiring.made.get(value)
            if (
                isinstance(argument.type, Buffer | Token)
                or made is None
                or made[0] not in self._mine
            ):
                continue
            variable = self._variable(value)
            begun = self._loop.operation.operands[3 + self._body.arguments.index(argument) - 1]
            if isinstance(argument.type, Tile):
                layout = a.layouts.of(value)  # as the loop leaves it
                a.say(f"{variable} = {a.tile(begun, layout)}")
                self._ends.append((result, Shown(variable, layout)))
            else:
                a.say(f"{variable} = {a.value(begun).text}")
                self._ends.append((result, Shown(variable)))

    def _prepare(self, value: Value) -> None:
        """A value from outside, written before the loop; tiles in shared memory are waited for."""
        if value in (self._body.arguments[0], *self._body.arguments[1:]) or self._inside(value):
            return
        if isinstance(value.type, Buffer):
            if self._a.plan.root(value) in self._a.plan.tiles:
                self._a.buffer(value)
        elif not isinstance(value.type, Token):
            if self._is_view(value):
                return
            self._a.value(value)

    def _is_view(self, value: Value) -> bool:
        """A descriptor."""
        return any(view is value for view, _ in self._a.plan.descriptors)

    def _prepare_scalars(self, origin: str) -> None:
        made = self._program.loop.producers.get(origin)
        if made is None or made not in self._wiring.operations:
            return
        for value in self._wiring.operations[made].operands:
            if not self._inside(value) and isinstance(value.type, Scalar | Pointer):
                self._prepare(value)
            elif value in self._wiring.made and isinstance(value.type, Scalar | Pointer):
                self._prepare_scalars(self._wiring_name(value))

    def _wiring_name(self, value: Value) -> str:
        op, number = self._wiring.made[value]
        return self._program.loop.op(op).results[number]

    def _after(self) -> None:
        for result, shown in self._ends:
            self._a.bind(result, shown)

    def _lay_out(self, product: Operation) -> None:
        """The left factor as a product takes it, once: threads hand it over in shared memory."""
        left, result = product.operands[0], product.results[0]
        if isinstance(left.type, Tile) and isinstance(result.type, Tile) and not self._inside(left):
            shown, wanted = self._outer(left), factor(left.type, self._a.layouts.of(result))
            if shown.layout not in (None, wanted) and (left, wanted) not in self._factors:
                name = self._a.names.give(f"{shown.text}_factor")
                self._a.say(f"{name} = {in_layout(shown, wanted, left.type, self._a.layouts)}")
                self._factors[left, wanted] = name

    def _inside(self, value: Value) -> bool:
        return (
            value in self._wiring.made
            or value in self._body.arguments
            or any(value in op.results for op in self._body.operations)
        )

    # The two ways ------------------------------------------------------------------------------

    def _drained(self, way: Way, together: Sequence[int]) -> tuple[Beat, ...]:
        """Groups of so many iterations: the first size in a loop, one of each further at most."""
        a = self._a
        before = [s for i in self._issues for s in i.operands if isinstance(s, Through | Direct)]
        if any(s.path.distance > 1 and not self._is_scalar(s.path.origin) for s in before):
            told = "reads what iterations before the last left"
            raise EmitError(f"loop `{self._program.loop.name}` {told}, it is not drained")
        if any(self._touched(i) for i in self._issues):
            raise EmitError(f"loop `{self._program.loop.name}` has rings, it is not drained")
        kernel: tuple[Beat, ...] = ()
        begun = "0"
        a.clocks(lambda tracer: tracer.enter(str(self._number)))
        for many in together:
            done = self._n if many == 1 else a.names.give("done")
            if many > 1:
                left = self._n if begun == "0" else f"{begun} + ({self._n} - {begun})"
                a.say(f"{done} = {left} // {many} * {many}")
            if many == together[0]:
                way.base = a.names.give("base")
                block = f"for {way.base} in range({begun}, {done}, {many}):"
            else:  # once at most: a loop would be unrolled
                way.base = begun
                block = f"if {begun} < {done}:"
            with a.lines.block(block):
                a.enter()
                kernel = self._group(way, many)
                a.leave()
            begun = done
        a.clocks(Tracer.leave)
        a.clocks(lambda tracer: tracer.settle(str(self._number), begun, once=self._once))
        return kernel

    def _group(self, way: Way, many: int) -> tuple[Beat, ...]:
        """So many iterations from the first one's begin to the last one's end; each beat once."""
        steps = self._steps
        self._begin(way, self._issues)
        for step in range(steps.first, steps.last + many):
            here = [i for i in self._issues if 0 <= step - self._stage[i.op] < many]
            if any(i.op in steps.written for i in here):
                every = many + steps.last - steps.first
                self._a.say(f"# step {step - steps.first} of {every}")
            way.at = step
            self._step(way, here)
        places = {i.op: n for n, i in enumerate(self._issues)}
        return tuple(sorted(dict.fromkeys(self._scored()), key=lambda beat: places[beat.op]))

    def _one_by_one(self, way: Way) -> tuple[Beat, ...]:
        """Each iteration from its first operation to its last."""
        order = sorted(self._issues, key=lambda i: self._program.starts[i.op])
        self._begin(way, order)
        with self._a.lines.block(f"for {way.step} in range({self._n}):"):
            self._a.enter()
            self._step(way, order, comment=False)
            self._a.leave()
        return self._scored()

    def _flying(self, way: Way) -> bool:
        """Whether products are in flight at the end of a step."""
        pending: list[tuple[str, int]] = []
        for _ in range(self._steps.last + 2):
            for i in self._issues:
                operation = self._wiring.operations[i.op]
                row = opcode(kind_of(operation))
                if row.accumulator is not None and not on_its_own(operation):
                    pending.append((i.op, 0))
                elif row.awaits:
                    target = self._awaited(i)
                    lag = way.stages[i.op] - way.stages[target]
                    if (target, lag) in pending:
                        pending = pending[pending.index((target, lag)) + 1 :]
            pending = [(op, age + 1) for op, age in pending]
        return bool(pending)

    def _pipelined(self, way: Way, *, peel: bool) -> _Parts:
        a = self._a
        steps = self._steps
        self._begin(way, self._issues)
        prologue: list[tuple[int, tuple[Beat, ...]]] = []
        epilogue: list[tuple[int, tuple[Beat, ...]]] = []
        for step in range(steps.first, steps.last):
            a.say(f"# prologue, step {step}")
            way.at = step
            self._step(way, steps.prologue(step))
            prologue.append((step, self._scored()))
        first = steps.last
        if peel:
            a.say("# the kernel's first step")
            way.at = first
            self._step(way, self._issues)
            prologue.append((first, self._scored()))
            first += 1
        way.at = None
        way.step = "step"
        a.say("# kernel")
        before = [(f.op, f.age) for f in way.pending]
        end = f"{self._n} + {steps.first}" if steps.first else self._n
        reread = self._read_behind()
        begun = {slot: a.names.give(f"{slot}_begun") for slot in reread}
        for slot, name in begun.items():
            a.say(f"{name} = {slot}")
        a.clocks(lambda tracer: tracer.enter(str(self._number)))
        kernel = self._steady(way, first, end)
        a.clocks(Tracer.leave)
        if [(f.op, f.age) for f in way.pending] != before:
            raise EmitError(f"loop `{self._program.loop.name}`: products in flight do not settle")
        if begun:
            a.say("# Counted anew: ptxas may take an address of the step before from the loop.")
        for slot, name in begun.items():
            done = f"{self._n} - {first - steps.first}" if first > steps.first else self._n
            a.say(f"{slot} = ({name} + {done}) % {reread[slot]}")
        for step in range(steps.first, steps.last):
            a.say(f"# epilogue, step {self._n} + {step}")
            way.step = f"{self._n} + {step}" if step else self._n
            self._step(way, steps.epilogue(step))
            epilogue.append((step, self._scored()))
        if way.pending:
            self._retire(way, len(way.pending) - 1)
            end_of = Beat("settle", self._issues[-1].op, left=0)
            epilogue.append((steps.last, (end_of,)))
        ran = f"{end} - {first}"
        a.clocks(lambda tracer: tracer.settle(str(self._number), ran, once=self._once))
        return tuple(prologue), kernel, tuple(epilogue)

    def _steady(self, way: Way, first: int, end: str) -> tuple[Beat, ...]:
        """The loop of the kernel."""
        a = self._a
        with a.lines.block(f"for step in range({first}, {end}):"):
            a.enter()
            self._marked = a.tracer is not None and a.tracer.tracing == "marks"
            if self._marked:
                a.say(f"trace_step = step - {first}")
            self._step(way, self._issues)
            self._marked = False
            a.leave()
        return self._scored()

    def _read_behind(self) -> dict[str, int]:
        """Slots that products of the epilogue read, and how many there are of each."""
        found: dict[str, int] = {}
        for i in self._steps.epilogue(self._steps.first):
            if opcode(kind_of(self._wiring.operations[i.op])).accumulator is not None:
                for ring, _ in self._touched(i):
                    found[self._positions[ring.name, self._stage[i.op]][0]] = ring.depth
        return found

    # Rings ---------------------------------------------------------------------------------------

    def _ring(self, storage: str) -> Ring | None:
        return self._a.plan.rings.get((self._loop.operation, storage))

    def _touched(self, i: Issue) -> list[tuple[Ring, bool]]:
        """The rings that an operation reads or writes; whether it reads."""
        found: list[tuple[Ring, bool]] = []
        for accesses, reads in ((i.reads, True), (i.writes, False)):
            for access in accesses:
                ring = self._ring(access.storage)
                if ring is not None:
                    if access.distance:
                        raise EmitError(f"`{i.op}` reads ring `{ring.name}` of an iteration before")
                    found.append((ring, reads))
        return found

    def _begin(self, way: Way, order: Sequence[Issue]) -> None:
        """Where the agent stands in each ring, once for each stage that stands elsewhere."""
        way.pending, way.defined, way.cached = [], set(), {}
        self._positions: dict[tuple[str, int], tuple[str, str]] = {}
        self._last: dict[tuple[str, int], str] = {}
        stages: dict[str, list[int]] = {}
        rings: dict[str, Ring] = {}
        for i in order:
            for ring, _ in self._touched(i):
                rings[ring.name] = ring
                here = stages.setdefault(ring.name, [])
                if way.stages[i.op] not in here:
                    here.append(way.stages[i.op])
                self._last[ring.name, way.stages[i.op]] = i.op
        for name, here in stages.items():
            for n, stage in enumerate(sorted(here)):
                if n == 0:
                    self._positions[name, stage] = (f"{name}_slot", f"{name}_phase")
                    continue
                slot, phase = (
                    self._a.names.give(f"{name}_{what}_{stage}") for what in ("slot", "phase")
                )
                self._a.say(f"{slot}, {phase} = {name}_slot, {name}_phase")
                self._positions[name, stage] = (slot, phase)
        self._rings = rings
        self._set_back(way, order)

    def _first_and_last(self, ring: Ring) -> tuple[str, str]:
        """Of the agent's readers of a ring: who comes first, and who is done last."""
        readers = [i.op for i in self._issues if (ring, True) in self._touched(i)]
        starts = self._program.starts
        return min(readers, key=lambda op: starts[op]), max(readers, key=lambda op: starts[op])

    # Steps ---------------------------------------------------------------------------------------

    def _set_back(self, way: Way, order: Sequence[Issue]) -> None:
        """How many steps back each value is read, and what it was before the first."""
        self._back: dict[str, int] = {}
        for i in order:
            row = opcode(kind_of(self._wiring.operations[i.op]))
            if not row.awaits and not row.view:  # a product in flight is known by its variable
                self._reach_back(way, i)
        for name, most in self._back.items():
            first = self._wiring.initial.get((name, -1))
            if first is None:
                continue
            variable = self._variable_named(name)
            for b in range(1, most + 1):
                self._a.say(f"{variable}__{b} = {variable}")
                way.defined.add(f"{variable}__{b}")

    def _reach_back(self, way: Way, i: Issue) -> None:
        """Of what one operation reads, through views too."""
        for source in i.operands:
            if not isinstance(source, Through | Direct):
                continue
            name = source.path.origin
            below = self._below(way, i, source.path)
            if below is not None:
                self._reach_back(*below)
            elif not self._is_scalar(name):
                back = self._steps_back(way, i, source.path)
                if back:
                    self._back[name] = max(self._back.get(name, 0), back)

    def _below(self, way: Way, i: Issue, path: Path) -> tuple[Way, Issue] | None:
        """A view that an operation reads, as of the reader's iteration; None: it reads no view.

        Views stand where they are read: on which side of a step's beginning the schedule has one
        says nothing.
        """
        maker = self._program.loop.producers.get(path.origin)
        if maker is None or self._pure(maker):
            return None
        if not opcode(kind_of(self._wiring.operations[maker])).view:
            return None
        stages = {**way.stages, maker: way.stages[i.op] + path.distance}
        return replace(way, stages=stages), self._issue_of[maker]

    def _steps_back(self, way: Way, i: Issue, path: Path) -> int:
        maker = self._program.loop.producers.get(path.origin)
        if maker is None or maker not in way.stages:
            return 0
        return way.stages[i.op] + path.distance - way.stages[maker]

    def _is_scalar(self, name: str) -> bool:
        """A number that follows from the iteration alone: computed where it is used."""
        maker = self._program.loop.producers.get(name)
        return maker is not None and self._pure(maker)

    def _pure(self, op: str) -> bool:
        operation = self._wiring.operations[op]
        types = [result.type for result in operation.results]
        if not types or any(not isinstance(type, Scalar | Pointer) for type in types):
            return False
        if not operation.name.startswith(("arith.", "math.")) and kind_of(operation) != "offset":
            return False
        for value in operation.operands:
            if value is self._body.arguments[0] or not self._inside(value):
                continue
            made = self._wiring.made.get(value)
            if made is None:
                constant = self._constant(value)
                if constant is None:
                    return False
            elif not self._pure(made[0]):
                return False
        return True

    def _constant(self, value: Value) -> str | None:
        made = self._a.plan.maker.get(value)
        if made is not None and kind_of(made) == "arith.constant":
            return literal(made.attributes["value"], value.type)
        return None

    def _step(self, way: Way, issues: Sequence[Issue], *, comment: bool = True) -> None:
        made: set[str] = set()
        way.cached = {}
        for i in issues:
            operation = self._wiring.operations[i.op]
            kind = kind_of(operation)
            row = opcode(kind)
            touched = self._touched(i)
            before = len(self._a.lines.lines)
            quiet = row.view or self._pure(i.op)
            if not quiet:
                self._waits(way, i, touched)
            self._await_turns(way, i)
            if not quiet:
                self._issue(way, i, operation, kind)
                if not (kind == TMA_LOAD or row.accumulator is not None or row.awaits):
                    self._beat("store" if kind == TMA_STORE else "work", i, way)
                self._releases(way, i, touched)
                made |= set(self._program.loop.op(i.op).results)
            self._hand_on(way, i, kind)
            if comment and len(self._a.lines.lines) > before:
                where = f"  # stage {i.at.stage}, cycle {i.at.cycle}"
                self._a.lines.lines[before] += where
            for ring, stage in dict.fromkeys((r, way.stages[i.op]) for r, _ in _hashable(touched)):
                if self._last[ring, stage] == i.op:
                    self._advance(self._rings[ring], stage)
        for name, most in self._back.items():
            variable = self._variable_named(name)
            for b in range(most, 1, -1):
                if f"{variable}__{b - 1}" in way.defined:
                    self._a.say(f"{variable}__{b} = {variable}__{b - 1}")
                    way.defined.add(f"{variable}__{b}")
            if name in made:
                self._a.say(f"{variable}__1 = {variable}")
                way.defined.add(f"{variable}__1")
        way.pending = [replace(f, age=f.age + 1) for f in way.pending]

    def _advance(self, ring: Ring, stage: int) -> None:
        slot, phase = self._positions[ring.name, stage]
        self._a.say(f"{slot}, {phase} = next_slot({slot}, {phase}, {ring.depth})")

    def _waits(self, way: Way, i: Issue, touched: Sequence[tuple[Ring, bool]]) -> None:
        a = self._a
        for ring, reads in touched:
            slot, phase = self._positions[ring.name, way.stages[i.op]]
            if reads and ring.full and self._first_and_last(ring)[0] == i.op:
                self._mark("before", i, f"full {ring.name}")
                a.say(f"mbarrier.wait({a.take(f'{ring.name}_full')}.index({slot}), {phase})")
                self._mark("behind", i, f"full {ring.name}")
                self._beat("full", i, way, ring.name)
            if not reads and ring.free:
                self._mark("before", i, f"free {ring.name}")
                # An agent that also reads the ring counts its phases as readers do.
                parity = f"{phase} ^ 1" if ring.own else phase
                a.say(f"mbarrier.wait({a.take(f'{ring.name}_free')}.index({slot}), {parity})")
                self._mark("behind", i, f"free {ring.name}")
                self._beat("free", i, way, ring.name)

    def _releases(self, way: Way, i: Issue, touched: Sequence[tuple[Ring, bool]]) -> None:
        a = self._a
        for ring, reads in touched:
            if reads and ring.free and self._first_and_last(ring)[1] == i.op:
                slot, _ = self._positions[ring.name, way.stages[i.op]]
                free = f"{a.take(f'{ring.name}_free')}.index({slot})"
                operation = self._wiring.operations[i.op]
                if on_its_own(operation):
                    a.say(f"tcgen05_commit({free})")
                    continue
                if kind_of(operation) == SMEM_READ:
                    a.say("fence_async_shared()")
                a.say(f"mbarrier.arrive({free}, count=1)")
                self._beat("arrive", i, way, ring.name)

    # Turns ---------------------------------------------------------------------------------------

    def _await_turns(self, way: Way, i: Issue) -> None:
        a = self._a
        for turn in a.plan.turns[self._loop.operation]:
            if turn.waiter == i.op:
                self._mark("before", i, f"free {turn.name}")
                a.take(turn.name)
                a.say(f"mbarrier.wait({turn.barrier}, {turn.name}_phase)")
                self._mark("behind", i, f"free {turn.name}")
                self._beat("free", i, way, turn.name)
                self._next_turn(turn)

    def _hand_on(self, way: Way, i: Issue, kind: str) -> None:
        a = self._a
        for turn in a.plan.turns[self._loop.operation]:
            if turn.holder == i.op:
                a.take(turn.name)
                if turn.committed:
                    a.say(f"tcgen05_commit({turn.barrier})")
                else:
                    if kind in (SMEM_READ, SMEM_WRITE):
                        a.say("fence_async_shared()")
                    a.say(f"mbarrier.arrive({turn.barrier}, count=1)")
                self._beat("arrive", i, way, turn.name)
                self._next_turn(turn)

    def _next_turn(self, turn: Turn) -> None:
        for line in turn.next(self._a.worker.name):
            self._a.say(line)

    # Operations ----------------------------------------------------------------------------------

    def _variable(self, value: Value) -> str:
        op, number = self._wiring.made[value]
        return self._variable_named(self._program.loop.op(op).results[number])

    def _variable_named(self, name: str) -> str:
        if name not in self._variables:
            self._variables[name] = self._a.names.give(name)
        return self._variables[name]

    def _issue(self, way: Way, i: Issue, operation: Operation, kind: str) -> None:
        a = self._a
        row = opcode(kind)
        if kind == TMA_LOAD:
            self._copy(way, i, operation)
            self._mark("behind", i, "copy")
            ring = next(r for r, reads in self._touched(i) if not reads)
            self._beat("copy", i, way, ring.name, bytes=ring.bytes)
        elif on_its_own(operation):
            factors = self._shared(way, i, 0), self._shared(way, i, 1)
            a.sums.add(operation, factors, way.iteration(way.stages[i.op]))
            self._beat("product", i, way)
        elif row.accumulator is not None:
            self._product(way, i, operation)
            self._mark("behind", i, "product")
            self._beat("product", i, way)
        elif row.awaits:
            self._mark("before", i, "products")
            self._await(way, i, operation)
            self._mark("behind", i, "products")
            self._beat("settle", i, way, self._awaited(i), len(way.pending))
        elif kind == SMEM_WRITE:
            self._put_in_slot(way, i, operation)
        elif kind == SMEM_READ:
            layout = a.layouts.of(operation.result)
            text = f"{self._shared(way, i, 0)}.load({layout})"
            a.say(f"{self._variable(operation.result)} = {text}")
        elif kind == STORE:
            a.store(operation, self._by_value(way, i, operation))
        elif kind == LOAD:
            shown = a.loaded(operation, self._by_value(way, i, operation))
            a.say(f"{self._variable(operation.results[0])} = {shown.text}")
        elif kind in ATOMIC:
            shown, result = a.atomic(operation, self._by_value(way, i, operation)), operation.result
            read = a.plan.is_read(result)
            a.say(f"{self._variable(result)} = {shown.text}" if read else shown.text)
        elif kind == TMA_STORE:
            view = operation.operands[1]
            numbers = [
                n for n, v in enumerate(operation.operands) if n > 1 and isinstance(v.type, Scalar)
            ]
            at = ", ".join(self._operand(way, i, n).text for n in numbers)
            descriptor = a.descriptor(view, operation.operands[0])
            a.say(f"tma_store({descriptor}, [{at}], {self._shared(way, i, 0)})")
            a.stores = True
        elif operation.regions or not operation.results:
            raise unwritten(operation, " in a pipelined loop")
        else:
            self._compute(way, i, operation)

    def _compute(self, way: Way, i: Issue, operation: Operation) -> None:
        shown = [self._operand(way, i, n) for n in range(len(operation.operands))]
        if kind_of(operation) == SPLIT:
            names = [self._variable(result) for result in operation.results]
            self._a.say(f"{', '.join(names)} = {halves(operation, shown[0], self._a.layouts)}")
            for name, result in zip(names, operation.results, strict=True):
                self._a.say(f"{name} = {half(operation, name, result, self._a.layouts)}")
            return
        text = computed(operation, shown, self._a.layouts).text
        if self._narrows_ahead(i, operation):
            self._a.holds = True
            text = f"held({text})"
        self._a.say(f"{self._variable(operation.result)} = {text}")

    def _narrows_ahead(self, i: Issue, operation: Operation) -> bool:
        """Whether it makes numbers of half the width for the next step.

        LLVM would carry the wide ones and narrow them there, where nothing hides it.
        """
        (result,) = operation.results
        if kind_of(operation) != "arith.truncf" or not isinstance(result.type, Tile):
            return False
        element = result.type.element
        wide = result.type.elements >= 2 * HELD_BY
        carried = self._program.loop.op(i.op).results[0] in self._back
        return wide and carried and isinstance(element, Scalar) and element.bits == HELD_BITS

    def _put_in_slot(self, way: Way, i: Issue, operation: Operation) -> None:
        """Registers to a slot of a ring."""
        a = self._a
        ring = next(r for r, reads in self._touched(i) if not reads)
        slot, _ = self._positions[ring.name, way.stages[i.op]]
        shown = whole(self._operand(way, i, 0), operation, 0)
        stores = [j for j in self._issues if kind_of(self._wiring.operations[j.op]) == TMA_STORE]
        if any((ring, True) in self._touched(j) for j in stores):
            a.say(f"tma.store_wait({len(stores) * (ring.depth - 1)})")
        source = operation.operands[0]
        text = in_layout(shown, a.layouts.of(source), source.type, a.layouts)
        a.say(f"{a.take(ring.name)}.index({slot}).store({text})")
        a.say("fence_async_shared()")

    def _by_value(self, way: Way, i: Issue, operation: Operation):
        def shown(value: Value) -> Shown:
            return self._operand(way, i, operation.operands.index(value))

        return shown

    def _copy(self, way: Way, i: Issue, operation: Operation) -> None:
        a = self._a
        ring = next(r for r, reads in self._touched(i) if not reads)
        slot, _ = self._positions[ring.name, way.stages[i.op]]
        view, *coordinates = operation.operands[:-1]
        at = ", ".join(self._operand(way, i, n + 1).text for n in range(len(coordinates)))
        full = f"{a.take(f'{ring.name}_full')}.index({slot})"
        descriptor = a.descriptor(view, operation.operands[-1])
        a.say(f"mbarrier.expect({full}, {ring.bytes})")
        a.say(f"tma_load({descriptor}, [{at}], {full}, {a.take(ring.name)}.index({slot}))")

    def _product(self, way: Way, i: Issue, operation: Operation) -> None:
        a = self._a
        result = operation.results[0]
        assert isinstance(result.type, Tile)
        layout = a.layouts.of(result)
        variable = self._variable(result)
        keep: tuple[str, ...] = ()
        outside = ""
        left = operation.operands[0]
        if isinstance(left.type, Buffer):
            first = self._shared(way, i, 0)
        else:
            shown, wanted = self._operand(way, i, 0), factor(left.type, layout)
            first = self._factors.get((left, wanted), shown.text)
            if first == shown.text and shown.layout != wanted:
                first = f"{variable}_a"
                a.say(f"{first} = {in_layout(shown, wanted, left.type, a.layouts)}")
                keep = (first,)
            elif not way.pending and self._from_outside(i, 0) and not self._carries_a_factor(way):
                outside = first
        second = self._shared(way, i, 1)
        wires = self._wiring.wires[i.op]
        if not operation.integers("groups")[2]:
            total = f"{a.zeros(result.type.shape, layout)}, use_acc=False"
        elif isinstance(wires[2], Accumulated):
            total = variable
        else:
            total = in_layout(self._operand(way, i, 2), layout, result.type, a.layouts)
        a.say(f"{variable} = warpgroup_mma({first}, {second}, {total}, is_async=True)")
        way.pending.append(Flight(i.op, variable, keep, outside))

    def _from_outside(self, i: Issue, number: int) -> bool:
        """Whether an operand is the same in all steps."""
        wire = self._wiring.wires[i.op][number]
        if isinstance(wire, Taken):
            return isinstance(i.operands[wire.position], LiveIn)
        return isinstance(wire, Outer)

    def _carries_a_factor(self, way: Way) -> bool:
        """Whether a product of a step has its left factor from the step before, in registers."""
        for i in self._issues:
            wires = self._wiring.wires[i.op]
            row = opcode(kind_of(self._wiring.operations[i.op]))
            if row.accumulator is not None and isinstance(wires[0], Taken):
                source = i.operands[wires[0].position]
                if isinstance(source, Through | Direct) and self._steps_back(way, i, source.path):
                    return True
        return False

    def _awaited(self, i: Issue) -> str:
        """The product that an operation waits for."""
        operation = self._wiring.operations[i.op]
        return self._wiring.made[operation.operands[0]][0]

    def _await(self, way: Way, i: Issue, operation: Operation) -> None:
        target = self._awaited(i)
        lag = way.stages[i.op] - way.stages[target]
        here = [n for n, f in enumerate(way.pending) if f.op == target and f.age == lag]
        product = self._variable(self._wiring.operations[target].results[0])
        if here:
            self._retire(way, here[0])
        if operation.results:
            self._a.say(f"{self._variable(operation.result)} = {product}")

    def _retire(self, way: Way, upto: int) -> None:
        """Wait until a product is done; those before it are done as well."""
        done, way.pending = way.pending[: upto + 1], way.pending[upto + 1 :]
        names = list(dict.fromkeys(n for f in done for n in (f.variable, *f.keep)))
        # Where no other product runs at the same time, ptxas 12.8 may give the registers of a
        # factor that no step changes to that of the next product, and not restore them.
        if len(done) == 1 and not way.pending and done[0].outside:
            names.append(done[0].outside)
        listed = ", ".join(names)
        self._a.say(f"{listed} = warpgroup_mma_wait({len(way.pending)}, deps=({listed},))")
        for name in names:
            if any(f.variable == name for f in way.pending):  # it is added to all the same
                self._a.say(f"{name} = warpgroup_mma_init({name})")

    # Operands ------------------------------------------------------------------------------------

    def _shared(self, way: Way, i: Issue, number: int) -> str:
        """A tile in shared memory: a slot of a ring, or one that is there for all steps."""
        value = self._wiring.operations[i.op].operands[number]
        wire = self._wiring.wires[i.op][number]
        if isinstance(wire, Taken):
            source = i.operands[wire.position]
            if isinstance(source, Stored):
                ring = self._ring(i.reads[source.read].storage)
                if ring is not None:
                    slot, _ = self._positions[ring.name, way.stages[i.op]]
                    views = self._a.views(value)
                    return f"{self._a.take(ring.name)}.index({slot}){views}"
        return self._a.buffer(value)

    def _operand(self, way: Way, i: Issue, number: int) -> Shown:
        operation = self._wiring.operations[i.op]
        wire = self._wiring.wires[i.op][number]
        if isinstance(wire, Outer):
            return self._outer(wire.value)
        if not isinstance(wire, Taken):
            raise EmitError(f"operand {number} of `{i.op}` has no Gluon yet", operation)
        source = i.operands[wire.position]
        if isinstance(source, LiveIn):
            outside = self._entering(source.path)
            if outside is self._body.arguments[0]:
                shown = Shown(self._counter(way.iteration(way.stages[i.op] + source.path.distance)))
            else:
                shown = self._outer(outside)
            return self._through(source.path, shown)
        if isinstance(source, Through | Direct):
            return self._through(source.path, self._register(way, i, source.path))
        raise EmitError(f"operand {number} of `{i.op}` has no Gluon yet", operation)

    def _entering(self, path: Path) -> Value:
        """What comes in: one name stands for all views of a value, so the first in the loop says
        which of them it is."""
        wires = self._wiring.wires[path.views[-1]] if path.views else ()
        if wires and isinstance(wires[0], Outer):
            return wires[0].value
        return self._wiring.live_ins[path.origin]

    def _outer(self, value: Value) -> Shown:
        constant = self._constant(value)
        if constant is not None:
            return Shown(constant)
        made = self._a.plan.maker.get(value)
        if self._inside(value) and made is not None and opcode(kind_of(made)).view:
            return seen_through(made, self._outer(made.operands[0]), self._a.layouts)
        return self._a.value(value)

    def _through(self, path: Path, shown: Shown) -> Shown:
        """What a reader sees through views."""
        for view in reversed(path.views):
            shown = seen_through(self._wiring.operations[view], shown, self._a.layouts)
        return shown

    def _register(self, way: Way, i: Issue, path: Path) -> Shown:
        maker = self._program.loop.producers[path.origin]
        operation = self._wiring.operations[maker]
        number = self._program.loop.op(maker).results.index(path.origin)
        value = operation.results[number]
        if self._pure(maker):
            text = self._scalar(way, value, way.iteration(way.stages[i.op] + path.distance))
            return Shown(text)
        below = self._below(way, i, path)
        if below is not None:
            return seen_through(operation, self._operand(*below, 0), self._a.layouts)
        if maker not in self._mine:
            raise EmitError(
                f"`{i.op}` takes `{path.origin}` in registers from another agent", operation
            )
        back = self._steps_back(way, i, path)
        variable = self._variable_named(path.origin)
        layout = self._a.layouts.of(value) if isinstance(value.type, Tile) else None
        return Shown(f"{variable}__{back}" if back else variable, layout)

    def _counter(self, iteration: str) -> str:
        """The loop's own counter in an iteration."""
        begins = self._lower
        if self._by == "1":
            text = iteration
        elif iteration.isdigit():
            text = f"{iteration} * {wrapped(self._by)}"
        else:
            text = f"{wrapped(iteration)} * {wrapped(self._by)}"
        return text if begins == "0" else f"{wrapped(begins)} + {text}"

    def _scalar(self, way: Way, value: Value, iteration: str) -> str:
        if value is self._body.arguments[0]:
            return self._counter(iteration)
        constant = self._constant(value)
        if constant is not None:
            return constant
        made = self._wiring.made.get(value)
        if made is None:
            return self._a.value(value).text
        operation = self._wiring.operations[made[0]]
        texts = [wrapped(self._scalar(way, v, iteration)) for v in operation.operands]
        return expression(operation, texts)


def _hashable(touched: Sequence[tuple[Ring, bool]]) -> list[tuple[str, bool]]:
    return [(ring.name, reads) for ring, reads in touched]
