"""How a kernel is lowered and scheduled: all that changes its loops, beside the machine.

Configuration(consumers=2)   ──►   lower(kernel, machine, configuration)   ──►   its loops
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a kernel leaves open, settled."""

    consumers: int = 1
    """Between how many replicas of the agent that computes its rows are split."""


DEFAULT = Configuration()
