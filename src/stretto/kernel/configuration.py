"""How a kernel is lowered and scheduled: all that changes its loops, beside the machine.

Configuration(consumers=2)   ──►   lower(kernel, machine, configuration)   ──►   its loops
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Blocks = Literal["given", "longest", "persistent"]
"""Which blocks a launch has: those that are asked for, in the order of their numbers; the same,
those that have most to do first; or one for each SM, which goes over several tiles."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a kernel leaves open, settled."""

    consumers: int = 1
    """Between how many replicas of the agent that computes its rows are split."""
    blocks: Blocks = "given"
    """Its blocks, where they are independent."""
    copies: bool = True
    """Whether threads copy tiles into rings where TMA cannot; else they load into registers."""


DEFAULT = Configuration()
