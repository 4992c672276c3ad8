"""An entry compiled by Triton before it is launched, where no GPU is: into Triton's own cache.

Entry + arguments without memory ──► Triton, for cuda:90 ──► ~/.triton/cache
                                                             └──► the launch finds it there
"""

# Triton has no types.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from stretto.launching.loading import load
from stretto.launching.storing import Entry


class AbsentGpu:
    """A driver of Triton's for a GPU that is not there: it compiles, and launches nothing."""

    def __init__(self, target: str) -> None:
        backend, _, arch = target.partition(":")
        self._target = import_module("triton.backends.compiler").GPUTarget(backend, int(arch), 32)

    def get_current_target(self) -> Any:
        """What is compiled for."""
        return self._target

    def get_current_device(self) -> int:
        """A number that stands for it."""
        return 0

    def get_current_stream(self, device: int) -> int:
        """The default one."""
        del device
        return 0


def compile_ahead(entry: Entry, key: str, given: Mapping[str, Any], target: str) -> None:
    """Have Triton compile an entry for the arguments of a launch; whatever it raises."""
    import_module("triton.runtime").driver.set_active(AbsentGpu(target))
    loaded = load(entry, key)
    taken = loaded.arguments(*(given[name] for name in loaded.parameters))
    loaded.kernel.warmup(*taken, grid=(1,), **loaded.options)
