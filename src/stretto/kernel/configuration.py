"""How a kernel is lowered and scheduled: all that changes its loops, beside the machine.

Configuration(consumers=2)   ──►   lower(kernel, machine, configuration)   ──►   its loops
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Blocks = Literal["given", "longest"]
"""In which order blocks come: as they are numbered, or those that have most to do first."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a kernel leaves open, settled."""

    consumers: int = 1
    """Between how many replicas of the agent that computes its rows are split."""
    blocks: Blocks = "longest"
    """In which order its blocks come, where that makes a difference."""


DEFAULT = Configuration()
