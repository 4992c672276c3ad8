"""Makes a tree from its first operation to its last.

b = Builder()
row = b.op("arith.muli", (pid, size), i32, name="row")
with b.region((index, acc)) as body:
    ...
    b.add("scf.yield", (more,))
b.add("scf.for", (lower, upper, step, zero), (total_type,), regions=(body.region,))
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from stretto.kernel.tree import NO_ATTRIBUTES, Attribute, Location, Operation, Region, Value
from stretto.kernel.types import Scalar, Tile, Type


@dataclass
class OpenRegion:
    """A region that is being written; `region` once it is closed."""

    arguments: tuple[Value, ...] = ()
    operations: list[Operation] = field(default_factory=list[Operation])

    @property
    def region(self) -> Region:
        """What was written."""
        return Region(tuple(self.operations), self.arguments)


class Builder:
    """Writes operations into the innermost open region, all of them at its location."""

    def __init__(self, location: Location | None = None) -> None:
        self.location = location or Location("<unknown>")
        """Where the next operations stand."""
        self.said: Mapping[str, Attribute] = NO_ATTRIBUTES
        """What the next operations all say beside their own attributes."""
        self._open = [OpenRegion()]

    def add(
        self,
        name: str,
        operands: Sequence[Value] = (),
        types: Sequence[Type] = (),
        attributes: Mapping[str, Attribute] = NO_ATTRIBUTES,
        regions: Sequence[Region] = (),
        names: Sequence[str] = (),
    ) -> Operation:
        """An operation, with results of these types."""
        given = [*names, *[""] * (len(types) - len(names))]
        results = tuple(Value(type, called) for type, called in zip(types, given, strict=True))
        said = {**self.said, **attributes} if self.said else attributes
        made = Operation(name, tuple(operands), results, said, tuple(regions), self.location)
        self._open[-1].operations.append(made)
        return made

    def op(
        self,
        kind: str,
        operands: Sequence[Value],
        type: Type,
        name: str = "",
        **attributes: Attribute,
    ) -> Value:
        """The only result of an operation without regions."""
        return self.add(kind, operands, (type,), attributes, names=(name,)).result

    def constant(self, value: Attribute, type: Scalar | Tile, name: str = "") -> Value:
        """A number, or a tile that has it everywhere."""
        return self.op("arith.constant", (), type, name, value=value)

    def append(self, operation: Operation) -> None:
        """An operation as it is."""
        self._open[-1].operations.append(operation)

    @contextmanager
    def region(self, arguments: Sequence[Value] = ()) -> Generator[OpenRegion]:
        """What is written inside goes into a region of its own."""
        opened = OpenRegion(tuple(arguments))
        self._open.append(opened)
        try:
            yield opened
        finally:
            self._open.pop()

    @property
    def depth(self) -> int:
        """How many regions are open around what is written next."""
        return len(self._open) - 1

    @contextmanager
    def outside(self, depth: int) -> Generator[None]:
        """What is written inside stands in an outer region, before what is being written now."""
        inner = self._open[depth + 1 :]
        del self._open[depth + 1 :]
        try:
            yield
        finally:
            self._open += inner

    def finish(self, arguments: Sequence[Value] = ()) -> Region:
        """All that was written outside of any region."""
        (outermost,) = self._open
        return Region(tuple(outermost.operations), tuple(arguments))
