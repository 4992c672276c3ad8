"""What each operation of a lowered kernel computes, by its opcode.

Evaluator(grid, block).apply(operation, [a, b])   ──►   (a × b,)

Tiles are arrays, buffers their contents; addresses and views are those of `memory.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import erf, prod
from typing import Any

import numpy as np

from stretto.errors import StrettoError
from stretto.kernel import Operation, Value
from stretto.kernel.tree import kind_of
from stretto.kernel.types import Buffer, Pointer, Scalar, Tile, element_of, shape_of
from stretto.materialize import Persistent
from stretto.simulate.kernels.arrays import Array, constant, dtype_of, fitted, unsigned
from stretto.simulate.kernels.memory import Address, Heap, TensorView, box

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
        special = _SPECIAL.get(kind)
        with np.errstate(all="ignore"):
            if special is not None:
                return special(self, operation, operands)
            function = _FUNCTIONS.get(kind)
            if function is None:
                raise StrettoError(
                    f"{operation.location}: error: `{kind}` cannot be run on real values"
                )
            made = function(*operands)
        type = operation.result.type
        element = element_of(type)
        if isinstance(made, Address):
            return (made,)
        if isinstance(type, Buffer):
            element = type.element
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
        a, b = operands
        predicate = operation.text("predicate")
        if kind_of(operation) == "arith.cmpf":
            return (_compare_floats(predicate, a, b),)
        if predicate[0] == "u":
            a, b = unsigned(np.asarray(a)), unsigned(np.asarray(b))
        return (_COMPARE[predicate.lstrip("su")](a, b),)

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
            return (source,)
        before, after = element_of(operation.operands[0].type), element_of(operation.result.type)
        assert isinstance(before, Scalar)
        assert isinstance(after, Scalar)
        return (_bits_as(np.asarray(source), before, after),)

    def reduce(self, operation: Operation, operands: Sequence[Datum]) -> tuple[Datum, ...]:
        """Along an axis."""
        (source,) = operands
        element = element_of(operation.result.type)
        assert isinstance(element, Scalar)
        made = _REDUCE[kind_of(operation)](np.asarray(source), operation.integer("axis"))
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
        view.store(box(_whole(coordinates), tile.shape), tile, _ATOMIC[kind] if kind else None)
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

    def view(self, operation: Operation, operands: Sequence[Datum]) -> tuple[Datum, ...]:
        """A tensor by its address, sizes and strides."""
        address, *numbers = operands
        assert isinstance(address, Address)
        half = operation.integers("groups")[1]
        sizes, strides = _whole(numbers[:half]), _whole(numbers[half:])
        padding = operation.text("padding", "zero")
        return (TensorView(address.array, int(address.offsets), sizes, strides, padding),)

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
                new = _ATOMIC[operation.text("kind")](old, value[at])
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


def _truncated(a: Array, b: Array) -> Array:
    """Towards zero, as hardware divides."""
    quotient = np.floor_divide(a, b)
    return quotient + ((quotient * b != a) & ((a < 0) != (b < 0)))


def _remainder(a: Array, b: Array) -> Array:
    return np.asarray(a - _truncated(a, b) * b)


def _without_sign(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def applied(a: Array, b: Array) -> Array:
        wide = np.asarray(a)
        return np.asarray(function(unsigned(wide), unsigned(np.asarray(b)))).astype(wide.dtype)

    return applied


def _high(a: Array, b: Array) -> Array:
    """The upper half of a product of twice the width."""
    width = a.dtype.itemsize * 8
    return np.asarray((a.astype(object) * b.astype(object)) >> width).astype(a.dtype)


def _fma(a: Any, b: Any, c: Any) -> Array:
    """One rounding, at the end."""
    return np.asarray(a, np.float64) * b + c


def _erf(x: Array) -> Array:
    return np.vectorize(erf, otypes=[np.float64])(x)


_COMPARE: dict[str, Callable[..., Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def _compare_floats(predicate: str, a: Array, b: Array) -> Array:
    unordered = np.isnan(a) | np.isnan(b)
    if predicate in ("true", "false"):
        return np.full(np.shape(unordered), predicate == "true")
    if predicate in ("ord", "uno"):
        return unordered if predicate == "uno" else ~unordered
    found = _COMPARE[predicate[1:]](a, b)
    return (found | unordered) if predicate[0] == "u" else (found & ~unordered)


_UNARY: dict[str, Callable[[Any], Any]] = {
    **{
        f"arith.{name}": (lambda a: a)
        for name in ("extf", "truncf", "extsi", "trunci", "sitofp", "index_cast")
    },
    "arith.negf": np.negative,
    "arith.fptosi": np.trunc,
    "arith.fptoui": np.trunc,
    "arith.extui": lambda a: unsigned(np.asarray(a)),
    "arith.uitofp": lambda a: unsigned(np.asarray(a)),
    "math.absf": np.abs,
    "math.absi": np.abs,
    "math.exp": np.exp,
    "math.exp2": np.exp2,
    "math.log": np.log,
    "math.log2": np.log2,
    "math.sqrt": np.sqrt,
    "math.rsqrt": lambda a: 1 / np.sqrt(a),
    "math.sin": np.sin,
    "math.cos": np.cos,
    "math.tan": np.tan,
    "math.tanh": np.tanh,
    "math.sinh": np.sinh,
    "math.cosh": np.cosh,
    "math.erf": _erf,
    "math.floor": np.floor,
    "math.ceil": np.ceil,
    "math.roundeven": np.rint,
}
_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(("arith.addf", "arith.addi"), np.add),
    **dict.fromkeys(("arith.subf", "arith.subi"), np.subtract),
    **dict.fromkeys(("arith.mulf", "arith.muli"), np.multiply),
    "arith.divf": np.divide,
    "arith.remf": np.fmod,
    "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.maxui": _without_sign(np.maximum),
    "arith.minui": _without_sign(np.minimum),
    "arith.divsi": _truncated,
    "arith.remsi": _remainder,
    "arith.divui": _without_sign(np.floor_divide),
    "arith.remui": _without_sign(np.mod),
    "arith.floordivsi": np.floor_divide,
    "arith.ceildivsi": lambda a, b: -np.floor_divide(-a, b),
    "arith.ceildivui": _without_sign(lambda a, b: a // b + (a % b != 0)),
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.shli": np.left_shift,
    "arith.shrsi": np.right_shift,
    "arith.shrui": _without_sign(np.right_shift),
    "arith.mulhiui": lambda a, b: _high(unsigned(np.asarray(a)), unsigned(np.asarray(b))),
    "arith.mulhisi": lambda a, b: _high(np.asarray(a), np.asarray(b)),
    "math.powf": np.power,
    "offset": lambda address, by: address.plus(np.asarray(by)),
    "join": lambda a, b: np.stack((a, b), axis=-1),
    "cat": lambda a, b: np.concatenate((a, b), axis=0),
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {**_UNARY, **_BINARY, "math.fma": _fma}


def _known(floats: np.ufunc, others: Callable[..., Any], a: Array, axis: int) -> Any:
    """Along an axis; of floating-point numbers those that are numbers."""
    return floats.reduce(a, axis=axis) if a.dtype.kind == "f" else others(a, axis=axis)


_REDUCE: dict[str, Callable[[Array, int], Any]] = {
    "reduce.sum": lambda a, axis: np.sum(a, axis=axis, dtype=a.dtype),
    "reduce.prod": lambda a, axis: np.prod(a, axis=axis, dtype=a.dtype),
    "reduce.max": lambda a, axis: _known(np.fmax, np.max, a, axis),
    "reduce.min": lambda a, axis: _known(np.fmin, np.min, a, axis),
    "reduce.maximum": lambda a, axis: np.max(a, axis=axis),
    "reduce.minimum": lambda a, axis: np.min(a, axis=axis),
    "reduce.umax": lambda a, axis: np.max(unsigned(a), axis=axis),
    "reduce.umin": lambda a, axis: np.min(unsigned(a), axis=axis),
    "reduce.and": lambda a, axis: np.bitwise_and.reduce(a, axis=axis),
    "reduce.or": lambda a, axis: np.bitwise_or.reduce(a, axis=axis),
    "reduce.xor": lambda a, axis: np.bitwise_xor.reduce(a, axis=axis),
}

_ATOMIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "fadd": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "umax": _without_sign(np.maximum),
    "umin": _without_sign(np.minimum),
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": lambda _, new: new,
}

_SPECIAL: dict[str, Callable[[Evaluator, Operation, Sequence[Datum]], tuple[Datum, ...]]] = {
    "arith.constant": Evaluator.constant,
    "block_index": Evaluator.block_index,
    "block_count": Evaluator.block_count,
    "tile_count": Evaluator.tile_count,
    "work_tile_info": Evaluator.work_tile,
    "range": Evaluator.range,
    **dict.fromkeys(("splat", "broadcast", "expand_dims", "transpose", "view"), Evaluator.shaped),
    "arith.cmpi": Evaluator.compare,
    "arith.cmpf": Evaluator.compare,
    "arith.select": Evaluator.select,
    "arith.bitcast": Evaluator.bitcast,
    **dict.fromkeys(_REDUCE, Evaluator.reduce),
    "reduce.with": Evaluator.combine,
    "scan": Evaluator.combine,
    **dict.fromkeys(("async.tcgen05_mma", "async.wgmma", "async.dot"), Evaluator.product),
    **dict.fromkeys(
        (
            "async.smem_read",
            "async.smem_write",
            "async.tmem_load",
            "async.tmem_store",
            "async.tmem_copy",
            "async.copy",
            "convert_layout",
        ),
        Evaluator.moved,
    ),
    "async.tiled_tma_load": Evaluator.tma_load,
    "async.cp_async": Evaluator.tma_load,
    "load": Evaluator.tma_load,
    "async.tiled_tma_store": Evaluator.tma_store,
    "store": Evaluator.tma_store,
    "async.tma_gather": Evaluator.tma_gather,
    "async.tma_scatter": Evaluator.tma_scatter,
    "tensor_view": Evaluator.view,
    "pointer_to_int": Evaluator.pointer_to_int,
    "int_to_pointer": Evaluator.int_to_pointer,
    "pointer.load": Evaluator.load,
    "async.pointer_copy": Evaluator.load,
    "pointer.store": Evaluator.store,
    "pointer.atomic_rmw": Evaluator.atomic,
    "pointer.atomic_cas": Evaluator.atomic,
    "split": Evaluator.split,
    "join": Evaluator.join,
    "cat": Evaluator.cat,
    "extract": Evaluator.extract,
    "gather": Evaluator.gather,
    "assume": Evaluator.check,
    "assert": Evaluator.check,
    "async.wgmma_wait": Evaluator.wait,
    "token": Evaluator.nothing,
    "barrier": Evaluator.nothing,
}
