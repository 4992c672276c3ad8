"""Tensors, views of their tiles, loads, stores and atomics.

make_tensor_view      nothing yet: base, sizes and strides are kept in mind
make_partition_view   tile.view of them all, if anybody loads or stores through it
%view[%i, %k]         coordinates %i × 128, %k × 64: in elements
a turned view         tile.view of the tensor as it is, tile.transpose of what goes through it
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from stretto.frontends.cutile.names import DIVIDE_UP, NARROW, WIDEN_SIGNED
from stretto.frontends.cutile.scope import Scope, Tensor
from stretto.frontends.tileir import Operation
from stretto.frontends.tileir import Value as Source
from stretto.frontends.tileir import types as tileir
from stretto.frontends.tileir.attributes import Scalar as Numeral
from stretto.kernel import Attribute, Scalar, Tile, Value, View
from stretto.kernel.types import shape_of
from stretto.ops.atomics import ATOMICS

_T = TypeVar("_T")

_KINDS = {row.tileir: row.name for row in ATOMICS.values()}
"""Of atomic operations, as a kernel spells them."""


def tensor_view(scope: Scope, operation: Operation) -> None:
    """Keep it in mind."""
    if len(operation.results) != 1:
        raise scope.fail(operation, f"`{operation.name}` makes {len(operation.results)} values")
    (made,) = operation.results
    type = made.type
    if not isinstance(type, tileir.TensorView):
        raise scope.fail(operation, f"`{operation.name}` makes a {type}")
    base = scope.value(operation, "base")
    sizes = _open(scope, operation, type.shape, operation.operands["dynamic_shape"])
    strides = _open(scope, operation, type.strides, operation.operands["dynamic_strides"])
    scope.tensors[made] = Tensor(type, base, sizes, strides)


def _open(
    scope: Scope,
    operation: Operation,
    extents: tuple[tileir.Extent, ...],
    given: Sequence[Source],
) -> tuple[Value | None, ...]:
    """The values of extents that the type leaves open, at their places."""
    values = iter(scope.numbers(operation, given))
    if len(given) != sum(extent is None for extent in extents):
        told = f"{len(given)} sizes or strides are given"
        raise scope.fail(operation, told, f"the type leaves {extents.count(None)} open")
    found = tuple(next(values) if extent is None else None for extent in extents)
    for value in found:
        if value is not None and not _is_index(value):
            raise scope.fail(operation, f"a size or a stride of type {value.type}")
    return found


def _is_index(value: Value) -> bool:
    return isinstance(value.type, Scalar) and value.type.is_integer


def tile_view(scope: Scope, operation: Operation) -> None:
    """A view of tiles; it is made only where something goes through it."""
    (made,) = operation.results
    (source,) = operation.operands["tensor_view"]
    tensor = scope.tensors.get(source)
    if tensor is None or not isinstance(made.type, tileir.TileView):
        raise scope.fail(operation, f"`{operation.name}` of a {source.type} makes a {made.type}")
    if tensor.type != made.type.tensor:
        raise scope.fail(operation, f"a view of {made.type.tensor} on a {tensor.type}")
    scope.tensors[made] = tensor
    if set(scope.users.get(made, ())) <= {"get_index_space_shape"}:
        return
    given = next((value.type for value in tensor.sizes if value is not None), Scalar("i32"))
    assert isinstance(given, Scalar)
    operands = [tensor.base]
    for known, values in (
        (tensor.type.shape, tensor.sizes),
        (tensor.type.strides, tensor.strides),
    ):
        for number, value in zip(known, values, strict=True):
            operands.append(scope.constant(number or 0, given) if value is None else value)
    scope.values[made] = scope.early("tile.view", operands, _view_type(made.type))


def _view_type(type: tileir.TileView) -> View:
    return View(
        tile=_unturned(type.shape, type),
        element=Scalar(type.tensor.element.name),
        padding=type.padding or "undefined",
    )


def _unturned(values: Sequence[_T], view: tileir.TileView) -> tuple[_T, ...]:
    """What stands in the order of a tile, in the order of the tensor."""
    return tuple(values[view.dim_map.index(along)] for along in range(len(values)))


def _is_turned(view: tileir.TileView) -> bool:
    return view.dim_map != tuple(range(len(view.dim_map)))


def index_space(scope: Scope, operation: Operation) -> None:
    """How many tiles a view has along each of its dimensions."""
    (view,) = operation.operands["src"]
    tensor = scope.tensors.get(view)
    if tensor is None or not isinstance(view.type, tileir.TileView):
        raise scope.fail(operation, f"`{operation.name}` of a {view.type}")
    steps = view.type.steps or view.type.shape
    dims = [(along, steps[k]) for k, along in enumerate(view.type.dim_map)]
    _extents(scope, operation, tensor, dims)


def tensor_shape(scope: Scope, operation: Operation) -> None:
    """The sizes of a tensor."""
    (source,) = operation.operands["src"]
    tensor = scope.tensors.get(source)
    if tensor is None:
        raise scope.fail(operation, f"`{operation.name}` of a {source.type}")
    _extents(scope, operation, tensor, [(k, 1) for k in range(len(tensor.sizes))])


def _extents(
    scope: Scope, operation: Operation, tensor: Tensor, dims: Sequence[tuple[int, int]]
) -> None:
    """Sizes along dimensions, in steps; only those that somebody takes."""
    if len(operation.results) != len(dims):
        told = f"`{operation.name}` of {len(dims)} dimensions makes {len(operation.results)} values"
        raise scope.fail(operation, told)
    for result, (along, step) in zip(operation.results, dims, strict=True):
        type = scope.type(operation, result)
        if not isinstance(type, Scalar) or not type.is_integer:
            raise scope.fail(operation, f"a size of type {type}")
        if result not in scope.users:
            continue
        size, known = tensor.sizes[along], tensor.type.shape[along]
        if known is not None:
            scope.values[result] = scope.constant(-(-known // step), type)
            continue
        assert size is not None
        value = _as(scope, size, type)
        if step > 1:
            by = scope.constant(step, type)
            value = scope.builder.op(DIVIDE_UP, (value, by), type)
        scope.bind((result,), (value,))


def _as(scope: Scope, value: Value, type: Scalar) -> Value:
    """An integer in another width."""
    element = value.type
    assert isinstance(element, Scalar)
    if element == type:
        return value
    name = WIDEN_SIGNED if element.bits < type.bits else NARROW
    return scope.builder.op(name, (value,), type)


def _coordinates(scope: Scope, operation: Operation, view: tileir.TileView) -> tuple[Value, ...]:
    """Indices in tiles to coordinates in elements, in the order of the tensor."""
    indices = scope.numbers(operation, operation.operands["index"])
    steps = view.steps or view.shape
    if len(indices) != len(steps):
        raise scope.fail(operation, f"{len(indices)} indices of {view}")
    found: list[Value] = []
    for k, (index, step) in enumerate(zip(indices, steps, strict=True)):
        if k == view.sparse_dim:
            found.append(index)
            continue
        if not isinstance(index.type, Scalar) or not index.type.is_integer:
            raise scope.fail(operation, f"an index of type {index.type}")
        known = scope.constants.get(index)
        if step == 1 or known == 0:
            found.append(index)
        elif known is not None:
            found.append(scope.constant(known * step, index.type))
        else:
            found.append(scope.times(index, step))
    return _unturned(found, view)


def _through(scope: Scope, operation: Operation, tile: Source) -> tuple[Value, tileir.TileView]:
    """The view that a tile is loaded or stored through."""
    source = operation["view"]
    view = scope.values.get(source)
    if (
        view is None
        or not isinstance(source.type, tileir.TileView)
        or tile.type != source.type.tile
    ):
        raise scope.fail(operation, f"`{operation.name}` of a {tile.type} through a {source.type}")
    return view, source.type


def load_view(scope: Scope, operation: Operation) -> None:
    """A tile through a view."""
    _weak(scope, operation)
    scope.made(operation)
    tile = operation.results[0]
    view, type = _through(scope, operation, tile)
    if type.sparse_dim is not None:
        rows, column = _gathered(scope, operation, type)
        scope.emit(operation, "tile.view_gather", (view, rows, column))
        return
    where = _coordinates(scope, operation, type)
    if not _is_turned(type):
        scope.emit(operation, "tile.view_load", (view, *where), **_hints(operation))
        return
    plain = Tile(_unturned(type.shape, type), Scalar(type.tensor.element.name))
    loaded = scope.builder.add("tile.view_load", (view, *where), (plain,), _hints(operation))
    scope.emit(operation, "tile.transpose", loaded.results, order=type.dim_map)


def _turned_back(scope: Scope, tile: Value, view: tileir.TileView) -> Value:
    """A tile in the order of the tensor."""
    if not _is_turned(view):
        return tile
    order = _unturned(range(len(view.shape)), view)
    plain = Tile(_unturned(view.shape, view), Scalar(view.tensor.element.name))
    return scope.builder.op("tile.transpose", (tile,), plain, order=order)


def store_view(scope: Scope, operation: Operation) -> None:
    """A tile through a view."""
    _weak(scope, operation)
    view, type = _through(scope, operation, operation["tile"])
    tile = scope.value(operation, "tile")
    if type.sparse_dim is not None:
        rows, column = _gathered(scope, operation, type)
        scope.builder.add("tile.view_scatter", (view, tile, rows, column))
        return
    where = _coordinates(scope, operation, type)
    tile = _turned_back(scope, tile, type)
    scope.builder.add("tile.view_store", (view, tile, *where), (), _hints(operation))


def _gathered(scope: Scope, operation: Operation, view: tileir.TileView) -> tuple[Value, Value]:
    if view.sparse_dim != 0 or len(view.shape) != 2:
        raise scope.refuse(operation, "only rows of a matrix can be gathered and scattered")
    rows, column = _coordinates(scope, operation, view)
    if shape_of(rows.type) != view.shape[:1]:
        raise scope.fail(operation, f"rows of type {rows.type} for {view}")
    return rows, column


def reduce_view(scope: Scope, operation: Operation) -> None:
    """A tile added, or the like, to what stands there."""
    view, type = _through(scope, operation, operation["value"])
    if type.sparse_dim is not None:
        raise scope.refuse(operation, "rows of a matrix cannot be gathered and reduced at once")
    tile = _turned_back(scope, scope.value(operation, "value"), type)
    where = _coordinates(scope, operation, type)
    scope.builder.add("tile.view_reduce", (view, tile, *where), (), {"kind": _kind(operation)})


def _kind(operation: Operation) -> str:
    mode = operation.attributes["mode"]
    assert isinstance(mode, str)
    return _KINDS.get(mode, mode)


def _weak(scope: Scope, operation: Operation) -> None:
    """Only accesses that no other block races with can be moved."""
    order = operation.attributes["memory_ordering_semantics"]
    if order != "weak":
        raise scope.refuse(operation, f"it is {order}; take a weak one, or an atomic operation")


def _hints(operation: Operation) -> dict[str, Attribute]:
    """What the author asked for: latency, no TMA; promises that a tile lies inside."""
    found: dict[str, Attribute] = {}
    hints = operation.attributes.get("optimization_hints")
    for said in hints.values() if isinstance(hints, Mapping) else ():
        if isinstance(said, Mapping):
            for name, value in said.items():
                if isinstance(value, Numeral | bool):
                    found[name] = value.value if isinstance(value, Numeral) else value
    inside = operation.attributes.get("inbounds", ())
    if isinstance(inside, tuple) and any(inside):
        found["inbounds"] = tuple(value is True for value in inside)
    return found


def _masks(scope: Scope, operation: Operation) -> tuple[Value, ...]:
    """The mask, if there is one."""
    return scope.numbers(operation, operation.operands["mask"])


def load_pointers(scope: Scope, operation: Operation) -> None:
    """What stands at addresses."""
    _weak(scope, operation)
    addresses = scope.value(operation, "source")
    other = scope.numbers(operation, operation.operands["padding_value"])
    mask = _masks(scope, operation)
    if other and not mask:
        raise scope.fail(operation, "a padding without a mask")
    scope.emit(operation, "tile.load", (addresses, *mask, *other), **_hints(operation))


def store_pointers(scope: Scope, operation: Operation) -> None:
    """Values to addresses."""
    _weak(scope, operation)
    addresses, value = scope.value(operation, "destination"), scope.value(operation, "value")
    mask = _masks(scope, operation)
    scope.builder.add("tile.store", (addresses, value, *mask), (), _hints(operation))


def atomic(scope: Scope, operation: Operation) -> None:
    """Read, change, write back."""
    addresses = scope.value(operation, "pointers")
    swaps = operation.name == "atomic_cas_tko"
    names = ("cmp", "val") if swaps else ("arg",)
    values = [scope.value(operation, name) for name in names]
    mask = _masks(scope, operation)
    order = operation.attributes["memory_ordering_semantics"]
    said: dict[str, Attribute] = {"scope": str(operation.attributes["memory_scope"])}
    said["semantics"] = str(order)
    if not swaps:
        said["kind"] = _kind(operation)
    name = "tile.atomic_cas" if swaps else "tile.atomic_rmw"
    scope.emit(operation, name, (addresses, *values, *mask), **said)


def offset(scope: Scope, operation: Operation) -> None:
    """Addresses some elements further."""
    address, by = scope.value(operation, "ptr"), scope.value(operation, "offset")
    scope.emit(operation, "tile.offset", (address, by))


HANDLERS: dict[str, Callable[[Scope, Operation], None]] = {
    "atomic_cas_tko": atomic,
    "atomic_red_view_tko": reduce_view,
    "atomic_rmw_tko": atomic,
    "get_index_space_shape": index_space,
    "get_tensor_shape": tensor_shape,
    "load_ptr_tko": load_pointers,
    "load_view_tko": load_view,
    "make_gather_scatter_view": tile_view,
    "make_partition_view": tile_view,
    "make_strided_view": tile_view,
    "make_tensor_view": tensor_view,
    "offset": offset,
    "store_ptr_tko": store_pointers,
    "store_view_tko": store_view,
}
