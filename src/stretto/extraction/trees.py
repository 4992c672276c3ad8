"""Kernels as trees, asked for what loops are made of: who makes a value, what stands around it.

One pass over the operations notes both; types, opcodes and attributes are read off the tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from stretto.diagnostics import Diagnostic, Severity
from stretto.extraction.source import (
    FUNCTION,
    NOTHING,
    OVER_TILES,
    WORK_TILE,
    Source,
    StatedLoop,
    StatedOp,
)
from stretto.kernel import Kernel, KernelError
from stretto.kernel.accesses import ACCESSES, Accesses, shared_loads
from stretto.kernel.axes import analyse
from stretto.kernel.building import plain_name
from stretto.kernel.tree import ALIAS_SET, Operation, Region, Value
from stretto.kernel.types import Buffer, Pointer, Scalar, Tile, Type, View
from stretto.loop import Constraint, Facts, Loop, Op, TileType, Written
from stretto.loop.parts import element_bits
from stretto.ops.opcodes import OPCODES, UNKNOWN, Opcode
from stretto.ops.spaces import GLOBAL, REGISTERS

_OURS = "nv_tileas."
_CONSTANT = "arith.constant"
_ENDS = (".yield", ".condition", ".return", ".combined")
_PURE = ("arith.", "math.")
_KNOWN = (*_PURE, "scf.", "tile.return", FUNCTION)
"""Dialects that are not ours, whose operations have attributes of their own."""
_ADDRESS = "i64"
"""What an address is in a register."""


class Kernels(Source[Operation, Region, Value]):
    """Lowered kernels, of one file."""

    def __init__(self, named: str, kernels: Sequence[Kernel]) -> None:
        self._file = named
        self._kernels = kernels
        self._makers: dict[Value, tuple[Operation, int]] = {}
        self._entered: dict[Value, tuple[Region, int]] = {}
        self._blocks: dict[Operation, Region] = {}
        self._above: dict[Region, Operation] = {}
        self._places: dict[Operation, int] = {}
        self._open: set[Region] = set()
        self._functions: dict[Operation, Kernel] = {}
        for kernel in kernels:
            body = kernel.body
            function = Operation(FUNCTION, (), (), {}, (body,), kernel.location)
            self._functions[function] = kernel
            self._places[function] = len(self._places)
            for number, parameter in enumerate(kernel.parameters):
                self._entered[parameter.value] = body, number
            self._note(function, body)

    def _note(self, above: Operation, region: Region) -> None:
        """Who makes what, and where: of all inside of a region; KernelError where a value is used
        that is not made before, or inside of something else."""
        self._above[region] = above
        self._open.add(region)
        for number, argument in enumerate(region.arguments):
            self._entered[argument] = region, number
        for operation in region.operations:
            self._places[operation] = len(self._places)
            self._blocks[operation] = region
            for operand in operation.operands:
                maker = self.maker(operand)
                home = self.entered(operand) if maker is None else self._blocks[maker]
                if home not in self._open:
                    told = f"`{operation.name}` takes {operand}, which is not made before it"
                    raise KernelError(operation.location, f"it cannot be lowered: {told}")
            for number, result in enumerate(operation.results):
                self._makers[result] = operation, number
            for inner in operation.regions:
                self._note(operation, inner)
        self._open.remove(region)

    @cached_property
    def _users(self) -> dict[Value, list[Operation]]:
        found: dict[Value, list[Operation]] = {}
        for operation in self._places:
            for operand in operation.operands:
                found.setdefault(operand, []).append(operation)
        return found

    @cached_property
    def _facts(self) -> dict[Operation, Facts]:
        """What is known of each access to global memory."""
        found: dict[Operation, Facts] = {}
        for kernel in self._kernels:
            accesses, shared = Accesses(kernel, analyse(kernel)), shared_loads(kernel)
            for op in kernel.walk():
                if op.name in ACCESSES:
                    facts = accesses.facts(op)
                    known = {"cluster": shared[op]} if op in shared else {}
                    found[op] = replace(facts, **known)
        return found

    # How they stand ------------------------------------------------------------------------------

    def operands(self, op: Operation) -> Sequence[Value]:
        """What an operation takes."""
        return op.operands

    def results(self, op: Operation) -> Sequence[Value]:
        """What an operation makes."""
        return op.results

    def blocks(self, op: Operation) -> Sequence[Region]:
        """Its regions, which have a block each."""
        return op.regions

    def has_regions(self, op: Operation) -> bool:
        """Whether there are regions."""
        return bool(op.regions)

    def operations(self, block: Region) -> Sequence[Operation]:
        """In the order of the text."""
        return block.operations

    def last(self, block: Region) -> Operation | None:
        """The last operation of a region."""
        return block.operations[-1] if block.operations else None

    def arguments(self, block: Region) -> Sequence[Value]:
        """What a region is entered with; parameters are no arguments of a kernel's body."""
        return block.arguments

    def block_of(self, op: Operation) -> Region | None:
        """The region that an operation stands in."""
        return self._blocks.get(op)

    def above(self, block: Region) -> Operation | None:
        """The operation that a region is part of."""
        return self._above.get(block)

    def maker(self, value: Value) -> Operation | None:
        """The operation that makes a value; None: it is an argument."""
        found = self._makers.get(value)
        return None if found is None else found[0]

    def entered(self, value: Value) -> Region | None:
        """The region whose argument a value is; None: it is made."""
        found = self._entered.get(value)
        return None if found is None else found[0]

    def index(self, value: Value) -> int:
        """Which result, or which argument, a value is."""
        found = self._makers.get(value) or self._entered[value]
        return found[1]

    def users(self, value: Value) -> Sequence[Operation]:
        """Who takes a value, each as often as it does."""
        return self._users.get(value, ())

    def place(self, op: Operation) -> int:
        """Which operation of all it is, in the order of the text."""
        return self._places[op]

    def all(self) -> Iterable[Operation]:
        """All operations, in the order of the text; a kernel is one around its own."""
        return tuple(self._places)

    # What they are -------------------------------------------------------------------------------

    def name(self, op: Operation) -> str:
        """What an operation is called, with its dialect."""
        return op.name

    def kind(self, op: Operation) -> str:
        """The opcode by which machines know it."""
        return "constant" if op.name == _CONSTANT else op.name.removeprefix(_OURS)

    def row(self, op: Operation) -> Opcode:
        """What is true of an operation of the dialect; of any other, nothing."""
        ours = op.name.startswith(_OURS)
        return OPCODES.get(op.name.removeprefix(_OURS), UNKNOWN) if ours else UNKNOWN

    def generic(self, op: Operation) -> bool:
        """Whether neither the dialect nor MLIR has an operation of that name."""
        if op.name.startswith(_OURS):
            return op.name.removeprefix(_OURS) not in OPCODES
        return not op.name.startswith(_KNOWN)

    def unknown(self, op: Operation) -> bool:
        """Whether no dialect knows it: a kernel has none of those."""
        del op
        return False

    def ends(self, op: Operation) -> bool:
        """Whether it ends its region."""
        return op.name.endswith(_ENDS)

    def pure(self, op: Operation) -> bool:
        """Whether it is known to leave memory alone."""
        return op.name.startswith(_PURE)

    def destination(self, op: Operation) -> Value | None:
        """The buffer an operation fills, if it names one."""
        return _operand(op, self.row(op).destination)

    def accumulator(self, op: Operation) -> Value | None:
        """The tile a product adds to in place."""
        return _operand(op, self.row(op).accumulator)

    def hint(self, value: Value) -> str | None:
        """A name worth keeping; that of a parameter is its author's, and may end in a number."""
        block = self.entered(value)
        parameter = block is not None and self._above[block] in self._functions
        return (plain_name(value.name) if parameter else value.name) or None

    def buffer(self, value: Value) -> str | None:
        """The buffer a tile lives in: global, or a space; None for scalars and tokens."""
        match value.type:
            case Tile(shape, Scalar()):
                return REGISTERS if shape else None
            case Tile():
                return REGISTERS
            case Buffer(_, _, space):
                return space
            case View():
                return GLOBAL
            case _:
                return None

    def far(self, value: Value) -> bool:
        """Whether it is an address, or a tile of such."""
        return _is_address(value.type)

    def tile(self, value: Value) -> TileType | None:
        """The tile or scalar that a value is; None for tokens and what is of unknown size."""
        return _tile(value.type)

    def room(self, value: Value) -> tuple[TileType | None, str | None, int | None]:
        """What a buffer takes as a storage; nothing caps its ring."""
        return _tile(value.type), self.buffer(value), None

    def is_pipeline(self, value: Value) -> bool:
        """Whether it is a ring of tiles: a kernel that is not scheduled has none."""
        del value
        return False

    def constant(self, value: Value) -> int | None:
        """The whole number that a value is known to be."""
        op = self.maker(value)
        if op is None or op.name != _CONSTANT or not isinstance(value.type, Scalar):
            return None
        said = op.attributes["value"]
        return int(said) if value.type.is_integer and isinstance(said, int) else None

    def immediate(self, value: Value) -> bool:
        """Whether an instruction can hold the value: a constant, one number however wide."""
        op = self.maker(value)
        if op is None or op.name != _CONSTANT:
            return False
        said = op.attributes["value"]
        # By what is written: NaN is no number that equals itself.
        return not isinstance(said, tuple) or len({repr(number) for number in said}) == 1

    # What is said of them ------------------------------------------------------------------------

    def stated(self, op: Operation) -> StatedOp:
        """What the passes say of an operation: its agent, its group, what is known of it."""
        said = op.attributes
        given = frozenset(_STATED[name] for name in _STATED if name in said)
        if not given:
            return NOTHING
        gid = said.get("gid")
        assert gid is None or isinstance(gid, int)
        rows: Any = said.get("facts", ())
        made = Op(
            "",
            "",
            agent=op.text("agent") if "agent" in said else None,
            constraint=Constraint(gid=gid),
            facts=Facts(**dict(rows)),
        )
        return StatedOp(made, given if rows else given - {"facts"})

    def stated_loop(self, op: Operation) -> StatedLoop:
        """What the passes say of a loop: its machine, and whether it is to be serial."""
        machine = op.text("machine") if "machine" in op.attributes else None
        serial = "serial" in op.attributes
        given = {"machine"} if machine is not None else set[str]()
        given |= {"force_serial"} if serial else set[str]()
        return StatedLoop(Loop("-", (), machine=machine, force_serial=serial), frozenset(given))

    def alias_set(self, op: Operation) -> int | None:
        """The number of an operation's alias set, if it touches global memory and is in one."""
        number = op.attributes.get(ALIAS_SET)
        return number if isinstance(number, int) and self.row(op).far else None

    def facts(self, op: Operation) -> Facts:
        """What is known of an operation by the addresses that it goes to."""
        far = any(isinstance(v.type, View) or _is_address(v.type) for v in op.operands)
        return self._facts.get(op, _NOTHING_KNOWN) if far else _NOTHING_KNOWN

    def written(self, op: Operation) -> Written | None:
        """Where an operation stands in what the user wrote; None where nobody knows."""
        at = op.location
        return Written(at.file, at.line, at.column) if at.line and at.column else None

    def function(self, op: Operation) -> str:
        """The name of the kernel that an operation is part of."""
        top = op if op in self._functions else [*self.around(op)][-1]
        return self._functions[top].name

    def made_already(self, op: Operation) -> str | None:
        """Why a loop is not one to be pipelined, if it is not."""
        bodies = (inside for region in op.regions for inside in region.operations)
        if any(inside.name == WORK_TILE for inside in bodies):
            return OVER_TILES
        return None

    def file(self) -> str:
        """Where it was read."""
        return self._file

    def check(self) -> None:
        """Nothing: what is stated comes from passes."""

    def diagnose(
        self,
        op: Operation,
        severity: Severity,
        message: str,
        notes: tuple[Diagnostic, ...] = (),
        attribute: str | None = None,
    ) -> Diagnostic:
        """Something said about an operation."""
        del attribute
        at = op.location
        return Diagnostic(severity, message, at.file, at.line, at.column, "", notes)

    def walk(self, op: Operation) -> Iterator[Operation]:
        """It and all inside of it, as the text has them."""
        return op.walk()


_STATED = {"agent": "agent", "gid": "constraint", "facts": "facts"}
"""Attributes that say something of an operation's place in a loop, and its fields that they are."""
_NOTHING_KNOWN = Facts()


def _operand(op: Operation, number: int | None) -> Value | None:
    """The operand that a definition lists at a position; None: it is left out."""
    if number is None:
        return None
    sizes = op.integers("groups")
    if not sizes:
        return op.operands[number] if number < len(op.operands) else None
    return op.operands[sum(sizes[:number])] if sizes[number] else None


def _is_address(type: Type) -> bool:
    return isinstance(type.element if isinstance(type, Tile) else type, Pointer)


def _tile(type: Type) -> TileType | None:
    match type:
        case Scalar(element):
            made = TileType((), element)
        case Pointer():
            made = TileType((), _ADDRESS)
        case Tile(shape, Pointer()):
            made = TileType(shape, _ADDRESS)
        case Tile(shape, Scalar(element)) | Buffer(shape, Scalar(element)):
            made = TileType(shape, element)
        case View(_, Scalar(element), sizes) if sizes and None not in sizes:
            made = TileType(tuple(size for size in sizes if size is not None), element)
        case _:
            return None
    return made if min(made.shape, default=1) > 0 and element_bits(made.element) else None
