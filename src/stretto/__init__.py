"""Stretto: software pipelining for GPU tile loops.

    from stretto import build, compute_bounds, prepare, schedule

Names are loaded when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing takes a while to load, and a command starts here
if TYPE_CHECKING:
    from typing import Any

    from stretto.bounds import closure, compute_bounds, remedies
    from stretto.errors import DocumentError, InfeasibleError, LoopError, StrettoError
    from stretto.frontends import build, read_source
    from stretto.loop import (
        Access,
        Constraint,
        Demand,
        Dependence,
        Facts,
        Loop,
        Op,
        Operand,
        ResourceVector,
        Storage,
        TileType,
        Use,
        Value,
        check,
    )
    from stretto.machine import Machine, load_machine
    from stretto.materialize import Mutex, Pipe, Program
    from stretto.resources import ReservationTable
    from stretto.solution import Bounds, ScheduleAnalysis
    from stretto.solve import Explained, Prepared, explain, prepare, schedule

__version__ = "0.3.0"

_HOMES = {
    "stretto.solve": ("Explained", "Prepared", "explain", "prepare", "schedule"),
    "stretto.bounds": ("closure", "compute_bounds", "remedies"),
    "stretto.errors": ("DocumentError", "InfeasibleError", "LoopError", "StrettoError"),
    "stretto.frontends": ("build", "read_source"),
    "stretto.loop": (
        "Access",
        "Constraint",
        "Demand",
        "Dependence",
        "Facts",
        "Loop",
        "Op",
        "Operand",
        "ResourceVector",
        "Storage",
        "TileType",
        "Use",
        "Value",
        "check",
    ),
    "stretto.machine": ("Machine", "load_machine"),
    "stretto.materialize": ("Mutex", "Pipe", "Program"),
    "stretto.resources": ("ReservationTable",),
    "stretto.solution": ("Bounds", "ScheduleAnalysis"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Access",
    "Bounds",
    "Constraint",
    "Demand",
    "Dependence",
    "DocumentError",
    "Explained",
    "Facts",
    "InfeasibleError",
    "Loop",
    "LoopError",
    "Machine",
    "Mutex",
    "Op",
    "Operand",
    "Pipe",
    "Prepared",
    "Program",
    "ReservationTable",
    "ResourceVector",
    "ScheduleAnalysis",
    "Storage",
    "StrettoError",
    "TileType",
    "Use",
    "Value",
    "build",
    "check",
    "closure",
    "compute_bounds",
    "explain",
    "load_machine",
    "prepare",
    "read_source",
    "remedies",
    "schedule",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module  # noqa: PLC0415

    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'stretto' has no attribute {name!r}")
