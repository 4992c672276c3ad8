"""Triton's autotuner over kernels that are ours as well: what it measures, and what it then takes.

    Triton's tuning   config 1 │ config 2 │ … │ config N    each compiled and measured as ever
    beside it         tiles A ─ tiles B ─ tiles C           the model ranks; what differs in warps
                                                            and stages alone is one
                      the first few of them are made while Triton goes on
    then              those that are there ─► measured as the rest was ─► a faster one is taken

Measuring is the tuner's own: its hooks, what it restores and resets, the user's `do_bench`. All
together takes at most half as long as Triton's part did, more; what is not made by then is tried at
launches like any other kernel.
"""

# Triton has no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any

from stretto.launching.trial import MARGIN

if TYPE_CHECKING:
    from stretto.triton.dispatch import Dispatch

MARK = "_stretto"
SHARE = 0.5
"""Of the time that Triton's tuning took: what ours may add."""
KEPT = 0.1
"""Of that, left over for a measurement that takes longer than it should."""
FEW = 3
"""Configurations that are made."""
EARLY = 1 / 3
"""Of Triton's configurations: after so many the first by the model so far begin to be made."""
OPEN: list[Tuning] = []
"""Those that go on, the innermost last."""
RUNNING: list[Any] = []
"""Autotuners that launch, the innermost last."""


@dataclass(eq=False)
class Tuned:
    """A configuration of Triton's, and our kernel of it."""

    config: Any
    dispatch: Dispatch
    args: tuple[Any, ...]
    """What its launcher was given."""
    milliseconds: float = float("inf")
    """Of Triton's own."""


@dataclass(eq=False)
class Tuning:
    """One tuning of Triton's, from its first configuration to its last."""

    count: int
    since: float = field(default_factory=time.monotonic)
    seen: dict[object, Tuned] = field(default_factory=dict[object, Tuned])
    """By what ours are made of: configurations that differ in warps and stages alone are one."""
    config: Any = None
    """That is measured now."""
    measured: int = 0
    best: float = float("inf")
    """Milliseconds of the fastest as Triton has it."""
    ours: Dispatch | None = None
    """Whose kernel of ours is measured now."""
    taken: Any = None
    """The configuration that is the fastest with our kernel, where there is one."""
    begun: list[Tuned] = field(default_factory=list[Tuned])
    """Those that are made."""

    def launched(self, dispatch: Dispatch, args: tuple[Any, ...]) -> None:
        """A kernel is launched by the tuner."""
        content = dispatch.tiles
        if self.config is not None and content is not None and content not in self.seen:
            self.seen[content] = Tuned(self.config, dispatch, args)
            dispatch.sketch(args)

    def told(self, config: Any, milliseconds: float) -> None:
        """A configuration is measured."""
        self.measured += 1
        self.best = min(self.best, milliseconds)
        for one in self.seen.values():
            if one.config is config:
                one.milliseconds = milliseconds
        if self.measured >= EARLY * self.count:
            self.begin()

    def begin(self) -> None:
        """Have the first by the model so far made, a few in all."""
        for one in _ranked(list(self.seen.values())):
            if len(self.begun) < FEW and one not in self.begun:
                self.begun.append(one)
                one.dispatch.made(one.args, 0.0)

    def end(self, bench: Callable[[Any], float]) -> None:
        """The first few by the model, made and measured as far as there is time."""
        took = time.monotonic() - self.since
        until = time.monotonic() + (SHARE - KEPT) * took
        each = took / max(1, self.measured)
        best = self.best * (1 - MARGIN)
        for one in self.seen.values():
            one.dispatch.withdraw()
        for one in self.begun:
            if not one.dispatch.made(one.args, until - each - time.monotonic()):
                continue
            if time.monotonic() + each > until:
                return
            self.ours = one.dispatch
            try:
                milliseconds = bench(one.config)
            finally:
                self.ours = None
            if one.dispatch.gone:
                continue
            one.dispatch.compared(one.args, milliseconds * 1000, self.best * 1000)
            if milliseconds < best:
                best, self.taken = milliseconds, one.config


def _ranked(seen: Sequence[Tuned]) -> list[Tuned]:
    """Those that the model has a time for so far, the fastest first; then by Triton's times."""
    return sorted(
        (one for one in seen if not one.dispatch.gone),
        key=lambda one: (one.dispatch.sketched or float("inf"), one.milliseconds),
    )


def watch_tuners() -> None:
    """See what Triton's autotuners do from now on."""
    try:
        tuner: Any = import_module("triton.runtime.autotuner").Autotuner
    except (ImportError, AttributeError):  # a Triton that we do not know
        return
    if hasattr(tuner.run, MARK):
        return
    for name, made in (("run", _run), ("prune_configs", _prune), ("_bench", _bench)):
        wrapped = wraps(getattr(tuner, name))(made(getattr(tuner, name)))
        setattr(wrapped, MARK, True)
        setattr(tuner, name, wrapped)


def _run(original: Callable[..., Any]) -> Callable[..., Any]:
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        before, known = len(OPEN), len(self.cache)
        RUNNING.append(self)
        try:
            found = original(self, *args, **kwargs)
            if len(OPEN) > before and OPEN[before].taken is not None and len(self.cache) > known:
                key = next(reversed(self.cache))
                self.cache[key] = self.best_config = OPEN[before].taken
            return found
        finally:
            RUNNING.pop()
            del OPEN[before:]

    return run


def _prune(original: Callable[..., Any]) -> Callable[..., Any]:
    def prune_configs(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = original(self, *args, **kwargs)
        if RUNNING and RUNNING[-1] is self:  # and not one that only warms up
            OPEN.append(Tuning(len(found)))
        return found

    return prune_configs


def _bench(original: Callable[..., Any]) -> Callable[..., Any]:
    def bench(self: Any, *args: Any, config: Any, **meta: Any) -> Any:
        if not OPEN or OPEN[-1].ours is not None:
            return original(self, *args, config=config, **meta)
        tuning = OPEN[-1]
        tuning.config = config
        try:
            found = original(self, *args, config=config, **meta)
        finally:
            tuning.config = None
        tuning.told(config, _middle(found))
        if tuning.measured == tuning.count:
            tuning.end(lambda one: _middle(original(self, *args, config=one, **meta)))
        return found

    return bench


def _middle(times: Any) -> float:
    """Of what a `do_bench` tells: the median, or all there is."""
    return float(times[0] if isinstance(times, Sequence) else times)
