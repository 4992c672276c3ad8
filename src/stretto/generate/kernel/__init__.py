"""The seating loops: compiled where a compiler was at hand, else run by Python as they stand.

Problem ──► Core (what holds something) ──► Seats ──► starts ──► Core.expand ──► all starts
"""

from __future__ import annotations

from stretto.generate.kernel import seats
from stretto.generate.kernel.core import DONE, FAILED, MORE, Core, core_of, whole_of
from stretto.generate.kernel.seats import Seats

COMPILED = not str(seats.__file__).endswith(".py")
"""Whether the loops were compiled on this machine."""

__all__ = [
    "COMPILED",
    "DONE",
    "FAILED",
    "MORE",
    "Core",
    "Seats",
    "core_of",
    "whole_of",
]
