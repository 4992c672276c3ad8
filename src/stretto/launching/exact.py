"""Launches that are the same but for what lies in memory: keys that are found in a microsecond.

kernel[grid](q, k, 0.5, 4096)  ──►  (0, 4, q's address, fp16, k's address, fp16, "0x1.0p-1", …)
"""

# Tensors are anybody's.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def exactly(
    device: int, args: Sequence[Any], kwargs: Mapping[str, Any], shapes: bool = False
) -> object:
    """A key of everything that a launch is made of; None where something cannot be compared.

    With `shapes`, those of tensors too: a kernel that takes more of them than an address.
    """
    found: list[Any] = [device, len(args)]
    for value in args:
        _add(found, value)
        if shapes and hasattr(value, "data_ptr"):
            found += (tuple(value.shape), tuple(value.stride()))
    for name, value in kwargs.items():
        found.append(name)
        _add(found, value)
    key = tuple(found)
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _add(found: list[Any], value: Any) -> None:
    kind: type[object] = type(value)
    if kind is int or kind is bool or kind is str:
        found += (kind, value)
    elif kind is float:
        found.append(value.hex())  # -0.0 is not 0.0
    elif hasattr(value, "data_ptr"):
        found += (value.data_ptr(), value.dtype)
    elif hasattr(value, "base") and hasattr(value, "block_shape"):
        base = value.base
        shapes = (tuple(value.shape), tuple(value.strides), tuple(value.block_shape))
        found += (base.data_ptr(), base.dtype, shapes, getattr(value, "padding", None))
    else:
        found += (kind, value)
