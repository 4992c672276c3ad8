"""The tree: a kernel has operations, operations have operands, results, attributes and regions.

    Kernel("matmul", parameters, Region(operations))
      Operation("tile.view_load", (%desc, %row, %column), (%a,), {}, (), Location("mm.py", 17, 9))
      Operation("scf.for", (%lower, %upper, %step, %zero), (%sum,), {}, (Region(..., (%i, %acc)),))

Everything is frozen. Values are compared by identity; each is made once, by a parameter, an
argument of a region or a result, and used below that place only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from stretto.kernel.types import Type

Attribute = bool | int | float | str | tuple["Attribute", ...] | Type
"""What may stand in an attribute; numbers of a constant in tuples, in the order of its elements."""

NO_ATTRIBUTES: Mapping[str, Attribute] = {}
"""Nobody writes into it: a `Mapping`."""


@dataclass(frozen=True, slots=True)
class Location:
    """A place in what the user wrote, or in the dump where nothing better is known."""

    file: str
    line: int = 0
    """From 1; 0 where it is not known."""
    column: int = 0
    """From 1; 0 where it is not known."""
    name: str = ""
    """The user's own name for what is made there, where the language tells it."""
    caller: Location | None = None
    """The place of the call, where the code was inlined."""

    def __str__(self) -> str:
        numbers = [str(n) for n in (self.line, self.column) if n]
        return ":".join([self.file, *numbers])


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """Something an operation, a parameter or a region's argument makes."""

    type: Type
    name: str = ""
    """A name worth keeping, if there is one; not unique."""

    def __repr__(self) -> str:
        return f"%{self.name or hex(id(self))[-5:]}: {self.type}"


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One operation; what it is called says what it does (see `operations.py`)."""

    name: str
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=lambda: NO_ATTRIBUTES)
    regions: tuple[Region, ...] = ()
    location: Location = field(default=Location("<unknown>"))

    @property
    def result(self) -> Value:
        """Its only result."""
        (one,) = self.results
        return one

    def integer(self, name: str, default: int | None = None) -> int:
        """An attribute that is a whole number."""
        found = self.attributes.get(name, default)
        assert isinstance(found, int), f"{self.name}: `{name}` is {found!r}"
        return found

    def text(self, name: str, default: str = "") -> str:
        """An attribute that is a text."""
        found = self.attributes.get(name, default)
        assert isinstance(found, str), f"{self.name}: `{name}` is {found!r}"
        return found

    def integers(self, name: str) -> tuple[int, ...]:
        """An attribute that is a list of whole numbers."""
        found = self.attributes.get(name, ())
        assert isinstance(found, tuple), f"{self.name}: `{name}` is {found!r}"
        return tuple(n for n in found if isinstance(n, int))

    def walk(self) -> Iterator[Operation]:
        """It and all inside it, as the text has them."""
        yield self
        for region in self.regions:
            yield from region.walk()


_OURS = "nv_tileas."
HIDDEN = "hidden"
"""Of a loop: how many of its last steps each consumer leaves out, in their order."""
ALIAS_SET = "alias_set"
"""Of operations that may touch the same element in different steps of a loop: their number."""


def kind_of(operation: Operation) -> str:
    """The opcode of an operation of a lowered kernel."""
    return operation.name.removeprefix(_OURS)


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """Operations one after the other; control flow is structured, so one block is enough."""

    operations: tuple[Operation, ...]
    arguments: tuple[Value, ...] = ()

    @property
    def terminator(self) -> Operation:
        """Its last operation: scf.yield, scf.condition, tile.yield or tile.return."""
        return self.operations[-1]

    def walk(self) -> Iterator[Operation]:
        """All operations inside, as the text has them."""
        for operation in self.operations:
            yield from operation.walk()


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the kernel, and what is promised of it."""

    value: Value
    divisibility: int = 1
    """An address is divisible by this many bytes, an integer by this."""
    lower: int | None = None
    """An integer is no smaller."""
    upper: int | None = None
    """An integer is no larger."""

    @property
    def name(self) -> str:
        """Its name, where the language tells one."""
        return self.value.name


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel, whole."""

    name: str
    parameters: tuple[Parameter, ...]
    body: Region
    location: Location
    warps: int | None = None
    """How many warps run it, where that is stated (Triton's num_warps)."""
    stages: int | None = None
    """How many stages its author asked for (Triton's num_stages)."""
    target: str = ""
    """What it was compiled for, as its own compiler says it: cuda:90, sm_100."""
    notes: tuple[str, ...] = ()
    """What is worth saying about it, noted while it was read."""

    def walk(self) -> Iterator[Operation]:
        """All operations, as the text has them."""
        yield from self.body.walk()


@dataclass(frozen=True, slots=True)
class Lowered:
    """A kernel that a pass made, and what is worth saying about it."""

    kernel: Kernel
    notes: tuple[tuple[Location, str], ...] = ()


def carried_from(operations: Iterable[Operation]) -> dict[Value, Value]:
    """What each carried argument of the loops among some operations begins with."""
    found: dict[Value, Value] = {}
    for op in operations:
        if op.name == "scf.for":
            found.update(zip(op.regions[0].arguments[1:], op.operands[3:], strict=True))
        elif op.name == "scf.while":
            before, after = op.regions
            found.update(zip(before.arguments, op.operands, strict=True))
            found.update(zip(after.arguments, before.terminator.operands[1:], strict=True))
    return found


def root_of(
    value: Value,
    makers: Mapping[Value, Operation],
    carried: Mapping[Value, Value],
    through: Callable[[Operation, Value], Value | None],
) -> Value | None:
    """The parameter that an address or a view goes back to; None: it cannot be told.

    `through` says which operand a result is made of; None: that leads nowhere.
    """
    seen: set[Value] = set()
    found: Value | None = value
    while found is not None and found not in seen:
        seen.add(found)
        if found in carried:
            found = carried[found]
        elif found in makers:
            found = through(makers[found], found)
        else:
            return found
    return None
