"""What each operation of a lowered kernel computes, by its opcode.

Evaluator(grid, block).apply(operation, [a, b])   ──►   (a × b,)

Tiles are arrays, buffers their contents; addresses and views are those of `memory.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from stretto.errors import StrettoError
from stretto.kernel import Operation, Value
from stretto.kernel.tree import kind_of
from stretto.kernel.types import Buffer, Pointer, Scalar, Tile, element_of, shape_of
from stretto.materialization import Persistent
from stretto.ops.atomics import ATOMICS
from stretto.ops.opcodes import opcode
from stretto.ops.operations import OPERATIONS, combining_row
from stretto.ops.predicates import PREDICATES
from stretto.simulation.exact_rounding import directed, to_integers
from stretto.simulation.kernels.arrays import Array, constant, dtype_of, fitted
from stretto.simulation.kernels.memory import Address, Heap, TensorView, box
from stretto.simulation.values import function_named, value_of, with_sign, without_sign

Datum = Any


class Evaluator:
    """Computes operations of one block of the grid."""

    def __init__(
        self,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        heap: Heap | None = None,
        tiles: tuple[int, int, int] | None = None,
    ) -> None:
        self._grid = grid
        self._tiles = tiles or grid
        self._block = block
        self._heap = heap or Heap()

    def apply(self, operation: Operation, operands: Sequence[Datum]) -> tuple[Datum, ...]:
        """The results of an operation, tokens as None; one None where it has none."""
        made = self._apply(operation, operands)
        return made + (None,) * (len(operation.results) - len(made))

    def _apply(self, operation: Operation, operands: Sequence[Datum]) -> tuple[Datum, ...]:
        kind = kind_of(operation)
        row = OPERATIONS.get(kind)
        named = opcode(kind).value if row is None else row.numpy
        method = METHODS.get(named)
        with np.errstate(all="ignore"):
            if method is not None:
                return method(self, operation, operands)
            if row is None or not row.elementwise:
                raise StrettoError(
                    f"{operation.location}: error: `{kind}` cannot be run on real values"
                )
            if " " in named:
                return (_rounded(named, operation, operands),)
            made = value_of(kind)(*operands)
        element = element_of(operation.result.type)
        assert isinstance(element, Scalar)
        return (fitted(made, element),)

    # What needs more than its operands ------------------------------------------------------

    def constant(self, operation: Operation, _: Sequence[Datum]) -> tuple[Datum, ...]:
        """A number or a tile of numbers."""
        return (constant(operation.attributes["value"], operation.result.type),)

    def block_index(self, operation: Operation, _: Sequence[Datum]) -> tuple[Datum, ...]:
        """Which block this is."""
        return (np.int32(self._block[operation.integer("axis")]),)

    def block_count(self, operation: Operation, _: Sequence[Datum]) -> tuple[Datum, ...]:
        """How many there are."""
        return (np.int32(self._grid[operation.integer("axis")]),)

    def tile_count(self, operation: Operation, _: Sequence[Datum]) -> tuple[Datum, ...]:
        """How many tiles a launch asks for."""
        return (np.int32(self._tiles[operation.integer("axis")]),)

    def work_tile(self, operation: Operation, operands: Sequence[Datum]) -> tuple[Datum, ...]:
        """Where a tile of a persistent loop lies, and whether there is one."""
        if np.ndim(operands[0]):  # it has arrived: a coordinate an axis, and the validity
            types = [result.type for result in operation.results[:-1]]
            *at, there = (int(n) for n in np.ravel(operands[0]))
            made = [fitted(n, t) for n, t in zip(at, types, strict=True) if isinstance(t, Scalar)]
            return (*made, np.bool_(there != 0))
        index, *extents = _whole(operands)
        problem = operation.integers("problem") or tuple(extents)
        tile, cluster = operation.integers("tile"), operation.integers("cluster")
        work = Persistent(problem, tile, cluster, blocks=prod(cluster))
        faults = work.check()
        if faults:
            raise StrettoError(f"{operation.location}: error: {'; '.join(faults)}")
        valid = 0 <= index < work.tiles
        at = work.coordinates(index) if valid else (0,) * len(tile)
        types = [result.type for result in operation.results[:-1]]
        made = [fitted(n, t) for n, t in zip(at, types, strict=True) if isinstance(t, Scalar)]
        return (*made, np.bool_(valid))

    def range(self, operation: Operation, _: Sequence[Datum]) -> tuple[Datum, ...]:
        """Numbers one after the other."""
        element = element_of(operation.result.type)
        assert isinstance(element, Scalar)
        start, end = operation.integer("start"), operation.integer("end")
        return (np.arange(start, end, dtype=dtype_of(element)),)

    def shaped(self, operation: Operation, operands: Sequence[Datum]) -> tuple[Datum, ...]:
        """Views: the same numbers in another shape."""
        (source,) = operands
        if isinstance(source, Address):
            return (source.with_offsets(_reshaped(operation, source.offsets)),)
        return (_reshaped(operation, source),)

    def compare(self, operation: Operation, operands: Sequence[Datum]) -> tuple[Datum, ...]:
        """A comparison."""
        predicate = PREDICATES[kind_of(operation)][operation.text("predicate")]
        return (np.asarray(function_named(predicate.numpy)(*operands)),)

    def select(self, operation: Operation, operands: Sequence[Datum]) -> tuple[Datum, ...]:
        """One or the other."""
        condition, a, b = operands
        if isinstance(a, Address):
            if a.array is not b.array:
                told = "a choice between addresses of two arrays cannot be run"
                raise StrettoError(f"{operation.location}: error: {told}")
            return (a.with_offsets(np.where(condition, a.offsets, b.offsets)),)
        first = np.asarray(a)
        return (np.where(condition, first, b).astype(first.dtype),)

    def bitcast(self, operation: Operation, operands: Sequence[Datum]) -> tuple[Datum, ...]:
        """The same bits as another type."""
        (source,) = operands
        if isinstance(source, Address):
            pointer = element_of(operation.result.type)
            assert isinstance(pointer, Pointer)
            return (source.taken_as(pointer.pointee),)
        before, after = element_of(operation.operands[0].type), element_of(operation.result.type)
        assert isinstance(before, Scalar)
        assert isinstance(after, Scalar)
        return (_bits_as(np.asarray(source), before, after),)

    def reduce(self, operation: Operation, operands: Sequence[Datum]) -> tuple[Datum, ...]:
        """Along an axis."""
        (source,) = operands
        element = element_of(operation.result.type)
        assert isinstance(element, Scalar)
        made = _reduced(kind_of(operation), np.asarray(source), operation.integer("axis"), element)
        return (fitted(made, element),)

    def combine(self, operation: Operation, operands: Sequence[Datum]) -> tuple[Datum, ...]:
        """Elements along an axis put together as the region says, from the first to the last."""
        axis, scanned = operation.integer("axis"), kind_of(operation) == "scan"
        count = np.asarray(operands[0]).shape[axis]
        order = range(count - 1, -1, -1) if operation.attributes.get("reverse") else range(count)
        total: list[Datum] = []
        kept: dict[int, list[Datum]] = {}
        for at in order:
            taken = [np.take(np.asarray(array), at, axis=axis) for array in operands]
            total = self._combined(operation, [*total, *taken]) if total else taken
            kept[at] = total
        if not scanned:
            return tuple(total)
        rows = [[kept[at][i] for at in range(count)] for i in range(len(operands))]
        return tuple(np.stack(row, axis=axis) for row in rows)

    def _combined(self, operation: Operation, pair: Sequence[Datum]) -> list[Datum]:
        (region,) = operation.regions
        values: dict[Value, Datum] = dict(zip(region.arguments, pair, strict=True))
        for inner in region.operations[:-1]:
            made = self.apply(inner, [values[value] for value in inner.operands])
            values.update(zip(inner.results, made, strict=True))
        return [values[value] for value in region.terminator.operands]

    def product(self, operation: Operation, operands: Sequence[Datum]) -> tuple[Datum, ...]:
        """a × b, added to what is there, if it adds."""
        a, b, *rest = operands
        groups = operation.integers("groups")
        total = rest[0] if groups[2] else None
        type = operation.results[0].type
        element = type.element if isinstance(type, Buffer | Tile) else None
        assert isinstance(element, Scalar)
        wide = dtype_of(element)
        made = np.matmul(np.asarray(a, dtype=wide), np.asarray(b, dtype=wide))
        return (fitted(made if total is None else total + made, element),)

    def moved(self, operation: Operation, operands: Sequence[Datum]) -> tuple[Datum, ...]:
        """From one memory to another: the same numbers."""
        del operation
        return (operands[0],)

    def tma_load(self, operation: Operation, operands: Sequence[Datum]) -> tuple[Datum, ...]:
        """A tile through a view."""
        view = operands[0]
        assert isinstance(view, TensorView)
        count = operation.integers("groups")[1]
        return (view.load(box(_whole(operands[1 : 1 + count]), _tile_shape(operation))),)

    def tma_store(self, operation: Operation, operands: Sequence[Datum]) -> tuple[Datum, ...]:
        """A tile through a view, in the place of what is there or combined with it."""
        tile, view, *coordinates = operands
        assert isinstance(view, TensorView)
        kind = operation.text("kind")
        view.store(
            box(_whole(coordinates), tile.shape),
            tile,
            function_named(ATOMICS[kind].numpy) if kind else None,
        )
        return (None,)

    def tma_gather(self, operation: Operation, operands: Sequence[Datum]) -> tuple[Datum, ...]:
        """Rows of a matrix that are picked by index."""
        view, rows = operands[:2]
        assert isinstance(view, TensorView)
        column = operands[2] if operation.integers("groups")[2] else 0
        return (view.load(_rows(rows, int(column), _tile_shape(operation))),)

    def tma_scatter(self, operation: Operation, operands: Sequence[Datum]) -> tuple[Datum, ...]:
        """Rows of a matrix, each to where its index says."""
        tile, view, rows = operands[:3]
        assert isinstance(view, TensorView)
        column = operands[3] if operation.integers("groups")[3] else 0
        view.store(_rows(rows, int(column), tile.shape), tile)
        return (None,)

    def gather(self, operation: Operation, operands: Sequence[Datum]) -> tuple[Datum, ...]:
        """Elements along an axis, each picked by an index."""
        source, indices = (np.asarray(one) for one in operands)
        axis = operation.integer("axis")
        if np.any((indices < 0) | (indices >= source.shape[axis])):
            told = f"an index of a gather is outside of 0 to {source.shape[axis] - 1}"
            raise StrettoError(f"{operation.location}: error: {told}")
        return (np.take_along_axis(source, indices.astype(np.int64), axis=axis),)

    def histogram(self, operation: Operation, operands: Sequence[Datum]) -> tuple[Datum, ...]:
        """How often each number from 0 on is there."""
        source, *mask = (np.asarray(one) for one in operands)
        (bins,) = shape_of(operation.result.type)
        counted = (source >= 0) & (source < bins)
        for one in mask:
            counted = counted & one
        element = element_of(operation.result.type)
        assert isinstance(element, Scalar)
        return (fitted(np.bincount(source[counted], minlength=bins), element),)

    def view(self, operation: Operation, operands: Sequence[Datum]) -> tuple[Datum, ...]:
        """A tensor by its address, sizes and strides."""
        address, *numbers = operands
        assert isinstance(address, Address)
        half = operation.integers("groups")[1]
        sizes, strides = _whole(numbers[:half]), _whole(numbers[half:])
        padding = operation.text("padding", "zero")
        return (TensorView(address.array, int(address.offsets), sizes, strides, padding),)

    def view_size(self, operation: Operation, operands: Sequence[Datum]) -> tuple[Datum, ...]:
        """How many elements a view's tensor has along an axis."""
        (view,) = operands
        assert isinstance(view, TensorView)
        return (np.int32(view.sizes[operation.integer("axis")]),)

    def pointer_to_int(self, operation: Operation, operands: Sequence[Datum]) -> tuple[Datum, ...]:
        """An address as a number."""
        del operation
        (address,) = operands
        assert isinstance(address, Address)
        return (address.as_numbers(),)

    def int_to_pointer(self, operation: Operation, operands: Sequence[Datum]) -> tuple[Datum, ...]:
        """A number as an address."""
        element = element_of(operation.result.type)
        assert isinstance(element, Pointer)
        return (self._heap.addressed(np.asarray(operands[0]), element.pointee),)

    def offset(self, operation: Operation, operands: Sequence[Datum]) -> tuple[Datum, ...]:
        """An address some elements further."""
        del operation
        address, by = operands
        assert isinstance(address, Address)
        return (address.plus(np.asarray(by)),)

    def load(self, operation: Operation, operands: Sequence[Datum]) -> tuple[Datum, ...]:
        """Elements at addresses."""
        address, *rest = operands
        assert isinstance(address, Address)
        groups = operation.integers("groups")
        mask = rest[0] if groups[1] else None
        kept = kind_of(operation) == "pointer.load" and groups[2]
        other = rest[groups[1]] if kept else 0
        return (address.array.load(np.asarray(address.offsets), mask, other),)

    def store(self, operation: Operation, operands: Sequence[Datum]) -> tuple[Datum, ...]:
        """Elements to addresses."""
        del operation
        address, value, *mask = operands
        assert isinstance(address, Address)
        address.array.store(np.asarray(address.offsets), value, mask[0] if mask else None)
        return (None,)

    def atomic(self, operation: Operation, operands: Sequence[Datum]) -> tuple[Datum, ...]:
        """Reads, combines, writes, one element after the other."""
        address, *rest = operands
        assert isinstance(address, Address)
        offsets = np.atleast_1d(np.asarray(address.offsets))
        found = np.zeros(offsets.shape, dtype=address.array.data.dtype)
        swap = kind_of(operation) == "pointer.atomic_cas"
        value = np.broadcast_to(np.asarray(rest[1 if swap else 0]), offsets.shape)
        expected = np.broadcast_to(np.asarray(rest[0]), offsets.shape) if swap else None
        masks = rest[2 if swap else 1 :]
        mask = np.broadcast_to(masks[0], offsets.shape) if masks else None
        for at in np.ndindex(offsets.shape):
            if mask is not None and not mask[at]:
                continue
            place = np.asarray(offsets[at])
            old = address.array.load(place, None, 0)
            found[at] = old
            if expected is not None:
                new = value[at] if old == expected[at] else old
            else:
                new = function_named(ATOMICS[operation.text("kind")].numpy)(old, value[at])
            address.array.store(place, np.asarray(new), None)
        return (found.reshape(np.shape(address.offsets)),)

    def split(self, operation: Operation, operands: Sequence[Datum]) -> tuple[Datum, ...]:
        """Two halves."""
        del operation
        return operands[0][..., 0], operands[0][..., 1]

    def join(self, operation: Operation, operands: Sequence[Datum]) -> tuple[Datum, ...]:
        """Two tiles along a new last dimension."""
        del operation
        return (np.stack([np.asarray(tile) for tile in operands], axis=-1),)

    def cat(self, operation: Operation, operands: Sequence[Datum]) -> tuple[Datum, ...]:
        """Two tiles one after the other."""
        tiles = [np.asarray(tile) for tile in operands]
        return (np.concatenate(tiles, axis=operation.integer("axis", 0)),)

    def extract(self, operation: Operation, operands: Sequence[Datum]) -> tuple[Datum, ...]:
        """A part of a tile, or its only element."""
        source, *indices = operands
        shape = shape_of(operation.result.type)
        at = zip(_whole(indices), shape, strict=True) if indices else ()
        part = np.asarray(source)[tuple(slice(k * size, (k + 1) * size) for k, size in at)]
        return (part.reshape(shape),)

    def nothing(self, operation: Operation, operands: Sequence[Datum]) -> tuple[Datum, ...]:
        """Order alone."""
        del operation, operands
        return (None,)

    def wait(self, operation: Operation, operands: Sequence[Datum]) -> tuple[Datum, ...]:
        """What is waited for, where that is a value."""
        return (operands[0] if operation.results else None,)

    def check(self, operation: Operation, operands: Sequence[Datum]) -> tuple[Datum, ...]:
        """What is promised or claimed has to hold."""
        if not np.all(operands[0]):
            said = operation.text("message", "")
            told = f"{operation.location}: error: does not hold" + (f": {said}" if said else "")
            raise StrettoError(told)
        return (None,)


def _whole(numbers: Sequence[Datum]) -> tuple[int, ...]:
    return tuple(int(n) for n in numbers)


def _rows(rows: Datum, column: int, shape: tuple[int, ...]) -> tuple[Array, ...]:
    """The indices of whole rows, from a column on."""
    picked = np.asarray(rows, dtype=np.int64)[:, None]
    return np.broadcast_to(picked, shape), np.broadcast_to(column + np.arange(shape[1]), shape)


def _tile_shape(operation: Operation) -> tuple[int, ...]:
    type = operation.results[0].type
    assert isinstance(type, Buffer | Tile)
    return type.shape


def _reshaped(operation: Operation, source: Array) -> Array:
    type = operation.result.type
    shape = type.shape if isinstance(type, Buffer) else shape_of(type)
    match kind_of(operation):
        case "transpose":
            order = operation.integers("permutation") or tuple(reversed(range(source.ndim)))
            return np.transpose(source, order)
        case "broadcast":
            if source.ndim < len(shape):
                source = source.reshape(source.shape + (1,) * (len(shape) - source.ndim))
            return np.broadcast_to(source, shape)
        case "splat":
            return np.broadcast_to(source, shape)
        case _:
            return np.reshape(source, shape)


def _bits_as(source: Array, before: Scalar, after: Scalar) -> Array:
    exact = {"f32": np.float32, "f64": np.float64, "f16": np.float16}
    if before.is_integer == after.is_integer:
        return fitted(source, after)
    floating, whole = (before, after) if after.is_integer else (after, before)
    if floating.element not in exact:
        raise StrettoError(f"bits of {floating} cannot be taken apart")
    narrow = exact[floating.element]
    if after.is_integer:
        return source.astype(narrow).view(dtype_of(whole))
    return fitted(source.astype(dtype_of(whole)).view(narrow), after)


def _rounded(named: str, operation: Operation, operands: Sequence[Datum]) -> Array:
    """What a row says in two words: a function, and which way it is rounded."""
    name, way = named.split()
    element = element_of(operation.result.type)
    assert isinstance(element, Scalar)
    arrays = [np.asarray(one) for one in operands]
    if element.is_integer:
        signed = name != "unsigned"
        made = to_integers(way, arrays[0], element.bits, signed=signed)
        return fitted(made, element)
    wide = dtype_of(element)
    if name == "unsigned":
        arrays = [without_sign(one) for one in arrays]
    plain = function_named(name)(*arrays)
    if way == "nearest":
        return fitted(plain, element)
    return directed(name, way, wide, np.asarray(plain).astype(wide), *arrays)


def _reduced(kind: str, source: Array, axis: int, element: Scalar) -> Array:
    """Along an axis, by what combines two elements."""
    named = OPERATIONS[combining_row(kind, floats=element.is_float)].numpy
    source = without_sign(source) if named.startswith("unsigned") else with_sign(source)
    combine: np.ufunc = getattr(np, named.removeprefix("unsigned_"))
    kept = source.dtype if combine in (np.add, np.multiply) else None
    return np.asarray(combine.reduce(source, axis=axis, dtype=kept))


METHODS: dict[str, Callable[[Evaluator, Operation, Sequence[Datum]], tuple[Datum, ...]]] = {
    "atomic": Evaluator.atomic,
    "bitcast": Evaluator.bitcast,
    "block_count": Evaluator.block_count,
    "block_index": Evaluator.block_index,
    "cat": Evaluator.cat,
    "check": Evaluator.check,
    "combine": Evaluator.combine,
    "compare": Evaluator.compare,
    "constant": Evaluator.constant,
    "extract": Evaluator.extract,
    "gather": Evaluator.gather,
    "histogram": Evaluator.histogram,
    "int_to_pointer": Evaluator.int_to_pointer,
    "join": Evaluator.join,
    "load": Evaluator.load,
    "moved": Evaluator.moved,
    "nothing": Evaluator.nothing,
    "offset": Evaluator.offset,
    "pointer_to_int": Evaluator.pointer_to_int,
    "product": Evaluator.product,
    "range": Evaluator.range,
    "reduce": Evaluator.reduce,
    "select": Evaluator.select,
    "shaped": Evaluator.shaped,
    "split": Evaluator.split,
    "store": Evaluator.store,
    "tile_count": Evaluator.tile_count,
    "tma_gather": Evaluator.tma_gather,
    "tma_load": Evaluator.tma_load,
    "tma_scatter": Evaluator.tma_scatter,
    "tma_store": Evaluator.tma_store,
    "view": Evaluator.view,
    "view_size": Evaluator.view_size,
    "wait": Evaluator.wait,
    "work_tile": Evaluator.work_tile,
}
"""What rows name that takes more than operands: attributes, addresses, several results."""
