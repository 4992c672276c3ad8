"""What a translation knows while it goes through a kernel: values, places, promises.

Tile IR value ──► value of the kernel     or nothing (a token), or a tensor that is a view later
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from stretto.frontends.cutile.names import CONSTANT, MULTIPLY
from stretto.frontends.tileir import Function, Operation
from stretto.frontends.tileir import Value as Source
from stretto.frontends.tileir import types as tileir
from stretto.frontends.tileir.locations import Location as Frames
from stretto.kernel import (
    Attribute,
    KernelError,
    Location,
    Pointer,
    Scalar,
    Tile,
    Type,
    Value,
)
from stretto.kernel import Operation as Made
from stretto.kernel.building import Builder
from stretto.limits import KERNEL_OPERATIONS

_LIBRARY = "/cuda/tile/"
"""Frames of cuTile itself say nothing to its user."""

Number = Scalar | Pointer | Tile
"""Types of values one can compute with."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor in global memory: what `make_tensor_view` was given."""

    type: tileir.TensorView
    base: Value
    sizes: tuple[Value | None, ...]
    """None where the type says it."""
    strides: tuple[Value | None, ...]


@dataclass(slots=True)
class Scope:
    """Values made so far, and a builder at the place of the next."""

    file: str
    function: Function
    builder: Builder = field(default_factory=Builder)
    values: dict[Source, Value] = field(default_factory=dict[Source, Value])
    tensors: dict[Source, Tensor] = field(default_factory=dict[Source, Tensor])
    """Of tensor views, and of tile views too."""
    constants: dict[Value, int] = field(default_factory=dict[Value, int])
    depths: dict[Value, int] = field(default_factory=dict[Value, int])
    """How many regions a value is made inside of."""
    scaled: dict[tuple[Value, int], Value] = field(default_factory=dict[tuple[Value, int], Value])
    """Indices times an extent."""
    shared: dict[tuple[int, Scalar], Made] = field(default_factory=dict[tuple[int, Scalar], Made])
    """Constants of our own, which stand before everything else."""
    users: dict[Source, Counter[str]] = field(default_factory=dict[Source, "Counter[str]"])
    """The names of the operations that take a value."""
    parameters: dict[Value, dict[str, Attribute]] = field(
        default_factory=dict[Value, dict[str, Attribute]]
    )
    """With what is promised of each."""
    seen: int = 0
    """Operations that were translated."""

    def __post_init__(self) -> None:
        for operation in self.function.body.walk():
            for value in operation.values:
                self.users.setdefault(value, Counter())[operation.name] += 1

    def place(self, frames: Frames, offset: int) -> Location:
        """Where something stands in the user's source, or else in the file."""
        own = [frame for frame in frames if _LIBRARY not in frame.file] or list(frames)
        place: Location | None = None
        for frame in reversed(own):
            place = Location(frame.file, frame.line, frame.column + 1, caller=place)
        return place or Location(f"{self.file}: offset {offset}")

    def at(self, operation: Operation) -> None:
        """What is written next comes from this operation."""
        self.builder.location = self.place(operation.location, operation.offset)
        self.seen += 1
        if self.seen > KERNEL_OPERATIONS:
            raise self.fail(
                operation, f"the kernel becomes more than {KERNEL_OPERATIONS:,} operations"
            )

    def fail(self, operation: Operation, message: str, hint: str = "") -> KernelError:
        """An error at the place of an operation."""
        return KernelError(self.place(operation.location, operation.offset), message, hint)

    def refuse(self, operation: Operation, why: str) -> KernelError:
        """The error of an operation that no machine here has."""
        return self.fail(operation, f"`{operation.name}` cannot be lowered", why)

    def value(self, operation: Operation, name: str) -> Value:
        """An operand that one can compute with."""
        return self.number(operation, operation[name])

    def number(self, operation: Operation, source: Source) -> Value:
        """The value of the kernel that stands for one of the file."""
        found = self.values.get(source)
        if found is None:
            raise self.fail(operation, f"`{operation.name}` takes a {source.type}")
        return found

    def numbers(self, operation: Operation, sources: Sequence[Source]) -> tuple[Value, ...]:
        """Those of several, without tokens."""
        return tuple(
            self.number(operation, source)
            for source in sources
            if not isinstance(source.type, tileir.Token)
        )

    def type(self, operation: Operation, source: Source) -> Number:
        """The type of a value that one can compute with."""
        if not isinstance(source.type, tileir.Tile):
            raise self.fail(operation, f"`{operation.name}` makes a {source.type}")
        return kernel_type(source.type)

    def types(self, operation: Operation, sources: Sequence[Source]) -> tuple[Number, ...]:
        """Those of several, without tokens."""
        return tuple(
            self.type(operation, source)
            for source in sources
            if not isinstance(source.type, tileir.Token)
        )

    def made(self, operation: Operation) -> Number:
        """The type of the only result, tokens aside."""
        types = self.types(operation, operation.results)
        if len(types) != 1:
            raise self.fail(operation, f"`{operation.name}` makes {len(types)} values")
        return types[0]

    def bind(self, sources: Sequence[Source], values: Sequence[Value]) -> None:
        """The values that stand for those of the file; tokens have none."""
        kept = [source for source in sources if not isinstance(source.type, tileir.Token)]
        for source, value in zip(kept, values, strict=True):
            self.values[source] = value
            self.depths.setdefault(value, self.builder.depth)

    def emit(
        self, operation: Operation, name: str, operands: Sequence[Value], **attributes: Attribute
    ) -> Value:
        """One operation for one, with its only result."""
        made = self.builder.add(name, operands, (self.made(operation),), attributes).result
        self.bind(operation.results, (made,))
        return made

    def promise(self, value: Value, said: dict[str, Attribute]) -> bool:
        """Keep a promise with a parameter, if it is one and can."""
        known = self.parameters.get(value)
        if known is None or self.builder.depth:
            return False
        if not set(said) <= {"divisibility", "lower", "upper"}:
            return False
        for name, promised in said.items():
            number = promised[0] if isinstance(promised, tuple) else promised
            assert isinstance(number, int)
            before = known.get(name, number)
            assert isinstance(before, int)
            known[name] = min(before, number) if name == "upper" else max(before, number)
        return True

    def early(self, name: str, operands: Sequence[Value], type: Type) -> Value:
        """An operation of our own, as far outside as its operands allow."""
        depth = max((self.depths.get(value, 0) for value in operands), default=0)
        with self.builder.outside(min(depth, self.builder.depth)):
            made = self.builder.op(name, operands, type)
        self.depths[made] = depth
        return made

    def times(self, index: Value, extent: int) -> Value:
        """An index in tiles as one in elements, made once."""
        assert isinstance(index.type, Scalar)
        found = self.scaled.get((index, extent))
        if found is None:
            by = self.constant(extent, index.type)
            found = self.early(MULTIPLY, (index, by), index.type)
            self.scaled[index, extent] = found
        return found

    def constant(self, number: int, type: Scalar) -> Value:
        """A constant of our own, made once for the whole kernel."""
        found = self.shared.get((number, type))
        if found is None:
            value = Value(type)
            place = self.place(self.function.location, self.function.offset)
            found = Made(CONSTANT, (), (value,), {"value": number}, (), place)
            self.shared[number, type] = found
            self.constants[value] = number
        return found.result


def kernel_type(type: tileir.Tile) -> Number:
    """A scalar is a tile without dimensions."""
    element = type.element
    if isinstance(element, tileir.Pointer):
        made: Scalar | Pointer = Pointer(Scalar(element.pointee.name))
    else:
        made = Scalar(element.name)
    return Tile(type.shape, made) if type.shape else made
