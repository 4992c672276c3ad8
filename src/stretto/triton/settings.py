"""How a kernel's launches are decided: by the decorator, by `install`, by the environment."""

from __future__ import annotations

import os
from dataclasses import dataclass

from stretto.launching.asked import Asked

ANYHOW = Asked()
"""What a kernel is emitted by where the user asks for nothing."""


@dataclass(frozen=True)
class Settings:
    """How a kernel's launches are decided."""

    asked: Asked = ANYHOW
    strict: bool = False
    trial: bool = True
    wait: bool = False
    check: bool = False
    quiet: bool = False
    """Whether nothing is said of what is left to Triton; `verdicts` tells anyhow."""

    @property
    def tries(self) -> bool:
        """Whether trials are held."""
        return self.trial and os.environ.get("STRETTO_TRIAL") != "0"

    @property
    def checks(self) -> bool:
        """Whether both kernels are compared first."""
        return self.check or os.environ.get("STRETTO_CHECK", "") not in ("", "0")

    @property
    def waits(self) -> bool:
        """Whether a launch waits until our kernel is made."""
        return self.wait or self.strict
