"""The problem: operations, values, storages and what they imply for one another."""

from stretto.loop.checking import check
from stretto.loop.loop import Fault, Loop, LoopError, Note, Place, texts, topological_order
from stretto.loop.parts import (
    DEPENDENCE_KINDS,
    Access,
    Constraint,
    Demand,
    Dependence,
    DependenceKind,
    Facts,
    Op,
    Operand,
    ResourceVector,
    Storage,
    TileType,
    Use,
    Value,
    Written,
)
from stretto.ops.spaces import SPACES, Space

__all__ = [
    "DEPENDENCE_KINDS",
    "SPACES",
    "Access",
    "Constraint",
    "Demand",
    "Dependence",
    "DependenceKind",
    "Facts",
    "Fault",
    "Loop",
    "LoopError",
    "Note",
    "Op",
    "Operand",
    "Place",
    "ResourceVector",
    "Space",
    "Storage",
    "TileType",
    "Use",
    "Value",
    "Written",
    "check",
    "texts",
    "topological_order",
]
