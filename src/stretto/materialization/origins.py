"""What an operand is a name of, and what must reach its reader.

    load_k ──► k_tile          qk reads `k_t`, a view of `k`, which lives in `k_tile`:
       k ── transpose ─► k_t   the raw value is the storage, the view is applied by the reader

A view costs nothing and moves nothing: it is another name. Readers that do not stand beside it in
the same step go back to the raw value and look through the views themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stretto.loop import Loop, Op, Operand
from stretto.loop.parts import cached_property
from stretto.materialization.program import Path

RawKind = Literal["storage", "value"]
"""What a storage holds, or what an operation leaves in registers."""


@dataclass(frozen=True, slots=True)
class Raw:
    """An original value: the name of a storage or of a value that no view makes."""

    kind: RawKind
    name: str


@dataclass(frozen=True, slots=True)
class Renaming:
    """An operation that only renames its operand."""

    kind: Literal["storage", "register"]
    operand: Operand


@dataclass(frozen=True, slots=True)
class Seen:
    """What one operand of an operation is."""

    kind: Literal["live-in", "value", "stored", "alias"]
    path: Path
    read: int = 0
    """For `stored`: the number of the access it goes with."""


@dataclass(frozen=True)
class Origins:
    """The names of a loop."""

    loop: Loop

    @cached_property
    def views(self) -> dict[str, Renaming]:
        """Operations that are pure views."""
        found: dict[str, Renaming] = {}
        view_of = {value.name: value.view_of for value in self.loop.values}
        for op in self.loop.ops:
            if op.name in self.loop.storage_views:
                found[op.name] = Renaming("storage", self.loop.storage_views[op.name])
                continue
            if len(op.operands) != 1 or len(op.results) != 1 or op.reads or op.writes:
                continue
            (operand,), (result,) = op.operands, op.results
            stored = operand.value in self.loop.homes or result in self.loop.homes
            if not stored and view_of[result] == operand.value:
                found[op.name] = Renaming("register", operand)
        return found

    def path(self, operand: Operand, kind: Literal["storage", "register"]) -> Path:
        """Back through views of one kind."""
        values, distances, views = [operand.value], [operand.distance], list[str]()
        while len(views) <= len(self.loop.ops):  # a view of itself, carried round, must end
            maker = self.loop.producers.get(values[-1])
            view = self.views.get(maker) if maker is not None else None
            if maker is None or view is None or view.kind != kind:
                break
            views.append(maker)
            values.append(view.operand.value)
            distances.append(view.operand.distance)
        return Path(tuple(values), tuple(distances), tuple(views))

    def raw(self, value: str) -> Raw:
        """The original value that a name means."""
        home = self.loop.homes.get(value)
        if home is not None:
            return Raw("storage", home)
        return Raw("value", self.path(Operand(value), "register").origin)

    def seen(self, op: Op) -> tuple[Seen, ...]:
        """What each operand of an operation is."""
        return tuple(self._seen(op, operand) for operand in op.operands)

    def _seen(self, op: Op, operand: Operand) -> Seen:
        view = self.views.get(op.name)
        if view is not None and view.kind == "storage":
            return Seen("alias", Path((operand.value,), (operand.distance,)))
        home = self.loop.homes.get(operand.value)
        if home is not None:
            path = self.path(operand, "storage")
            return Seen("stored", path, self._access(op, home, path))
        path = self.path(operand, "register")
        live = path.origin not in self.loop.producers
        return Seen("live-in" if live else "value", path)

    def _access(self, op: Op, home: str, path: Path) -> int:
        """The access of a storage that an operand goes with."""
        reads = self.loop.reads[op.name]
        mine = [n for n, read in enumerate(reads) if read.storage == home]
        return next((n for n in mine if reads[n].distance == path.distance), mine[0])
