"""Every loop of a kernel or a module as a `Loop`: read, or left alone for a reason that is told.

    func @gemm { scf.for ... }                    ──►  gemm
    func @attention { scf.for { scf.for } }       ──►  attention.0, attention.1 (the inner one)
    func @copy { load; read }                     ──►  copy: no loop, gone through once, serially

    source     what is read and asked: a kernel's tree (`trees`), or a module (`ir/loops/module.py`)
    flow       where a value comes from: views, bodies, buffers; what is read, and how far back
    storages   what is read and written, and the storages that makes
    body       one scf.for
    nested     what control flow inside of it costs
    wiring     which operand of the text is which of the loop
    kernels    kernels lowered for a machine, each with its loops, wired: ready to be scheduled

Inner loops are read first, since an outer one has to know what they cost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, cast

from stretto.diagnostics import Diagnostic, MlirError
from stretto.errors import StrettoError
from stretto.extraction.body import Body, BodyReader, Inner
from stretto.extraction.flow import BufferHomes
from stretto.extraction.nested import CONTROL, FREE, control_cost, loop_cost
from stretto.extraction.source import (
    BODIES,
    FOR,
    FUNCTION,
    PARALLEL,
    WHILE,
    WORK_TILE,
    BlockT,
    OpT,
    Source,
    StatedLoop,
    UnreadableError,
    ValueT,
)
from stretto.extraction.storages import Names
from stretto.loop import Fault, Loop, LoopError, Note, Place, check
from stretto.machine import Machine, load_machine, machine_beside
from stretto.machine.choice import LOOPS
from stretto.ops.spaces import GLOBAL, MEMORIES
from stretto.resources.prepare import Prepared, prepare, resolve

STATED = "stretto."
CONSTRAINT = "tileas.schedule.constraint."
_LOOPS = (FOR, WHILE, PARALLEL)


@dataclass(frozen=True, slots=True)
class LoopInText(Generic[OpT, ValueT]):
    """A loop, and which operations and values of the text its own are."""

    loop: Loop
    for_op: OpT
    """The loop; or a function without loops, whose body is gone through once."""
    ops: dict[str, OpT]
    machine: Machine
    """The machine it is read for: asked for, else named by the loop, else the default."""
    warnings: tuple[Diagnostic, ...] = ()
    values: Mapping[ValueT, str] = field(default_factory=dict["ValueT", str])
    """Values of the text that the loop has, by what they are called there."""
    buffers: Mapping[str, ValueT] = field(default_factory=dict[str, "ValueT"])
    """Buffers of the text that are its storages."""


@dataclass(frozen=True, slots=True)
class LeftAlone(Generic[OpT]):
    """A loop that is not read, and why."""

    name: str
    op: OpT
    reason: Diagnostic


@dataclass(frozen=True, slots=True)
class LoopsOfText(Generic[OpT, ValueT]):
    """All loops of a kernel or a module, as the text has them, outer before inner."""

    loops: tuple[LoopInText[OpT, ValueT], ...]
    left_alone: tuple[LeftAlone[OpT], ...]


def loops_of(
    source: Source[OpT, BlockT, ValueT],
    machine: Machine | str | None = None,
    *,
    regions: bool = True,
) -> LoopsOfText[OpT, ValueT]:
    """Every loop of a text on a machine; MlirError where a loop is wrong in itself.

    Without `regions`, what a program of a whole kernel has no place for is left out: functions
    without loops, and loops with other control flow inside.
    """
    return _Reader(source, machine, regions=regions).read()


def positioned(
    source: Source[OpT, BlockT, ValueT], item: LoopInText[OpT, ValueT], error: LoopError
) -> MlirError:
    """What is wrong with a loop, at the operations it is wrong with."""
    found = [_at_place(source, item.for_op, item.loop, item.ops, fault) for fault in error.faults]
    return MlirError(found)


def schedulable(
    source: Source[OpT, BlockT, ValueT], found: LoopsOfText[OpT, ValueT]
) -> LoopsOfText[OpT, ValueT]:
    """The loops that their machines can run; the others are left alone, each with its faults.

    Those are operations without a cost and all else that only shows once costs are known: memory
    budgets, ceilings of far dependences. MlirError where no loop is left.
    """
    kept: list[LoopInText[OpT, ValueT]] = []
    left: list[LeftAlone[OpT]] = []
    wrong: list[Diagnostic] = []
    for item in found.loops:
        try:
            resolved = resolve(item.loop, item.machine).loop
            faults = check(resolved, item.machine)
            if faults:
                raise LoopError(item.loop.name, faults)
            kept.append(item)
        except LoopError as error:
            told = positioned(source, item, error).diagnostics
            wrong += told
            first, others = told[0], tuple(replace(one, severity="note") for one in told[1:])
            message = f"loop `{item.loop.name}` is left alone: {first.message}"
            why = replace(first, severity="warning", message=message, notes=(*first.notes, *others))
            left.append(LeftAlone(item.loop.name, item.for_op, why))
    if wrong and not kept:
        raise MlirError(wrong)
    return LoopsOfText(tuple(kept), (*found.left_alone, *left))


def notes_of(found: LoopsOfText[OpT, ValueT]) -> tuple[Note, ...]:
    """What is worth saying of the loops of a text: that one is none to be pipelined only where
    there is no other."""
    warned = [Note(item.loop.at(), w.headline) for item in found.loops for w in item.warnings]
    left = [
        Note(Place(), item.reason.render())
        for item in found.left_alone
        if item.reason.severity != "remark" or not found.loops
    ]
    return (*warned, *left)


def _at_place(
    source: Source[OpT, BlockT, ValueT],
    for_op: OpT,
    loop: Loop,
    ops: Mapping[str, OpT],
    fault: Fault,
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
    return source.diagnose(op, "error", fault.message, attribute=attribute)


_NOT_STRAIGHT = (
    *_LOOPS,
    *BODIES,
    "nv_tileas.async.pipeline.program",
    WORK_TILE,
)
"""What a function that is gone through once has none of."""


class _Reader(Generic[OpT, BlockT, ValueT]):
    def __init__(
        self, source: Source[OpT, BlockT, ValueT], machine: Machine | str | None, *, regions: bool
    ) -> None:
        self.source = source
        self.machine = machine
        self.regions = regions
        self.homes = BufferHomes(source)
        self.names: dict[OpT, str] = {}
        self.inner: dict[OpT, Inner] = {}
        self.done: dict[OpT, LoopInText[OpT, ValueT] | LeftAlone[OpT]] = {}
        self.wrong: list[Diagnostic] = []

    def read(self) -> LoopsOfText[OpT, ValueT]:
        text = self.source
        text.check()
        loops = [op for op in text.all() if text.name(op) in _LOOPS or self._goes_straight(op)]
        self._name(loops)
        for loop in reversed(loops):  # an inner loop comes after the outer one it is in
            self.done[loop] = self._attempt(loop)
        if self.wrong:
            raise MlirError(sorted(self.wrong, key=lambda d: (d.line, d.column)))
        found = [self.done[loop] for loop in loops]
        return LoopsOfText(
            tuple(item for item in found if isinstance(item, LoopInText)),
            tuple(item for item in found if isinstance(item, LeftAlone)),
        )

    def _name(self, loops: list[OpT]) -> None:
        text = self.source
        told = {op: text.stated_loop(op) for op in loops if text.name(op) == FOR}
        stated = {op: said.loop.name for op, said in told.items() if "name" in said.given}
        self._refuse_twins(stated)
        given = Names(stated.values())
        functions = [text.function(op) or "loop" for op in loops]
        several = Counter(functions)
        numbers = Counter[str]()
        for op, function in zip(loops, functions, strict=True):
            number = numbers[function]
            numbers[function] += 1
            wanted = function if several[function] == 1 else f"{function}.{number}"
            self.names[op] = stated.get(op) or given.give(wanted)

    def _refuse_twins(self, stated: Mapping[OpT, str]) -> None:
        """Two loops of one name: nobody could tell which is meant."""
        first: dict[str, OpT] = {}
        attribute = STATED + "name"
        for op, name in stated.items():
            if first.setdefault(name, op) is op:
                continue
            note = self.source.diagnose(first[name], "note", "the other", attribute=attribute)
            message = f"`{attribute}` is `{name}`, as another loop's is"
            self.wrong.append(self.source.diagnose(op, "error", message, (note,), attribute))

    def _attempt(self, op: OpT) -> LoopInText[OpT, ValueT] | LeftAlone[OpT]:
        text, name = self.source, self.names[op]
        special = text.made_already(op)
        if special is not None:
            reason = f"loop `{name}` is left alone: {special}"
            return LeftAlone(name, op, self.source.diagnose(op, "remark", reason))
        if text.name(op) not in (FOR, FUNCTION):
            why = "how often it goes round is not known before; only scf.for is pipelined"
            reason = f"loop `{name}` is left alone: {text.name(op)}: {why}"
            # Inside of another it is an operation of that, and costs what it is said to.
            how = "warning" if self._enclosing_loop(op) is None else "remark"
            return LeftAlone(name, op, self.source.diagnose(op, how, reason))
        try:
            return self._loop(op, name)
        except UnreadableError as error:
            notes: tuple[Diagnostic, ...] = ()
            said = error.reason
            if error.op is not op:
                notes = (text.diagnose(cast("OpT", error.op), "note", error.reason),)
            loop = text.name(op) == FOR
            message = f"{'loop' if loop else 'function'} `{name}` is left alone: {said}"
            how = "warning" if loop else "remark"
            return LeftAlone(name, op, self.source.diagnose(op, how, message, notes))

    def _goes_straight(self, op: OpT) -> bool:
        """Whether it is a function to be scheduled itself: it moves tiles, and has no loop."""
        text = self.source
        if not self.regions or text.name(op) != FUNCTION or len(text.blocks(op)) != 1:
            return False
        inside = tuple(text.inside(text.body(op)))
        return not any(text.name(at) in _NOT_STRAIGHT for at in inside) and any(
            map(self._moves, inside)
        )

    def _moves(self, op: OpT) -> bool:
        """Whether an operation of the dialect touches memory."""
        text = self.source
        far = (GLOBAL, *MEMORIES)
        ours = text.name(op).startswith("nv_tileas.")
        values = (*text.operands(op), *text.results(op)) if ours else ()
        return any(text.buffer(v) in far or text.far(v) for v in values)

    def _enclosing_loop(self, op: OpT) -> OpT | None:
        return next((at for at in self.source.around(op) if self.source.name(at) == FOR), None)

    def _loop(self, op: OpT, name: str) -> LoopInText[OpT, ValueT]:
        text = self.source
        stated = text.stated_loop(op)
        machine = self._machine(op, stated.loop.machine)
        nested = tuple(text.inside(text.body(op)))
        for inner in nested:
            if text.name(inner) == FOR and self._enclosing_loop(inner) is op:
                self.inner[inner] = self._inner(inner, machine)
        for inner in reversed(nested):
            if text.name(inner) in CONTROL and self._enclosing_loop(inner) in (op, None):
                self.inner[inner] = self._control(inner, name, machine)
        body = BodyReader(text, op, stated, self.homes, self.inner).read(name)
        if not body.loop.ops:
            raise UnreadableError(op, "its body has no operations")
        faults = check(body.loop)
        for fault in faults:
            if fault.code == "long-iteration":
                raise UnreadableError(op, fault.message)
        self.wrong += [_at_place(text, op, body.loop, body.ops, fault) for fault in faults]
        warnings = self._warnings(body, machine)
        return LoopInText(body.loop, op, body.ops, machine, warnings, body.values, body.buffers)

    def _inner(self, inner: OpT, machine: Machine) -> Inner:
        if {"uses", "latency"} <= self.source.stated(inner).given:
            return FREE
        item = self.done[inner]
        if isinstance(item, LeftAlone):
            raise UnreadableError(inner, f"inner loop `{item.name}` cannot be read")
        return loop_cost(self.source, inner, item.loop, machine)

    def _control(self, op: OpT, name: str, machine: Machine) -> Inner:
        """What other control flow costs as an operation of the body it stands in."""
        if not self.regions:
            raise UnreadableError(op, f"`{self.source.name(op)}` is control flow inside the body")
        text = self.source
        if {"uses", "latency"} <= text.stated(op).given:
            return FREE
        number = sum(text.name(other) in CONTROL for other in self.inner)
        called = f"{name}.{text.name(op).rpartition('.')[2]}{number}"
        ready = [self._side(op, block, called, machine) for block in text.blocks(op)]
        return control_cost(text, op, called, [one for one in ready if one is not None])

    def _side(self, op: OpT, block: BlockT, name: str, machine: Machine) -> Prepared | None:
        """One side of it as a loop of one turn; None: it does nothing."""
        empty = StatedLoop(Loop(name, ()), frozenset())
        body = BodyReader(self.source, op, empty, self.homes, self.inner, block).read(name)
        try:
            return prepare(body.loop, machine) if body.loop.ops else None
        except StrettoError as error:
            told = error.lines(name)[0] if isinstance(error, LoopError) else str(error)
            reason = f"what `{self.source.name(op)}` costs on {machine.name} cannot be told: {told}"
            raise UnreadableError(op, reason) from None

    def _machine(self, op: OpT, named: str | None) -> Machine:
        if isinstance(self.machine, Machine):
            return self.machine
        try:
            if self.machine is None and named is not None:
                return load_machine(machine_beside(self.source.file(), named))
            return load_machine(self.machine or LOOPS)
        except StrettoError as error:
            attribute = STATED + "machine"
            told = self.source.diagnose(op, "error", str(error), attribute=attribute)
            raise MlirError([told]) from None

    def _warnings(self, body: Body[OpT, ValueT], machine: Machine) -> tuple[Diagnostic, ...]:
        """Operations the machine does not know, where it has a slot for such."""
        if machine.fallback is None:
            return ()
        known = frozenset(machine.opcodes)
        slots = ", ".join(f"`{use.slot}`" for use in machine.encoding(machine.fallback).uses)
        return tuple(
            self.source.diagnose(
                body.ops[op.name],
                "warning",
                f"{machine.name} does not know `{op.kind}`; `{op.name}` takes slot {slots}",
            )
            for op in body.loop.ops
            if not op.resolved and op.facts.tag is None and op.kind not in known
        )
