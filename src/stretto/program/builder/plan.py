"""What there is to emit: a kernel, the programs of its loops, and who runs them.

Plan ── agents      copy, compute, compute.1: a function each
     ├─ rings       k_tile × 3, in shared memory, with barriers for full and free
     ├─ tiles       q_tile: one copy, filled once for all
     ├─ turns       total_then_total_1: barriers where one agent waits for another's turn
     ├─ sums        total: in tensor memory, where products add up there
     └─ views       q_desc by tiles of 64 x 128: descriptors that the host makes
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from stretto.kernel import Kernel, Operation, Value
from stretto.kernel.lowering.work_tiles import LOOPS
from stretto.kernel.lowering.written import COPY, DESCRIPTOR, GATHER, SCATTER, TMA_LOAD, TMA_STORE
from stretto.kernel.tree import kind_of
from stretto.kernel.types import Buffer, Pointer, Tile, View
from stretto.kernel.wiring import LoopWiring
from stretto.machine import Machine
from stretto.materialization import Program
from stretto.ops.opcodes import opcode
from stretto.ops.spaces import SPACES, STAGING, TENSOR
from stretto.program.builder.layouts import copied_by_columns
from stretto.program.builder.names import Names
from stretto.program.builder.ordering import repeatable, require_order
from stretto.program.builder.rings import Ring, rings_of
from stretto.program.builder.sums import Sum, find_sums, fit, is_sum, on_its_own
from stretto.program.builder.turns import Turn, find_turns
from stretto.program.errors import EmitError, unwritten
from stretto.program.expressions import Barrier, Given
from stretto.program.instructions import Advance, Flip, Instruction

SMEM_WRITE, SMEM_READ = SPACES[STAGING].fill, SPACES[STAGING].read
BARRIER_BYTES = 8
SWIZZLED = 128
"""Bytes of a row, at most, whose order in shared memory differs from one of 8 rows to the next."""
BARRIERS_ALIGNED = 16
"""Bytes of which barriers that are allocated together take a multiple."""
WHOLE = "make a descriptor of the whole array, and add what the block is at to its coordinates"
"""What helps where a host cannot make a descriptor."""
TWO = 2
RESIDENT = 3
"""Blocks that an SM has beside each other: up to so many, no slot more takes the place of one."""
EITHER_BITS = 16
"""Of elements of factors that a product takes by rows and by columns."""


@dataclass(frozen=True)
class Looped:
    """A loop of the kernel that runs by a program."""

    operation: Operation
    wiring: LoopWiring
    program: Program
    drained: bool = False
    """Whether as many iterations as there are stages run to their end before the next begin: what
    is in flight then never goes from one step of a loop to the next."""


@dataclass(frozen=True)
class Worker:
    """An agent: warps that run one function."""

    name: str
    warps: int
    registers: int
    computes: bool = True
    """Whether it has tiles in registers; else it issues copies or products, and no more."""
    multiplies: bool = False
    """Whether it issues products, and no more."""

    @property
    def copies(self) -> bool:
        """Whether it issues copies, and no more."""
        return not self.computes and not self.multiplies


@dataclass(frozen=True)
class SharedTile:
    """A tile in shared memory outside of any ring."""

    name: str
    buffer: Value
    shape: tuple[int, ...]
    element: str
    bytes: int
    loaded: bool
    """Whether TMA fills it, so that its readers wait for it."""
    repeated: bool = False
    """Whether it is filled again and again, in a loop around those that are pipelined."""
    readers: int = 0
    """How many agents read it."""
    turned: bool = False
    """Whether its columns lie in one piece, not its rows."""
    lingers: bool = False
    """Whether loops read it where it lies, so that it comes back only when they are done."""
    depth: int | None = None
    """Slots, where the next turn's copy does not wait for that."""

    @property
    def slot(self) -> str | None:
        """The variable that says which."""
        return None if self.depth is None else f"{self.name}_slot"

    def barrier(self, role: str) -> Barrier:
        """Of the slot at hand: `full` or `free`."""
        return Barrier(f"{self.name}_{role}", self.slot)

    @property
    def next(self) -> Instruction:
        """One slot further."""
        phase = f"{self.name}_phase"
        return Flip(phase) if self.slot is None else Advance(self.slot, phase, self.depth or 1)


@dataclass(frozen=True)
class Descriptor:
    """A view of a tensor by tiles of one shape."""

    name: str
    view: Value
    block: tuple[int, ...]
    element: str


@dataclass
class Plan:
    """All of it."""

    kernel: Kernel
    loops: Mapping[Operation, Looped]
    workers: Sequence[Worker]
    machine: Machine
    rings: dict[tuple[Operation, str], Ring] = field(
        default_factory=dict[tuple[Operation, str], Ring]
    )
    """By loop and storage."""
    tiles: dict[Value, SharedTile] = field(default_factory=dict[Value, SharedTile])
    """By the buffer that is allocated."""
    sums: dict[Value, Sum] = field(default_factory=dict[Value, Sum])
    """Likewise, in tensor memory."""
    turns: dict[Operation, list[Turn]] = field(default_factory=dict[Operation, list[Turn]])
    """Of each loop."""
    descriptors: dict[tuple[Value, tuple[int, ...]], Descriptor] = field(
        default_factory=dict[tuple[Value, tuple[int, ...]], Descriptor]
    )
    maker: dict[Value, Operation] = field(default_factory=dict[Value, Operation])
    turned: set[Value] = field(default_factory=set[Value])
    """Buffers whose columns lie in one piece: products of other than 16 bits want K so."""
    named: dict[Value, tuple[str, Given]] = field(default_factory=dict[Value, tuple[str, Given]])
    """Of each parameter: its name in the kernel, and what the host gives for it."""
    repeatable: frozenset[Operation] = frozenset()
    """Loads of numbers that each agent does for itself that wants them."""
    scratch: int = 0
    """Bytes of shared memory that Triton takes beside what is allocated."""

    @property
    def copier(self) -> str:
        """Who issues copies."""
        return self.workers[-1].name

    @property
    def first(self) -> str:
        """Who does what nobody in particular does."""
        return self.workers[0].name

    @property
    def multiplier(self) -> str:
        """Who issues products outside of loops."""
        return next((worker.name for worker in self.workers if worker.multiplies), self.first)

    def owner(self, operation: Operation) -> str:
        """Who issues an operation outside of loops."""
        if len(self.workers) == 1:
            return self.first
        said = operation.text("agent")
        if said:
            return said
        if kind_of(operation) == TMA_LOAD:
            return self.copier
        return self.multiplier if on_its_own(operation) else self.first

    def is_read(self, value: Value) -> bool:
        """Whether anybody wants a value."""
        return any(value in op.operands for op in self.kernel.walk())

    def is_factor(self, buffer: Value) -> bool:
        """Whether a product reads a buffer."""
        return any(
            opcode(kind_of(op)).accumulator is not None
            and any(isinstance(v.type, Buffer) and self.root(v) is buffer for v in op.operands[:2])
            for op in self.kernel.walk()
        )

    def root(self, value: Value) -> Value:
        """The buffer that a value in shared memory lies in."""
        while value in self.maker:
            made = self.maker[value]
            row = opcode(kind_of(made))
            if row.allocates:
                return value
            if kind_of(made) in (TMA_LOAD, COPY, SMEM_WRITE):
                value = made.operands[-1]
            elif row.view:
                value = made.operands[0]
            else:
                return value
        return value

    def is_turned(self, value: Value) -> bool:
        """Whether a name of a buffer has rows for its columns."""
        turned = False
        while (made := self.maker.get(value)) is not None and isinstance(value.type, Buffer):
            if opcode(kind_of(made)).allocates or not opcode(kind_of(made)).view:
                break
            turned ^= kind_of(made) == "transpose"
            value = made.operands[0]
        return turned

    def shared_rings(self) -> list[Ring]:
        """The rings, each once: loops one after the other may share one."""
        return list({ring.name: ring for ring in self.rings.values()}.values())

    def all_turns(self) -> list[Turn]:
        """Those of all loops."""
        return [turn for turns in self.turns.values() for turn in turns]

    @property
    def bytes(self) -> int:
        """Shared memory in all."""
        rings = sum(
            _placed(ring.depth * ring.bytes, ring) + (ring.full + ring.free) * _barriers(ring.depth)
            for ring in self.shared_rings()
        )
        tiles = sum(
            _placed((tile.depth or 1) * tile.bytes, tile) + 2 * _barriers(tile.depth or 1)
            for tile in self.tiles.values()
        )
        sums = sum(2 * _barriers(one.depth) for one in self.sums.values())
        turns = sum(_barriers(turn.depth) for turn in self.all_turns())
        return rings + tiles + sums + turns + self.scratch


def _placed(bytes: int, one: Ring | SharedTile) -> int:
    """Bytes that tiles take, which begin at a multiple of 8 of their rows."""
    row = one.shape[-1] * one.bytes // prod(one.shape)
    return _aligned(bytes, 8 * min(SWIZZLED, row))


def _barriers(count: int) -> int:
    return _aligned(count * BARRIER_BYTES, BARRIERS_ALIGNED)


def _aligned(bytes: int, to: int) -> int:
    return -(-bytes // to) * to


def make_plan(
    kernel: Kernel, loops: Sequence[Looped], workers: Sequence[Worker], machine: Machine
) -> Plan:
    """What a kernel and its programs ask for."""
    plan = Plan(kernel, {loop.operation: loop for loop in loops}, workers, machine)
    known = {worker.name for worker in workers}
    for operation in kernel.walk():
        plan.maker.update(dict.fromkeys(operation.results, operation))
        if kind_of(operation) in (GATHER, SCATTER):
            raise unwritten(operation)
        said = operation.text("agent")
        if said and said not in known and len(workers) > 1:
            told = f"it stands on agent `{said}`, which runs no part of the kernel"
            raise EmitError(told, operation, f"its agents: {', '.join(sorted(known))}")
    issuer = _issuer(plan)
    names = Names()
    plan.named = _parameters(kernel, names)
    _find_views(plan, names)
    require_order(kernel, plan.maker, issuer)
    plan.repeatable = repeatable(kernel, plan.maker)
    _turn(plan)
    _find_tiles(plan, names, issuer)
    plan.sums = find_sums(kernel, plan.loops, plan.maker, issuer, names.give)
    budget = machine.budget(TENSOR)
    fit(list(plan.sums.values()), None if budget is None else budget.bytes)
    taken: dict[tuple[object, ...], list[Ring]] = {}
    for loop in loops:
        used: set[str] = set()
        agent_of = _agents(plan, loop.program)
        operations = loop.wiring.operations
        for ring in rings_of(loop.program, operations, loop.operation, agent_of, plan.turned):
            key = (
                *(ring.name, ring.shape, ring.element, ring.turned),
                *(ring.producer, ring.consumers),
            )
            shared = [] if ring.exact else taken.get(key, [])
            known = next((r for r in shared if r.name not in used and not r.exact), None)
            if known is None:
                storage, ring.name = ring.name, names.give(ring.name)
                taken.setdefault(key, []).append(ring)
                known = ring
            else:
                storage = ring.name
                known.depth = max(known.depth, ring.depth)
            used.add(known.name)
            plan.rings[loop.operation, storage] = known
        plan.turns[loop.operation] = find_turns(loop.program, operations, agent_of, names.give)
    return plan


def _turn(plan: Plan) -> None:
    """Which buffers are laid out by columns: the factors of a product have K in one piece, but for
    16 bits, of which it takes either; threads copy what follows one another in memory."""
    plan.turned |= {plan.root(op.operands[-1]) for op in copied_by_columns(plan.kernel)}
    ways: dict[Value, bool] = {}
    copied = {plan.root(op.operands[-1]) for op in plan.kernel.walk() if kind_of(op) == TMA_LOAD}
    for operation in plan.kernel.walk():
        if opcode(kind_of(operation)).accumulator is None:
            continue
        for number, factor in enumerate(operation.operands[:2]):
            if not isinstance(factor.type, Buffer) or factor.type.element.bits == EITHER_BITS:
                continue
            buffer, turned = plan.root(factor), plan.is_turned(factor) == (number == 0)
            which = "left" if number == 0 else "right"
            hint = "keep it with K in one piece, or load it by addresses"
            if turned and buffer in copied:
                told = f"the {which} factor, of {factor.type.element.bits} bits, comes by TMA"
                raise EmitError(f"{told} with K across its rows", operation, hint)
            if ways.setdefault(buffer, turned) != turned:
                told = f"the {which} factor is taken both as it is and transposed"
                raise EmitError(f"{told}: of {factor.type.element.bits} bits", operation, hint)
            if turned:
                plan.turned.add(buffer)


def _agents(plan: Plan, program: Program) -> Mapping[str, str]:
    """Who issues the operations of a loop."""
    if len(plan.workers) > 1:
        return program.agent_of
    return dict.fromkeys(program.agent_of, plan.first)


def _issuer(plan: Plan) -> Callable[[Operation], str]:
    """Who issues an operation, in a loop that runs by a program or outside."""
    inside = {
        operation: loop.program.agent_of[name]
        for loop in plan.loops.values()
        for name, operation in loop.wiring.operations.items()
        if name in loop.program.agent_of and len(plan.workers) > 1
    }
    return lambda operation: inside.get(operation) or plan.owner(operation)


def _parameters(kernel: Kernel, names: Names) -> dict[Value, tuple[str, Given]]:
    """Parameters by names of their own; sizes and strides follow their tensor, under its name."""
    found: dict[Value, tuple[str, Given]] = {}
    of: dict[str, list[Value]] = {}
    for parameter in kernel.parameters:
        of.setdefault(parameter.name, []).append(parameter.value)
    for name, (first, *rest) in of.items():
        found[first] = (names.give(name), Given(name))
        rank = len(rest) // 2
        for i, value in enumerate(rest):
            part, axis = ("shape", i) if i < rank else ("strides", i - rank)
            given = Given(name, part, axis, isinstance(first.type, Pointer))
            found[value] = (names.give(f"{name}_{part.removesuffix('s')}_{axis}"), given)
    return found


def deepen(plan: Plan, most: int = 8) -> None:
    """Rings that TMA fills get slots beyond what lifetimes ask, for copies that come late; those
    that threads copy to get one, so that nobody asks for a slot that has only just been read."""
    budget = plan.machine.budget(STAGING)
    room = None if budget is None else budget.bytes
    if room is None:
        return
    _double(plan, room, most)
    copied = [ring for ring in plan.shared_rings() if ring.copied and ring.depth < most]
    blocks = room // max(1, plan.bytes)
    _grow(copied, plan, room // max(1, min(blocks, RESIDENT)))
    rings = [ring for ring in plan.shared_rings() if ring.by_tma and not ring.exact]
    while rings:
        least = min(ring.depth for ring in rings)
        growing = [ring for ring in rings if ring.depth == least]
        if least >= most or not _grow(growing, plan, room):
            return


def _double(plan: Plan, room: int, most: int) -> None:
    """Two slots for tiles that loops read to their end, for the copy of the next turn, where that
    leaves room for a further slot of each ring."""
    lingering = {buffer: tile for buffer, tile in plan.tiles.items() if tile.lingers}
    rings = [ring for ring in plan.shared_rings() if ring.by_tma]
    if most < TWO or len(plan.workers) == 1 or not lingering:
        return
    plan.tiles.update({b: replace(tile, depth=TWO) for b, tile in lingering.items()})
    if plan.bytes + sum(ring.bytes for ring in rings) > room:
        plan.tiles.update(lingering)


def _grow(rings: Sequence[Ring], plan: Plan, room: int) -> bool:
    """A slot more for each, if that fits."""
    for ring in rings:
        ring.depth += 1
    if plan.bytes <= room:
        return True
    for ring in rings:
        ring.depth -= 1
    return False


def _find_views(plan: Plan, names: Names) -> None:
    for operation in plan.kernel.walk():
        kind = kind_of(operation)
        if kind == TMA_LOAD:
            view, buffer = operation.operands[0], operation.operands[-1]
            _require_zeros(plan, view, operation)
        elif kind == TMA_STORE:
            buffer, view = operation.operands[0], operation.operands[1]
        else:
            continue
        _require_host(plan, view, operation)
        assert isinstance(buffer.type, Buffer)
        key = (view, buffer.type.shape)
        if key not in plan.descriptors:
            name = names.give(view.name or "desc")
            element = buffer.type.element.element
            plan.descriptors[key] = Descriptor(name, view, buffer.type.shape, element)


def _require_host(plan: Plan, view: Value, user: Operation) -> None:
    """Descriptors are made before any block runs."""
    made = plan.maker.get(view)
    if view not in plan.named and (made is None or kind_of(made) != DESCRIPTOR):
        told = "a view that is made in the kernel's course cannot be emitted"
        raise EmitError(told, made or user, WHOLE)


def _require_zeros(plan: Plan, view: Value, load: Operation) -> None:
    """Outside of a tensor TMA reads zeros."""
    made = plan.maker.get(view)
    assert isinstance(view.type, View)
    padding = view.type.padding if made is None else made.text("padding", view.type.padding)
    if padding not in ("zero", "undefined"):
        told = f"it reads {padding} outside of the tensor, which has no Gluon yet"
        raise EmitError(told, load, "TMA reads zeros there; choose among them in the kernel")


def _find_tiles(plan: Plan, names: Names, issuer: Callable[[Operation], str]) -> None:
    """Buffers that are allocated outside of the loops that run by programs."""
    inside = {op for loop in plan.loops for op in loop.regions[0].walk()}
    around = {
        op
        for op in plan.kernel.walk()
        if op.name in LOOPS and op not in plan.loops and op not in inside
        for region in op.regions
        for op in region.walk()
    }
    for operation in plan.kernel.walk():
        if operation in inside or not opcode(kind_of(operation)).allocates:
            continue
        buffer = operation.result
        if is_sum(buffer):
            continue
        assert isinstance(buffer.type, Buffer)
        type = buffer.type
        filled = [
            op for op in plan.kernel.walk() if kind_of(op) == TMA_LOAD and op.operands[-1] is buffer
        ]
        bytes = Tile(type.shape, type.element).elements * type.element.bits // 8
        reading = [
            op
            for op in plan.kernel.walk()
            for value in op.operands
            if isinstance(value.type, Buffer)
            and plan.root(value) is buffer
            and op not in filled
            and not opcode(kind_of(op)).view
        ]
        for op in reading:
            if filled and operation in around and on_its_own(op):
                told = f"it reads `{buffer.name}`, which is filled again and again outside of rings"
                raise EmitError(f"{told}: this has no Gluon yet", op)
        readers = {issuer(op) for op in reading}
        plan.tiles[buffer] = SharedTile(
            names.give(buffer.name or "tile"),
            buffer,
            type.shape,
            type.element.element,
            bytes,
            bool(filled),
            operation in around,
            len(readers),
            buffer in plan.turned,
            bool(filled) and operation in around and bool(inside.intersection(reading)),
        )
