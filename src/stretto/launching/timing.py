"""Times of the user's own launches: two events around each, asked for later.

stream A   ──begin──[ kernel ]──end──────────     a sample, once `end` has passed
stream B   ────────────[ other ]─────────────     … unless something ran beside it: then none
"""

from __future__ import annotations

import sys
from collections import deque
from dataclasses import dataclass
from typing import Any

from stretto.launching.events import Events
from stretto.launching.trial import Runner, Trial

OPEN: list[Sample] = []
"""Of all kernels: samples whose end has not passed, as far as is known."""
BENCHES = (
    "triton.testing",
    "torch._inductor.runtime.benchmarking",
    "torch._inductor.autotune_process",
    "torch.utils.benchmark",
)
"""Modules that call what they are given again and again, to time it."""
TUNERS = {("triton.runtime.autotuner", "_bench"), ("triton.runtime.autotuner", "benchmark")}
"""Functions that measure configurations."""


@dataclass(slots=True, eq=False)
class Sample:
    """One launch between two events."""

    events: Events
    runner: Runner
    stream: int
    begin: Any
    place: str
    """Of the user's launch, as errors tell it."""
    end: Any = None
    alone: bool = True
    """Whether nothing else is known to have run beside it."""
    microseconds: float | None = None

    def finished(self) -> bool:
        """Whether its time is known."""
        if self.microseconds is None:
            if self.end is None:
                return False
            self.microseconds = self.events.elapsed(self.begin, self.end)
            if self.microseconds is None:
                return False
            self.events.release(self.begin, self.end)
            if self in OPEN:
                OPEN.remove(self)
        return True


def other_stream(stream: int) -> bool:
    """A launch is about to be made: no sample of another stream is alone any more. Whether there
    is one that still runs."""
    found = False
    for sample in tuple(OPEN):
        if sample.stream != stream and not sample.finished():
            sample.alone = False
            found = True
    return found


class Contest:
    """The trial of one kind of launch, with the samples that are still to come."""

    def __init__(self, seed: str, events: Events) -> None:
        self.trial = Trial(seed)
        self._events = events
        self.pending: deque[Sample] = deque()
        """Samples whose time is not known yet."""

    def begin(self, stream: int, place: str) -> Sample:
        """Before a launch: whose it is, and when it began."""
        alone = not other_stream(stream)
        runner = self.trial.turn()
        sample = Sample(
            self._events, runner, stream, self._events.record(stream), place, alone=alone
        )
        self.pending.append(sample)
        OPEN.append(sample)
        return sample

    def end(self, sample: Sample) -> None:
        """After it."""
        sample.end = self._events.record(sample.stream)

    def drop(self, sample: Sample) -> None:
        """It was not launched after all."""
        self.pending.remove(sample)
        OPEN.remove(sample)

    def poll(self) -> Runner | None:
        """The verdict, once there is one; nothing is waited for."""
        while self.pending and self.pending[0].finished():
            sample = self.pending.popleft()
            if sample.alone and sample.microseconds is not None:
                self.trial.time(sample.runner, sample.microseconds)
        if self.trial.verdict is None and self.trial.over and not self.pending:
            return self.trial.end()
        return self.trial.verdict


def measured() -> bool:
    """Whether somebody times what is launched here: an autotuner, or a `do_bench`."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        name: str = frame.f_globals.get("__name__", "")
        if name.startswith(BENCHES) or (name, frame.f_code.co_name) in TUNERS:
            return True
        frame = frame.f_back
    return False


def tuned() -> bool:
    """Whether an autotuner of Triton's measures configurations here."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if (frame.f_globals.get("__name__", ""), frame.f_code.co_name) in TUNERS:
            return True
        frame = frame.f_back
    return False
