"""Tile IR bytecode, versions 13.1 to 13.4: what cuTile exports, read without any of its tools.

    kernel.tileirbc ──► sections ──► types, attributes, locations ──► Module (tree.py)

After the published description of the format; what that leaves out, the payload of each operation,
stands in `rows.py`.
"""

from stretto.frontends.tileir.reading import read_bytecode
from stretto.frontends.tileir.tree import Block, Function, Global, Module, Operation, Value

__all__ = [
    "Block",
    "Function",
    "Global",
    "Module",
    "Operation",
    "Value",
    "read_bytecode",
]
