"""The answer to "why not a smaller II?", as data.

II 14 is impossible: {slot tp_smem_wr}, minimal        a second unit of it: II 8
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stretto.exact.reasons import Reason

Possibility = Literal["impossible", "possible", "undecided"]


@dataclass(frozen=True, slots=True)
class Relaxation:
    """One change, and the II it would give."""

    reason: Reason
    """What it relaxes."""
    text: str
    ii: int
    """A verified schedule has it."""
    optimal: bool
    """Whether every smaller II is proved impossible after the change."""
    hardware: bool = False
    """Whether it asks for another GPU; everything else is for the user to change."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an II is impossible, or that it is not."""

    ii: int
    verdict: Possibility
    reasons: tuple[Reason, ...] = ()
    minimal: bool = False
    """Whether dropping any one reason is proved to make a schedule possible."""
    relaxations: tuple[Relaxation, ...] = ()
    complete: bool = True
    """Whether all relaxations were looked at before a limit was reached."""
    stopped: bool = False
    """Whether the user stopped it."""

    @property
    def settled(self) -> bool:
        """Whether no limit left anything open."""
        if self.verdict == "impossible":
            return self.minimal and self.complete
        return self.verdict == "possible"
