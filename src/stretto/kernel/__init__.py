"""A whole kernel as a tree of tile operations, from whatever language it was written in.

    Triton .ttir ──┐                    ┌──► axis analysis: what is known of indices and addresses
    Tile IR ───────┼──► Kernel ─────────┼──► lowering for one machine ──► nv_tileas (in `ir`)
    nv_tileas ─────┘    (tree)          └──► execution on real values (in `simulate`)

Front ends translate their operations into those of `operations.py`; whoever comes after knows these
alone, and asks nobody what language the kernel came from.
"""

from stretto.kernel.errors import KernelError
from stretto.kernel.tree import (
    Attribute,
    Kernel,
    Location,
    Operation,
    Parameter,
    Region,
    Value,
)
from stretto.kernel.types import Buffer, Pointer, Scalar, Tile, Token, Type, View
from stretto.ops.operations import OPERATIONS

__all__ = [
    "OPERATIONS",
    "Attribute",
    "Buffer",
    "Kernel",
    "KernelError",
    "Location",
    "Operation",
    "Parameter",
    "Pointer",
    "Region",
    "Scalar",
    "Tile",
    "Token",
    "Type",
    "Value",
    "View",
]
