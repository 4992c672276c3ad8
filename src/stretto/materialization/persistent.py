"""One block works on many tiles: the persistent loop and its work-tile info.

    problem 512 × 384, tile 128 × 128, cluster 2 × 1       4 × 3 tiles, 12 in all
    block 0 of 4:  tiles 0, 4, 8      (m, n) = (0, 0), (1, 1), (2, 2)

The loop over tiles has a widened index, so that no product of extents wraps. The shapes must agree
before anything is solved: a failed check invalidates the schedule.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from stretto.errors import MaterializeError

NARROW, WIDE = "i32", "i64"
"""The index type of a kernel's own loops, and that of the loop over its tiles."""
WIDEST = 2**63 - 1
"""The largest value of the widened index."""


class ShapeError(MaterializeError):
    """A persistent loop whose shapes do not agree; the schedule is invalid before solve runs."""


@dataclass(frozen=True, slots=True)
class WorkTile:
    """What a block is told about one tile, every part of the same type."""

    index: int
    coordinates: tuple[int, ...]
    valid: bool


@dataclass(frozen=True, slots=True)
class Persistent:
    """A loop over work tiles around the pipelined loop."""

    problem: tuple[int, ...] | None
    """Extents of what is computed, in elements; None: known at run time only."""
    tile: tuple[int, ...]
    cluster: tuple[int, ...]
    """Tiles that one cluster works on together, along each axis."""
    blocks: int = 1
    """Blocks that share the tiles, one after the other; whole clusters of them."""
    index: str = WIDE
    info: tuple[str, ...] = ()
    """Types of the parts of the work-tile info: a coordinate an axis, then the validity; empty:
    all of the index's type."""

    @property
    def grid(self) -> tuple[int, ...]:
        """Tiles along each axis, of a problem that is known."""
        assert self.problem is not None
        return tuple(p // t for p, t in zip(self.problem, self.tile, strict=True))

    @property
    def tiles(self) -> int:
        """Tiles in all."""
        return math.prod(self.grid)

    def check(self) -> tuple[str, ...]:
        """Everything in which the shapes and types do not agree."""
        faults = _shapes(self.problem, self.tile, self.cluster)
        if self.blocks < 1:
            faults.append(f"{self.blocks} blocks share the tiles; at least 1 is needed")
        elif not faults:
            faults += self._shared()
        if self.index != WIDE:
            faults.append(f"the index over tiles is {self.index}; it must be widened to {WIDE}")
        if self.info:
            faults += self._info()
        return tuple(faults)

    def _shared(self) -> list[str]:
        """Tiles of a cluster are worked on at once, and the index goes past the last tile."""
        size = math.prod(self.cluster)
        if self.blocks % size:
            told = f"{self.blocks} blocks share the tiles; clusters have {size}"
            return [f"{told}, so a multiple of {size} is needed"]
        if self.problem is not None and self.tiles + self.blocks > WIDEST:
            return [f"{self.tiles} tiles and {self.blocks} blocks are too many for {WIDE}"]
        return []

    def _info(self) -> list[str]:
        parts = len(self.tile) + 1
        if len(self.info) != parts:
            told = f"{len(self.info)} parts; {parts} are needed"
            return [f"the work-tile info has {told}: a coordinate an axis and the validity"]
        coordinates = sorted(set(self.info[:-1]))
        if coordinates != [self.index]:
            told = ", ".join(coordinates)
            return [f"work-tile coordinates are {told}; the index over tiles is {self.index}"]
        if self.info[-1] != "i1":
            return [f"the validity of a work tile is {self.info[-1]}; it must be i1"]
        return []

    def require(self, loop: str) -> None:
        """Refuse shapes that do not agree."""
        faults = self.check()
        if faults:
            raise ShapeError(f"the schedule is invalid: {'; '.join(faults)}", loop)

    def work(self, block: int) -> Iterator[WorkTile]:
        """The tiles of one block, in order, and at last one that is not valid."""
        if not 0 <= block < self.blocks:
            raise ShapeError(f"block {block}; there are {self.blocks}, from 0 on")
        linear = block
        while linear < self.tiles:
            yield WorkTile(linear, self.coordinates(linear), valid=True)
            linear += self.blocks
        yield WorkTile(linear, (0,) * len(self.grid), valid=False)

    def coordinates(self, linear: int) -> tuple[int, ...]:
        """Where a tile lies; tiles of one cluster are neighbours in the linear order."""
        size = math.prod(self.cluster)
        cluster, inside = divmod(linear, size)
        clusters = tuple(g // c for g, c in zip(self.grid, self.cluster, strict=True))
        outer = _split(cluster, clusters)
        inner = _split(inside, self.cluster)
        axes = zip(outer, self.cluster, inner, strict=True)
        return tuple(o * c + i for o, c, i in axes)


def _split(linear: int, extents: tuple[int, ...]) -> tuple[int, ...]:
    """Coordinates of a linear index, the first axis fastest."""
    found: list[int] = []
    for extent in extents:
        linear, at = divmod(linear, extent)
        found.append(at)
    return tuple(found)


def _shapes(
    problem: tuple[int, ...] | None, tile: tuple[int, ...], cluster: tuple[int, ...]
) -> list[str]:
    if problem is None:  # whatever it is, it is made of whole clusters
        problem = tuple(t * c for t, c in zip(tile, cluster, strict=False))
    shapes = {"problem": problem, "tile": tile, "cluster": cluster}
    if len({len(shape) for shape in shapes.values()}) > 1 or not problem:
        told = ", ".join(f"{name} {_written(shape)}" for name, shape in shapes.items())
        return [f"{told}: the shapes must have the same number of axes, at least 1"]
    faults: list[str] = []
    for axis, (p, t, c) in enumerate(zip(problem, tile, cluster, strict=True)):
        if min(p, t, c) < 1:
            faults.append(f"axis {axis}: problem {p}, tile {t}, cluster {c}; all must be positive")
        elif p % t:
            faults.append(f"axis {axis}: the problem's {p} is no multiple of the tile's {t}")
        elif (p // t) % c:
            told = f"{p // t} tiles ({p} / {t}) are no multiple of the cluster's {c}"
            faults.append(f"axis {axis}: {told}")
    return faults


def _written(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) or "()"
