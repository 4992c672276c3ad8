"""Operations of one agent in a step of a pipelined loop, and what they take.

A product in flight is known by its variable; a wait says how many younger ones may go on.
"""

from __future__ import annotations

from stretto.kernel import Operation, Value
from stretto.kernel.lowering.written import COPY, LOAD, STORE, TMA_LOAD, TMA_STORE
from stretto.kernel.tree import kind_of
from stretto.kernel.types import Buffer, Scalar, Tile
from stretto.kernel.wiring import Accumulated, Outer, Taken
from stretto.materialization.program import Direct, Issue, LiveIn, Path, Stored, Through
from stretto.ops.opcodes import opcode
from stretto.program.atomics import ATOMIC
from stretto.program.builder.loop_copies import LoopCopies
from stretto.program.builder.loop_view import Flight, Way
from stretto.program.builder.operands import (
    Operand,
    computed,
    full_shape,
    in_layout,
    is_together,
    seen_through,
    together,
)
from stretto.program.builder.plan import SMEM_READ, SMEM_WRITE
from stretto.program.builder.sums import on_its_own
from stretto.program.errors import EmitError, unwritten
from stretto.program.expressions import (
    Barrier,
    Computed,
    Counter,
    Expression,
    Held,
    Iteration,
    Name,
    Slot,
)
from stretto.program.instructions import (
    Assign,
    CopyIn,
    CopyOut,
    Expect,
    Fence,
    Kept,
    Load,
    Product,
    ProductInit,
    Put,
    Read,
    Settle,
    StoreWait,
    ThreadBarrier,
)
from stretto.program.layouts import Layout, factor

HELD_BITS = 16
HELD_BY = 256
"""Threads of an agent at most: each holds two such numbers in a register."""
OVERWRITTEN = "ptxas 12.8 may give its registers to the next product, and not restore them"
"""Why a left factor is named that no step changes."""


class LoopOperations(LoopCopies):
    """Builds what operations of a loop do in a step."""

    _positions: dict[tuple[str, int], tuple[str, str]]
    """Of a ring and a stage: the variables that hold slot and phase."""
    _back: dict[str, int]
    """How many steps back each value is read."""

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
        elif kind == COPY:
            self._ask(way, i, operation)
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

    def _ask(self, way: Way, i: Issue, operation: Operation) -> None:
        """Threads copy to a slot of a ring: a group of its own."""
        a = self._a
        ring = self._copies.rings[i.op].ring
        slot, _ = self._positions[ring.name, way.stages[i.op]]
        for instruction in self._copies.meet(i.op, way.stages, way.order):
            a.say(instruction)
        target = Slot(a.take(ring.name), slot)
        a.say(a.copied(operation, self._by_value(way, i, operation), target))
        self._commit(i)

    def _copy_out(self, way: Way, i: Issue, operation: Operation) -> None:
        a, view = self._a, operation.operands[1]
        numbers = [
            n for n, v in enumerate(operation.operands) if n > 1 and isinstance(v.type, Scalar)
        ]
        at = tuple(self._operand(way, i, n).expression for n in numbers)
        descriptor = a.descriptor(view, operation.operands[0])
        a.say(CopyOut(descriptor, at, self._shared(way, i, 0)))
        a.stores = True

    def _put_in_slot(self, way: Way, i: Issue, operation: Operation) -> None:
        """Registers to a slot of a ring."""
        a = self._a
        ring = next(r for r, reads in self._touched(i) if not reads)
        slot, _ = self._positions[ring.name, way.stages[i.op]]
        operand = full_shape(self._operand(way, i, 0), operation, 0)
        stores = [j for j in self._issues if kind_of(self._wiring.operations[j.op]) == TMA_STORE]
        if self._stored_from(ring):
            a.say(StoreWait(len(stores) * (ring.depth - 1)))
        source = operation.operands[0]
        value = in_layout(operand, a.layouts.of(source), source.type, a.layouts)
        a.say(Put(value, Slot(a.take(ring.name), slot)))
        a.say(Fence())

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

    def _by_value(self, way: Way, i: Issue, operation: Operation):
        def operand(value: Value) -> Operand:
            return self._operand(way, i, operation.operands.index(value))

        return operand

    # Products ------------------------------------------------------------------------------------

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
            begun = full_shape(self._operand(way, i, 2), operation, 2)
            total = a.in_full(begun, operation.operands[2], layout)
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

    def _before_product(self, operation: Operation) -> None:
        """What a product takes that no step changes: zeros to begin with, and factors."""
        row = opcode(kind_of(operation))
        if row.multiplies:
            self._lay_out(operation, 0)
            self._lay_out(operation, 1)
        elif row.accumulator is not None:
            result = operation.results[0]
            if isinstance(result.type, Tile) and not operation.integers("groups")[2]:
                self._a.zeros(result.type, self._a.layouts.of(result))
            self._lay_out(operation, 0)

    def _lay_out(self, product: Operation, side: int) -> None:
        """A factor as a product takes it, once: threads hand it over in shared memory."""
        value, result = product.operands[side], product.results[0]
        if not isinstance(value.type, Tile) or not isinstance(result.type, Tile):
            return
        if self._inside(value):
            return
        operand, wanted = self._outer(value), factor(value.type, self._a.layouts.of(result), side)
        if operand.layout in (None, wanted) or (value, wanted) in self._factors:
            return
        called = operand.expression.name if isinstance(operand.expression, Name) else "factor"
        name = self._a.names.give(f"{called}_factor")
        operand = full_shape(operand, product, side)
        self._a.say(Assign((name,), (in_layout(operand, wanted, value.type, self._a.layouts),)))
        self._factors[value, wanted] = Name(name)

    def _laid_out(self, product: Operation, number: int, operand: Operand) -> Operand:
        """An operand of a product that threads make: a factor from outside was laid out already."""
        if number > 1 or operand.layout is None:
            return operand
        value, home = product.operands[number], self._a.layouts.of(product.result)
        wanted = factor(value.type, home, number)
        known = self._factors.get((value, wanted))
        return operand if known is None else Operand(known, wanted)

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
