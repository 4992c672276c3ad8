"""Tiles in other shapes, products, reductions, the grid, promises.

reshape %x : tile<f32> -> tile<1x1xf32>        tile.splat of the scalar
broadcast of that to tile<128x64xf32>
permute %k [1, 0]                              tile.transpose
mmaf %a, %b, %acc                              tile.dot
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from stretto.frontends.cutile.scope import Number, Scope
from stretto.frontends.tileir import Operation
from stretto.frontends.tileir.attributes import Bounded, DivBy, SameElements
from stretto.kernel import Attribute, Scalar, Tile, Value
from stretto.kernel.types import element_of, shape_of


def _one(scope: Scope, operation: Operation) -> tuple[Value, Number]:
    """The only operand, and the type of the only result; their elements are the same."""
    source = scope.number(operation, operation.values[0])
    made = scope.made(operation)
    if element_of(source.type) != element_of(made):
        raise scope.fail(operation, f"`{operation.name}` from {source.type} to {made}")
    return source, made


def reshape(scope: Scope, operation: Operation) -> None:
    """The same elements in another shape; a scalar that is spread afterwards waits for that."""
    source, made = _one(scope, operation)
    if prod(shape_of(source.type)) != prod(shape_of(made)):
        raise scope.fail(operation, f"`reshape` from {source.type} to {made}")
    if source.type == made:
        scope.bind(operation.results, (source,))
    elif isinstance(source.type, Tile):
        scope.emit(operation, "tile.reshape", (source,))
    elif set(scope.users.get(operation.results[0], ())) == {"broadcast"}:
        scope.values[operation.results[0]] = source
    else:
        scope.emit(operation, "tile.splat", (source,))


def broadcast(scope: Scope, operation: Operation) -> None:
    """Dimensions of size 1 are repeated; a scalar is spread over all of them."""
    source, made = _one(scope, operation)
    stated = operation.values[0].type
    sizes = getattr(stated, "shape", ())
    shape = shape_of(made)
    fits = len(sizes) == len(shape) and all(a in (1, b) for a, b in zip(sizes, shape, strict=True))
    if not fits:
        raise scope.fail(operation, f"`broadcast` from {stated} to {made}")
    if source.type == made:
        scope.bind(operation.results, (source,))
        return
    scalar = not isinstance(source.type, Tile)
    scope.emit(operation, "tile.splat" if scalar else "tile.broadcast", (source,))


def iota(scope: Scope, operation: Operation) -> None:
    """0, 1, 2 ..."""
    made = scope.made(operation)
    if not isinstance(made, Tile) or len(made.shape) != 1:
        raise scope.fail(operation, f"`iota` makes a {made}")
    scope.emit(operation, "tile.range", (), start=0, end=made.shape[0])


def permute(scope: Scope, operation: Operation) -> None:
    """Dimensions in another order."""
    order = operation.attributes["permutation"]
    assert isinstance(order, tuple)
    places = tuple(place for place in order if isinstance(place, int))
    source = scope.number(operation, operation.values[0])
    scope.emit(operation, "tile.transpose", (source,), order=places)


def concatenate(scope: Scope, operation: Operation) -> None:
    """Two tiles one after the other."""
    left, right = scope.value(operation, "lhs"), scope.value(operation, "rhs")
    dim = operation.attributes["dim"]
    assert isinstance(dim, int)
    scope.emit(operation, "tile.cat", (left, right), axis=dim)


def extract(scope: Scope, operation: Operation) -> None:
    """A part of a tile."""
    source = scope.value(operation, "source")
    indices = scope.numbers(operation, operation.operands["indices"])
    made = scope.made(operation)
    whole, part = shape_of(source.type), shape_of(made)
    ranks = {len(whole), len(part), len(indices)}
    if len(ranks) > 1 or any(a % b for a, b in zip(whole, part, strict=True)):
        raise scope.fail(operation, f"`extract` from {source.type} to {made}")
    if any(not isinstance(index.type, Scalar) for index in indices):
        raise scope.fail(operation, "an index of `extract` is a tile")
    scope.emit(operation, "tile.extract", (source, *indices))


def product(scope: Scope, operation: Operation) -> None:
    """a × b + accumulator; a leading dimension is a batch."""
    a, b, total = (scope.value(operation, name) for name in ("lhs", "rhs", "acc"))
    said: dict[str, Attribute] = {}
    for side in ("lhs", "rhs"):
        sign = operation.attributes.get(f"signedness_{side}")
        if isinstance(sign, str):
            said[f"{side}_signed"] = sign == "signed"
    if operation.attributes.get("fast_acc"):
        said["fast_acc"] = True
    scope.emit(operation, "tile.dot", (a, b, total), **said)


def block_index(scope: Scope, operation: Operation) -> None:
    """Of this block, along the axes that somebody asks for."""
    indices = operation.name == "get_tile_block_id"
    name = "tile.block_index" if indices else "tile.block_count"
    for axis, result in enumerate(operation.results):
        if result in scope.users:
            type = scope.type(operation, result)
            scope.bind((result,), (scope.builder.op(name, (), type, axis=axis),))


def check(scope: Scope, operation: Operation) -> None:
    """An assertion stays one."""
    condition = scope.value(operation, "condition")
    message = str(operation.attributes["message"])
    scope.builder.add("tile.assert", (condition,), (), {"message": message})


def assume(scope: Scope, operation: Operation) -> None:
    """A promise, which goes with the value."""
    predicate = operation.attributes["predicate"]
    source = operation["value"]
    if source in scope.tensors:
        scope.tensors[operation.results[0]] = scope.tensors[source]
        return
    value = scope.value(operation, "value")
    made = scope.made(operation)
    if value.type != made:
        raise scope.fail(operation, f"`assume` from {value.type} to {made}")
    said: dict[str, Attribute] = {}
    match predicate:
        case DivBy():
            said |= _divisible(predicate, len(shape_of(made)) or 1)
        case Bounded():
            said |= {"lower": predicate.low} if predicate.low is not None else {}
            said |= {"upper": predicate.high} if predicate.high is not None else {}
        case SameElements():
            said["constancy"] = predicate.runs
        case _:
            raise scope.fail(operation, f"`assume` of {predicate}")
    if scope.promise(value, said):
        scope.values[operation.results[0]] = value
    else:
        scope.emit(operation, "tile.hint", (value,), **said)


def _divisible(predicate: DivBy, rank: int) -> dict[str, Attribute]:
    """Divisors of the elements that runs begin with, and how long the runs are."""
    if predicate.every is None or predicate.along is None:
        return {"divisibility": (predicate.divisor,) * rank}
    along, every = predicate.along, predicate.every
    return {
        "divisibility": tuple(predicate.divisor if k == along else 1 for k in range(rank)),
        "contiguity": tuple(every if k == along else 1 for k in range(rank)),
    }


def nothing(scope: Scope, operation: Operation) -> None:
    """Tokens say no more than the order of the program."""
    del scope, operation


HANDLERS: dict[str, Callable[[Scope, Operation], None]] = {
    "assert": check,
    "assume": assume,
    "broadcast": broadcast,
    "cat": concatenate,
    "extract": extract,
    "get_num_tile_blocks": block_index,
    "get_tile_block_id": block_index,
    "iota": iota,
    "join_tokens": nothing,
    "make_token": nothing,
    "mmaf": product,
    "mmai": product,
    "permute": permute,
    "reshape": reshape,
}
