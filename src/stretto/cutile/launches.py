"""cuTile kernels at launch: exported for the arguments at hand, and launched as Gluon.

launch(stream, grid, matmul, (a, b, c, 128, 128, 64, 8))
  a: fp16, row-major, multiples of 16 ──► bytecode ──► Gluon ──► launched on the stream
  128, 128, 64, 8: constants                └──► cannot be done: a warning, and cuda.tile.launch
"""

# cuTile has no types here, and tensors are anybody's.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from stretto.cutile.reading import bytecode, bytecode_kernel, found_cutile, names_of
from stretto.errors import StrettoError
from stretto.kernel import Kernel
from stretto.launching import Asked, Launcher, Refused, current_device, exactly

DIVISIBLE = 16
"""What cuTile finds out of addresses, sizes and strides as they are given."""
LARGEST = 2**31 - 1
"""Sizes, strides and whole numbers have 32 bits, where cuTile is told nothing else."""

_LAUNCHERS: WeakKeyDictionary[Any, dict[tuple[Asked, bool], Launcher]] = WeakKeyDictionary()


def launch_pipelined(
    stream: Any,
    grid: tuple[int, ...],
    kernel: Any,
    kernel_args: tuple[Any, ...],
    options: Mapping[str, Any],
) -> None:
    """`stretto.cutile.launch`."""
    launcher = _launcher(kernel, **options)
    device, target = current_device()
    exact = exactly(device, kernel_args, {}, shapes=True)
    bound = None if exact is None else launcher.ready(exact)
    if bound is None:
        bound = _bind(launcher, exact, target, kernel, kernel_args)
    if isinstance(bound, Refused):
        found_cutile()[0].launch(stream, grid, kernel, kernel_args)
    else:
        bound.launch(tuple(grid), _handle(stream))


def _launcher(kernel: Any, strict: bool = False, **options: Any) -> Launcher:
    asked = Asked(**options)
    known = _LAUNCHERS.setdefault(kernel, {})
    if (asked, strict) not in known:
        name: str = kernel._pyfunc.__name__
        known[asked, strict] = Launcher(name, asked, strict, "cuTile")
    return known[asked, strict]


def _handle(stream: Any) -> int:
    """The number of a stream of torch's or CuPy's, or that number itself."""
    for name in ("cuda_stream", "ptr"):
        if hasattr(stream, name):
            return int(getattr(stream, name))
    return int(stream)


def _bind(
    launcher: Launcher, exact: object, target: tuple[str, int], kernel: Any, args: Sequence[Any]
) -> Any:
    function = kernel._pyfunc
    try:
        parameters = constraints(function, args)
        names = names_of(function, parameters)
        given = dict(zip(inspect.signature(function).parameters, args, strict=True))
    except Exception as error:  # cuTile's own launch then says what is wrong, if it is
        return launcher.refuse(error)
    read = partial(_read, kernel, function.__name__, parameters, names, target)
    called = f"{target[0]}:{target[1]}"
    return launcher.bind(exact, (target, repr(parameters)), called, read, given)


def _read(
    kernel: Any, name: str, parameters: Sequence[Any], names: Sequence[str], target: tuple[str, int]
) -> tuple[bytes, Callable[[], Kernel]]:
    _, compilation = found_cutile()
    data = bytecode(compilation, kernel, name, parameters, f"sm_{target[1]}")
    # Bytecode has no names, and what is emitted takes its arguments by theirs.
    return repr(list(names)).encode() + data, partial(bytecode_kernel, name, data, names)


def constraints(function: Any, args: Sequence[Any]) -> list[Any]:
    """What a kernel is compiled for: of constants their values, of others what is known of them."""
    parameters = inspect.signature(function, eval_str=True).parameters.values()
    if len(parameters) != len(args):
        raise StrettoError(f"{len(args)} arguments are given, {len(parameters)} are taken")
    found: list[Any] = []
    for parameter, value in zip(parameters, args, strict=True):
        said = getattr(parameter.annotation, "__metadata__", ())
        if any(type(each).__name__ == "ConstantAnnotation" for each in said):
            found.append(value)
        elif said:
            raise StrettoError(f"`{parameter.name}` is annotated, which is not emitted")
        else:
            found.append(_constraint(parameter.name, value))
    return found


def _constraint(name: str, value: Any) -> Any:
    tile, compilation = found_cutile()
    if hasattr(value, "data_ptr"):
        return _array(name, value, tile, compilation)
    if isinstance(value, bool):
        return compilation.ScalarConstraint(tile.bool_)
    if isinstance(value, int) and abs(value) <= LARGEST:
        return compilation.ScalarConstraint(tile.int32)
    if isinstance(value, float):
        return compilation.ScalarConstraint(tile.float32)
    kind = type(value).__name__
    raise StrettoError(f"`{name}` is a {kind}, no tensor and no number of 32 bits")


def _array(name: str, value: Any, tile: Any, compilation: Any) -> Any:
    shape, strides = tuple(value.shape), tuple(value.stride())
    if max((*shape, *strides), default=0) > LARGEST or min(strides, default=0) < 0:
        raise StrettoError(f"`{name}` has sizes or strides beyond 32 bits, or below 0")
    return compilation.ArrayConstraint(
        getattr(tile, str(value.dtype).rpartition(".")[2]),
        len(shape),
        index_dtype=tile.int32,
        stride_lower_bound_incl=0,
        alias_groups=(),
        may_alias_internally=False,
        stride_constant=tuple(1 if n == 1 else None for n in strides),
        stride_divisible_by=tuple(_divisor(n) for n in strides),
        shape_divisible_by=tuple(_divisor(n) for n in shape),
        base_addr_divisible_by=_divisor(value.data_ptr()),
    )


def _divisor(number: int) -> int:
    return DIVISIBLE if number % DIVISIBLE == 0 else 1
