"""The score of an agent as instructions of the engine, for so many trips of each loop.

    LoopScore, 40 trips  ──►  prologue │ kernel × 38 │ epilogue     Full(k_tile, 0), Product(512)

Long loops are cut short: whoever asks extrapolates from the steps that end each of their turns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from stretto.kernel import Operation
from stretto.kernel.tree import kind_of
from stretto.kernel.types import Buffer, Tile
from stretto.loop import Loop, Op, Operand, TileType, Value
from stretto.machine import Machine
from stretto.materialization import Program
from stretto.ops.opcodes import opcode
from stretto.ops.spaces import STAGING
from stretto.prediction import blocks
from stretto.prediction.blocks import ROWS
from stretto.prediction.instructions import (
    Arrive,
    Copy,
    Delay,
    Free,
    Full,
    Hand,
    Instruction,
    Product,
    Settle,
    Step,
    Work,
)
from stretto.prediction.score import AgentScore, Around, Beat, LoopScore, Part
from stretto.prediction.timings import Timings
from stretto.resources.prepare import resolve

MULTIPLY, SUMS = "multiply", ("add", "subtract")
"""What is one instruction together, by what it computes."""
DEPTH = 16
"""Of k, that one instruction of a product takes."""
GROUP = 4
"""Warps of a group."""
TURNS = ("turn", "hand")
"""What is counted for itself, whichever way a loop is gone through."""
SHUFFLED = 48
"""Cycles that the assembler counts for lanes that are brought together."""


@dataclass
class Costing:
    """What operations of a kernel take on a machine, each worked out once."""

    machine: Machine
    timings: Timings
    programs: Sequence[Program]
    sources: Mapping[Operation, str]
    """Where copies come from."""
    _views: dict[int, dict[str, str]] = field(default_factory=dict[int, dict[str, str]])
    _parts: dict[tuple[int, str], blocks.Part] = field(
        default_factory=dict[tuple[int, str], blocks.Part]
    )
    _products: dict[tuple[int, str], Product] = field(
        default_factory=dict[tuple[int, str], Product]
    )

    def inside(self, number: int, op: str) -> blocks.Part:
        """An operation of a loop that runs by a program."""
        key = (number, op)
        if key not in self._parts:
            loop = self.programs[number].loop
            if number not in self._views:
                self._views[number] = blocks.through_views(loop)
            part = self._part(loop.op(op), loop)
            (self._parts[key],) = blocks.seen([part], self._views[number])
        return self._parts[key]

    def contracted(self, score: LoopScore) -> frozenset[str]:
        """Factors of sums that the assembler makes one instruction of with the sum.

        A product of elements that nothing but sums of its own step takes costs nothing.
        """
        loop = self.programs[score.number].loop
        stages = {beat.op: beat.stage for beat in score.kernel if beat.kind == "work"}
        does = {op.name: opcode(op.kind).computes for op in loop.ops}
        takers: dict[str, list[tuple[str, int]]] = {}
        for op in loop.ops:
            for operand in op.operands:
                takers.setdefault(operand.value, []).append((op.name, operand.distance))
        return frozenset(
            op
            for op, stage in stages.items()
            if does[op] == MULTIPLY
            and all(
                does.get(taker) in SUMS and not distance and stages.get(taker) == stage
                for value in loop.op(op).results
                for taker, distance in takers.get(value, [("", 1)])
            )
        )

    def _part(self, op: Op, loop: Loop) -> blocks.Part:
        return blocks.part_of(op, loop, self.timings.pipes)

    def outside(self, operation: Operation) -> blocks.Part:
        """An operation outside of such loops."""
        found = self._resolved(operation)
        if found is None:  # a number: nothing that takes time beside tiles
            return blocks.Part(kind_of(operation), 0.0, 0.0, 0.0, 0.0, whole=False)
        return self._part(*found)

    def _resolved(self, operation: Operation) -> tuple[Op, Loop] | None:
        values: dict[str, Value] = {}

        def known(value: object, name: str) -> str | None:
            type = getattr(value, "type", None)
            shape = element = None
            if isinstance(type, Tile | Buffer):
                shape, element = type.shape, type.element
            name_of = getattr(element, "element", None)
            if shape is None or name_of is None:
                return None
            values[name] = Value(name, TileType(tuple(shape), name_of))
            return name

        taken = [known(v, f"in{n}") for n, v in enumerate(operation.operands)]
        made = [known(v, f"out{n}") for n, v in enumerate(operation.results)]
        op = Op(
            "op",
            kind_of(operation),
            tuple(Operand(name) for name in taken if name),
            tuple(name for name in made if name),
        )
        if not values:
            return None
        loop = Loop("outside", (op,), tuple(values.values()))
        resolved = resolve(loop, self.machine).loop
        return resolved.ops[0], resolved

    def product(self, number: int, op: str) -> Product:
        """Its cycles of the tensor core and of the agent that issues it; what it reads."""
        key = (number, op)
        if key not in self._products:
            self._products[key] = self._product(number, op)
        return self._products[key]

    def _product(self, number: int, op: str) -> Product:
        loop = self.programs[number].loop
        values = {value.name: value for value in loop.values}
        found = loop.op(op)
        left, right = (values[operand.value] for operand in found.operands[:2])
        tensor = tensor_cycles(found, self.machine)
        if left.type is None or right.type is None:
            return Product(tensor, self.timings.issue[0])
        return product_of(
            tensor, left.type.shape[0], right.type.shape, self._staged(loop, left), self.timings
        )

    def _staged(self, loop: Loop, value: Value) -> bool:
        """Whether a value lies in shared memory, as seen through views."""
        values = {v.name: v for v in loop.values}
        while value.storage is None and value.view_of in values:
            value = values[value.view_of]
        return any(s.name == value.storage and s.space == STAGING for s in loop.storages)

    def flops(self, number: int) -> float:
        """Floating point operations of an iteration's products."""
        loop = self.programs[number].loop
        types = {value.name: value.type for value in loop.values}
        found = 0.0
        for op in loop.ops:
            if opcode(op.kind).accumulator is None:
                continue
            left, right = (types[operand.value] for operand in op.operands[:2])
            if left is not None and right is not None:
                found += 2.0 * left.elements * right.shape[-1]
        return found


def product_of(
    tensor: float, rows: int, right: Sequence[int], staged: bool, timings: Timings
) -> Product:
    """A product that holds the tensor core for so long; `staged`: its left factor is in shared
    memory, as the right one is.

    The tensor core waits for what it reads there, which comes at a rate of its own.
    """
    depth, columns = right[0], right[-1]
    fixed, each = timings.issue
    parts = max(1, depth // DEPTH)
    # One instruction reads 16 of k: of the right factor, and of the left if that is there.
    reads = (columns + (ROWS if staged else 0)) * DEPTH * 2.0 * parts * rows / ROWS
    cycles = max(tensor, reads / timings.read)
    return Product(cycles, fixed + each * depth * columns, reads / cycles, parts)


def tensor_cycles(op: Op, machine: Machine) -> float:
    """Cycles that a product holds the tensor core: of its uses, the longest that is no agent's."""
    names = {a.replica(n) for a in machine.agents for n in range(a.replicas)}
    names |= {slot.name for slot in machine.slots if slot.capacity != 1}
    return float(max((u.duration for u in op.uses or () if u.slot not in names), default=0))


def products_of(loop: Loop, machine: Machine) -> float:
    """Cycles of an iteration in which its products hold the tensor core."""
    return sum(
        tensor_cycles(op, machine) for op in loop.ops if opcode(op.kind).accumulator is not None
    )


def mix(found: list[Instruction], works: Sequence[Work]) -> None:
    """Work behind a product: the assembler issues of the product what it takes for as long.

    It counts a cycle for an instruction, four for one of the special function units, and takes
    the rest of the product's instructions behind the work.
    """
    last = found[-1] if found else None
    if not isinstance(last, Product) or not works:
        found += works
        return
    counted = sum(
        max(work.arithmetic, work.special / 2) + SHUFFLED * work.meetings for work in works
    )
    inside = min(last.parts, 1 + int(counted * last.parts / last.cycles))
    part = last.cycles / last.parts
    found[-1] = replace(last, cycles=part * inside)
    found += works
    if inside < last.parts:
        left = last.parts - inside
        found.append(Product(part * left, 0.0, last.smem, left, rest=True))


@dataclass
class Flow:
    """Instructions of one agent, for one block."""

    costing: Costing
    score: AgentScore
    trips: Callable[[LoopScore | Around], int]
    """How often a loop goes round, once it is cut short."""
    prefix: str = ""
    """Of the names of rings, where several blocks share an SM."""
    found: list[Instruction] = field(default_factory=list[Instruction])
    _work: list[blocks.Part] = field(default_factory=list[blocks.Part])
    _free: frozenset[str] = frozenset()
    """Operations of the present loop that cost nothing."""
    _turns: dict[str, int] = field(default_factory=dict[str, int])
    _phases: dict[str, int] = field(default_factory=dict[str, int])
    """Of each variable that tells a phase: how often it went on to the next."""
    _base: dict[str, int] = field(default_factory=dict[str, int])

    def instructions(self) -> list[Instruction]:
        """All of them, in order."""
        self._parts(self.score.parts)
        self._flush()
        return self.found

    def _say(self, instruction: Instruction) -> None:
        self._flush()
        self.found.append(instruction)

    def _flush(self) -> None:
        if self._work:
            made = blocks.stretches(
                self._work, self.costing.timings.pipes.lag, self.score.warps / GROUP
            )
            self._work = []
            mix(self.found, [work for work in made if work.cycles > 0])

    def _parts(self, parts: Sequence[Part]) -> None:
        for part in parts:
            if isinstance(part, LoopScore):
                self._loop(part)
            elif isinstance(part, Around):
                for _ in range(self.trips(part)):
                    self._parts(part.body)
            else:
                self._outside(part)

    # Outside of loops ----------------------------------------------------------------------------

    def _next(self, name: str, what: str) -> int:
        key = f"{what} {name}"
        self._turns[key] = self._turns.get(key, -1) + 1
        return self._turns[key]

    def _outside(self, beat: Beat) -> None:
        ring = self.prefix + beat.thing
        store = self.costing.timings.store[0]
        match beat.kind:
            case "full":
                self._say(Full(ring, self._phases.get(beat.phase, 0)))
            case "free":
                self._say(Free(ring, self._phases.get(beat.phase, 0)))
            case "next":
                self._phases[beat.phase] = self._phases.get(beat.phase, 0) + 1
            case "arrive":
                self._say(Arrive(ring, self._next(beat.thing, "arrive")))
            case "turn":
                self._say(Full(ring, self._next(beat.thing, "full")))
            case "hand":
                self._say(Hand(ring, self._next(beat.thing, "hand")))
            case "copy":
                turn = self._next(beat.thing, "copy")
                self._say(Copy(ring, turn, beat.bytes, self._source(beat)))
            case "store":
                self._say(Delay(self.costing.timings.costs.copy_issue, "store"))
            case "drain":
                self._say(Delay(store, "store"))
            case "product":
                assert beat.operation is not None
                part = self.costing.outside(beat.operation)
                self._say(Product(part.own or 1.0, 0.0))
            case "settle":
                self._say(Settle(0))
            case "work":
                assert beat.operation is not None
                self._work.append(self.costing.outside(beat.operation))

    def _source(self, beat: Beat) -> str:
        if beat.operation is None:
            return "hbm"
        return self.costing.sources.get(beat.operation, "hbm")

    # Loops ---------------------------------------------------------------------------------------

    def _loop(self, score: LoopScore) -> None:
        every = self.trips(score)
        trips = max(0, every - score.hidden)
        self._free = self.costing.contracted(score)
        around = (*score.prologue, *score.epilogue)
        steps = (score.kernel, score.singly, *(step for _, step in around))
        read = (b for step in steps for b in step if b.thing and b.kind not in TURNS)
        rings = dict.fromkeys(beat.thing for beat in read)
        if trips < score.needed and (score.singly or not score.prologue):
            for turn in range(trips):
                self._step(score, score.singly, turn, stages=False)
        else:
            for step, beats in score.prologue:
                self._step(score, beats, step)
            self._say(Step(score.number))
            for step in range(score.first, trips + score.ahead):
                self._step(score, score.kernel, step)
                self._say(Step(score.number))
            for step, beats in score.epilogue:
                self._step(score, beats, trips + step)
        for turn in range(trips, every):  # those that are hidden, each with all of its tiles
            for ring in rings:
                at = self._base.get(ring, 0) + turn
                self._say(Full(self.prefix + ring, at))
                self._say(Arrive(self.prefix + ring, at))
        for ring in rings:
            self._base[ring] = self._base.get(ring, 0) + every

    def _step(
        self, score: LoopScore, beats: Sequence[Beat], step: int, *, stages: bool = True
    ) -> None:
        for beat in beats:
            turn = step - (beat.stage if stages else 0)
            at = turn + self._base.get(beat.thing, 0)
            ring = self.prefix + beat.thing
            match beat.kind:
                case "full":
                    self._say(Full(ring, at))
                case "free":
                    self._say(Free(ring, at))
                case "arrive":
                    self._say(Arrive(ring, at))
                case "copy":
                    self._say(Copy(ring, at, beat.bytes, self._source(beat)))
                case "turn" | "hand" | "next":
                    self._outside(beat)
                case "product":
                    self._say(self.costing.product(score.number, beat.op))
                case "settle":
                    self._say(Settle(beat.left))
                case "store":
                    self._say(Delay(self.costing.timings.costs.copy_issue, "store"))
                case "drain":
                    self._say(Delay(self.costing.timings.store[0], "store"))
                case "work":
                    part = self.costing.inside(score.number, beat.op)
                    free = beat.op in self._free
                    self._work.append(replace(part, arithmetic=0.0, tail=0.0) if free else part)
