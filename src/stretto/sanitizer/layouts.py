"""Gluon's layouts: which thread holds which element of a tile.

layout.threads(shape) ─► an array of thread numbers, one for each element, or None: not known
"""

# Numbers of threads are NumPy arrays.
# pyright: basic

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np


class Layout:
    """Any layout."""

    @property
    def type(self) -> Any:
        """Itself: a constant."""
        return self

    def threads(self, shape: tuple[int, ...]) -> Any:
        """The lowest thread that holds each element; None where that is not known."""
        del shape


def cluster_bases(layout: Any) -> list[Any]:
    """How the blocks of a cluster divide a tile: a basis for each bit of a block's number."""
    found = getattr(layout, "cga_layout", None) or getattr(layout, "block_bases", None)
    return list(found or ())


def shared_by(layout: Any) -> int:
    """The bits of a block's number in which blocks that hold the same part differ."""
    return sum(1 << n for n, basis in enumerate(cluster_bases(layout)) if not any(basis))


def parts(layout: Any) -> int:
    """Into how many parts the blocks of a cluster divide a tile."""
    return 1 << sum(any(basis) for basis in cluster_bases(layout))


@dataclass(frozen=True)
class AutoLayout(Layout):
    """Whatever the compiler chooses."""


@dataclass(frozen=True)
class CoalescedLayout(Layout):
    """Whatever the compiler chooses for coalesced access."""


@dataclass(frozen=True, eq=True)
class BlockedLayout(Layout):
    """Elements, lanes and warps, each a box, repeated over the tile."""

    size_per_thread: list[int]
    threads_per_warp: list[int]
    warps_per_cta: list[int]
    order: list[int]
    cga_layout: list[list[int]] = field(default_factory=list)

    def __hash__(self) -> int:
        return hash(str(self))

    @property
    def rank(self) -> int:
        """Axes."""
        return len(self.order)

    def threads(self, shape: tuple[int, ...]) -> Any:
        """Lanes run along `order`, then warps."""
        if len(shape) != self.rank:
            return None
        return _blocked(
            shape,
            tuple(map(int, self.size_per_thread)),
            tuple(map(int, self.threads_per_warp)),
            tuple(map(int, self.warps_per_cta)),
            tuple(map(int, self.order)),
        )


@lru_cache(maxsize=512)
def _blocked(shape: Any, per_thread: Any, lanes: Any, warps: Any, order: Any) -> Any:
    lane = np.zeros(shape, np.int32)
    warp = np.zeros(shape, np.int32)
    lane_step = warp_step = 1
    for axis in order:
        index = np.arange(shape[axis])
        of_lane = (index // per_thread[axis]) % lanes[axis]
        of_warp = (index // (per_thread[axis] * lanes[axis])) % warps[axis]
        sizes = [1] * len(shape)
        sizes[axis] = shape[axis]
        lane = lane + (of_lane * lane_step).reshape(sizes)
        warp = warp + (of_warp * warp_step).reshape(sizes)
        lane_step *= lanes[axis]
        warp_step *= warps[axis]
    return lane + 32 * warp


@dataclass(frozen=True)
class SliceLayout(Layout):
    """What is left of a layout without one axis."""

    dim: int
    parent: Any

    def __hash__(self) -> int:
        return hash(str(self))

    @property
    def rank(self) -> int:
        """Axes."""
        return getattr(self.parent, "rank", 2) - 1

    @property
    def cga_layout(self) -> list[list[int]]:
        """Of the parent, without the axis."""
        bases = getattr(self.parent, "cga_layout", [])
        return [[n for axis, n in enumerate(b) if axis != self.dim] for b in bases]

    def threads(self, shape: tuple[int, ...]) -> Any:
        """The lowest of those that share an element."""
        if not isinstance(self.parent, Layout):
            return None
        whole = list(shape)
        whole.insert(self.dim, 1)
        held = self.parent.threads(tuple(whole))
        return None if held is None else held.reshape(shape)


@dataclass(frozen=True)
class DistributedLinearLayout(Layout):
    """Bases in registers, lanes, warps and blocks."""

    reg_bases: list[list[int]]
    lane_bases: list[list[int]]
    warp_bases: list[list[int]]
    block_bases: list[list[int]]
    shape: list[int]

    def __hash__(self) -> int:
        return hash(str(self))

    @property
    def rank(self) -> int:
        """Axes."""
        return len(self.shape)

    def threads(self, shape: tuple[int, ...]) -> Any:
        """By walking all registers of all threads, the highest first."""
        if tuple(shape) != tuple(self.shape):
            return None
        found = np.zeros(shape, np.int32)
        bases = [*self.reg_bases, *self.lane_bases, *self.warp_bases]
        if len(bases) > 18 or not bases:
            return None
        table = np.asarray(bases, np.int64)
        every = np.arange(1 << len(bases))
        bits = (every[:, None] >> np.arange(len(bases))) & 1
        at = np.zeros((len(every), len(shape)), np.int64)
        for number in range(len(bases)):
            at ^= bits[:, number : number + 1] * table[number]
        thread = every >> len(self.reg_bases)
        last_first = slice(None, None, -1)
        found[tuple(at[last_first].T)] = thread[last_first]
        return found


@dataclass(frozen=True)
class NVMMADistributedLayout(Layout):
    """An accumulator of mma.sync or wgmma."""

    version: list[int]
    warps_per_cta: list[int]
    instr_shape: list[int]
    cga_layout: list[list[int]] = field(default_factory=list)

    def __hash__(self) -> int:
        return hash(str(self))

    @property
    def rank(self) -> int:
        """Axes."""
        return len(self.warps_per_cta)

    def threads(self, shape: tuple[int, ...]) -> Any:
        """Rows of 8 by groups of 4 lanes, two columns each."""
        if len(shape) != 2:
            return None
        rows, columns = int(self.warps_per_cta[0]), int(self.warps_per_cta[1])
        row, column = np.arange(shape[0])[:, None], np.arange(shape[1])[None, :]
        lane = (row % 8) * 4 + (column // 2) % 4
        wide = int(self.instr_shape[1]) if self.version[0] == 3 else 8
        warp_row, warp_column = (row // 16) % rows, (column // wide) % columns
        return lane + 32 * (warp_row + rows * warp_column)


@dataclass(frozen=True)
class DotOperandLayout(Layout):
    """An operand of a product in registers."""

    operand_index: int
    parent: Any
    k_width: int = 0

    def __hash__(self) -> int:
        return hash(str(self))

    @property
    def rank(self) -> int:
        """Axes."""
        return getattr(self.parent, "rank", 2)


@dataclass(frozen=True)
class NVMMASharedLayout(Layout):
    """Shared memory as TMA and products want it."""

    swizzle_byte_width: int
    element_bitwidth: int
    rank: int = 2
    transposed: bool = False
    fp4_padded: bool = False
    cga_layout: list[list[int]] = field(default_factory=list)

    def __hash__(self) -> int:
        return hash(str(self))

    @staticmethod
    def get_default_for(
        block_shape: Any,
        dtype: Any,
        transposed: bool = False,
        fp4_padded: bool = False,
        cga_layout: Any = None,
    ) -> NVMMASharedLayout:
        """The widest swizzle that the rows allow."""
        packing = 2 if fp4_padded else 1
        shape = [int(n) for n in block_shape]
        if transposed:
            shape = shape[1:] + shape[:1]
        width = shape[-1] * packing * dtype.primitive_bitwidth // 8
        fits = next((w for w in (128, 64, 32) if width >= w and width % w == 0), 0)
        if len(shape) <= 1 or math.prod(shape[:-1]) < 8:
            fits = 0
        return NVMMASharedLayout(
            fits, dtype.primitive_bitwidth, len(shape), transposed, fp4_padded, cga_layout or []
        )


@dataclass(frozen=True)
class SwizzledSharedLayout(Layout):
    """Shared memory with rows exchanged against bank conflicts."""

    vec: int
    per_phase: int
    max_phase: int
    order: list[int]
    cga_layout: list[list[int]] = field(default_factory=list)

    def __hash__(self) -> int:
        return hash(str(self))


@dataclass(frozen=True)
class PaddedSharedLayout(Layout):
    """Shared memory with gaps."""

    interval_padding_pairs: list[list[int]]
    offset_bases: list[list[int]]
    cga_layout: list[list[int]]
    shape: list[int]

    def __hash__(self) -> int:
        return hash(str(self))

    @staticmethod
    def with_identity_for(
        interval_padding_pairs: Any, shape: Any, order: Any, cga_layout: Any = ()
    ) -> PaddedSharedLayout:
        """Rows as they come."""
        del order
        return PaddedSharedLayout(interval_padding_pairs, [], list(cga_layout), list(shape))


@dataclass(frozen=True)
class SharedLinearLayout(Layout):
    """Shared memory by bases."""

    offset_bases: list[list[int]]
    block_bases: list[list[int]] = field(default_factory=list)
    alignment: int = 16

    def __hash__(self) -> int:
        return hash(str(self))


@dataclass(frozen=True)
class MBarrierLayout(Layout):
    """Shared memory of mbarriers."""

    cga_layout: Any = None

    def __hash__(self) -> int:
        return hash(str(self))

    @staticmethod
    def multicta(num_ctas: int, two_cta: bool = False) -> MBarrierLayout:
        """For clusters."""
        bases = [[0]] if two_cta else []
        left = int(num_ctas) // (2 if two_cta else 1)
        return MBarrierLayout([*bases, *([1 << n] for n in range(left.bit_length() - 1))])


@dataclass(frozen=True)
class TensorMemoryLayout(Layout):
    """Tiles in tensor memory."""

    block: Any
    col_stride: int = 1
    cga_layout: Any = ()
    two_ctas: bool = False
    unpacked: bool = True

    def __hash__(self) -> int:
        return hash(str(self))


@dataclass(frozen=True)
class TensorMemoryScalesLayout(Layout):
    """Scales of block-scaled products in tensor memory."""

    cga_layout: Any = ()

    def __hash__(self) -> int:
        return hash(str(self))
