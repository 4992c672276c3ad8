"""Sums in tensor memory: who adds to one, who reads it, and how each tells the other.

    product agent   wait total_free ─► tcgen05_mma, again and again ─► tcgen05_commit(total_full)
    compute agent                      wait total_full ─► load ─► arrive total_free

A product reads shared memory and adds to its sum in its own time, and arrives on barriers itself:
only who reads the sum waits for it, or who fills a slot anew that it has read. A sum that begins at
zero is not filled: the first product does not add. What else one begins with is put there by
threads, which then say that products may come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from stretto.kernel import Kernel, Operation, Region, Value
from stretto.kernel.lowering.work_tiles import LOOPS
from stretto.kernel.tree import kind_of
from stretto.kernel.types import Buffer
from stretto.ops.opcodes import opcode
from stretto.ops.spaces import SPACES, TENSOR
from stretto.program.builder.trips import known_trips
from stretto.program.errors import EmitError
from stretto.program.expressions import Expression, Name, number

SUM_WRITE, SUM_READ = SPACES[TENSOR].fill, SPACES[TENSOR].read
LANES = 128
"""Rows of tensor memory."""
CELL = 4
"""Bytes of a cell."""
WIDEST = 256
"""Columns that one instruction multiplies."""


@dataclass
class Sum:
    """A tile in tensor memory that products add to."""

    name: str
    shape: tuple[int, ...]
    adder: str
    """The agent that issues products."""
    reader: str
    """The agent that reads it, and fills it where it does not begin at zero."""
    filled: Operation | None
    """What threads put there before the first product, if they do."""
    zero: bool
    """Whether the first product does not add, since it would add to zero."""
    writers: Sequence[Operation]
    """Loops and products that add to it, in order."""
    reads: Sequence[Operation]
    """Where it is read, behind all of them."""
    repeated: bool
    """Whether it is begun again and again, in a loop around those that are pipelined."""
    depth: int = 1

    @property
    def free(self) -> bool:
        """Whether products have to be told that they may begin."""
        return self.adder != self.reader and (self.repeated or self.filled is not None)

    @property
    def columns(self) -> int:
        """Columns of tensor memory that one copy takes."""
        return -(-self.shape[0] // LANES) * self.shape[1]

    @property
    def block(self) -> tuple[int, int]:
        """What one instruction multiplies."""
        return min(LANES, self.shape[0]), min(WIDEST, self.shape[1])

    @property
    def index(self) -> str | None:
        """The variable that says which copy of a ring of them is meant."""
        return f"{self.name}_slot" if self.repeated else None

    @property
    def phase(self) -> Expression:
        """The parity of its barriers."""
        return Name(f"{self.name}_phase") if self.repeated else number(0)

    @property
    def first_phase(self) -> int:
        """Where products begin to count: the first finds a sum that is free, or waits for it."""
        return 1 if self.free and self.filled is None else 0


def is_sum(value: Value) -> bool:
    """Whether a value is a tile in tensor memory."""
    return isinstance(value.type, Buffer) and value.type.space == TENSOR


def on_its_own(operation: Operation) -> bool:
    """Whether an operation is a product that says itself when it is done."""
    return opcode(kind_of(operation)).accumulator is not None and is_sum(operation.results[0])


def sum_roots(kernel: Kernel) -> dict[Value, Value]:
    """Of every name of a sum, the buffer that is meant."""
    found: dict[Value, Value] = {}
    for op in kernel.walk():
        if op.name == "scf.for":
            carried = zip(op.regions[0].arguments[1:], op.results, op.operands[3:], strict=True)
            for inner, result, begun in carried:
                if begun in found:
                    found[inner] = found[result] = found[begun]
        elif op.results and is_sum(op.results[0]):
            if opcode(kind_of(op)).allocates:
                found[op.result] = op.result
            elif touched(op) in found:
                found[op.results[0]] = found[touched(op)]
    return found


def touched(op: Operation) -> Value:
    """The sum that an operation fills, reads or adds to."""
    kind = kind_of(op)
    home = opcode(kind).accumulator
    if home is None:
        return op.operands[-1 if kind == SUM_WRITE else 0]
    return op.operands[home]


def find_sums(
    kernel: Kernel,
    loops: Mapping[Operation, object],
    maker: Mapping[Value, Operation],
    agent_of: Callable[[Operation], str],
    name: Callable[[str], str],
) -> dict[Value, Sum]:
    """The sums of a kernel by their buffers; EmitError where one is used in a way without Gluon."""
    roots = sum_roots(kernel)
    found: dict[Value, Sum] = {}
    for region, repeated in _regions(kernel.body, loops, False):
        for alloc in region.operations:
            if opcode(kind_of(alloc)).allocates and is_sum(alloc.result):
                users = [op for op in region.operations if _uses(op, alloc.result, roots)]
                found[alloc.result] = _Found(alloc, users, loops, maker).sum(
                    agent_of, name, repeated
                )
    inside = {op for loop in loops for op in loop.regions[0].walk()}
    for op in kernel.walk():
        if not _touches(op):
            continue
        if roots.get(touched(op)) not in found or (op in inside and not on_its_own(op)):
            told = f"`{kind_of(op)}` of a sum that a step of a loop begins or reads"
            raise EmitError(f"{told} has no Gluon yet", op, "sums that grow over a loop have")
    return found


def _regions(
    region: Region, loops: Mapping[Operation, object], repeated: bool
) -> Iterator[tuple[Region, bool]]:
    """Every region outside of loops that run by programs, and whether a loop is around it."""
    yield region, repeated
    for op in region.operations:
        for inner in op.regions if op not in loops else ():
            yield from _regions(inner, loops, repeated or op.name in LOOPS)


def _touches(op: Operation) -> bool:
    return on_its_own(op) or kind_of(op) in (SUM_WRITE, SUM_READ)


def _uses(op: Operation, buffer: Value, roots: Mapping[Value, Value]) -> bool:
    return any(_touches(inner) and roots.get(touched(inner)) is buffer for inner in op.walk())


@dataclass(frozen=True)
class _Found:
    """A buffer in tensor memory, and what uses it where it is allocated."""

    alloc: Operation
    users: Sequence[Operation]
    loops: Mapping[Operation, object]
    maker: Mapping[Value, Operation]

    def sum(
        self, agent_of: Callable[[Operation], str], name: Callable[[str], str], repeated: bool
    ) -> Sum:
        buffer, users = self.alloc.result, self.users
        assert isinstance(buffer.type, Buffer)
        fills = [op for op in users if kind_of(op) == SUM_WRITE]
        writers = [op for op in users if op in self.loops or on_its_own(op)]
        reads = [op for op in users if kind_of(op) == SUM_READ]
        if [*fills, *writers, *reads] != list(users) or len(fills) > 1 or not (writers and reads):
            told = f"`{buffer.name}` is not filled, added to and read once, in this order"
            raise EmitError(f"{told}, which has no Gluon yet", (users or [self.alloc])[-1])
        self._require_shape(buffer.type)
        products = [op for writer in writers for op in writer.walk() if on_its_own(op)]
        zero = len(products) == 1 and bool(fills) and self._is_zero(fills[0])
        if zero and writers[0] in self.loops:
            zero = known_trips(writers[0], self.maker) != 0
        return Sum(
            name(products[0].results[0].name or "sum"),
            buffer.type.shape,
            agent_of(products[0]),
            agent_of(reads[0]),
            fills[0] if fills and not zero else None,
            zero,
            writers,
            reads,
            repeated,
        )

    def _require_shape(self, type: Buffer) -> None:
        rows, columns = type.shape
        if rows in (64, LANES) and columns <= 2 * WIDEST and type.element.element == "f32":
            return
        told = f"a sum of {rows} x {columns} {type.element.element} has no Gluon yet"
        raise EmitError(told, self.alloc, f"64 or {LANES} rows of f32 have")

    def _is_zero(self, fill: Operation) -> bool:
        made = self.maker.get(fill.operands[0])
        if made is None or kind_of(made) != "arith.constant":
            return False
        number = made.attributes["value"]
        return isinstance(number, int | float) and number == 0


def fit(sums: Sequence[Sum], budget: int | None) -> None:
    """A second copy of sums that are begun again and again, so that products need not wait."""
    most = LANES * 4 if budget is None else budget // (LANES * CELL)
    taken = sum(one.columns for one in sums)
    if taken > most:
        told = f"{taken:,} columns of tensor memory are needed, there are {most:,}"
        raise EmitError(told, hint="smaller tiles")
    for one in sums:
        if one.free and one.repeated and taken + one.columns <= most:
            one.depth = 2
            taken += one.columns
