"""Global memory: arrays, addresses into them, and views of them.

Address(array, offsets)                an address for each element of a tile
TensorView(array, offset, sizes, strides)   a tensor, of which tiles are taken; outside it is padded
Heap                                   where arrays begin: addresses as numbers, and back
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stretto.errors import StrettoError
from stretto.kernel.types import Scalar
from stretto.simulation.kernels.arrays import Array, dtype_of, fitted

_PADDING = {"zero": 0.0, "nan": np.nan, "neg_inf": -np.inf, "pos_inf": np.inf, "neg_zero": -0.0}


class OutOfBoundsError(StrettoError):
    """A kernel reads or writes where nothing is."""


@dataclass(frozen=True, eq=False)
class GlobalArray:
    """One array, flat, with elements of one type."""

    name: str
    data: Array
    element: Scalar
    begins: int = 0
    """Its address as a number."""

    def load(self, offsets: Array, mask: Array | None, other: Any) -> Array:
        """Elements at offsets; where the mask is off, something else."""
        on = np.ones(offsets.shape, dtype=bool) if mask is None else np.asarray(mask, dtype=bool)
        self._check(offsets, on, "reads")
        found = self.data[np.where(on, offsets, 0)]
        return np.where(on, found, other).astype(self.data.dtype)

    def store(self, offsets: Array, values: Array, mask: Array | None) -> None:
        """Elements to offsets, where the mask is on."""
        on = np.ones(offsets.shape, dtype=bool) if mask is None else np.asarray(mask, dtype=bool)
        self._check(offsets, on, "writes")
        self.data[offsets[on]] = fitted(np.broadcast_to(values, offsets.shape), self.element)[on]

    def _check(self, offsets: Array, on: Array, does: str) -> None:
        wrong = on & ((offsets < 0) | (offsets >= self.data.size))
        if np.any(wrong):
            at = int(np.asarray(offsets)[wrong].flat[0])
            size = self.data.size
            told = f"`{self.name}`: the kernel {does} element {at}; it has {size}"
            raise OutOfBoundsError(told)


@dataclass(frozen=True, eq=False)
class Address:
    """An address, or a tile of such, all into one array; offsets in elements."""

    array: GlobalArray
    offsets: Array

    def plus(self, by: Array) -> Address:
        """So many elements further."""
        return Address(self.array, np.asarray(self.offsets + by.astype(np.int64)))

    def with_offsets(self, offsets: Array) -> Address:
        """The same array at other places."""
        return Address(self.array, offsets)

    def taken_as(self, element: Scalar) -> Address:
        """The same places, whose bits are taken as another type of the same width."""
        array, wanted = self.array, np.dtype(dtype_of(element))
        if element == array.element:
            return self
        widths = {element.bits, array.element.bits, wanted.itemsize * 8, array.data.itemsize * 8}
        if len(widths) > 1:
            told = (
                f"`{array.name}` holds {array.element}; its address is taken for one of {element}"
            )
            raise StrettoError(told)
        other = GlobalArray(array.name, array.data.view(wanted), element, array.begins)
        return Address(other, self.offsets)

    def as_numbers(self) -> Array:
        """What a kernel sees that takes an address for a number."""
        return np.asarray(self.array.begins + self.offsets * _bytes(self.array.element))


@dataclass
class Heap:
    """Arrays by their addresses; each is far from the next."""

    given: dict[str, Array] = field(default_factory=dict[str, Array])
    """Arrays that no parameter points to, by name: only a number in memory leads to them."""
    placed: dict[int, GlobalArray] = field(default_factory=dict[int, GlobalArray])
    _names: list[str] = field(default_factory=list[str])

    def place(self, name: str, data: Array, element: Scalar) -> GlobalArray:
        """An array of a parameter."""
        made = GlobalArray(name, data, element, self._next(name))
        self.placed[made.begins] = made
        return made

    def keep(self, name: str, data: Array) -> int:
        """An array whose element is told by whoever takes its address; its address."""
        self.given[name] = data
        return self._next(name)

    def _next(self, name: str) -> int:
        self._names.append(name)
        return len(self._names) << _ROOM

    def addressed(self, numbers: Array, element: Scalar) -> Address:
        """Numbers as addresses of elements."""
        which = np.unique(numbers >> _ROOM)
        at = int(which[0]) if which.size else 0
        if which.size != 1 or not 0 < at <= len(self._names):
            told = "a number that no array begins at is taken for an address"
            raise OutOfBoundsError(told + " (or several arrays in one tile)" * (which.size > 1))
        array = self._array(at, element)
        steps = (numbers & ((1 << _ROOM) - 1)) // _bytes(element)
        return Address(array, np.asarray(steps.astype(np.int64)))

    def _array(self, at: int, element: Scalar) -> GlobalArray:
        begins, name = at << _ROOM, self._names[at - 1]
        found = self.placed.get(begins)
        if found is None:
            data = fitted(self.given[name], element).reshape(-1).copy()
            found = self.placed[begins] = GlobalArray(name, data, element, begins)
        if found.element != element:
            told = f"`{name}` holds {found.element}; its address is taken for one of {element}"
            raise OutOfBoundsError(told)
        return found

    def left(self) -> Mapping[str, Array]:
        """The arrays that no parameter points to, as they are now."""
        now = {array.name: array.data for array in self.placed.values()}
        return {name: now.get(name, data).reshape(data.shape) for name, data in self.given.items()}


_ROOM = 40
"""Bits: how far arrays begin from each other."""


def _bytes(element: Scalar) -> int:
    return max(1, element.bits // 8)


@dataclass(frozen=True, eq=False)
class TensorView:
    """A tensor in global memory."""

    array: GlobalArray
    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    padding: str = "zero"

    def _places(self, indices: Sequence[Array]) -> tuple[Array, Array]:
        """Offsets, and whether they are inside; `indices` are of one shape, an axis each."""
        offsets, inside = np.asarray(np.int64(self.offset)), np.asarray(True)
        for index, size, stride in zip(indices, self.sizes, self.strides, strict=True):
            offsets = offsets + index * stride
            inside = inside & (index >= 0) & (index < size)
        return offsets, inside

    def load(self, indices: Sequence[Array]) -> Array:
        """The elements at indices, padded where they lie outside."""
        offsets, inside = self._places(indices)
        return self.array.load(offsets, inside, _PADDING.get(self.padding, 0.0))

    def store(
        self, indices: Sequence[Array], values: Array, kind: Callable[..., Any] | None = None
    ) -> None:
        """Elements to indices, combined with what is there or in its place; what lies outside is
        left out."""
        offsets, inside = self._places(indices)
        if kind is not None:
            values = kind(self.array.load(offsets, inside, 0), values)
        self.array.store(offsets, values, inside)


def box(coordinates: Sequence[int], tile: tuple[int, ...]) -> tuple[Array, ...]:
    """The indices of a tile that begins at coordinates."""
    steps = [at + np.arange(size) for at, size in zip(coordinates, tile, strict=True)]
    return tuple(np.meshgrid(*steps, indexing="ij"))


@dataclass(eq=False)
class Cell:
    """A buffer on the chip: whatever was put into it last."""

    content: Array | None = None


@dataclass(frozen=True, eq=False)
class BufferRef:
    """A buffer, seen through views."""

    cell: Cell
    views: tuple[Any, ...] = ()
    """Functions of arrays, the first seen first."""

    def read(self) -> Array:
        """What is in it."""
        found = self.cell.content
        if found is None:
            raise OutOfBoundsError("a buffer is read that nothing was put into")
        for view in self.views:
            found = view(found)
        return found
