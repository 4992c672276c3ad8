"""Issues, read back: where each operand of an operation comes from, and what slots it touches.

loop    what the operand is a name of         ──►  the path
SSA     who gives it, and through which pipe  ──►  direct, through a pipe, before the loop
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from xdsl.ir import Operation, SSAValue

from stretto.ir.attributes import plain
from stretto.ir.programs import names
from stretto.ir.programs.head import Head
from stretto.ir.programs.tracing import Made, Piped, trace
from stretto.loop import Op
from stretto.materialize.instructions import (
    After,
    Alias,
    Direct,
    Issue,
    LiveIn,
    Path,
    Place,
    Slot,
    Source,
    Stored,
    Through,
)
from stretto.materialize.origins import Origins, Seen
from stretto.materialize.types import Iterator, Ring


@dataclass
class Issues:
    """Makes issues of one program."""

    head: Head
    versions: dict[SSAValue, str]
    kernel: dict[str, tuple[Source, ...]] = field(default_factory=dict[str, tuple[Source, ...]])
    """Where operands come from in the kernel."""
    positions: dict[str, list[int]] = field(default_factory=dict[str, list[int]])

    @cached_property
    def iterators(self) -> dict[str, Iterator]:
        """Iterators by name."""
        return {iterator.name: iterator for iterator in self.head.iterators.values()}

    @cached_property
    def stages(self) -> dict[str, int]:
        """Stages, as the kernels have them; filled before any issue is made."""
        return {}

    @cached_property
    def _rings(self) -> dict[str, Ring]:
        rings = self.head.rings.values()
        return {ring.storage: ring for ring in rings if ring.storage is not None}

    @cached_property
    def _origins(self) -> Origins:
        return Origins(self.head.loop)

    def place(self, op: Operation) -> tuple[int, int]:
        """Stage and cycle of an operation."""
        found: list[Any] = [plain(op.attributes[key]) for key in (names.STAGE, names.CYCLE)]
        if not all(isinstance(number, int) and number >= 0 for number in found):
            raise self.head.refuse(op, f"stage {found[0]}, cycle {found[1]}: numbers are needed")
        return found[0], found[1]

    def issue(
        self,
        op: Operation,
        name: str,
        at: Place,
        section: str,
        touched: list[str],
        after: tuple[After, ...],
    ) -> Issue:
        """An operation in its place."""
        row = self.head.loop.op(name)
        if section == "kernel" and names.OPERANDS in op.attributes:
            self.positions[name] = list(plain_array(op.attributes[names.OPERANDS]))
        sources = tuple(
            self._source(op, row, at, section, number, seen)
            for number, seen in enumerate(self._origins.seen(row))
        )
        if section == "kernel":
            self.kernel[name] = sources
        listed = self.head.loop.reads[name]
        reads = tuple(self._slot(op, touched, r.storage, "consumer", r.distance) for r in listed)
        writes = tuple(self._slot(op, touched, storage, "producer", 0) for storage in row.writes)
        return Issue(at, name, sources, reads, writes, after)

    # Slots ------------------------------------------------------------------------------------

    def _slot(
        self, op: Operation, touched: list[str], storage: str, side: str, distance: int
    ) -> Slot:
        ring = self._rings.get(storage)
        if ring is None:
            raise self.head.refuse(op, f"storage `{storage}` has no ring")
        if ring.fixed:
            return Slot(storage, None, distance)
        for name in touched:
            iterator = self.iterators[name]
            if (iterator.ring, iterator.side, iterator.distance) == (ring.name, side, distance):
                return Slot(storage, name, distance)
        raise self.head.refuse(op, f"it touches `{storage}` and no iterator says which slot")

    # Operands ---------------------------------------------------------------------------------

    def _source(
        self, op: Operation, row: Op, at: Place, section: str, number: int, seen: Seen
    ) -> Source:
        path = seen.path
        if seen.kind == "alias":
            return Alias(path.values[0])
        if seen.kind == "stored":
            return Stored(path.values[0], seen.read, path.views)
        positions = self.positions.get(row.name)
        position = number if positions is None else positions[number]
        if not 0 <= position < len(op.operands):
            raise self.head.refuse(
                op, f"it has no operand {position}, which should be `{path.values[0]}`"
            )
        found = trace(self.head, self.versions, op.operands[position])
        if isinstance(found, Made):
            return self._direct(op, row.name, path, found, at)
        if isinstance(found, Piped):
            return Through(path, found.pipe, found.iterator)
        if seen.kind == "live-in":
            return (
                LiveIn(path) if section == "kernel" else self._as_in_kernel(row.name, number, path)
            )
        if section == "prologue" and at.step - at.stage < path.distance:
            return self.kernel[row.name][number]
        told = f"operand `{path.values[0]}` comes from outside the program"
        raise self.head.refuse(op, f"`{row.name}`: {told}")

    def _as_in_kernel(self, op: str, number: int, path: Path) -> Source:
        return self.kernel[op][number] if op in self.kernel else LiveIn(path)

    def _direct(self, op: Operation, consumer: str, path: Path, made: Made, at: Place) -> Source:
        """The maker stands beside the consumer: find it on the path."""
        distance = 0
        for n, value in enumerate(path.values):
            distance += path.distances[n]
            apart = self.stages.get(made.op, at.stage) - at.stage
            if value == made.value and distance == apart:
                reader = consumer if n == 0 else path.views[n - 1]
                cut = Path(path.values[: n + 1], path.distances[: n + 1], path.views[:n])
                latency = self._latency(made.op, reader, path.distances[n])
                return Direct(cut, made.op, latency)
        told = f"`{made.value}` of `{made.op}` in this step is not `{path.values[0]}`"
        raise self.head.refuse(op, f"`{consumer}`: {told}, {path.distance} iterations back")

    def _latency(self, src: str, dst: str, distance: int) -> int:
        found = [
            d.latency
            for d in self.head.loop.dependences
            if (d.src, d.dst, d.distance) == (src, dst, distance) and d.kind in ("flow", "memory")
        ]
        return max(found, default=0)


def plain_array(attribute: Any) -> tuple[int, ...]:
    """The numbers of a dense array."""
    return tuple(int(number) for number in attribute.get_values())
