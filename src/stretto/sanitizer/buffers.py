"""Shared memory, mbarriers in it, and tensor memory, as a kernel handles them: views of them.

allocate ─► buffer [slots, rows, columns] ─► index, slice, permute, reinterpret ─► load, store
"""

# Views are NumPy's.
# pyright: basic

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stretto.sanitizer.barriers import Barrier
from stretto.sanitizer.block import KernelError, NotCoveredError, current
from stretto.sanitizer.layouts import (
    DistributedLinearLayout,
    MBarrierLayout,
    TensorMemoryScalesLayout,
    cluster_bases,
    parts,
    shared_by,
)
from stretto.sanitizer.memory import Allocation
from stretto.sanitizer.values import INT64, Dtype, Tile, TileType, tile


class Outside:
    """A slot that a ring does not have: an error where it is used, and predicates allow that."""

    def __init__(self, name: str, told: str) -> None:
        self.name, self.told = name, told

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise current().refuse("out-of-bounds", self.told, slot=self.name)


class Buffer:
    """Memory of a block, or a view of it."""

    kind = "shared"

    def __init__(self, allocation: Allocation, raw: Any, dtype: Dtype, layout: Any) -> None:
        self.allocation, self.raw = allocation, raw
        self.dtype, self.layout = dtype, layout

    @property
    def shape(self) -> list[int]:
        """Of the view."""
        return list(self.raw.shape)

    @property
    def rank(self) -> int:
        """Axes."""
        return self.raw.ndim

    @property
    def numel(self) -> int:
        """Elements."""
        return int(self.raw.size)

    @property
    def type(self) -> TileType:
        """Element type, shape, layout."""
        return TileType(self.dtype, self.shape, self.layout)

    @property
    def nbytes_per_cta(self) -> int:
        """Of one block of a cluster."""
        return self.type.nbytes // parts(self.layout)

    def _view(self, raw: Any, dtype: Dtype | None = None, layout: Any = None) -> Any:
        return type(self)(self.allocation, raw, dtype or self.dtype, layout or self.layout)

    def index(self, at: Any) -> Any:
        """One slot."""
        number = int(at)
        if not 0 <= number < len(self.raw):
            return Outside(
                self.allocation.name,
                f"slot {number} of `{self.allocation.name}`, which has {len(self.raw)}",
            )
        return self._view(self.raw[number])

    def slice(self, start: Any, length: Any, dim: Any = 0) -> Any:
        """A part along an axis."""
        first, count, axis = int(start), int(length), int(dim)
        if first < 0 or first + count > self.raw.shape[axis]:
            raise current().refuse(
                "out-of-bounds",
                f"{first} to {first + count} of {self.raw.shape[axis]} of `{self.allocation.name}`",
                slot=self.allocation.name,
            )
        where = [slice(None)] * self.raw.ndim
        where[axis] = slice(first, first + count)
        return self._view(self.raw[tuple(where)])

    def permute(self, order: Any) -> Any:
        """Axes in another order."""
        return self._view(self.raw.transpose([int(n) for n in order]))

    def reshape(self, shape: Any) -> Any:
        """The same elements in another shape."""
        made = self.raw.reshape([int(n) for n in shape])
        if not np.shares_memory(made, self.raw):
            raise NotCoveredError("a reshape of a view that is not contiguous", _site())
        return self._view(made)

    def reinterpret(self, dtype: Any = None, shape: Any = None, layout: Any = None) -> Any:
        """The same bytes as something else."""
        of = dtype or self.dtype
        sizes = [int(n) for n in (shape if shape is not None else self.shape)]
        flat = self.raw if self.raw.flags.c_contiguous else np.ascontiguousarray(self.raw)
        if not np.shares_memory(flat, self.raw):
            raise NotCoveredError("a reinterpretation of a view that is not contiguous", _site())
        raw = flat.reshape(-1).view(of.raw)
        count = math.prod(sizes)
        if count > raw.size:
            raise current().refuse(
                "out-of-bounds",
                f"{count * of.bytes} bytes of `{self.allocation.name}`, which has {flat.nbytes}",
            )
        return self._view(raw[:count].reshape(sizes), of, layout)

    _reinterpret = reinterpret

    # Accesses -----------------------------------------------------------------------------------

    def _read(self, what: str, axis: Any = None) -> Any:
        """By threads; of what nothing has written: what tells so.

        Along an axis: each block of a cluster reads the memory of all that have a part of that.
        """
        block, told = current(), None
        bases = cluster_bases(self.layout)
        everywhere = axis is not None and any(basis[int(axis)] for basis in bases)
        for agent in block.ctas():
            access = block.access(what)
            for cta in range(block.cluster) if everywhere else (agent.cta,):
                later = self.allocation.read(
                    self.raw, access, agent.clock, agent.fenced, later=True, cta=cta
                )
                told = told or later
        return told

    def _write(self, what: str) -> None:
        """By threads."""
        block = current()
        for agent in block.ctas():
            self.allocation.write(self.raw, block.access(what), agent.clock, agent.fenced)

    def load(self, layout: Any = None, **_: Any) -> Tile:
        """Into registers."""
        found = Tile(self.dtype.decode(self.raw.copy()), self.dtype, layout)
        found.poison = self._read(f"{self.kind}-memory load")
        return found

    def store(self, value: Any, pred: Any = True) -> None:
        """From registers."""
        if not tile(pred):
            return
        given = tile(value).used()
        if given.shape != self.shape:
            raise current().refuse("illegal", f"a tile of {given.shape} stored into {self.shape}")
        self._write(f"{self.kind}-memory store")
        self.raw[...] = self.dtype.encode(self.dtype.cast(given.value))

    def gather(self, indices: Any, axis: Any) -> Tile:
        """Elements along an axis."""
        at = np.asarray(tile(indices).value)
        found = np.take_along_axis(self.raw, at, int(axis))
        made = Tile(self.dtype.decode(found), self.dtype, getattr(indices, "layout", None))
        made.poison = self._read("gather", axis)
        return made

    def scatter(self, values: Any, indices: Any, axis: Any) -> None:
        """Elements along an axis."""
        self._write("scatter")
        at = np.asarray(tile(indices).value)
        data = self.dtype.encode(self.dtype.cast(tile(values).value))
        np.put_along_axis(self.raw, at, data, int(axis))

    def atomic_scatter_add(self, values: Any, indices: Any, axis: Any, **_: Any) -> None:
        """Elements along an axis, added to what is there: no two such additions race."""
        self._read("scattered addition")
        at, given = np.asarray(tile(indices).value), np.asarray(tile(values).value)
        whole: list[Any] = list(np.indices(at.shape))
        whole[int(axis)] = at
        total = np.array(self.dtype.decode(self.raw))
        np.add.at(total, tuple(whole), given)
        self.raw[...] = self.dtype.encode(self.dtype.cast(total))

    def _keep_alive(self) -> None:
        self.allocation.last_use = current().now()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotCoveredError(f"`{name}` of {self.kind} memory", _site())


def _site() -> Any:
    return current().sources.site()


class Shared(Buffer):
    """Shared memory."""


class Barriers(Shared):
    """mbarriers in shared memory."""

    def lead(self, cta: int) -> int:
        """The block whose barrier a block of the cluster has: the lowest of those that share it."""
        return cta & ~shared_by(self.layout)

    def get(self) -> Barrier:
        """The one that the block at hand uses."""
        return self.of(current().agent.cta)

    def of(self, cta: int) -> Barrier:
        """The one that a block of the cluster uses."""
        block = current()
        start, lead = self.allocation.key_of(self.raw)[0], self.lead(cta)
        key = (id(self.allocation), start, lead)
        if key not in block.barriers:
            name = self.allocation.name
            if self.allocation.slot_bytes < self.allocation.data.size:
                name = f"{name}[{start // self.allocation.slot_bytes}]"
            if block.cluster > 1:
                name = f"{name} of block {lead}"
            block.barriers[key] = Barrier(block, name, block.new_component())
        self.allocation.last_use = block.now()
        return block.barriers[key]

    def initialized(self, cta: int | None = None) -> Barrier:
        """The same; an error where nobody has initialized it."""
        barrier = self.get() if cta is None else self.of(cta)
        if not barrier.initialized:
            raise current().refuse(
                "barrier-uninitialized",
                f"`{barrier.name}` is used before it is initialized, or after it was invalidated",
                slot=barrier.name,
            )
        return barrier


def register_layout(shape: list[int], warps: int) -> DistributedLinearLayout:
    """How registers hold a tile of tensor memory: one row a thread."""
    rows = shape[-2] if len(shape) > 1 else shape[0]
    columns = shape[-1]

    def bits(count: int) -> list[int]:
        return [1 << i for i in range(max(1, count).bit_length() - 1)]

    held = bits(rows)
    return DistributedLinearLayout(
        [[0, n] for n in bits(columns)],
        [[n, 0] for n in held[:5]],
        [[n, 0] for n in held[5 : 5 + warps.bit_length() - 1]],
        [],
        [rows, columns],
    )


class TensorMemoryType(TileType):
    """A type of tensor memory, as kernels name it."""

    def __init__(self, dtype: Dtype, shape: Any, layout: Any, alloc_shape: Any = None) -> None:
        del alloc_shape
        super().__init__(dtype, [int(n) for n in shape], layout)

    def get_reg_layout(self, num_warps: Any = 4, *_: Any, **__: Any) -> Any:
        """Of a load."""
        return register_layout(self.shape, int(num_warps))


class TensorMemory(Buffer):
    """Tensor memory: an accumulator, an operand, scales."""

    kind = "tensor"

    def slice(self, start: Any, length: Any, dim: Any = 1) -> Any:
        """Columns."""
        return super().slice(start, length, self.raw.ndim - 1 if dim in (1, -1) else dim)

    def get_reg_layout(self, *_: Any, **__: Any) -> Any:
        """Of a load: one row a thread."""
        return register_layout(self.shape, current().agent.warps)

    def _require_warps(self) -> None:
        warps = current().agent.warps
        if warps not in (4, 8):
            raise current().refuse(
                "illegal", f"tensor memory is read or written by {warps} warps; it takes 4 or 8"
            )

    def load(self, layout: Any = None, **_: Any) -> Tile:
        """Into registers."""
        self._require_warps()
        return super().load(layout)

    def store(self, value: Any, pred: Any = True) -> None:
        """From registers."""
        self._require_warps()
        super().store(value, pred)

    def load_max(self, layout: Any = None, abs: Any = False, **_: Any) -> Any:
        """A load, and the largest of each row."""
        found = self.load(layout)
        given = np.abs(found.value) if abs else found.value
        return found, Tile(np.max(given, axis=-1), found.dtype)

    def load_min(self, layout: Any = None, abs: Any = False, **_: Any) -> Any:
        """A load, and the smallest of each row."""
        found = self.load(layout)
        given = np.abs(found.value) if abs else found.value
        return found, Tile(np.min(given, axis=-1), found.dtype)


def _allocation(
    kind: str, dtype: Dtype, shape: list[int], slots: int, divided: int = 1
) -> tuple[Allocation, Any]:
    block = current()
    site = block.sources.site()
    size = math.prod(shape) * dtype.bytes
    now = block.now()
    # An allocation in a loop has the same memory each time.
    unrolled = tuple(block.agent.context.get("unrolled", ()))
    key = (kind, block.agent.component, block.sources.path(), unrolled, dtype.name, tuple(shape))
    again = block.places.get(key)
    if again is not None:
        again.forget()
        return again, again.data.view(dtype.raw).reshape(shape)
    data = np.full(size, 0xFE, np.uint8)
    made = block.places[key] = Allocation(
        block, kind, block.sources.assigned(site), site, data, size // slots, now, now
    )
    block.allocations.append(made)
    made.parts = divided
    return made, data.view(dtype.raw).reshape(shape)


def allocate_shared(element_ty: Any, shape: Any, layout: Any = None, value: Any = None) -> Any:
    """Shared memory; with a value in it, if one is given."""
    sizes = [int(n) for n in shape]
    block = current()
    of: Dtype = element_ty
    if isinstance(layout, MBarrierLayout) or (of == INT64 and sizes[-1] == 1 and value is None):
        slots = sizes[0] if len(sizes) > 1 else 1
        allocation, raw = _allocation("shared", of, sizes, slots)
        return Barriers(allocation, raw, of, layout)
    tiled = len(sizes) > (getattr(layout, "rank", None) or 2)
    allocation, raw = _allocation("shared", of, sizes, sizes[0] if tiled else 1, parts(layout))
    if tiled:
        block.coverage.depths.add(sizes[0])
    made = Shared(allocation, raw, of, layout)
    if value is not None:
        made.store(value)
    return made


def allocate_tensor(
    element_ty: Any, shape: Any, layout: Any = None, value: Any = None
) -> TensorMemory:
    """Tensor memory; with a value in it, if one is given."""
    sizes = [int(n) for n in shape]
    block = current()
    tiled = len(sizes) > 2
    allocation, raw = _allocation("tensor", element_ty, sizes, sizes[0] if tiled else 1)
    block.paired = block.paired or bool(getattr(layout, "two_ctas", False))
    lanes = 64 if getattr(layout, "block", (128,))[0] == 64 else 128
    rows = sizes[-2] // (2 if getattr(layout, "two_ctas", False) else 1)
    if isinstance(layout, TensorMemoryScalesLayout):
        columns = max(1, sizes[-1] * sizes[-2] // 128)
    else:
        bits = element_ty.primitive_bitwidth if getattr(layout, "col_stride", 1) == 1 else 32
        columns = -(-sizes[-1] * bits // 32) * max(1, -(-rows // (lanes if lanes == 128 else 128)))
    columns *= math.prod(sizes[:-2])
    if all(allocation is not known for known, _ in block.columns):
        block.columns.append((allocation, max(columns, 1)))
    made = TensorMemory(allocation, raw, element_ty, layout)
    if value is not None:
        made.store(value)
    return made


__all__ = ["Barriers", "Buffer", "KernelError", "Shared", "TensorMemory"]
