"""All kernels of a process, as if each stood under `@stretto.triton.pipeline`.

    stretto.triton.install(include=["flash_*"], exclude=["*_bwd_*"])   from now on
    stretto.triton.uninstall()                                         as it was
    python -m stretto.triton train.py --epochs 3                       around a whole program

Kernels are taken when Triton compiles them, whoever wrote them. What Inductor compiles goes another
way through Triton and is left alone.
"""

# Triton has no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import atexit
import sys
from collections.abc import Collection
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib import import_module
from typing import Any, TextIO

from stretto.errors import StrettoError
from stretto.launching.asked import Asked
from stretto.launching.verdicts import LISTENERS, Verdict, verdicts
from stretto.machine import Machine
from stretto.triton.autotuner import watch_tuners
from stretto.triton.hooks import FOR_ALL, restore_all, watch
from stretto.triton.settings import Settings


@dataclass(frozen=True)
class Selection:
    """Which kernels are taken, by their names and by the modules that they are in."""

    settings: Settings
    include: tuple[str, ...]
    exclude: tuple[str, ...]

    def __call__(self, function: Any) -> Settings | None:
        """How a kernel's launches are decided, if it is one of these."""
        name: str = getattr(function, "__name__", "")
        full = f"{getattr(function, '__module__', '')}.{name}"
        if any(fnmatchcase(each, p) for p in self.exclude for each in (name, full)):
            return None
        if any(fnmatchcase(each, p) for p in self.include for each in (name, full)):
            return self.settings
        return None


def install(
    include: Collection[str] = ("*",),
    exclude: Collection[str] = (),
    *,
    machine: Machine | str | None = None,
    trial: bool = True,
    wait: bool = False,
    check: str | None = None,
    summary: bool = False,
    verbose: bool = False,
) -> None:
    """Do for all kernels that Triton compiles from now on what the decorator does for one.

    `include` and `exclude` are patterns as shells have them (``"flash_*"``), for names of kernels,
    alone or after their module (``"fla.ops.*"``). What is left to Triton is told by `verdicts`, not
    by warnings. With `summary`, what became of each kernel is printed as the process ends, with
    `verbose` each as it is decided, those with nothing to overlap included. The
    other options are those of the decorator; a kernel that has one goes by that.
    """
    for patterns in (include, exclude):
        if isinstance(patterns, str):
            raise StrettoError(f'{patterns!r} is one pattern; give a list, such as ["{patterns}"]')
    if check not in (None, "first"):
        raise StrettoError(f'check={check!r} is not known; give check="first", or leave it out')
    try:
        function: type = import_module("triton.runtime.jit").JITFunction
    except ImportError:
        raise StrettoError("Triton is not installed; pip install stretto[gpu]") from None
    settings = Settings(Asked(machine), False, trial, wait, check is not None, quiet=True)
    FOR_ALL[:] = [Selection(settings, tuple(include), tuple(exclude))]
    watch(function)
    watch_tuners()
    LISTENERS[:] = [print_verdict] if verbose else []
    if summary:
        atexit.register(print_summary, sys.stderr)


def uninstall() -> None:
    """Give all kernels Triton's own launchers back; decorators count for what is compiled later."""
    FOR_ALL.clear()
    restore_all()
    atexit.unregister(print_summary)
    LISTENERS.clear()


def print_verdict(verdict: Verdict) -> None:
    """What became of one kind of launch, or of a kernel."""
    sys.stderr.write(f"stretto: {_told(verdict)}\n")


def print_summary(out: TextIO) -> None:
    """What became of each kernel of this process."""
    for line in summary_of(verdicts()):
        out.write(f"{line}\n")


def summary_of(decided: Collection[Verdict]) -> list[str]:
    """Kernels seen, taken and gained, line by line."""
    kernels = dict.fromkeys(one.kernel for one in decided)
    taken = dict.fromkeys(one.kernel for one in decided if one.runs == "ours")
    saved = sum(one.saved_us for one in decided) / 1e6
    kinds = sum(one.runs == "ours" for one in decided)
    taken_up = f"{len(taken)} run by Stretto in {kinds} kinds of launches"
    head = f"stretto: {len(kernels)} kernels seen, {taken_up}; {saved:.3f} s of the GPU saved"
    return [head, *(f"  {_told(one)}" for one in decided)]


def _told(one: Verdict) -> str:
    grid = "×".join(map(str, one.grid))
    where = f"{one.kernel} [{grid}]" if grid else one.kernel
    if one.ours_us is None or one.theirs_us is None:
        return f"{where}: {one.runs}, {one.why}"
    times = f"ours {one.ours_us:.1f} µs, Triton's {one.theirs_us:.1f} µs"
    counted = f", {one.launches} launches since" if one.runs == "ours" else ""
    return f"{where}: {one.runs}; {times}, {one.why}{counted}"
