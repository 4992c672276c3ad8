"""The seating loops: compiled where a compiler was at hand, and their twin in Python.

Problem ──► Core (what holds something) ──► Seats ──► starts ──► Core.expand ──► all starts
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from stretto.generate.kernel.core import DONE, FAILED, MORE, Core, core_of, whole_of

if TYPE_CHECKING:
    from stretto.generate.kernel.twin import Seats

Compiled: type[Seats] | None
"""The compiled loops; None: nothing was compiled on this machine."""
try:
    Compiled = import_module("stretto.generate.kernel.compiled").Seats
except ImportError:
    Compiled = None

CELLS = 1 << 24
"""Counts that the compiled loops may keep, columns × II; a longer II goes to the twin."""


def seats_for(core: Core, ii: int) -> type[Seats]:
    """The seating loops for an II of a problem."""
    if Compiled is None or len(core.limits) * ii > CELLS:
        from stretto.generate.kernel.twin import Seats as Twin  # noqa: PLC0415 - rarely needed

        return Twin
    return Compiled


__all__ = [
    "CELLS",
    "DONE",
    "FAILED",
    "MORE",
    "Compiled",
    "Core",
    "core_of",
    "seats_for",
    "whole_of",
]
