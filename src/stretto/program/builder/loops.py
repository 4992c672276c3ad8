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

from stretto.kernel import Operation, Value
from stretto.kernel.lowering.written import LOAD, STORE, TMA_LOAD, TMA_STORE
from stretto.kernel.tree import kind_of
from stretto.kernel.types import Buffer, Pointer, Scalar, Tile, Token
from stretto.kernel.wiring import Accumulated, Outer, Taken
from stretto.materialize.program import Direct, Issue, LiveIn, Path, Stored, Stream, Through
from stretto.ops.opcodes import opcode
from stretto.program.atomics import ATOMIC
from stretto.program.builder.agent import AgentBuilder
from stretto.program.builder.operands import (
    Operand,
    computed,
    in_layout,
    is_together,
    seen_through,
    together,
    whole,
)
from stretto.program.builder.plan import SMEM_READ, SMEM_WRITE, Looped
from stretto.program.builder.rings import Ring
from stretto.program.builder.steps import Steps, steps_of
from stretto.program.builder.sums import on_its_own
from stretto.program.builder.tracer import Tracer
from stretto.program.builder.trips import known_trips, sizes, trips
from stretto.program.builder.turns import Turn
from stretto.program.errors import EmitError, unwritten
from stretto.program.expressions import (
    INDEX,
    Arithmetic,
    Barrier,
    Computed,
    Counter,
    Expression,
    Held,
    Iteration,
    Name,
    Slot,
    number,
)
from stretto.program.expressions import Literal as LiteralNumber
from stretto.program.instructions import (
    Advance,
    Arrive,
    Assign,
    Commit,
    CopyIn,
    CopyOut,
    Expect,
    Fence,
    For,
    If,
    Kept,
    Load,
    Origin,
    Pipelined,
    Product,
    ProductInit,
    Put,
    Read,
    Remark,
    Settle,
    Step,
    StepKind,
    StoreWait,
    ThreadBarrier,
    Wait,
)
from stretto.program.layouts import Layout, factor

HELD_BITS = 16
HELD_BY = 256
"""Threads of an agent at most: each holds two such numbers in a register."""
STEP = "step"
"""The variable that counts steps."""
OVERWRITTEN = "ptxas 12.8 may give its registers to the next product, and not restore them"
"""Why a left factor is named that no step changes."""
RECOUNTED = "Counted anew: ptxas may take an address of the step before from the loop."


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
    step: str = STEP
    """The variable that counts."""
    ahead: int | None = None
    """By how much steps are ahead of it, behind the kernel's."""
    at: int | None = None
    """The step, where it is a number."""
    base: str = ""
    """The iteration that the number counts from, where that is not the first."""
    pending: list[Flight] = field(default_factory=list[Flight])
    defined: set[str] = field(default_factory=set[str])
    """Variables of earlier steps that there are."""

    def iteration(self, stage: int) -> Iteration:
        """The iteration that a stage works on."""
        if self.at is not None:
            return Iteration(self.base, self.at - stage)
        return Iteration(self.step, self.ahead, stage)


class LoopBuilder:
    """Builds one loop of one agent."""

    def __init__(self, agent: AgentBuilder, loop: Looped) -> None:
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
        self._factors: dict[tuple[Value, Layout], Name] = {}
        """Left factors from outside, as products take them."""
        self._marked = False
        self._once = len(agent.plan.workers) == 1 and not agent.inside
        """Whether it runs once, in one group of warps, whose own loads clocks would hold up."""

    def build(self) -> None:
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
        known = self._known
        together = sizes(needed, known) if self._loop.drained and needed > 1 else ()
        if together and flying:
            raise EmitError(f"loop `{self._program.loop.name}`: products fly on, it is not drained")
        with self._a.block() as body:
            if together:
                self._drained(long, together)
            elif steps.first == steps.last and not flying:
                self._pipelined(long, peel=False)
            elif known is not None and known >= needed:
                self._pipelined(long, peel=flying)
            elif known is not None:
                self._one_by_one(short)
            else:
                self._either(long, short, needed, peel=flying)
        lower, upper, step = self._loop.operation.operands[:3]
        first = steps.first if together else steps.last + flying
        order = tuple(i.op for i in self._issues)
        self._a.say(
            Pipelined(
                self._number, self._loop.operation, lower, upper, step, self._known, first,
                steps.first, needed, together, order, tuple(body),
            )
        )  # fmt: skip
        self._after()

    def _either(self, long: Way, short: Way, needed: int, *, peel: bool) -> None:
        """By a pipeline, or where there are too few trips for one, one after the other."""
        with self._a.block() as pipelined:
            self._pipelined(long, peel=peel)
        singly = None
        if needed > 1:
            with self._a.block() as body:
                self._one_by_one(short)
            singly = tuple(body)
        enough = Arithmetic(">=", Name(self._n), number(needed))
        self._a.say(If(enough, tuple(pipelined), singly))

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

    def _mark(self, what: Literal["before", "behind"], i: Issue, thing: str) -> None:
        """A clock, where marks are asked for."""
        if self._marked and self._a.tracer is not None:
            for instruction in self._a.tracer.mark(str(self._number), what, i.op, thing):
                self._a.say(instruction)

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

    def _index(self, counted: Expression) -> Expression:
        """What was counted with the loop's own numbers, as those that the pipeline counts with."""
        bound = self._loop.operation.operands[1]
        if bound.type == INDEX:
            return counted
        narrow = Operation(
            "arith.trunci", (bound,), (Value(INDEX),), location=self._loop.operation.location
        )
        return Computed(narrow, (counted,))

    # Before and after --------------------------------------------------------------------------

    def _before(self) -> None:
        """Everything from outside, the trip count, and where carried values begin."""
        a = self._a
        lower, upper, step = (a.value(v).expression for v in self._loop.operation.operands[:3])
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
            if opcode(kind_of(operation)).multiplies:
                self._lay_out(operation, 0)
                self._lay_out(operation, 1)
            elif opcode(kind_of(operation)).accumulator is not None:
                result = operation.results[0]
                if isinstance(result.type, Tile) and not operation.integers("groups")[2]:
                    a.zeros(result.type, a.layouts.of(result))
                self._lay_out(operation)
        self._n = a.names.give("n")
        # Triton fails on a branch that is never taken: a count that is known decides here.
        self._known = known_trips(self._loop.operation, a.plan.maker)
        a.say(Assign((self._n,), (trips(lower, upper, step, self._known),)))
        self._ends: list[tuple[Value, Operand]] = []
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
                a.say(Assign((variable,), (a.tile(begun, layout),)))
                self._ends.append((result, Operand(Name(variable), layout)))
            else:
                a.say(Assign((variable,), (a.value(begun).expression,)))
                self._ends.append((result, Operand(Name(variable))))

    def _prepare(self, value: Value) -> None:
        """A value from outside, computed before the loop; tiles in shared memory are waited for."""
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
        for result, operand in self._ends:
            self._a.bind(result, operand)

    def _lay_out(self, product: Operation, side: int = 0) -> None:
        """A factor as a product takes it, once: threads hand it over in shared memory."""
        value, result = product.operands[side], product.results[0]
        if not isinstance(value.type, Tile) or not isinstance(result.type, Tile):
            return
        if self._inside(value):
            return
        operand, wanted = self._outer(value), factor(value.type, self._a.layouts.of(result), side)
        if operand.layout in (None, wanted) or (value, wanted) in self._factors:
            return
        called = operand.expression.name if isinstance(operand.expression, Name) else "left"
        name = self._a.names.give(f"{called}_factor")
        operand = whole(operand, product, side)
        self._a.say(Assign((name,), (in_layout(operand, wanted, value.type, self._a.layouts),)))
        self._factors[value, wanted] = Name(name)

    def _inside(self, value: Value) -> bool:
        return (
            value in self._wiring.made
            or value in self._body.arguments
            or any(value in op.results for op in self._body.operations)
        )

    # The two ways ------------------------------------------------------------------------------

    def _drained(self, way: Way, together: Sequence[int]) -> None:
        """Groups of so many iterations: the first size in a loop, one of each further at most."""
        a = self._a
        before = [s for i in self._issues for s in i.operands if isinstance(s, Through | Direct)]
        if any(s.path.distance > 1 and not self._is_scalar(s.path.origin) for s in before):
            told = "reads what iterations before the last left"
            raise EmitError(f"loop `{self._program.loop.name}` {told}, it is not drained")
        if any(self._touched(i) for i in self._issues):
            raise EmitError(f"loop `{self._program.loop.name}` has rings, it is not drained")
        n = Name(self._n)
        begun: Name | None = None
        a.clocks(lambda tracer: tracer.enter(str(self._number)))
        for many in together:
            done, first = n, begun or number(0)
            if many > 1:
                done = Name(a.names.give("done"))
                left = n if begun is None else Arithmetic("-", n, begun)
                whole = Arithmetic("*", Arithmetic("//", left, number(many)), number(many))
                last = whole if begun is None else Arithmetic("+", begun, whole)
                a.say(Assign((done.name,), (last,)))
            with a.block() as body:
                way.base = a.names.give("base") if begun is None else begun.name
                a.enter()
                self._group(way, many)
                a.leave()
            if begun is None:
                a.say(For(way.base, first, done, number(many), tuple(body)))
            else:  # once at most: a loop would be unrolled
                a.say(If(Arithmetic("<", begun, done), tuple(body)))
            begun = done
        a.clocks(Tracer.leave)
        ran = begun or number(0)
        a.clocks(lambda tracer: tracer.settle(str(self._number), ran, once=self._once))

    def _group(self, way: Way, many: int) -> None:
        """So many iterations from the first one's begin to the last one's end."""
        steps = self._steps
        self._begin(way, self._issues)
        for step in range(steps.first, steps.last + many):
            here = [i for i in self._issues if 0 <= step - self._stage[i.op] < many]
            if any(i.op in steps.written for i in here):
                every = many + steps.last - steps.first
                self._a.say(Remark(f"step {step - steps.first} of {every}"))
            way.at = step
            self._step(way, here, "group", step)

    def _one_by_one(self, way: Way) -> None:
        """Each iteration from its first operation to its last."""
        order = sorted(self._issues, key=lambda i: self._program.starts[i.op])
        self._begin(way, order)
        with self._a.block() as body:
            self._a.enter()
            self._step(way, order, "iteration", 0)
            self._a.leave()
        self._a.say(For(way.step, None, Name(self._n), None, tuple(body)))

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

    def _pipelined(self, way: Way, *, peel: bool) -> None:
        a, n = self._a, Name(self._n)
        steps = self._steps
        self._begin(way, self._issues)
        for step in range(steps.first, steps.last):
            a.say(Remark(f"prologue, step {step}"))
            way.at = step
            self._step(way, steps.prologue(step), "prologue", step)
        first = steps.last
        if peel:
            a.say(Remark("the kernel's first step"))
            way.at = first
            self._step(way, self._issues, "prologue", first)
            first += 1
        way.at, way.step, way.ahead = None, STEP, None
        a.say(Remark("kernel"))
        before = [(f.op, f.age) for f in way.pending]
        end = Arithmetic("+", n, number(steps.first)) if steps.first else n
        reread = self._read_behind()
        begun = {slot: a.names.give(f"{slot}_begun") for slot in reread}
        for slot, name in begun.items():
            a.say(Assign((name,), (Name(slot),), reason=RECOUNTED))
        a.clocks(lambda tracer: tracer.enter(str(self._number)))
        self._steady(way, first, end)
        a.clocks(Tracer.leave)
        if [(f.op, f.age) for f in way.pending] != before:
            raise EmitError(f"loop `{self._program.loop.name}`: products in flight do not settle")
        if begun:
            a.say(Remark(RECOUNTED))
        for slot, name in begun.items():
            went = Arithmetic("+", Name(name), n)
            if first > steps.first:
                went = Arithmetic("-", went, number(first - steps.first))
            again = self._index(Arithmetic("%", went, number(reread[slot])))
            a.say(Assign((slot,), (again,), reason=RECOUNTED))
        for step in range(steps.first, steps.last):
            a.say(Remark(f"epilogue, step {self._n} + {step}"))
            way.step, way.ahead = self._n, step or None
            self._step(way, steps.epilogue(step), "epilogue", step)
        if way.pending:
            with a.of(Origin(self._issues[-1].op)), a.block() as body:
                self._retire(way, len(way.pending) - 1)
            way.step, way.ahead = self._n, steps.last or None
            a.say(Step("epilogue", steps.last, way.iteration(0), tuple(body)))
        ran = Arithmetic("-", end, number(first))
        a.clocks(lambda tracer: tracer.settle(str(self._number), ran, once=self._once))

    def _steady(self, way: Way, first: int, end: Expression) -> None:
        """The loop of the kernel."""
        a = self._a
        with a.block() as body:
            a.enter()
            self._marked = a.tracer is not None and a.tracer.tracing == "marks"
            if self._marked:
                a.say(Assign(("trace_step",), (Arithmetic("-", Name(STEP), number(first)),)))
            self._step(way, self._issues, "kernel", 0)
            self._marked = False
            a.leave()
        a.say(For(STEP, number(first), end, None, tuple(body)))

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
        way.pending, way.defined = [], set()
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
                here_too = Name(f"{name}_slot"), Name(f"{name}_phase")
                self._a.say(Assign((slot, phase), here_too))
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
                self._a.say(Assign((f"{variable}__{b}",), (Name(variable),)))
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
        if (
            not operation.name.startswith(("arith.", "math.", "libdevice."))
            and kind_of(operation) != "offset"
        ):
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

    def _constant(self, value: Value) -> LiteralNumber | None:
        made = self._a.plan.maker.get(value)
        if made is not None and kind_of(made) == "arith.constant":
            return LiteralNumber(made.attributes["value"], value.type)
        return None

    def _step(self, way: Way, issues: Sequence[Issue], kind: StepKind, number: int) -> None:
        with self._a.block() as body:
            self._run(way, issues, opens=kind != "iteration")
        self._a.say(Step(kind, number, way.iteration(0), tuple(body)))

    def _run(self, way: Way, issues: Sequence[Issue], *, opens: bool) -> None:
        """What happens in a step; `opens`: and where each operation of the schedule begins."""
        made: set[str] = set()
        for i in issues:
            before = self._a.length
            operation = self._wiring.operations[i.op]
            at = (i.at.stage, i.at.cycle)
            with self._a.of(Origin(i.op, way.stages[i.op], operation, at)):
                made |= self._operation(way, i, operation)
            if opens:
                self._a.open_at(before)
            touched = self._touched(i)
            for ring, stage in dict.fromkeys((r, way.stages[i.op]) for r, _ in _hashable(touched)):
                if self._last[ring, stage] == i.op:
                    self._advance(self._rings[ring], stage)
        for name, most in self._back.items():
            variable = self._variable_named(name)
            for b in range(most, 1, -1):
                if f"{variable}__{b - 1}" in way.defined:
                    self._move(f"{variable}__{b}", f"{variable}__{b - 1}", way)
            if name in made:
                self._move(f"{variable}__1", variable, way)
        way.pending = [replace(f, age=f.age + 1) for f in way.pending]

    def _move(self, target: str, source: str, way: Way) -> None:
        """A step later, a variable of a step before has what another had."""
        self._a.say(Assign((target,), (Name(source),)))
        way.defined.add(target)

    def _operation(self, way: Way, i: Issue, operation: Operation) -> frozenset[str]:
        """One operation of a step, with its waits and releases: names of what it made."""
        kind = kind_of(operation)
        touched, made = self._touched(i), frozenset[str]()
        quiet = opcode(kind).view or self._pure(i.op)
        if not quiet:
            self._waits(way, i, touched)
        self._await_turns(i)
        if not quiet:
            self._issue(way, i, operation, kind)
            self._releases(way, i, touched)
            made = frozenset(self._program.loop.op(i.op).results)
        self._hand_on(i, kind)
        return made

    def _advance(self, ring: Ring, stage: int) -> None:
        slot, phase = self._positions[ring.name, stage]
        self._a.say(Advance(slot, phase, ring.depth))

    def _waits(self, way: Way, i: Issue, touched: Sequence[tuple[Ring, bool]]) -> None:
        a = self._a
        for ring, reads in touched:
            slot, phase = self._positions[ring.name, way.stages[i.op]]
            if reads and ring.full and self._first_and_last(ring)[0] == i.op:
                self._mark("before", i, f"full {ring.name}")
                a.say(Wait(Barrier(a.take(f"{ring.name}_full"), slot), Name(phase)))
                self._mark("behind", i, f"full {ring.name}")
            if not reads and ring.free:
                self._mark("before", i, f"free {ring.name}")
                # An agent that also reads the ring counts its phases as readers do.
                parity = Arithmetic("^", Name(phase), number(1)) if ring.own else Name(phase)
                a.say(Wait(Barrier(a.take(f"{ring.name}_free"), slot), parity))
                self._mark("behind", i, f"free {ring.name}")

    def _stored_from(self, ring: Ring) -> bool:
        """Whether the agent has TMA copy slots of a ring out."""
        stores = (j for j in self._issues if kind_of(self._wiring.operations[j.op]) == TMA_STORE)
        return any((ring, True) in self._touched(j) for j in stores)

    def _releases(self, way: Way, i: Issue, touched: Sequence[tuple[Ring, bool]]) -> None:
        a = self._a
        for ring, reads in touched:
            if reads and ring.free and self._first_and_last(ring)[1] == i.op:
                slot, _ = self._positions[ring.name, way.stages[i.op]]
                free = Barrier(a.take(f"{ring.name}_free"), slot)
                operation = self._wiring.operations[i.op]
                if on_its_own(operation):
                    a.say(Commit(free))
                    continue
                if kind_of(operation) == SMEM_READ:
                    a.say(Fence())
                if self._stored_from(ring):
                    a.say(StoreWait(0))
                a.say(Arrive(free))

    # Turns ---------------------------------------------------------------------------------------

    def _await_turns(self, i: Issue) -> None:
        a = self._a
        for turn in a.plan.turns[self._loop.operation]:
            if turn.waiter == i.op:
                self._mark("before", i, f"free {turn.name}")
                a.take(turn.name)
                a.say(Wait(turn.barrier, Name(f"{turn.name}_phase")))
                self._mark("behind", i, f"free {turn.name}")
                self._next_turn(turn)

    def _hand_on(self, i: Issue, kind: str) -> None:
        a = self._a
        for turn in a.plan.turns[self._loop.operation]:
            if turn.holder == i.op:
                a.take(turn.name)
                if turn.committed:
                    a.say(Commit(turn.barrier))
                else:
                    if kind in (SMEM_READ, SMEM_WRITE):
                        a.say(Fence())
                    a.say(Arrive(turn.barrier))
                self._next_turn(turn)

    def _next_turn(self, turn: Turn) -> None:
        for instruction in turn.next(self._a.worker.name):
            self._a.say(instruction)

    # Operations ----------------------------------------------------------------------------------

    def _variable(self, value: Value) -> str:
        op, number = self._wiring.made[value]
        return self._variable_named(self._program.loop.op(op).results[number])

    def _variable_named(self, name: str) -> str:
        if name not in self._variables:
            self._variables[name] = self._a.names.give(name)
        return self._variables[name]

    def _issue(self, way: Way, i: Issue, operation: Operation, kind: str) -> None:  # noqa: PLR0912 - one case a kind
        a = self._a
        row = opcode(kind)
        if kind == TMA_LOAD:
            self._copy(way, i, operation)
            self._mark("behind", i, "copy")
        elif on_its_own(operation):
            factors = self._shared(way, i, 0), self._shared(way, i, 1)
            a.sums.add(operation, factors, way.iteration(way.stages[i.op]))
        elif row.accumulator is not None:
            self._product(way, i, operation)
            self._mark("behind", i, "product")
        elif row.awaits:
            self._mark("before", i, "products")
            self._await(way, i, operation)
            self._mark("behind", i, "products")
        elif kind == SMEM_WRITE:
            self._put_in_slot(way, i, operation)
        elif kind == SMEM_READ:
            layout = a.layouts.of(operation.result)
            source = self._shared(way, i, 0)
            a.say(Read(self._variable(operation.result), source, layout))
        elif kind == STORE:
            a.store(operation, self._by_value(way, i, operation))
        elif kind == LOAD:
            operands, layout = a.loaded(operation, self._by_value(way, i, operation))
            a.say(Load(self._variable(operation.results[0]), operands, layout))
        elif kind in ATOMIC:
            result = operation.result
            target = self._variable(result) if a.plan.is_read(result) else None
            a.say(a.atomic(operation, self._by_value(way, i, operation), target))
        elif kind == TMA_STORE:
            self._copy_out(way, i, operation)
        elif kind == "print":
            a.say(a.shown(operation, self._by_value(way, i, operation)))
        elif kind == "barrier" and len(a.plan.workers) == 1:
            a.say(ThreadBarrier())
        elif not operation.results or (operation.regions and not is_together(operation)):
            raise unwritten(operation, " in a pipelined loop")
        else:
            self._compute(way, i, operation)

    def _copy_out(self, way: Way, i: Issue, operation: Operation) -> None:
        a, view = self._a, operation.operands[1]
        numbers = [
            n for n, v in enumerate(operation.operands) if n > 1 and isinstance(v.type, Scalar)
        ]
        at = tuple(self._operand(way, i, n).expression for n in numbers)
        descriptor = a.descriptor(view, operation.operands[0])
        a.say(CopyOut(descriptor, at, self._shared(way, i, 0)))
        a.stores = True

    def _compute(self, way: Way, i: Issue, operation: Operation) -> None:
        a = self._a
        operands = [self._operand(way, i, n) for n in range(len(operation.operands))]
        if opcode(kind_of(operation)).multiplies:
            operands = [self._laid_out(operation, n, one) for n, one in enumerate(operands)]
        if is_together(operation):
            names = [self._variable(result) for result in operation.results]
            function = a.combiners.get(operation, "")
            made, home = together(operation, operands, a.layouts, function)
            a.say(Assign(tuple(names), (made,)))
            for name, result in zip(names, operation.results, strict=True):
                a.settle(name, home, result)
            return
        made = computed(operation, operands, a.layouts).expression
        if self._narrows_ahead(i, operation):
            made = Held(made)
        a.say(Assign((self._variable(operation.result),), (made,)))

    def _laid_out(self, product: Operation, number: int, operand: Operand) -> Operand:
        """An operand of a product that threads make: a factor from outside was laid out already."""
        if number > 1 or operand.layout is None:
            return operand
        value, home = product.operands[number], self._a.layouts.of(product.result)
        wanted = factor(value.type, home, number)
        known = self._factors.get((value, wanted))
        return operand if known is None else Operand(known, wanted)

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
        operand = whole(self._operand(way, i, 0), operation, 0)
        stores = [j for j in self._issues if kind_of(self._wiring.operations[j.op]) == TMA_STORE]
        if self._stored_from(ring):
            a.say(StoreWait(len(stores) * (ring.depth - 1)))
        source = operation.operands[0]
        value = in_layout(operand, a.layouts.of(source), source.type, a.layouts)
        a.say(Put(value, Slot(a.take(ring.name), slot)))
        a.say(Fence())

    def _by_value(self, way: Way, i: Issue, operation: Operation):
        def operand(value: Value) -> Operand:
            return self._operand(way, i, operation.operands.index(value))

        return operand

    def _copy(self, way: Way, i: Issue, operation: Operation) -> None:
        a = self._a
        ring = next(r for r, reads in self._touched(i) if not reads)
        slot, _ = self._positions[ring.name, way.stages[i.op]]
        view, *coordinates = operation.operands[:-1]
        at = tuple(self._operand(way, i, n + 1).expression for n in range(len(coordinates)))
        full = Barrier(a.take(f"{ring.name}_full"), slot)
        descriptor = a.descriptor(view, operation.operands[-1])
        if not ring.free and self._stored_from(ring):
            a.say(StoreWait(0))
        a.say(Expect(full, ring.bytes))
        a.say(CopyIn(descriptor, at, full, Slot(a.take(ring.name), slot), ring.bytes))

    def _product(self, way: Way, i: Issue, operation: Operation) -> None:
        a = self._a
        result = operation.results[0]
        assert isinstance(result.type, Tile)
        layout = a.layouts.of(result)
        variable = self._variable(result)
        left, keep, outside = self._left_factor(way, i, operation, layout)
        right = self._shared(way, i, 1)
        adds = bool(operation.integers("groups")[2])
        total: Expression
        if not adds:
            total = a.zeros(result.type, layout)
        elif isinstance(self._wiring.wires[i.op][2], Accumulated):
            total = Name(variable)
        else:
            total = in_layout(self._operand(way, i, 2), layout, result.type, a.layouts)
        a.say(Product(variable, left, right, total, adds, asynchronous=True))
        way.pending.append(Flight(i.op, variable, keep, outside))

    def _left_factor(
        self, way: Way, i: Issue, operation: Operation, layout: Layout
    ) -> tuple[Expression | Slot, tuple[str, ...], str]:
        """The factor, registers of it that the product reads until it is done, and its own name
        where no step changes it."""
        a, left = self._a, operation.operands[0]
        if isinstance(left.type, Buffer):
            return self._shared(way, i, 0), (), ""
        operand, wanted = self._operand(way, i, 0), factor(left.type, layout)
        known = self._factors.get((left, wanted))
        if known is None and operand.layout != wanted:
            name = f"{self._variable(operation.results[0])}_a"
            a.say(Assign((name,), (in_layout(operand, wanted, left.type, a.layouts),)))
            return Name(name), (name,), ""
        first = known or operand.expression
        alone = not way.pending and self._from_outside(i, 0) and not self._carries_a_factor(way)
        return first, (), first.name if alone and isinstance(first, Name) else ""

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
        else:
            self._a.say(Settle(len(way.pending), ()))
        if operation.results:
            self._a.say(Assign((self._variable(operation.result),), (Name(product),)))

    def _retire(self, way: Way, upto: int) -> None:
        """Wait until a product is done; those before it are done as well."""
        done, way.pending = way.pending[: upto + 1], way.pending[upto + 1 :]
        names = dict.fromkeys(n for f in done for n in (f.variable, *f.keep))
        kept = [Kept(name) for name in names]
        # Where no other product runs at the same time, nothing else keeps a factor's registers.
        if len(done) == 1 and not way.pending and done[0].outside:
            kept.append(Kept(done[0].outside, OVERWRITTEN))
        self._a.say(Settle(len(way.pending), tuple(kept)))
        for one in kept:
            if any(f.variable == one.name for f in way.pending):  # it is added to all the same
                self._a.say(ProductInit(one.name))

    # Operands ------------------------------------------------------------------------------------

    def _shared(self, way: Way, i: Issue, number: int) -> Slot:
        """A tile in shared memory: a slot of a ring, or one that is there for all steps."""
        value = self._wiring.operations[i.op].operands[number]
        wire = self._wiring.wires[i.op][number]
        if isinstance(wire, Taken):
            source = i.operands[wire.position]
            if isinstance(source, Stored):
                ring = self._ring(i.reads[source.read].storage)
                if ring is not None:
                    slot, _ = self._positions[ring.name, way.stages[i.op]]
                    return Slot(self._a.take(ring.name), slot, self._a.views(value))
        return self._a.buffer(value)

    def _operand(self, way: Way, i: Issue, number: int) -> Operand:
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
                iteration = way.iteration(way.stages[i.op] + source.path.distance)
                operand = Operand(self._counter(iteration))
            else:
                operand = self._outer(outside)
            return self._through(source.path, operand)
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

    def _outer(self, value: Value) -> Operand:
        constant = self._constant(value)
        if constant is not None:
            return Operand(constant)
        made = self._a.plan.maker.get(value)
        if self._inside(value) and made is not None and opcode(kind_of(made)).view:
            return seen_through(made, self._outer(made.operands[0]), self._a.layouts)
        return self._a.value(value)

    def _through(self, path: Path, operand: Operand) -> Operand:
        """What a reader sees through views."""
        for view in reversed(path.views):
            operand = seen_through(self._wiring.operations[view], operand, self._a.layouts)
        return operand

    def _register(self, way: Way, i: Issue, path: Path) -> Operand:
        maker = self._program.loop.producers[path.origin]
        operation = self._wiring.operations[maker]
        number = self._program.loop.op(maker).results.index(path.origin)
        value = operation.results[number]
        if self._pure(maker):
            return Operand(self._scalar(value, way.iteration(way.stages[i.op] + path.distance)))
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
        return Operand(Name(f"{variable}__{back}" if back else variable), layout)

    def _counter(self, iteration: Iteration) -> Expression:
        """The loop's own counter in an iteration."""
        return Counter(self._lower, self._by, iteration)

    def _scalar(self, value: Value, iteration: Iteration) -> Expression:
        if value is self._body.arguments[0]:
            return self._counter(iteration)
        constant = self._constant(value)
        if constant is not None:
            return constant
        made = self._wiring.made.get(value)
        if made is None:
            return self._a.value(value).expression
        operation = self._wiring.operations[made[0]]
        return Computed(operation, tuple(self._scalar(v, iteration) for v in operation.operands))


def _hashable(touched: Sequence[tuple[Ring, bool]]) -> list[tuple[str, bool]]:
    return [(ring.name, reads) for ring, reads in touched]
