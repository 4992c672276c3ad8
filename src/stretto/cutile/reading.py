"""A cuTile kernel, exported to bytecode and read, without a GPU.

kernel = stretto.cutile.read(
    matmul,                                        # decorated with @ct.kernel, or not yet
    [array, array, array, 128, 128, 64],           # constraints, as cuda.tile.compilation has them
)
(loop,) = stretto.read(kernel, "b200-pipes")
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from importlib import import_module
from io import BytesIO
from typing import Any

from stretto.errors import StrettoError
from stretto.frontends.cutile import read_cutile
from stretto.kernel import Kernel

VERSION = "13.3"
"""Of the bytecode that is asked for, unless another is named."""


def read(
    kernel: Any,
    parameters: Sequence[Any],
    *,
    target: str = "sm_100",
    version: str = VERSION,
) -> Kernel:
    """A cuTile kernel, exported to bytecode and read; its parameters keep their names.

    The parameters are constraints (`ArrayConstraint`, `ScalarConstraint`) and, for constants, their
    values, as for `cuda.tile.compilation.KernelSignature`.
    """
    tile, compilation = found_cutile()
    compiled = kernel if isinstance(kernel, tile.kernel) else tile.kernel(kernel)
    function = getattr(compiled, "_pyfunc", kernel)
    name = getattr(function, "__name__", "kernel")
    made = bytecode(compilation, compiled, name, parameters, target, version)
    return bytecode_kernel(name, made, names_of(function, parameters))


def found_cutile() -> tuple[Any, Any]:
    """cuTile and its compiler, where they are installed; StrettoError where they are not."""
    try:
        return import_module("cuda.tile"), import_module("cuda.tile.compilation")
    except ImportError:
        hint = "pip install cuda-tile, or give the .tileirbc that it exports"
        raise StrettoError(f"cuTile is not installed; {hint}") from None


def bytecode(
    compilation: Any,
    kernel: Any,
    name: str,
    parameters: Sequence[Any],
    target: str,
    version: str = VERSION,
) -> bytes:
    """A kernel as cuTile exports it."""
    convention = compilation.CallingConvention.cutile_python_v1()
    signature = compilation.KernelSignature(list(parameters), convention, symbol=name)
    made = BytesIO()
    compilation.export_kernel(
        kernel,
        [signature],
        made,
        gpu_code=target,
        output_format="tileir_bytecode",
        bytecode_version=version,
    )
    return made.getvalue()


def bytecode_kernel(name: str, data: bytes, names: Sequence[str]) -> Kernel:
    """The kernel of an export; its parameters get the user's names."""
    (found,) = read_cutile(f"<{name}>", data, list(names))
    return found


def names_of(function: Any, parameters: Sequence[Any]) -> list[str]:
    """The names of those parameters that are no constants."""
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []
    constants = (bool, int, float, str, tuple)
    return [
        name
        for name, given in zip(names, parameters, strict=False)
        if not isinstance(given, constants) and type(given).__name__ != "ConstantConstraint"
    ]
