"""Loops in Python, written as they read.

    loop = build("gemm", machine="b200-pipes")
    ring = loop.storage("a_tile", "smem", "128x64xf16")           a ring, fresh each iteration
    acc = loop.storage("acc", "tmem", "128x128xf32", fixed=True)  one copy, updated in place
    a = loop.op("load_a", "async.tiled_tma_load", type="128x64xf16", into=ring)
    b = loop.live_in("b", "64x128xf16")                           from outside the loop
    loop.op("mma", "async.tcgen05_mma", a, b, type="128x128xf32", update=acc)
    gemm = loop.finish()

A value is read this iteration (`m`) or from iterations before (`m[-1]`); `carried` names a value
before the operation that defines it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from stretto.kinds import checked
from stretto.loop import (
    Access,
    Constraint,
    Demand,
    Dependence,
    DependenceKind,
    Facts,
    Fault,
    Loop,
    LoopError,
    Op,
    Operand,
    Place,
    Space,
    Storage,
    TileType,
    Use,
    Value,
    check,
)


@dataclass(frozen=True, slots=True)
class Ref:
    """A value as an operation reads it."""

    value: str
    distance: int = 0
    latency: int | None = None

    def __getitem__(self, iteration: int) -> Ref:
        """The value of an earlier iteration: ``m[-1]`` is the last one's."""
        if iteration > 0:
            raise IndexError(f"`{self.value}[{iteration}]` lies in the future; use [-1], [-2], ...")
        return replace(self, distance=-iteration)

    def after(self, latency: int) -> Ref:
        """The same value, read `latency` cycles after its producer starts."""
        return replace(self, latency=latency)


@checked
def build(name: str, machine: str | None = None, *, force_serial: bool = False) -> LoopBuilder:
    """Begin a loop."""
    return LoopBuilder(name, machine, force_serial)


class LoopBuilder:
    """Collects the parts of a loop; `finish` checks and freezes them."""

    def __init__(self, name: str, machine: str | None = None, force_serial: bool = False) -> None:
        self._name = name
        self._machine = machine
        self._force_serial = force_serial
        self._values: dict[str, Value] = {}
        self._storages: dict[str, Storage] = {}
        self._ops: list[Op] = []
        self._stated: list[Dependence] = []
        self._slots: list[str] = []
        self._types: dict[str, TileType] = {}
        """Storages that were declared by a tile type, which is then what fills them."""
        self._faults: list[Fault] = []

    def storage(
        self,
        name: str,
        space: Space,
        size: str | int,
        *,
        fixed: bool = False,
        depth: int | None = None,
    ) -> Storage:
        """A buffer for tiles of a type, or of so many bytes.

        What fills or updates a buffer of a type has as many bytes; one of bytes may have some to
        spare, for padding.
        """
        if not isinstance(size, int):
            self._types[name] = TileType.parse(size)
            size = self._types[name].bytes
        self._storages[name] = Storage(name, space, size, fixed, depth)
        return self._storages[name]

    def live_in(self, name: str, type: str | None = None, storage: Storage | None = None) -> Ref:
        """A value that comes from outside the loop."""
        return self._declare(name, type, storage.name if storage else None)

    def carried(self, name: str, type: str | None = None, storage: Storage | None = None) -> Ref:
        """A value that operations read, as ``v[-1]``, before the one that ``defines`` it."""
        return self._declare(name, type, storage.name if storage else None)

    def slot(self, name: str) -> str:
        """An exclusive slot of this loop's own."""
        self._slots.append(name)
        return name

    def op(
        self,
        name: str,
        kind: str,
        *operands: Ref,
        type: str | None = None,
        into: Storage | None = None,
        update: Storage | None = None,
        view: bool = False,
        defines: Ref | None = None,
        uses: Iterable[Use] | None = None,
        demands: Iterable[Demand] = (),
        latency: int | None = None,
        facts: Facts | None = None,
        constraint: Constraint | None = None,
    ) -> Ref:
        """One operation; its result, for later ones to read.

        `into` is the storage it fills, `update` one that it reads and writes in place. With
        `view` it only renames its first operand: same storage or registers, no access. Operands
        that live in a storage make it a reader of that storage.
        """
        reads = [] if view else self._reads(operands)
        if update is not None:
            reads = [r for r in reads if r.storage != update.name] + [Access(update.name)]
        target = into or update
        home = target.name if target else self._home(operands[0]) if view else None
        result = defines or self._declare(name, type, home)
        if target is not None:
            self._check_fill(result, target)
        if view and home is None:
            seen = replace(self._values[result.value], view_of=operands[0].value)
            self._values[result.value] = seen
        self._ops.append(
            Op(
                name=name,
                kind=kind,
                operands=tuple(Operand(o.value, o.distance, o.latency) for o in operands),
                results=(result.value,),
                reads=tuple(reads),
                writes=(target.name,) if target else (),
                uses=None if uses is None else tuple(uses),
                demands=tuple(demands),
                latency=latency,
                facts=facts or Facts(),
                constraint=constraint or Constraint(),
            )
        )
        return replace(result, distance=0, latency=None)

    def depends(
        self, src: str, dst: str, latency: int, distance: int = 0, kind: DependenceKind = "order"
    ) -> None:
        """State a dependence that no value or storage implies."""
        self._stated.append(Dependence(src, dst, latency, distance, kind))

    def finish(self) -> Loop:
        """The loop; LoopError with everything that is wrong with it."""
        loop = Loop(
            name=self._name,
            ops=tuple(self._ops),
            values=tuple(self._values.values()),
            storages=tuple(self._storages.values()),
            stated=tuple(self._stated),
            machine=self._machine,
            slots=tuple(self._slots),
            force_serial=self._force_serial,
        )
        faults = [*check(loop), *self._faults]
        if faults:
            raise LoopError(loop.name, faults)
        return loop

    def _check_fill(self, result: Ref, target: Storage) -> None:
        """Note a tile that leaves a part of its buffer as it was; `check` has those too large."""
        tile, room = self._values[result.value].type, self._types.get(target.name)
        if tile is not None and room is not None and tile.bytes < room.bytes:
            place = Place(self._name, len(self._ops), ("writes", 0))
            told = (
                f"fills `{target.name}`, {room}, {room.bytes:,} bytes, with {tile}, {tile.bytes:,}"
            )
            hint = "declare the buffer by the tile's type, or by its bytes if they are meant"
            message = f"`{result.value}` {told}; {hint}"
            self._faults.append(Fault(place, "partly-filled", message))

    def _declare(self, name: str, type: str | None, storage: str | None) -> Ref:
        self._values[name] = Value(name, TileType.parse(type) if type else None, storage)
        return Ref(name)

    def _home(self, ref: Ref) -> str | None:
        value = self._values.get(ref.value)
        return value.storage if value else None

    def _reads(self, operands: Iterable[Ref]) -> list[Access]:
        reads: dict[Access, None] = {}
        for operand in operands:
            home = self._home(operand)
            if home is not None:
                distance = 0 if self._storages[home].fixed else operand.distance
                reads[Access(home, distance)] = None
        return list(reads)
