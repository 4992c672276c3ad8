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

from stretto.kernel import Operation, Value
from stretto.kernel.tree import HIDDEN, kind_of
from stretto.kernel.types import Buffer, Pointer, Scalar, Tile, Token
from stretto.kernel.wiring import Outer
from stretto.materialization.program import Direct, Issue, LiveIn, Through
from stretto.ops.opcodes import opcode
from stretto.program.builder.loop_steps import LoopSteps
from stretto.program.builder.loop_view import Way
from stretto.program.builder.operands import Operand
from stretto.program.builder.steps import Steps, steps_of
from stretto.program.builder.sums import on_its_own
from stretto.program.builder.tracer import Tracer
from stretto.program.builder.trips import known_trips, sizes, trips
from stretto.program.errors import EmitError
from stretto.program.expressions import (
    INDEX,
    Arithmetic,
    Barrier,
    Computed,
    Expression,
    Name,
    number,
)
from stretto.program.instructions import (
    Advance,
    Arrive,
    Assign,
    For,
    If,
    Origin,
    Pipelined,
    Remark,
    Step,
    Wait,
)

RECOUNTED = "Counted anew: ptxas may take an address of the step before from the loop."


class LoopBuilder(LoopSteps):
    """Builds one loop of one agent."""

    def build(self) -> None:
        """The whole loop."""
        if self._stream is None:
            return
        self._steps = self._cut([i for i in self._stream.kernel if isinstance(i, Issue)])
        self._issues = self._steps.order
        self._mine = {i.op for i in self._issues}
        self._issue_of = {i.op: i for i in self._issues}
        self._stage = self._steps.stages
        self._find_copies()
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
            elif known is not None and self._is_written_out(known):
                self._written_out(long, known)
            elif known is not None:
                self._one_by_one(short)
            else:
                self._either(long, short, needed, peel=flying)
            if self._hidden:
                self._hand_back_hidden()
        first = steps.first if together else steps.last + flying
        if known is not None and known < needed and self._is_written_out(known) and not together:
            first = steps.first + known  # no step is the kernel's
        order = tuple(i.op for i in self._issues)
        self._a.say(
            Pipelined(
                self._number, self._loop.operation, self._known, first,
                steps.first, needed, together, order, tuple(body), self._hidden,
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

    # Before and after ----------------------------------------------------------------------------

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
            self._before_product(operation)
        self._count(lower, upper, step)
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

    def _count(self, lower: Expression, upper: Expression, step: Expression) -> None:
        """How often it goes round, without steps that the agent leaves out."""
        a = self._a
        self._n = a.names.give("n")
        # Triton fails on a branch that is never taken: a count that is known decides here.
        self._known = known_trips(self._loop.operation, a.plan.maker)
        self._hidden = self._left_out()
        a.say(Assign((self._n,), (trips(lower, upper, step, self._known, self._hidden),)))
        if self._known is not None:
            self._all: Expression = number(self._known)
            self._known = max(0, self._known - self._hidden)
        elif self._hidden:
            every = a.names.give("all")
            self._all = Name(every)
            a.say(Assign((every,), (trips(lower, upper, step, None),)))

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

    # The two ways --------------------------------------------------------------------------------

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

    def _is_written_out(self, trips: int) -> bool:
        """Whether fewer iterations than stages are written out. Agents that have an SM alone
        run them one by one: what they gain otherwise is not measured."""
        plan = self._a.plan
        return trips > 1 and (len(plan.workers) == 1 or plan.machine.blocks > 1)

    def _written_out(self, way: Way, trips: int) -> None:
        """So few iterations that no step has an operation of each stage, from the first one's begin
        to the last one's end: there is no kernel, prologue and epilogue meet."""
        a, steps = self._a, self._steps
        self._begin(way, self._issues)
        for step in range(steps.first, steps.last + trips):
            here = [i for i in self._issues if 0 <= step - self._stage[i.op] < trips]
            a.say(Remark(f"step {step - steps.first} of {steps.last + trips - steps.first}"))
            way.at = step
            self._step(way, here, "prologue", step, self._issues)
        if way.pending:
            with a.of(Origin(self._issues[-1].op)), a.block() as body:
                self._retire(way, len(way.pending) - 1)
            a.say(Step("prologue", steps.last + trips, way.iteration(0), tuple(body)))
        a.clocks(lambda tracer: tracer.settle(str(self._number), number(0), once=self._once))

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
            self._step(way, steps.prologue(step), "prologue", step, self._issues)
        first = steps.last
        if peel:
            a.say(Remark("the kernel's first step"))
            way.at = first
            self._step(way, self._issues, "prologue", first)
            first += 1
        way.at, way.step, way.ahead = None, self._counter_name, None
        a.say(Remark("kernel"))
        before = [(f.op, f.age) for f in way.pending]
        copies = list(self._copies.groups)
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
        if not self._copies.settled(copies):
            raise EmitError(f"loop `{self._program.loop.name}`: copies in flight do not settle")
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

    def _left_out(self) -> int:
        """How many of the last steps the agent leaves out."""
        steps = self._loop.operation.integers(HIDDEN)
        computing = [one.name for one in self._a.plan.workers if one.computes]
        if len(steps) != len(computing) or self._a.worker.name not in computing:
            return 0
        if self._a.plan.turns[self._loop.operation]:
            return 0  # others count its steps
        return steps[computing.index(self._a.worker.name)]

    def _hand_back_hidden(self) -> None:
        """Tiles of steps that the agent leaves out: they come all the same."""
        a = self._a
        a.say(Remark("steps that a mask hides"))
        with a.block() as body:
            for ring in self._rings.values():
                slot, phase = f"{ring.name}_slot", f"{ring.name}_phase"
                if ring.full:
                    a.say(Wait(Barrier(a.take(f"{ring.name}_full"), slot), Name(phase)))
                if ring.free:
                    a.say(Arrive(Barrier(a.take(f"{ring.name}_free"), slot)))
                a.say(Advance(slot, phase, ring.depth))
        index = a.names.give("hidden")
        a.say(For(index, Name(self._n), self._all, None, tuple(body), hands_back=True))

    def _steady(self, way: Way, first: int, end: Expression) -> None:
        """The loop of the kernel."""
        a = self._a
        with a.block() as body:
            a.enter()
            self._marked = a.tracer is not None and a.tracer.tracing == "marks"
            if self._marked:
                a.say(
                    Assign(
                        ("trace_step",), (Arithmetic("-", Name(self._counter_name), number(first)),)
                    )
                )
            self._step(way, self._issues, "kernel", 0)
            self._marked = False
            a.leave()
        a.say(For(self._counter_name, number(first), end, None, tuple(body)))

    def _read_behind(self) -> dict[str, int]:
        """Slots that products of the epilogue read, and how many there are of each."""
        found: dict[str, int] = {}
        for i in self._steps.epilogue(self._steps.first):
            if opcode(kind_of(self._wiring.operations[i.op])).accumulator is not None:
                for ring, _ in self._touched(i):
                    found[self._positions[ring.name, self._stage[i.op]][0]] = ring.depth
        return found
