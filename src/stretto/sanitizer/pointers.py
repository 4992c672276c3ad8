"""Global memory: arrays of the host, addresses into them, and who wrote which element last.

store by thread 3 of `compute` ──► element: writer, thread, number of barriers so far
load by thread 9 of `compute`      another thread, and no barrier since: a finding
"""

# Elements are NumPy's.
# pyright: basic

from __future__ import annotations

from typing import Any

import numpy as np

from stretto.sanitizer.block import Block, KernelError, current
from stretto.sanitizer.finding import Access
from stretto.sanitizer.layouts import parts
from stretto.sanitizer.scheduler import Clock, merge
from stretto.sanitizer.values import INT1, INT32, INT64, Dtype, Tile, TileType, tile

WATCHED = 1 << 24
"""Elements of an array up to which its writers are remembered."""


class Storage:
    """An array of the host, as flat raw elements."""

    def __init__(self, raw: Any, name: str = "an array") -> None:
        self.raw, self.name = raw, name
        self.wraps = False
        """Whether what lies beyond it is its beginning again: nobody knows how large it is."""
        self.writers: Any = None
        """Of each element: the number of its last write, 0: none."""
        self.threads: Any = None
        """Of each element: which thread wrote it; -1: not known."""
        self.readers: Any = None
        self.reading: Any = None
        """The same of its last read."""
        self.writes: list[tuple[Access, int, int]] = []
        """Of each write: what it was, in which program, after how many barriers of its agent."""
        self.heard: dict[int, tuple[Clock, int]] = {}
        """At elements that atomics release through: what they told, and in which program."""

    def __deepcopy__(self, memo: Any) -> Storage:
        return Storage(self.raw.copy(), self.name)

    def _watched(self) -> bool:
        if self.raw.size > WATCHED:
            return False
        if self.writers is None:
            self.writers = np.zeros(self.raw.size, np.int32)
            self.threads = np.full(self.raw.size, -1, np.int16)
            self.readers = np.zeros(self.raw.size, np.int32)
            self.reading = np.full(self.raw.size, -1, np.int16)
        return True

    def note_write(self, at: Any, access: Access, threads: Any = None) -> None:
        """Elements are written."""
        if not self._watched():
            return
        block = current()
        self._require(at, access, threads, "written")
        self._require_read(at, access, threads)
        barriers = block.agent.context.get("barriers", 0) if block.scheduler.current else 0
        self.writes.append((access, block.program, barriers))
        self.writers[at] = len(self.writes)
        self.threads[at] = -1 if threads is None else threads

    def note_read(self, at: Any, access: Access, threads: Any = None) -> None:
        """Elements are read."""
        if self.writers is not None:
            self._require(at, access, threads, "read")
        if threads is not None and self._watched():
            block = current()
            self.writes.append((access, block.program, block.agent.context.get("barriers", 0)))
            self.readers[at] = len(self.writes)
            self.reading[at] = threads

    def _require_read(self, at: Any, access: Access, threads: Any) -> None:
        """Threads of the same partition may still read what is written."""
        numbers = self.readers[at]
        if threads is None or not numbers.any():
            return
        block = current()
        agent = block.agent
        for number in np.unique(numbers[numbers > 0]):
            last, program, barriers = self.writes[number - 1]
            if program != block.program or last.component != agent.component:
                continue
            met = (numbers == number) & (self.reading[at] != threads)
            if barriers == agent.context.get("barriers", 0) and bool(np.any(met)):
                _threads(block, self, last, access, "overwritten")

    def _require(self, at: Any, access: Access, threads: Any, done: str) -> None:
        numbers = self.writers[at]
        if not numbers.any():
            return
        block = current()
        agent = block.agent
        for number in np.unique(numbers):
            if number == 0:
                continue
            last, program, barriers = self.writes[number - 1]
            if program != block.program:
                continue
            if agent.clock.get(last.component, 0) < last.time:
                _told(
                    block, self, last, access, f"is {done} before a write to it is known to be done"
                )
            elif last.component == agent.component and threads is not None:
                others = self.threads[at]
                met = (numbers == number) & (others >= 0) & (others != threads)
                if barriers == agent.context.get("barriers", 0) and bool(np.any(met)):
                    _threads(block, self, last, access, done)


def _told(block: Block, where: Storage, first: Access, second: Access, what: str) -> None:
    block.report(
        "global-race",
        second.site,
        f"{where.name} {what} ({first.told()}, line {first.site.line}; {second.told()})",
        slot=where.name,
        first=first,
        second=second,
        agents=tuple(dict.fromkeys((first.agent, second.agent))),
    )


def _threads(block: Block, where: Storage, first: Access, second: Access, done: str) -> None:
    before = "read" if done == "overwritten" else "wrote"
    block.report(
        "threads-without-barrier",
        second.site,
        f"{where.name} is {done} by threads of {second.agent} other than those that {before} the "
        f"same elements (line {first.site.line}): the layouts differ and no barrier is between",
        slot=where.name,
        first=first,
        second=second,
        agents=(second.agent,),
    )


class PointerType:
    """Of what an address points at."""

    def __init__(self, element: Dtype, shape: Any = (), layout: Any = None) -> None:
        self.element_ty, self.shape, self.layout = element, list(shape), layout

    @property
    def scalar(self) -> PointerType:
        """Itself."""
        return self

    def is_ptr(self) -> bool:
        """Always."""
        return True


class Pointer:
    """Addresses: an array, and offsets into it."""

    __array_ufunc__ = None

    def __init__(self, storage: Storage, dtype: Dtype, offsets: Any, layout: Any = None) -> None:
        self.storage, self.element = storage, dtype
        self.offsets, self.layout = offsets, layout

    @property
    def dtype(self) -> PointerType:
        """A pointer's."""
        return PointerType(self.element, self.shape, self.layout)

    type = dtype

    @property
    def shape(self) -> list[int]:
        """Of the tile of addresses."""
        return list(np.shape(self.offsets))

    def __add__(self, more: Any) -> Pointer:
        by = more.value if isinstance(more, Tile) else more
        layout = self.layout or getattr(more, "layout", None)
        return Pointer(self.storage, self.element, self.offsets + np.asarray(by, np.int64), layout)

    __radd__ = __add__

    def __sub__(self, less: Any) -> Pointer:
        return self + (-less if isinstance(less, Tile) else -int(less))

    def __getitem__(self, index: Any) -> Pointer:
        return Pointer(self.storage, self.element, np.asarray(self.offsets)[index], None)

    def to(self, dtype: Any, **_: Any) -> Any:
        """As a number, or as a pointer to something else."""
        if isinstance(dtype, PointerType):
            return pointer_from(self, dtype)
        return Tile(INT64.cast(self.offsets), INT64)

    cast = to

    def index(self, mask: Any) -> tuple[Any, Any, Any]:
        """Offsets and mask as arrays of one shape; those outside of the array are found."""
        shape = np.shape(self.offsets)
        on = np.True_ if mask is None else np.asarray(tile(mask).value, np.bool_)
        shape = np.broadcast_shapes(shape, np.shape(on))
        offsets = np.broadcast_to(self.offsets, shape)
        on = np.broadcast_to(on, shape)
        if self.storage.wraps:
            offsets = offsets % self.storage.raw.size
        outside = on & ((offsets < 0) | (offsets >= self.storage.raw.size))
        if np.any(outside):
            block = current()
            far = int(np.asarray(offsets)[np.asarray(outside)].flat[0])
            block.report(
                "out-of-bounds",
                block.sources.site(),
                f"element {far} of {self.storage.name}, which has {self.storage.raw.size}",
                agents=(block.agent.name,),
            )
            on = on & ~outside
        return offsets, on, shape

    def threads(self) -> Any:
        """Who holds which address; None: not known."""
        layout = self.layout
        if layout is None or not hasattr(layout, "threads"):
            return None
        return layout.threads(tuple(np.shape(self.offsets)))


def pointer_from(value: Any, dtype: Any) -> Any:
    """A pointer to something else: the same bytes."""
    if isinstance(value, Pointer) and isinstance(dtype, PointerType):
        raw = value.storage.raw
        if dtype.element_ty.raw == raw.dtype:
            return Pointer(value.storage, dtype.element_ty, value.offsets, value.layout)
        other = Storage(raw.view(dtype.element_ty.raw), value.storage.name)
        scale = raw.itemsize / dtype.element_ty.bytes
        return Pointer(other, dtype.element_ty, (value.offsets * scale).astype(np.int64))
    raise KernelError(f"a cast to {dtype}")


def load(
    pointer: Any, mask: Any = None, other: Any = None, *, volatile: Any = False, **_: Any
) -> Tile:
    """From global memory into registers."""
    block = current()
    if true(volatile):
        block.scheduler.spin()
    else:
        block.scheduler.count()
    offsets, on, shape = pointer.index(mask)
    layout = pointer.layout or getattr(mask, "layout", None)
    every = bool(np.all(on))
    at = offsets if every else offsets[on]
    threads = pointer.threads()
    if threads is not None and np.shape(threads) == shape:
        threads = threads if every else threads[on]
    else:
        threads = None
    pointer.storage.note_read(at, block.access("load"), threads)
    raw = pointer.storage.raw
    dtype: Dtype = pointer.element
    found = dtype.decode(raw[np.where(on, offsets, 0)])
    if not every:
        rest = tile(0 if other is None else other).value
        found = np.where(on, found, dtype.cast(rest)).astype(dtype.wide)
    return Tile(found, dtype, layout)


def store(pointer: Any, value: Any, mask: Any = None, **_: Any) -> None:
    """From registers into global memory."""
    block = current()
    given = tile(value)
    if mask is None or np.any(tile(mask).value):
        given.used()
    offsets, on, shape = pointer.index(mask)
    shape = np.broadcast_shapes(shape, np.shape(given.value))
    offsets, on = np.broadcast_to(offsets, shape), np.broadcast_to(on, shape)
    data = pointer.element.encode(pointer.element.cast(given.value))
    data = np.broadcast_to(data, shape)
    threads = pointer.threads()
    threads = threads[on] if threads is not None and np.shape(threads) == shape else None
    pointer.storage.note_write(offsets[on], block.access("store"), threads)
    pointer.storage.raw[offsets[on]] = data[on]


def atomic(change: Any) -> Any:
    """An operation that reads and writes at once, and may release or acquire."""

    def run(
        pointer: Any, *values: Any, mask: Any = None, sem: Any = None, scope: Any = None, **_: Any
    ) -> Tile:
        del scope
        block = current()
        agent = block.agent
        taken = change.__code__.co_argcount - 1
        given = [tile(v) for v in values[:taken]]
        if len(values) > taken and mask is None:
            mask = values[taken]
        offsets, on, shape = pointer.index(mask)
        shape = np.broadcast_shapes(shape, *(np.shape(g.value) for g in given))
        offsets, on = np.broadcast_to(offsets, shape), np.broadcast_to(on, shape)
        dtype: Dtype = pointer.element
        parts = [np.broadcast_to(dtype.cast(g.value), shape) for g in given]
        raw, storage = pointer.storage.raw, pointer.storage
        found = np.zeros(shape, dtype.wide)
        order = sem or "acq_rel"
        for at in np.ndindex(*shape):
            if on[at]:
                where = int(offsets[at])
                found[at] = dtype.decode(raw[where : where + 1])[0]
                made = change(found[at], *(p[at] for p in parts))
                raw[where : where + 1] = dtype.encode(np.asarray([made], dtype.wide))
                if order in ("acquire", "acq_rel") and where in storage.heard:
                    clock, program = storage.heard[where]
                    if program == block.program:
                        merge(agent.clock, clock)
                if order in ("release", "acq_rel"):
                    known, program = storage.heard.get(where, ({}, -1))
                    told = dict(known) if program == block.program else {}
                    merge(told, agent.clock)
                    storage.heard[where] = (told, block.program)
        agent.tick()
        block.scheduler.spin()
        return Tile(found if shape else found[()], dtype, pointer.layout)

    return run


class Descriptor:
    """A TMA descriptor in a kernel."""

    def __init__(
        self, storage: Storage, dtype: Dtype, start: int, shape: Any, strides: Any, block: Any,
        layout: Any, padding: str = "zero", loose: bool = False,
    ) -> None:  # fmt: skip
        self.loose = loose
        """Whether its elements may be of another type than the tile's: NumPy lacks some."""
        self.storage, self.dtype, self.start = storage, dtype, start
        self.sizes = [int(n) for n in shape]
        self.steps = [int(n) for n in strides]
        self.block_shape = [int(n) for n in block]
        self.layout, self.padding = layout, padding
        self.shape = tuple(Tile(np.int32(n), INT32) for n in self.sizes)
        self.strides = tuple(Tile(np.int64(n), INT64) for n in self.steps)
        self.block_type = TileType(dtype, self.block_shape, layout)
        item, room = storage.raw.itemsize, max(1, storage.raw.size - start)
        # A dimension of which only places that there are, are asked for is as large as can be.
        there = [
            min(n, -(-room // step) if step > 0 else n)
            for n, step in zip(self.sizes, self.steps, strict=True)
        ]
        self._view = np.lib.stride_tricks.as_strided(
            storage.raw[start:], there, [n * item for n in self.steps]
        )
        self._numbers: Any = None

    @property
    def type(self) -> Any:
        """What a kernel may ask of it."""
        return self

    @property
    def nbytes_per_cta(self) -> int:
        """Of one block of the cluster."""
        return self.block_type.nbytes // parts(self.layout)

    def _box(self, at: Any, block: Any) -> tuple[Any, Any, bool]:
        """The part of the array, the part of the tile, and whether they are all of it."""
        inside, within, whole = [], [], True
        for position, size, count in zip(at, self.sizes, block, strict=True):
            low, high = max(0, position), min(size, position + count)
            high = max(high, low)
            inside.append(slice(low, high))
            within.append(slice(low - position, high - position))
            whole = whole and high - low == count
        return tuple(inside), tuple(within), whole

    def offsets(self, at: Any) -> Any:
        """Of the elements of a tile that lie in the array, in its storage."""
        inside, _, _ = self._box(at, self.block_shape)
        found = np.asarray(self.start, np.int64)
        for one, step in zip(inside, self.steps, strict=True):
            found = found[..., None] + np.arange(one.start, one.stop) * step
        return found.reshape(-1)

    def read(self, at: Any) -> Any:
        """A tile as raw elements; what lies outside is 0 or no number."""
        inside, within, whole = self._box(at, self.block_shape)
        if whole:
            return self._view[inside].copy()
        filler = self.dtype.encode(np.float32(np.nan)) if self.padding == "nan" else 0
        tile_ = np.full(self.block_shape, filler, self.storage.raw.dtype)
        tile_[within] = self._view[inside]
        return tile_

    def write(self, at: Any, raw: Any, kind: str = "store") -> None:
        """A tile, or its sum or the like with what is there; nothing outside of the array."""
        inside, within, _ = self._box(at, self.block_shape)
        part = raw[within]
        if kind != "store":
            there = self.dtype.decode(self._view[inside])
            part = self.dtype.encode(REDUCED[kind](there, self.dtype.decode(part)))
        self._view[inside] = part

    def gathered(self, rows: Any, column: int, made: Any) -> None:
        """Some rows, from a column on, into a tile; what lies outside stays as it is."""
        low, high = max(column, 0), min(column + made.shape[-1], self.sizes[1])
        there = np.flatnonzero((rows >= 0) & (rows < self.sizes[0]))
        if low < high:
            made[there, low - column : high - column] = self._view[rows[there], low:high]

    def scattered(self, rows: Any, column: int, tile_: Any) -> None:
        """A tile into some rows, from a column on; nothing outside of the array."""
        low, high = max(column, 0), min(column + tile_.shape[-1], self.sizes[1])
        there = np.flatnonzero((rows >= 0) & (rows < self.sizes[0]))
        if low < high:
            self._view[rows[there], low:high] = tile_[there, low - column : high - column]


class Im2ColDescriptor(Descriptor):
    """A TMA descriptor whose tiles are pixels by channels: pixels in a box, row by row."""

    corners: tuple[list[int], list[int]] = ([], [])
    """Where the box begins and ends, counted from the first and the last pixel."""
    every: list[int]
    """Of each axis: how many places on the next pixel is."""

    def pixels(self, at: Any, offsets: Any) -> tuple[Any, Any]:
        """Of a tile: each pixel's place in each axis but the channels, and whether it is there."""
        lower, upper = self.corners
        sizes, steps = self.sizes[1:-1], self.every[1:-1]
        counts = [
            (size - 1 + high - low) // step + 1
            for size, low, high, step in zip(sizes, lower, upper, steps, strict=True)
        ]
        first = int(at[0])
        for place, low, step, count in zip(at[1:-1], lower, steps, counts, strict=True):
            first = first * count + (place - low) // step
        numbers = np.arange(first, first + self.block_shape[0])
        found: list[Any] = []
        for axis in reversed(range(len(counts))):
            numbers, index = np.divmod(numbers, counts[axis])
            found.insert(0, lower[axis] + index * steps[axis] + int(offsets[axis]))
        found.insert(0, numbers)
        places = np.stack(found)
        limits = np.array(self.sizes[:-1])[:, None]
        return places, ((places >= 0) & (places < limits)).all(axis=0)

    def read_pixels(self, at: Any, offsets: Any) -> Any:
        """A tile as raw elements; what lies outside is 0."""
        places, there = self.pixels(at, offsets)
        made = np.zeros(self.block_shape, self.storage.raw.dtype)
        low, high = max(int(at[-1]), 0), min(int(at[-1]) + self.block_shape[1], self.sizes[-1])
        if low < high:
            part = self._view[(*(axis[there] for axis in places), slice(low, high))]
            made[there, low - int(at[-1]) : high - int(at[-1])] = part
        return made


REDUCED: dict[str, Any] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def true(value: Any) -> bool:
    """A predicate of an operation."""
    return bool(value.value) if isinstance(value, Tile) else bool(value)


__all__ = [
    "INT1",
    "Descriptor",
    "Im2ColDescriptor",
    "Pointer",
    "Storage",
    "atomic",
    "load",
    "store",
    "true",
]
