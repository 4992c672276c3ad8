"""An entry compiled by Triton before it is launched, where no GPU is: into Triton's own cache.

Entry + arguments without memory ──► Triton, for cuda:90 ──► ~/.triton/cache
                                                             └──► the launch finds it there
"""

# Triton has no types.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from importlib import import_module
from typing import Any

from stretto.launching.loading import load
from stretto.launching.making import Request
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


def compile_ahead(entry: Entry, request: Request) -> None:
    """Have Triton compile an entry for the launch that asks for it; whatever it raises."""
    assert request.given is not None
    import_module("triton.runtime").driver.set_active(AbsentGpu(request.target))
    loaded = load(entry, request.key)
    taken = loaded.arguments(*(request.given[name] for name in loaded.parameters))
    tiles = () if loaded.work is None else loaded.work(request.grid)[1]
    loaded.kernel.warmup(*taken, *tiles, grid=(1,), **loaded.options)
