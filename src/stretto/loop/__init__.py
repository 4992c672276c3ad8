"""The problem: operations, values, storages and what they imply for one another."""

from stretto.loop.check import check, topological_order
from stretto.loop.loop import Loop
from stretto.loop.places import Fault, LoopError, Note, Place
from stretto.loop.tile import TileType
from stretto.loop.types import (
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
    Use,
    Value,
)
from stretto.vocabulary.spaces import SPACES, Space

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
    "check",
    "topological_order",
]
