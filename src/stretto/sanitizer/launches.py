"""Launches: kernel, grid and arguments, run program by program under each policy.

launch ─► arguments as a kernel has them ─► programs of the grid, those that differ most first
       ─► one run for each seed, each on a fresh copy of memory but the last
"""

# Arguments have any type.
# pyright: basic

from __future__ import annotations

import inspect
import itertools
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stretto.sanitizer.block import Block, NotCoveredError, Sources
from stretto.sanitizer.finding import NOWHERE, Coverage, Finding, Report, Site
from stretto.sanitizer.history import History
from stretto.sanitizer.pointers import Descriptor, Pointer, Storage
from stretto.sanitizer.scheduler import Policy
from stretto.sanitizer.stand_ins import tensors
from stretto.sanitizer.stand_ins.dumps import argument
from stretto.sanitizer.stand_ins.modules import HostDescriptor, Jit
from stretto.sanitizer.stand_ins.tensors import Tensor
from stretto.sanitizer.values import FLOAT32, INT1, INT32, INT64, Tile

OPTIONS = (
    "num_warps", "num_ctas", "num_stages", "maxnreg", "enable_fp_fusion", "launch_cooperative_grid",
    "launch_pdl", "debug", "ctas_per_cga", "instrumentation_mode",
)  # fmt: skip

_PROGRAMS = itertools.count(1)
"""Memory remembers in which program it was written."""
WORK = 6000
"""Operations up to which all programs of a grid are run once, so that results can be compared."""
ENOUGH = 40_000
"""Operations of a kernel after which its further launches are run in part."""
LARGE = 400
"""Operations of a program from which on that is done."""
GLIMPSE = 2500
"""Synchronizing operations of an agent after which a program that is run in part is left."""


@dataclass(slots=True)
class Settings:
    """How much is run."""

    seeds: tuple[int, ...] = (0, 1, 2, 3)
    programs: int = 4
    """Of a grid, at most; 0: all."""
    until: float = float("inf")
    """On the clock of `time.monotonic`."""
    steps: int = 12_000
    """Synchronizing operations of an agent after which its program is left."""
    kernel: str = ""
    """The only one to check."""
    slow: str = ""
    """An agent that runs only when no other can."""
    fenced: bool = False
    """Whether the compiler inserts proxy fences within a partition, as newer ones do."""
    first: bool = False
    """Whether the first launch with something wrong ends the check."""


class OutOfTimeError(Exception):
    """The time limit is over."""


class EnoughError(Exception):
    """Something is wrong, and the first of it is enough."""


@dataclass(eq=False)
class Launcher:
    """Runs launches, and keeps what they found."""

    sources: Sources
    settings: Settings
    report: Report
    label: str = ""
    """What the launches at hand belong to: a test, a class of trip counts."""
    count: int = 0
    skipped: list[str] = field(default_factory=list[str])
    """Tests that skip the GPU that they see."""
    chosen: bool = False
    """Whether a user has said which GPU host code sees."""
    checked: set[str] = field(default_factory=set[str])
    history: History = field(default_factory=History)
    """Of the last program."""
    spent: dict[str, int] = field(default_factory=dict[str, int])
    """Operations of each kernel so far."""

    @property
    def coverage(self) -> Coverage:
        """Of the whole check."""
        return self.report.coverage

    def __call__(
        self, kernel: Jit, grid: Any, given: tuple[Any, ...], named: dict[str, Any]
    ) -> None:
        """One launch."""
        if not kernel.gluon:
            self.coverage.leave_out(f"`{kernel.__name__}`, a kernel of triton.jit, is not checked")
            tensors.PARTIAL.append("a kernel of triton.jit was not run")
            return
        if self.settings.kernel and kernel.__name__ != self.settings.kernel:
            return
        self.checked.add(kernel.__name__)
        try:
            bound = _bound(kernel, given, named)
        except TypeError as error:
            site = Site(self.report.file, kernel.fn.__code__.co_firstlineno, 1)
            self.report.add(Finding("failure", site, f"`{kernel.__name__}`: {error}"))
            return
        if callable(grid):
            grid = grid({**bound, **named})
        sizes = tuple(int(n) for n in (grid if isinstance(grid, tuple | list) else (grid,)))
        whole = (*sizes, 1, 1)[:3]
        self.count += 1
        values = ", ".join(f"{n}={v}" for n, v in bound.items() if isinstance(v, int | float))
        name = f"{self.label + ': ' if self.label else ''}{kernel.__name__}{list(sizes)}"
        name += f"({values[:160]})" if values else ""
        self.coverage.launches.append(name)
        options = {n: v for n, v in named.items() if n in OPTIONS}
        try:
            self._run(kernel, whole, bound, options, name)
            if self.settings.first and self.report.failed():
                raise EnoughError
        except NotCoveredError as error:
            where = f"{error.site}: " if error.site is not NOWHERE else ""
            self.coverage.leave_out(f"{where}{error.what}")
            tensors.PARTIAL.append("something is not covered")

    def dump(self, kernel: Any, run: Any, number: int) -> None:
        """A kernel of a dump, with all its numbers the same, as a grid of one program."""
        name = f"{kernel.name}(all numbers {number})"
        self.count += 1
        self.checked.add(kernel.name)
        self.coverage.launches.append(name)
        for seed in self.settings.seeds:
            if time.monotonic() > self.settings.until:
                raise OutOfTimeError
            if seed not in self.coverage.seeds:
                self.coverage.seeds.append(seed)
            block = Block(
                self.sources, Policy(seed), self.coverage, name, (0, 0, 0), (1, 1, 1), {},
                self.settings.steps,
            )  # fmt: skip
            self.coverage.programs += 1
            block.program = next(_PROGRAMS)
            arguments = [argument(t, number, n) for n, (_, t) in enumerate(kernel.arguments)]
            block.run(lambda a=arguments: run(*a), kernel.warps)
            for finding in block.findings:
                self.report.add(finding)
            if self.report.failed():
                return

    def _run(self, kernel: Jit, grid: Any, bound: dict[str, Any], options: Any, name: str) -> None:
        every = [tuple(reversed(at)) for at in itertools.product(*map(range, reversed(grid)))]
        chosen = _spread(every, self.settings.programs)
        storages = _storages(bound)
        before = [s.raw.copy() for s in storages]
        work, largest, clean, partly = 0, 0, True, False

        def run(programs: list[Any], seed: int) -> bool:
            nonlocal work, largest, partly
            if seed not in self.coverage.seeds:
                self.coverage.seeds.append(seed)
            sound = True
            for at in programs:
                if time.monotonic() > self.settings.until:
                    raise OutOfTimeError
                sound &= self._program(kernel, grid, at, bound, options, name, seed)
                done = len(self.history.steps) + 1
                work, largest = work + done, max(largest, done)
                if self._spend(kernel, done) and largest > LARGE and at is not programs[-1]:
                    partly = True
                    break
            return sound

        def restore() -> None:
            for storage, raw in zip(storages, before, strict=True):
                storage.raw[...] = raw

        seeds = self.settings.seeds
        for number, seed in enumerate(seeds):
            if number:
                restore()
            few = self.spent.get(kernel.__name__, 0) > ENOUGH and largest > LARGE
            if few and number and number != 1 + self.count % (len(seeds) - 1):
                continue
            partly |= few
            clean &= run(chosen[-1:] if few else chosen, seed)
            if not clean and number:
                break
        if partly:
            self.coverage.leave_out(
                f"`{kernel.__name__}`: after {ENOUGH} operations a large program of a grid is run "
                f"under each of two orders, and left after {GLIMPSE} operations of one agent that "
                "synchronize"
            )
        elif len(chosen) < len(every) and clean:
            if work / (len(seeds) * len(chosen)) * len(every) <= WORK:
                restore()
                run(every, seeds[0])
                return
            told = f"`{kernel.__name__}`: some programs of large grids; their results"
            self.coverage.leave_out(f"{told} are not compared")
        if len(chosen) < len(every) or not clean or partly:
            tensors.PARTIAL.append("not all programs were run")

    def _spend(self, kernel: Jit, done: int) -> bool:
        """Note operations of a kernel; whether it has had enough."""
        spent = self.spent[kernel.__name__] = self.spent.get(kernel.__name__, 0) + done
        return spent > ENOUGH

    def _program(
        self, kernel: Jit, grid: Any, at: Any, bound: dict[str, Any], options: Any, name: str,
        seed: int,
    ) -> bool:  # fmt: skip
        policy = Policy(seed, self.settings.slow)
        steps, enough = self.settings.steps, self.spent.get(kernel.__name__, 0) > ENOUGH
        steps = min(steps, GLIMPSE) if enough else steps
        block = Block(self.sources, policy, self.coverage, name, at, grid, options, steps)
        block.glimpsed = enough
        self.coverage.programs += 1
        block.program = next(_PROGRAMS)
        block.fenced = self.settings.fenced
        arguments = {n: _argument(v, kernel, n) for n, v in bound.items()}
        known = len(self.coverage.left_out)
        block.run(lambda: kernel.fn(**arguments), int(options.get("num_warps", 4)))
        if block.left or len(self.coverage.left_out) > known:
            tensors.PARTIAL.append("something is not covered")
        for finding in block.findings:
            self.report.add(finding)
        self.history = block.history
        return all(f.note for f in block.findings)


def _spread(every: list[Any], most: int) -> list[Any]:
    """The first, the last and some between."""
    if not most or len(every) <= most:
        return every
    picked = {round(n * (len(every) - 1) / max(1, most - 1)) for n in range(most)}
    return [every[n] for n in sorted(picked)]


def _bound(kernel: Jit, given: Any, named: dict[str, Any]) -> dict[str, Any]:
    """Each parameter's argument."""
    signature = inspect.signature(kernel.fn)
    own = {n: v for n, v in named.items() if n in signature.parameters or n not in OPTIONS}
    try:
        found = signature.bind(*given, **own)
    except TypeError as error:
        raise TypeError(str(error)) from error
    found.apply_defaults()
    values = dict(found.arguments)
    for parameter in signature.parameters.values():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            raise TypeError("parameters that collect arguments")
    return values


def _constant(kernel: Jit, name: str) -> bool:
    annotation = kernel.fn.__annotations__.get(name)
    return "constexpr" in (annotation if isinstance(annotation, str) else repr(annotation))


def _argument(value: Any, kernel: Jit, name: str) -> Any:
    return value if _constant(kernel, name) else as_kernel_sees(value)


def as_kernel_sees(value: Any) -> Any:
    """An argument of the host as one of a kernel."""
    if isinstance(value, Tensor):
        return Pointer(value.storage_, value.dtype, np.int64(value.offset))
    if isinstance(value, HostDescriptor):
        return value.for_kernel()
    if isinstance(value, np.ndarray):
        return as_kernel_sees(tensors.from_numpy(value))
    if isinstance(value, bool | np.bool_):
        return Tile(np.bool_(value), INT1)
    if isinstance(value, int | np.integer):
        dtype = INT32 if -(1 << 31) <= value < (1 << 31) else INT64
        return Tile(dtype.wide.type(value), dtype)
    if isinstance(value, float | np.floating):
        return Tile(np.float32(value), FLOAT32)
    if isinstance(value, tuple):
        made = [as_kernel_sees(v) for v in value]
        return type(value)(*made) if hasattr(value, "_fields") else tuple(made)
    return value


def _storages(bound: dict[str, Any]) -> list[Storage]:
    found: dict[int, Storage] = {}

    def visit(value: Any, name: str) -> None:
        storage = None
        if isinstance(value, Tensor):
            storage = value.storage_
        elif isinstance(value, HostDescriptor):
            visit(value.base, name)
        elif isinstance(value, np.ndarray):
            storage = tensors.from_numpy(value).storage_
        elif isinstance(value, tuple):
            for one in value:
                visit(one, name)
        if storage is not None and id(storage) not in found:
            storage.name = f"`{name}`"
            found[id(storage)] = storage

    for name, value in bound.items():
        visit(value, name)
    return list(found.values())


__all__ = ["Descriptor", "Launcher", "OutOfTimeError", "Settings", "as_kernel_sees"]
