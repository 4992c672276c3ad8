"""Whether rows whose index wraps around reach what a kernel stores.

    rows = (block * 128 + range) % M        rows behind M are others again
    total = dot(load a + rows, b)           each row of the total by itself
    store c, total, rows < M                none of those behind M is stored

Copied by their plain index, rows behind the end are zeros instead. That is as good where each row
stays by itself up to the stores, and the stores leave those out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from stretto.kernel.addresses import Addresses, Wrapped
from stretto.kernel.lowering.uses import Uses
from stretto.kernel.tree import Operation, Value
from stretto.kernel.types import Tile, View, shape_of

_MASKS = {"tile.store": 2, "tile.atomic_rmw": 2}
"""Which operand is the mask; the one before is what is stored."""


def reach_no_store(
    tile: Value,
    dimension: int,
    wrapped: Wrapped,
    addresses: Addresses,
    uses: Uses,
) -> str:
    """Empty where no row of a tile that wraps around is stored; else why it may be."""
    walk = _Walk(addresses, wrapped)
    walk.reach(tile, dimension)
    while walk.queue and not walk.why:
        value, along = walk.queue.pop()
        for user in uses.of(value):
            walk.use(user, value, along)
    return walk.why


@dataclass
class _Walk:
    addresses: Addresses
    wrapped: Wrapped
    why: str = ""
    queue: list[tuple[Value, int]] = field(default_factory=list[tuple[Value, int]])
    _seen: set[tuple[Value, int]] = field(default_factory=set[tuple[Value, int]])

    def __post_init__(self) -> None:
        self._around: dict[Operation, Operation] = {
            region.terminator: op
            for op in self.addresses.kernel.walk()
            for region in op.regions
            if region.operations
        }

    def reach(self, value: Value, along: int) -> None:
        """A tile that has such rows along a dimension."""
        if (value, along) not in self._seen:
            self._seen.add((value, along))
            self.queue.append((value, along))

    def use(self, user: Operation, value: Value, along: int) -> None:  # noqa: PLR0912
        """Where the rows come by an operation."""
        match user.name:
            case "tile.dot":
                self._product(user, value, along)
            case "tile.transpose":
                self.reach(user.result, user.integers("order").index(along))
            case "tile.expand_dims":
                self.reach(user.result, along + (user.integer("axis") <= along))
            case "tile.broadcast" | "tile.hint":
                self.reach(user.result, along)
            case "tile.reduce" if user.integer("axis") != along:
                for result in user.results:
                    self.reach(result, along - (user.integer("axis") < along))
            case "scf.for":
                at = user.operands.index(value) - 3
                self.reach(user.regions[0].arguments[1 + at], along)
                self.reach(user.results[at], along)
            case "scf.yield":
                self._handed_on(user, value, along)
            case "tile.store" | "tile.atomic_rmw":
                self._stored(user, value, along)
            case "tile.view_store":
                self._stored_through(user, value, along)
            case "arith.select" if self._left_out(user, value, along):
                pass
            case _ if user.name.startswith(("arith.", "math.", "libdevice.")):
                for result in user.results:
                    self.reach(result, along)
            case _:
                self._stop(user, f"`{user.name.partition('.')[2]}` takes the rows together")

    def _stop(self, user: Operation, why: str) -> None:
        self.why = self.why or f"{why} ({user.location})"

    def _product(self, user: Operation, value: Value, along: int) -> None:
        left, right, total = user.operands
        rank = len(shape_of(user.result.type))
        rows, columns = rank - 2, rank - 1
        for operand, summed in ((left, columns), (right, rows)):
            if value is operand and along == summed:
                self._stop(user, "a product sums them up")
        if not self.why and value in (left, right, total):
            self.reach(user.result, along)

    def _left_out(self, user: Operation, value: Value, along: int) -> bool:
        """Whether a choice takes something else for them: `where(rows < M, value, other)`."""
        condition, chosen, other = user.operands
        return value is chosen is not other and self._bounded(condition, along)

    def _bounded(self, mask: Value, along: int) -> bool:
        """Whether a mask is off for them."""
        wanted = self.wrapped.size - self.wrapped.first
        bounds = self.addresses.mask(mask).bounds
        return any(b.upper and b.dimension == along and b.end == wanted for b in bounds)

    def _handed_on(self, user: Operation, value: Value, along: int) -> None:
        around = self._around.get(user)
        if around is None or around.name not in ("scf.for", "scf.if"):
            self._stop(user, "they leave a loop of unknown length")
            return
        for at, operand in enumerate(user.operands):
            if operand is value:
                self.reach(around.results[at], along)
                if around.name == "scf.for":
                    self.reach(around.regions[0].arguments[1 + at], along)

    def _stored(self, user: Operation, value: Value, along: int) -> None:
        masked = _MASKS[user.name]
        if value is not user.operands[1] or len(user.operands) <= masked:
            self._stop(user, "they are stored without a mask")
            return
        if not self._bounded(user.operands[masked], along):
            self._stop(user, "the mask of a store does not leave them out")

    def _stored_through(self, user: Operation, value: Value, along: int) -> None:
        view, tile, *at = user.operands
        made = self.addresses.maker.get(view)
        if value is tile and made is not None and isinstance(tile.type, Tile):
            assert isinstance(view.type, View)
            whole = view.type.tile == tile.type.shape and len(made.operands) == 1 + 2 * len(at)
            if whole:
                first = self.addresses.number(at[along])
                size = self.addresses.number(made.operands[1 + along])
                if (first, size) == (self.wrapped.first, self.wrapped.size):
                    return
        self._stop(user, "a store through a view does not leave them out")
