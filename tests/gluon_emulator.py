"""Emitted Gluon source, run by the sanitizer as its users' kernels are, with our own arrays.

    Emulator(source).launch(a, b, c, grid=...)    whatever is wrong is an EmulationError

Orders are its clocks' business: `naps` and `slow` only choose who goes ahead.
"""

# The modules that it runs have no types.
# pyright: basic

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from stretto.sanitizer.block import Sources
from stretto.sanitizer.finding import Report
from stretto.sanitizer.launches import Launcher, Settings
from stretto.sanitizer.source import names, prepared
from stretto.sanitizer.stand_ins.modules import HostDescriptor, installed
from stretto.sanitizer.values import BFLOAT16

TOLERATED = frozenset({"unfenced-reuse"})
"""What we do as CUTLASS does: a slot that was read by threads is filled by TMA without a fence."""


class EmulationError(Exception):
    """What hardware or compiler would not stand."""


def rounded(array: Any) -> Any:
    """To the nearest bfloat16, kept in 32 bits."""
    return BFLOAT16.cast(array)


class Descriptor(HostDescriptor):
    """A TMA descriptor, of an array."""

    aligned = False

    def __init__(self, base: Any, shape: Any, strides: Any, block: Any, layout: Any) -> None:
        super().__init__(base, [int(n) for n in shape], strides, block, layout)


class Array(np.ndarray):
    """An array that tells its strides and its address, as torch's tensors do."""

    def stride(self, axis: int) -> int:
        return self.strides[axis] // self.itemsize

    def data_ptr(self) -> int:
        return 4096  # as aligned as torch's


def _array(given: Any) -> Any:
    plain = isinstance(given, np.ndarray) and not hasattr(given, "data_ptr")
    return given.view(Array) if plain else given


class Emulator:
    """One emitted file, ready to be launched."""

    def __init__(self, source: str, seed: int = 0, naps: float = 0.0, slow: str = "") -> None:
        self.report = Report("emitted")
        sources = Sources({"<emitted>": "emitted"}, {"<emitted>": source.splitlines()})
        self._names: dict[str, str] = {}
        settings = Settings(seeds=(2 + seed if naps else 0,), programs=0)
        settings.slow = slow
        self._launcher = Launcher(sources, settings, self.report)
        self.events: list[tuple[str, str]] = []
        """What was begun or done, and by whom, in this order."""
        self.space: dict[str, Any] = names()
        with installed(self._launch):
            code = prepared(source, "<emitted>")
            exec(code, self.space)
        self.space["TensorDescriptor"] = Descriptor

    def _launch(self, kernel: Any, grid: Any, given: Any, named: Any) -> None:
        taken = dict(named)
        if "num_warps" in kernel.arg_names:  # a kernel that takes its options as constants
            taken.pop("maxnreg", None)
        self._launcher(kernel, grid, given, taken)
        history = self._launcher.history
        for number, step in enumerate(history.steps):
            ring = ", ".join(history.slots.get(number, ())).partition("[")[0]
            copied = f"copy to {ring}" if step.what == "TMA copy" else step.what
            self.events.append((copied, step.agent))
        left = self._launcher.coverage.left_out
        if left:
            raise EmulationError(f"not covered: {left[0]}")
        wrong = [f for f in self.report.findings if f.rule not in TOLERATED]
        if wrong:
            raise EmulationError(f"{wrong[0].rule}: {wrong[0].site}: {wrong[0].message}")

    def launch(self, *args: Any, grid: tuple[int, ...], **named: Any) -> None:
        """Run the host side on NumPy arrays, which it writes into."""
        with np.errstate(all="ignore"):
            taken = {name: _array(value) for name, value in named.items()}
            self.space["launch"](*map(_array, args), **taken, grid=grid)


__all__ = ["Descriptor", "EmulationError", "Emulator", "rounded", "sys"]
