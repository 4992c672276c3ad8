"""Both kernels on copies of a launch's tensors, and what they wrote held against each other.

tensors ──copied──► Triton's kernel ──► ┐
        ──copied──► ours ─────────────► ┴─► closest? the launch is as any other
                                             no?     ours is not run any more
"""

# Tensors are anybody's.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from stretto.errors import StrettoError

TOLERANCES = {"float64": 1e-9, "float32": 1e-3, "float16": 1e-2, "bfloat16": 4e-2}
"""Of a difference, relative to the largest number that Triton's kernel wrote; 8-bit types: 1/4."""
OTHERWISE = 0.25


def copied(values: Sequence[Any]) -> list[Any]:
    """Arguments whose tensors lie in memory of their own; tensors that shared memory still do."""
    storages: dict[int, Any] = {}

    def of_tensor(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        where: int = storage.data_ptr()
        if where not in storages:
            storages[where] = storage.clone()
        empty = import_module("torch").empty(0, dtype=tensor.dtype, device=tensor.device)
        return empty.set_(storages[where], tensor.storage_offset(), tensor.size(), tensor.stride())

    def of(value: Any) -> Any:
        if hasattr(value, "untyped_storage"):
            return of_tensor(value)
        if hasattr(value, "data_ptr"):
            return value.copy()
        if hasattr(value, "base") and hasattr(value, "block_shape"):
            dataclasses = import_module("dataclasses")
            return dataclasses.replace(value, base=of(value.base))
        return value

    return [of(value) for value in values]


def check_alike(
    names: Sequence[str],
    values: Sequence[Any],
    theirs: Callable[[Sequence[Any]], object],
    ours: Callable[[Sequence[Any]], object],
) -> None:
    """Run both on copies; StrettoError where what they wrote differs beyond rounding."""
    one, other = copied(values), copied(values)
    theirs(one)
    ours(other)
    for name, their, our in zip(names, one, other, strict=True):
        if hasattr(their, "base") and hasattr(their, "block_shape"):
            their, our = their.base, our.base  # noqa: PLW2901
        if not hasattr(their, "data_ptr"):
            continue
        far = _difference(their, our)
        kind = str(their.dtype).rpartition(".")[2]
        most = TOLERANCES.get(kind, OTHERWISE if kind.startswith("float") else 0.0)
        if not far <= most:  # NaN too
            told = f"`{name}` differs by {far:.3g} of its largest value from what Triton's"
            raise StrettoError(f"{told} kernel wrote; {most:g} is rounding")


def _difference(their: Any, our: Any) -> float:
    """The largest difference, relative to the largest value; NaN where only one has a NaN."""
    if hasattr(their, "untyped_storage"):
        torch = import_module("torch")
        a, b = their.to(torch.float64), our.to(torch.float64)
        same = (a == b) | (torch.isnan(a) & torch.isnan(b))
        a, b = a[~same], b[~same]
        largest = their.to(torch.float64).nan_to_num(0, 0, 0).abs().max() if len(a) else 1
        return float(((a - b).abs().max() / largest).item()) if len(a) else 0.0
    numpy = import_module("numpy")
    a = numpy.asarray(their.array, numpy.float64).ravel()
    b = numpy.asarray(our.array, numpy.float64).ravel()
    same = (a == b) | (numpy.isnan(a) & numpy.isnan(b))
    if same.all():
        return 0.0
    largest = numpy.abs(numpy.nan_to_num(a, nan=0, posinf=0, neginf=0)).max() or 1.0
    return float(numpy.abs(a[~same] - b[~same]).max() / largest)
