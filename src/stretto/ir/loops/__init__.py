"""Every loop of a module as a `Loop`: read, or left alone for a reason that is told.

    func @gemm { scf.for ... }                    ──►  gemm
    func @attention { scf.for { scf.for } }       ──►  attention.0, attention.1 (the inner one)
    func @copy { load; read }                     ──►  copy: no loop, gone through once, serially

    addresses  what is known of them: facts of what touches global memory
    flow       where a value comes from: views, bodies, buffers; what is read, and how far back
    storages   what is read and written, and the storages that makes
    body       one scf.for
    writer     the way back: a loop as text

Inner loops are read first, since an outer one has to know what they cost: an inner loop is one of
its operations, and holds what it uses for as long as it runs.

    trips = ceil((ub - lb) / step)
    length = (trips - 1) * MII + span        span: one iteration from first start to last completion

    an scf.if costs what its longer side does; an scf.while as often as it is said to go round

    inner body uses tma, tc_and_mma   ──►   uses tma for `length`, tc_and_mma for `length`, and
                                            a slot of its own, so that it never meets itself
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp, IfOp, ParallelOp, WhileOp
from xdsl.ir import Block, Operation, SSAValue

from stretto.errors import StrettoError
from stretto.ir.attributes import (
    CONSTRAINT,
    LENGTH,
    STATED,
    TRIP_COUNT,
    StatedLoop,
    stated_loop,
    stated_op,
    stated_turns,
    verify_attributes,
)
from stretto.ir.diagnostics import Diagnostic, MlirError
from stretto.ir.dialect import name_of
from stretto.ir.dialect.pipeline import BODIES
from stretto.ir.dialect.pipelined import ProgramOp, WorkTileInfoOp
from stretto.ir.dialect.types import buffer_of, pointee_of
from stretto.ir.loops.addresses import Addresses
from stretto.ir.loops.body import Body, BodyReader, Inner
from stretto.ir.loops.flow import BufferHomes, UnreadableError, around, constant_of
from stretto.ir.loops.storages import Names
from stretto.ir.parsing import Parsed
from stretto.limits import CYCLES
from stretto.loop import Demand, Fault, Loop, LoopError, Op, Use, check, topological_order
from stretto.lower_bounds import compute_bounds
from stretto.machine import Machine, load_machine, machine_beside
from stretto.machine.choice import LOOPS
from stretto.ops.spaces import GLOBAL, MEMORIES
from stretto.resources.prepare import Prepared, prepare, resolve

_LOOPS = (ForOp, WhileOp, ParallelOp)
_CONTROL = (IfOp, WhileOp)


@dataclass(frozen=True, slots=True)
class LoopInModule:
    """A loop, and where each of its operations stands in the module."""

    loop: Loop
    for_op: ForOp | FuncOp
    """The loop; or a function without loops, whose body is gone through once."""
    ops: dict[str, Operation]
    machine: Machine
    """The machine it is read for: asked for, else named by the loop, else the default."""
    warnings: tuple[Diagnostic, ...] = ()
    values: Mapping[SSAValue, str] = field(default_factory=dict["SSAValue", str])
    """Values of the text that the loop has, by what they are called there."""
    buffers: Mapping[str, SSAValue] = field(default_factory=dict[str, "SSAValue"])
    """Buffers of the text that are its storages."""


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """A loop that is not read, and why."""

    name: str
    op: Operation
    reason: Diagnostic


@dataclass(frozen=True, slots=True)
class LoopsOfModule:
    """All loops of a module, as the text has them, outer before inner."""

    loops: tuple[LoopInModule, ...]
    left_alone: tuple[LeftAlone, ...]


def read_loops(
    parsed: Parsed, machine: Machine | str | None = None, *, regions: bool = True
) -> LoopsOfModule:
    """Every loop of a module on a machine; MlirError where a loop is wrong in itself.

    Without `regions`, what a program of a whole kernel has no place for is left out: functions
    without loops, and loops with other control flow inside.
    """
    return _ModuleReader(parsed, machine, regions=regions).read()


def positioned(parsed: Parsed, item: LoopInModule, error: LoopError) -> MlirError:
    """What is wrong with a loop, at the operations it is wrong with."""
    found = [_at_place(parsed, item.for_op, item.loop, item.ops, fault) for fault in error.faults]
    return MlirError(found)


def schedulable(parsed: Parsed, found: LoopsOfModule) -> LoopsOfModule:
    """The loops that their machines can run; the others are left alone, each with its faults.

    Those are operations without a cost and all else that only shows once costs are known: memory
    budgets, ceilings of far dependences. MlirError where no loop is left.
    """
    kept: list[LoopInModule] = []
    left: list[LeftAlone] = []
    wrong: list[Diagnostic] = []
    for item in found.loops:
        try:
            resolved = resolve(item.loop, item.machine).loop
            faults = check(resolved, item.machine)
            if faults:
                raise LoopError(item.loop.name, faults)
            kept.append(item)
        except LoopError as error:
            told = positioned(parsed, item, error).diagnostics
            wrong += told
            first, others = told[0], tuple(replace(one, severity="note") for one in told[1:])
            message = f"loop `{item.loop.name}` is left alone: {first.message}"
            why = replace(first, severity="warning", message=message, notes=(*first.notes, *others))
            left.append(LeftAlone(item.loop.name, item.for_op, why))
    if wrong and not kept:
        raise MlirError(wrong)
    return LoopsOfModule(tuple(kept), (*found.left_alone, *left))


def _at_place(
    parsed: Parsed, for_op: Operation, loop: Loop, ops: dict[str, Operation], fault: Fault
) -> Diagnostic:
    """A fault at its operation, or at the attribute that states the field that is wrong."""
    place = fault.place
    op = for_op if place.op is None else ops[loop.ops[place.op].name]
    match place.field:
        case ("constraint", str(name), *_):
            attribute = CONSTRAINT + name
        case (str(name), *_):
            attribute = STATED + name
        case _:
            attribute = None
    return parsed.diagnose(op, "error", fault.message, attribute=attribute)


@dataclass
class _ModuleReader:
    parsed: Parsed
    machine: Machine | str | None
    regions: bool = True
    homes: BufferHomes = field(default_factory=BufferHomes)
    place: dict[Operation, int] = field(default_factory=dict[Operation, int])
    names: dict[Operation, str] = field(default_factory=dict[Operation, str])
    inner: dict[Operation, Inner] = field(default_factory=dict[Operation, Inner])
    done: dict[Operation, LoopInModule | LeftAlone] = field(
        default_factory=dict[Operation, LoopInModule | LeftAlone]
    )
    wrong: list[Diagnostic] = field(default_factory=list[Diagnostic])

    @cached_property
    def addresses(self) -> Addresses:
        """What is known of the module's accesses to global memory."""
        return Addresses(self.parsed)

    def read(self) -> LoopsOfModule:
        self.place = {op: i for i, op in enumerate(self.parsed.module.walk())}
        if not self.parsed.verified:
            self._verify_attributes()
        loops = [op for op in self.place if isinstance(op, _LOOPS) or self._goes_straight(op)]
        self._name(loops)
        for loop in reversed(loops):  # an inner loop comes after the outer one it is in
            self.done[loop] = self._attempt(loop)
        if self.wrong:
            raise MlirError(sorted(self.wrong, key=lambda d: (d.line, d.column)))
        found = [self.done[loop] for loop in loops]
        return LoopsOfModule(
            tuple(item for item in found if isinstance(item, LoopInModule)),
            tuple(item for item in found if isinstance(item, LeftAlone)),
        )

    def _verify_attributes(self) -> None:
        wrong = [
            self.parsed.diagnose(op, "error", message, attribute=attribute)
            for op in self.place
            for attribute, message in verify_attributes(op)
        ]
        if wrong:
            raise MlirError(wrong)

    def _name(self, loops: list[Operation]) -> None:
        stated: dict[Operation, str] = {
            op: stated_loop(op).loop.name
            for op in loops
            if isinstance(op, ForOp) and STATED + "name" in op.attributes
        }
        self._refuse_twins(stated)
        given = Names(stated.values())
        functions = [_function_name(op) for op in loops]
        several = Counter(functions)
        numbers = Counter[str]()
        for op, function in zip(loops, functions, strict=True):
            number = numbers[function]
            numbers[function] += 1
            wanted = function if several[function] == 1 else f"{function}.{number}"
            self.names[op] = stated.get(op) or given.give(wanted)

    def _refuse_twins(self, stated: dict[Operation, str]) -> None:
        """Two loops of one name: nobody could tell which is meant."""
        first: dict[str, Operation] = {}
        attribute = STATED + "name"
        for op, name in stated.items():
            if first.setdefault(name, op) is op:
                continue
            note = self.parsed.diagnose(first[name], "note", "the other", attribute=attribute)
            message = f"`{attribute}` is `{name}`, as another loop's is"
            self.wrong.append(self.parsed.diagnose(op, "error", message, (note,), attribute))

    def _attempt(self, op: Operation) -> LoopInModule | LeftAlone:
        name = self.names[op]
        special = _made_already(op)
        if special is not None:
            reason = f"loop `{name}` is left alone: {special}"
            return LeftAlone(name, op, self.parsed.diagnose(op, "remark", reason))
        if not isinstance(op, ForOp | FuncOp):
            why = "how often it goes round is not known before; only scf.for is pipelined"
            reason = f"loop `{name}` is left alone: {name_of(op)}: {why}"
            # Inside of another it is an operation of that, and costs what it is said to.
            how = "warning" if _enclosing_loop(op) is None else "remark"
            return LeftAlone(name, op, self.parsed.diagnose(op, how, reason))
        try:
            return self._loop(op, name)
        except UnreadableError as error:
            notes: tuple[Diagnostic, ...] = ()
            said = error.reason
            if error.op is not op:
                notes = (self.parsed.diagnose(error.op, "note", error.reason),)
            loop = isinstance(op, ForOp)
            message = f"{'loop' if loop else 'function'} `{name}` is left alone: {said}"
            how = "warning" if loop else "remark"
            return LeftAlone(name, op, self.parsed.diagnose(op, how, message, notes))

    def _goes_straight(self, op: Operation) -> bool:
        """Whether it is a function to be scheduled itself: it moves tiles, and has no loop."""
        if not self.regions or not isinstance(op, FuncOp) or len(op.body.blocks) != 1:
            return False
        inside = tuple(op.body.block.walk())
        others = (*_LOOPS, ProgramOp, WorkTileInfoOp, *BODIES)
        return not any(isinstance(at, others) for at in inside) and any(map(_moves, inside))

    def _loop(self, op: ForOp | FuncOp, name: str) -> LoopInModule:
        stated = stated_loop(op)
        machine = self._machine(op, stated.loop.machine)
        for inner in op.body.block.walk():
            if isinstance(inner, ForOp) and _enclosing_loop(inner) is op:
                self.inner[inner] = self._inner(inner, machine)
        for inner in reversed(tuple(op.body.block.walk())):
            if isinstance(inner, _CONTROL) and _enclosing_loop(inner) in (op, None):
                self.inner[inner] = self._control(inner, name, machine)
        body = BodyReader(
            op,
            stated,
            self.homes,
            self.place,
            self.inner,
            self.parsed.written,
            self.addresses.of,
        ).read(name)
        if not body.loop.ops:
            raise UnreadableError(op, "its body has no operations")
        faults = check(body.loop)
        for fault in faults:
            if fault.code == "long-iteration":
                raise UnreadableError(op, fault.message)
        self.wrong += [_at_place(self.parsed, op, body.loop, body.ops, fault) for fault in faults]
        warnings = self._warnings(body, machine)
        return LoopInModule(body.loop, op, body.ops, machine, warnings, body.values, body.buffers)

    def _inner(self, inner: ForOp, machine: Machine) -> Inner:
        if {"uses", "latency"} <= stated_op(inner).given:
            return _FREE
        item = self.done[inner]
        if isinstance(item, LeftAlone):
            raise UnreadableError(inner, f"inner loop `{item.name}` cannot be read")
        return _inner_cost(inner, item.loop, stated_loop(inner), machine)

    def _control(self, op: IfOp | WhileOp, name: str, machine: Machine) -> Inner:
        """What other control flow costs as an operation of the body it stands in."""
        if not self.regions:
            raise UnreadableError(op, f"`{name_of(op)}` is control flow inside the body")
        if {"uses", "latency"} <= stated_op(op).given:
            return _FREE
        number = sum(isinstance(other, _CONTROL) for other in self.inner)
        called = f"{name}.{name_of(op).rpartition('.')[2]}{number}"
        sides = [block for region in op.regions for block in region.blocks]
        ready = [self._side(op, block, called, machine) for block in sides]
        return _control_cost(op, called, [one for one in ready if one is not None])

    def _side(self, op: Operation, block: Block, name: str, machine: Machine) -> Prepared | None:
        """One side of it as a loop of one turn; None: it does nothing."""
        empty = StatedLoop(Loop(name, ()), frozenset())
        written, known = self.parsed.written, self.addresses.of
        body = BodyReader(
            op, empty, self.homes, self.place, self.inner, written, known, block
        ).read(name)
        try:
            return prepare(body.loop, machine) if body.loop.ops else None
        except StrettoError as error:
            told = error.lines(name)[0] if isinstance(error, LoopError) else str(error)
            reason = f"what `{name_of(op)}` costs on {machine.name} cannot be told: {told}"
            raise UnreadableError(op, reason) from None

    def _machine(self, op: Operation, named: str | None) -> Machine:
        if isinstance(self.machine, Machine):
            return self.machine
        try:
            if self.machine is None and named is not None:
                return load_machine(machine_beside(self.parsed.source.file, named))
            return load_machine(self.machine or LOOPS)
        except StrettoError as error:
            attribute = STATED + "machine"
            told = self.parsed.diagnose(op, "error", str(error), attribute=attribute)
            raise MlirError([told]) from None

    def _warnings(self, body: Body, machine: Machine) -> tuple[Diagnostic, ...]:
        """Operations the machine does not know, where it has a slot for such."""
        if machine.fallback is None:
            return ()
        known = frozenset(machine.opcodes)
        slots = ", ".join(f"`{use.slot}`" for use in machine.encoding(machine.fallback).uses)
        return tuple(
            self.parsed.diagnose(
                body.ops[op.name],
                "warning",
                f"{machine.name} does not know `{op.kind}`; `{op.name}` takes slot {slots}",
            )
            for op in body.loop.ops
            if not op.resolved and op.facts.tag is None and op.kind not in known
        )


def _moves(op: Operation) -> bool:
    """Whether an operation of the dialect touches memory."""
    far = (GLOBAL, *MEMORIES)
    values = (*op.operands, *op.results) if op.name.startswith("nv_tileas.") else ()
    return any(buffer_of(v.type) in far or pointee_of(v.type) is not None for v in values)


def _function_name(op: Operation) -> str:
    """The symbol of the function that encloses an operation, or of itself."""
    for at in (op, *around(op)):
        symbol = at.properties.get("sym_name") or at.attributes.get("sym_name")
        if isinstance(symbol, StringAttr):
            return symbol.data
    return "loop"


def _made_already(op: Operation) -> str | None:
    """Why a loop is not one to be pipelined, if it is not."""
    if any(isinstance(at, ProgramOp) for at in around(op)):
        return "it is part of a program already"
    bodies = [block for region in op.regions for block in region.blocks]
    if any(isinstance(inside, WorkTileInfoOp) for body in bodies for inside in body.ops):
        return "it goes over work tiles; the loops inside it are pipelined"
    return None


def _enclosing_loop(op: Operation) -> Operation | None:
    return next((at for at in around(op) if isinstance(at, ForOp)), None)


# What an inner loop costs -----------------------------------------------------------------

_FREE = Inner(Op("", "", uses=(), latency=0), ())
"""For a loop whose text states all it costs."""


def _inner_cost(for_op: ForOp, loop: Loop, stated: StatedLoop, machine: Machine) -> Inner:
    """What an inner loop costs on a machine; UnreadableError where that cannot be told."""
    try:
        ready = prepare(loop, machine)
        ii = compute_bounds(ready.loop, ready.machine).mii
    except StrettoError as error:
        told = error.lines(loop.name)[0] if isinstance(error, LoopError) else str(error)
        reason = f"what inner loop `{loop.name}` costs on {machine.name} cannot be told: {told}"
        raise UnreadableError(for_op, reason) from None
    length = stated.length
    if length is None:
        trips = _trip_count(for_op, stated)
        length = (trips - 1) * ii + _span(ready.loop) if trips else 0
    if length > CYCLES:
        reason = f"inner loop `{loop.name}` takes {length:,} cycles; at most {CYCLES:,} are allowed"
        raise UnreadableError(for_op, reason)
    own = f"inner.{loop.name}"
    uses = (Use(own, length), *_uses(ready, ii, length))
    op = Op("", "", uses=uses, demands=_demands(ready), latency=length)
    return Inner(op, (own, *loop.slots))


def _control_cost(op: IfOp | WhileOp, name: str, sides: list[Prepared]) -> Inner:
    """What control flow costs: the longer side of an scf.if; of an scf.while every turn."""
    lengths = [max(_span(side.loop), compute_bounds(side.loop, side.machine).mii) for side in sides]
    length: int | None = max(lengths, default=0)
    if isinstance(op, WhileOp):
        trips, length = stated_turns(op)
        if length is None:
            if trips is None:
                raise UnreadableError(
                    op,
                    "how often an scf.while inside goes round is not known before; "
                    f"state `{STATED}{TRIP_COUNT}`, or its cycles as `{STATED}{LENGTH}`",
                )
            # Once more than it goes round, it asks whether to.
            length = (trips + 1) * sum(lengths)
    own = f"inner.{name}"
    held: dict[str, Use] = {own: Use(own, length)}
    drawn: dict[str, Demand] = {}
    for side in sides:
        for use in _uses(side, max(1, length), length):
            share = max(use.occupancy, held[use.slot].occupancy if use.slot in held else 0)
            held[use.slot] = replace(use, occupancy=share)
        for demand in _demands(side):
            most = max(demand.units, drawn[demand.pool].units if demand.pool in drawn else 0)
            drawn[demand.pool] = Demand(demand.pool, most)
    slots = dict.fromkeys(slot for side in sides for slot in side.loop.slots)
    made = Op("", "", uses=tuple(held.values()), demands=tuple(drawn.values()), latency=length)
    return Inner(made, (own, *slots))


def _trip_count(for_op: ForOp, stated: StatedLoop) -> int:
    """How often a loop runs: computed where its bounds are constants, else as stated."""
    bounds = [constant_of(value) for value in (for_op.lb, for_op.ub, for_op.step)]
    lower, upper, step = bounds
    if lower is None or upper is None or step is None:
        if stated.trip_count is not None:
            return stated.trip_count
        raise UnreadableError(
            for_op,
            "an inner loop whose trip count is not constant; "
            f"state `{STATED}{TRIP_COUNT}`, or its cycles as `{STATED}{LENGTH}`",
        )
    if step < 1:
        raise UnreadableError(for_op, f"an inner loop whose step is {step}")
    trips = max(0, -(-(upper - lower) // step))
    if stated.trip_count not in (None, trips):
        raise UnreadableError(
            for_op,
            f"an inner loop that states {stated.trip_count} trips; its bounds {lower}, {upper} "
            f"and step {step} make {trips}",
        )
    return trips


def _span(loop: Loop) -> int:
    """One iteration with nothing in its way: its longest path at distance 0, completion added."""
    start = [0] * len(loop.ops)
    incoming: list[list[tuple[int, int]]] = [[] for _ in loop.ops]
    for dependence in loop.dependences:
        if dependence.distance == 0:
            src = loop.index[dependence.src]
            incoming[loop.index[dependence.dst]].append((src, dependence.latency))
    order = topological_order(loop)
    assert isinstance(order, tuple)  # `prepare` has checked
    for i in order:
        start[i] = max((start[src] + latency for src, latency in incoming[i]), default=0)
    return max(start[i] + op.completion for i, op in enumerate(loop.ops))


def _uses(ready: Prepared, ii: int, length: int) -> list[Use]:
    """Each slot the body uses: as much of it as the body holds on average, at least its most."""
    held: dict[str, int] = {}
    most: dict[str, int] = {}
    for op in ready.loop.ops:
        for use in op.uses or ():
            if use.duration:
                held[use.slot] = held.get(use.slot, 0) + use.duration * use.occupancy
                most[use.slot] = max(most.get(use.slot, 0), use.occupancy)
    found: list[Use] = []
    for slot, total in held.items():
        capacity = ready.machine.slot(slot).capacity
        share = max(most[slot], -(-total // ii))
        share = share if capacity is None else min(share, capacity)
        found.append(Use(slot, length, 0, share))
    return found


def _demands(ready: Prepared) -> tuple[Demand, ...]:
    """The most that any one operation of the body draws from each pool."""
    most: dict[str, int] = {}
    for op in ready.loop.ops:
        for demand in op.demands:
            most[demand.pool] = max(most.get(demand.pool, 0), demand.units)
    return tuple(Demand(pool, units) for pool, units in most.items() if units)
