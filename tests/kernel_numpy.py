"""A kernel tree run with NumPy, block by block, in the order of the text: a second opinion.

    run(kernel, grid, arrays and numbers)      arrays are written in place

Addresses are numbers: which array, and which element of it. bf16 is kept in float32, rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.kernel import Kernel, Operation, Pointer, Region, Type, Value, View
from stretto.kernel.types import element_of, shape_of

Array = NDArray[Any]
Argument = Array | int | float
ARRAY = 1 << 40
"""Addresses of one array."""
TYPES = {
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "index": np.int64,
    "f16": np.float16,
    "bf16": np.float32,
    "f32": np.float32,
    "f64": np.float64,
}
PADDINGS = {"neg_inf": -np.inf, "pos_inf": np.inf, "nan": np.nan, "undefined": np.nan}


@dataclass(frozen=True)
class Tensor:
    """What a view stands for at run time."""

    base: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]


def dtype(type: Type) -> Any:
    element = element_of(type)
    return np.int64 if isinstance(element, Pointer) else TYPES[str(element)]


def rounded(values: Any, type: Type) -> Array:
    """Values in a type, with the precision it has."""
    made = np.asarray(values).astype(dtype(type))
    if str(element_of(type)) == "bf16":
        bits = made.astype(np.float32).view(np.uint32)
        bits = bits + 0x7FFF + ((bits >> 16) & 1) & np.uint32(0xFFFF0000)
        made = np.where(np.isfinite(made), bits.view(np.float32), made)
    return made


def unsigned(values: Array) -> Array:
    return values.astype(f"u{values.dtype.itemsize}")


BINARY: dict[str, Callable[[Array, Array], Any]] = {
    "addf": np.add,
    "subf": np.subtract,
    "mulf": np.multiply,
    "divf": np.divide,
    "remf": np.fmod,
    "maxnumf": np.fmax,
    "minnumf": np.fmin,
    "maximumf": np.maximum,
    "minimumf": np.minimum,
    "addi": np.add,
    "subi": np.subtract,
    "muli": np.multiply,
    "divsi": lambda a, b: np.trunc(a / b),
    "floordivsi": lambda a, b: a // b,
    "ceildivsi": lambda a, b: -(-a // b),
    "remsi": np.fmod,
    "maxsi": np.maximum,
    "minsi": np.minimum,
    "andi": np.bitwise_and,
    "ori": np.bitwise_or,
    "xori": np.bitwise_xor,
    "shli": np.left_shift,
    "shrsi": np.right_shift,
    "shrui": lambda a, b: unsigned(a) >> unsigned(b),
    "divui": lambda a, b: unsigned(a) // unsigned(b),
    "remui": lambda a, b: unsigned(a) % unsigned(b),
}
UNARY: dict[str, Callable[[Array], Any]] = {
    "absf": np.abs,
    "absi": np.abs,
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "sqrt": np.sqrt,
    "rsqrt": lambda a: 1 / np.sqrt(a),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "floor": np.floor,
    "ceil": np.ceil,
    "negf": np.negative,
    "extui": unsigned,
    "uitofp": unsigned,
    "fptosi": np.trunc,
    **dict.fromkeys(("extf", "truncf", "extsi", "trunci", "sitofp", "index_cast"), lambda a: a),
}
RELATIONS: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
ATOMICS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "fadd": lambda a, b: a + b,
    "max": max,
    "min": min,
    "exch": lambda _, b: b,
}


class Block:
    """One block of the grid."""

    def __init__(
        self, arrays: Sequence[Array], index: tuple[int, ...], grid: tuple[int, ...]
    ) -> None:
        self.arrays = arrays
        self.index = index
        self.grid = grid
        self.tiles = grid
        self.values: dict[Value, Any] = {}

    def region(self, region: Region, arguments: Sequence[Any] = ()) -> list[Any]:
        """What the region's last operation hands on."""
        self.values.update(zip(region.arguments, arguments, strict=True))
        for operation in region.operations[:-1]:
            made = self.operation(operation)
            self.values.update(zip(operation.results, made, strict=True))
        return [self.values[value] for value in region.terminator.operands]

    def operation(self, op: Operation) -> Sequence[Any]:
        given = [self.values[value] for value in op.operands]
        room, _, name = op.name.partition(".")
        if room == "scf":
            return self.flow(op, name, given)
        if name in BINARY and room == "arith":
            return [rounded(BINARY[name](*given), op.result.type)]
        if name in UNARY:
            return [rounded(UNARY[name](*given), op.result.type)]
        if room in ("arith", "math"):
            return [self.arithmetic(op, name, given)]
        method: Callable[[Operation, list[Any]], Sequence[Any]] = getattr(self, f"tile_{name}")
        return method(op, given)

    def arithmetic(self, op: Operation, name: str, given: list[Any]) -> Any:
        type = op.result.type
        match name:
            case "constant":
                value = np.asarray(op.attributes["value"])
                shaped = value.reshape(shape_of(type)) if value.ndim else value
                return rounded(np.broadcast_to(shaped, shape_of(type)), type)
            case "cmpi" | "cmpf":
                predicate = op.text("predicate")
                left, right = given
                if name == "cmpi" and predicate[0] == "u":
                    left, right = unsigned(left), unsigned(right)
                found = RELATIONS[predicate[-2:]](left, right)
                either = np.isnan(left) | np.isnan(right) if name == "cmpf" else np.False_
                return found & ~either if predicate[0] == "o" else found | either
            case "select":
                condition, yes, no = given
                return rounded(np.where(condition, yes, no), type)
            case "fma":
                return rounded(given[0] * given[1] + given[2], type)
            case "powf":
                return rounded(np.power(given[0], given[1]), type)
            case "bitcast":
                return given[0].view(dtype(type))
            case _:
                raise NotImplementedError(op.name)

    def flow(self, op: Operation, name: str, given: list[Any]) -> Sequence[Any]:
        if name == "for":
            lower, upper, step, *carried = given
            for index in range(int(lower), int(upper), int(step)):
                carried = self.region(op.regions[0], [dtype(op.operands[0].type)(index), *carried])
            return carried
        if name == "if":
            return self.region(op.regions[0 if given[0] else 1])
        assert name == "while"
        while True:
            go, *handed = self.region(op.regions[0], given)
            if not go:
                return handed
            given = self.region(op.regions[1], handed)

    # Tiles.

    def tile_block_index(self, op: Operation, _: list[Any]) -> Sequence[Any]:
        return [np.int32(self.index[op.integer("axis")])]

    def tile_block_count(self, op: Operation, _: list[Any]) -> Sequence[Any]:
        return [np.int32(self.grid[op.integer("axis")])]

    def tile_tile_count(self, op: Operation, _: list[Any]) -> Sequence[Any]:
        return [np.int32(self.tiles[op.integer("axis")])]

    def tile_splat(self, op: Operation, given: list[Any]) -> Sequence[Any]:
        return [np.broadcast_to(given[0], shape_of(op.result.type))]

    tile_broadcast = tile_splat

    def tile_reshape(self, op: Operation, given: list[Any]) -> Sequence[Any]:
        return [np.asarray(given[0]).reshape(shape_of(op.result.type))]

    def tile_hint(self, _: Operation, given: list[Any]) -> Sequence[Any]:
        return given

    def tile_assert(self, op: Operation, given: list[Any]) -> Sequence[Any]:
        assert given[0], op.text("message")
        return ()

    def tile_transpose(self, op: Operation, given: list[Any]) -> Sequence[Any]:
        return [given[0].transpose(op.integers("order"))]

    def tile_range(self, op: Operation, _: list[Any]) -> Sequence[Any]:
        return [np.arange(op.integer("start"), op.integer("end"), dtype=dtype(op.result.type))]

    def tile_cat(self, op: Operation, given: list[Any]) -> Sequence[Any]:
        return [np.concatenate(given, op.integer("axis"))]

    def tile_extract(self, op: Operation, given: list[Any]) -> Sequence[Any]:
        part = shape_of(op.result.type)
        starts = [int(at) * size for at, size in zip(given[1:], part, strict=True)]
        return [given[0][tuple(slice(s, s + n) for s, n in zip(starts, part, strict=True))]]

    def tile_dot(self, op: Operation, given: list[Any]) -> Sequence[Any]:
        a, b, total = given
        wide = np.int32 if total.dtype.kind == "i" else np.float32
        return [rounded(a.astype(wide) @ b.astype(wide) + total, op.result.type)]

    def tile_reduce(self, op: Operation, given: list[Any]) -> Sequence[Any]:
        return [steps[-1] for steps in self.combined(op, given)]

    def tile_scan(self, op: Operation, given: list[Any]) -> Sequence[Any]:
        axis = op.integer("axis")
        turn = -1 if op.attributes.get("reverse") else 1
        return [np.stack(steps[::turn], axis) for steps in self.combined(op, given, turn)]

    def combined(self, op: Operation, given: list[Any], turn: int = 1) -> Sequence[list[Array]]:
        moved = [np.moveaxis(tile, op.integer("axis"), 0)[::turn] for tile in given]
        sofar = [tile[0] for tile in moved]
        steps = [[value] for value in sofar]
        for k in range(1, len(moved[0])):
            sofar = self.region(op.regions[0], [*sofar, *(tile[k] for tile in moved)])
            for list_, value in zip(steps, sofar, strict=True):
                list_.append(value)
        return steps

    # Memory.

    def at(self, addresses: Any) -> tuple[Array, Any]:
        which = np.unique(np.asarray(addresses) // ARRAY)
        assert len(which) == 1, "addresses of several arrays"
        return self.arrays[int(which[0]) - 1].reshape(-1), np.asarray(addresses) % ARRAY

    def tile_offset(self, _: Operation, given: list[Any]) -> Sequence[Any]:
        return [given[0] + np.asarray(given[1]).astype(np.int64)]

    def tile_load(self, op: Operation, given: list[Any]) -> Sequence[Any]:
        addresses, mask, other = (*given, True, 0)[:3] if len(given) < 3 else given
        somewhere = np.asarray(addresses).flat[0] // ARRAY * ARRAY
        array, where = self.at(np.where(mask, addresses, somewhere))
        return [np.where(mask, array[where], other).astype(dtype(op.result.type))]

    def tile_store(self, _: Operation, given: list[Any]) -> Sequence[Any]:
        addresses, values, mask = (*given, True)[:3]
        mask = np.broadcast_to(mask, np.shape(addresses))
        if np.any(mask):
            array, where = self.at(np.asarray(addresses)[mask])
            array[where] = np.asarray(values)[mask]
        return ()

    def tile_atomic_rmw(self, op: Operation, given: list[Any]) -> Sequence[Any]:
        addresses, values = given[:2]
        mask: Any = given[2] if len(given) > 2 else True
        masks: Array = np.broadcast_to(mask, np.shape(addresses))
        old = np.zeros(np.shape(addresses), dtype(op.result.type))
        for place in np.ndindex(*np.shape(addresses)):
            if masks[place]:
                array, where = self.at(addresses[place])
                old[place] = array[where]
                array[where] = ATOMICS[op.text("kind")](array[where], values[place])
        return [old]

    def tile_atomic_cas(self, op: Operation, given: list[Any]) -> Sequence[Any]:
        addresses, expected, new = given[:3]
        mask: Any = given[3] if len(given) > 3 else True
        masks: Array = np.broadcast_to(mask, np.shape(addresses))
        old = np.zeros(np.shape(addresses), dtype(op.result.type))
        for place in np.ndindex(*np.shape(addresses)):
            if masks[place]:
                array, where = self.at(addresses[place])
                old[place] = array[where]
                array[where] = new[place] if array[where] == expected[place] else array[where]
        return [old]

    def tile_view(self, op: Operation, given: list[Any]) -> Sequence[Any]:
        type = op.result.type
        assert isinstance(type, View)
        base, *numbers = (int(number) for number in given)
        rank = len(type.tile)
        return [Tensor(base, tuple(numbers[:rank]), tuple(numbers[rank:]))]

    def places(self, view: Value, where: Sequence[Any]) -> tuple[Array, Array]:
        """The address of each element of a tile, and whether it is inside."""
        type, tensor = view.type, self.values[view]
        assert isinstance(type, View)
        rank = len(type.tile)
        addresses = np.full(type.tile, tensor.base, np.int64)
        inside = np.full(type.tile, True)
        for k, size in enumerate(type.tile):
            line = np.arange(size).reshape([-1 if j == k else 1 for j in range(rank)])
            index = int(where[k]) + line
            addresses = addresses + index * tensor.strides[k]
            inside = inside & (index >= 0) & (index < tensor.sizes[k])
        return addresses, inside

    def tile_view_load(self, op: Operation, given: list[Any]) -> Sequence[Any]:
        view, (_, *where) = op.operands[0], given
        assert isinstance(view.type, View)
        addresses, inside = self.places(view, where)
        array, at = self.at(np.where(inside, addresses, self.values[view].base))
        padding = PADDINGS.get(view.type.padding, 0)
        wanted = dtype(op.results[0].type)
        outside = padding if np.issubdtype(wanted, np.floating) else 0
        tile = np.where(inside, array[at], outside).astype(wanted)
        return [tile.reshape(shape_of(op.results[0].type))]

    def tile_view_store(self, op: Operation, given: list[Any]) -> Sequence[Any]:
        _, tile, *where = given
        addresses, inside = self.places(op.operands[0], where)
        if np.any(inside):
            array, at = self.at(addresses[inside])
            array[at] = tile.reshape(inside.shape)[inside]
        return ()


def run(kernel: Kernel, grid: Sequence[int], *arguments: Argument) -> None:
    """The kernel over a grid; an array stands for its address, sizes and strides (in elements)."""
    arrays: list[Array] = []
    flat: list[Any] = []
    for argument in arguments:
        if not isinstance(argument, np.ndarray):
            flat.append(argument)
            continue
        assert argument.flags.c_contiguous
        arrays.append(argument)
        strides = [stride // argument.itemsize for stride in argument.strides]
        flat += [len(arrays) * ARRAY, *argument.shape, *strides]
    assert len(flat) == len(kernel.parameters), f"{len(flat)} of {len(kernel.parameters)}"
    whole = (*grid, 1, 1)[:3]
    with np.errstate(all="ignore"):
        for index in product(*map(range, whole)):
            block = Block(arrays, index, whole)
            for parameter, number in zip(kernel.parameters, flat, strict=True):
                block.values[parameter.value] = dtype(parameter.value.type)(number)
            block.region(kernel.body)
