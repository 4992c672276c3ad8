"""Which of two kernels a kind of launch gets: they take turns, are timed, and one is chosen.

    launch   1      2      3      4      5      6     …          40
    runs     theirs ours   ours   theirs ours   theirs           │
             └ drawn ┘     └ drawn ┘                             └─► no verdict yet: theirs

Both are timed on the user's own launches, so nothing runs twice. The first time of each is thrown
away (it loads the module and warms caches). A verdict needs `ENOUGH` times of each; the medians
must differ by `MARGIN`, and three of four pairs of times must agree. Ours loses sooner where it is
slower each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from random import Random
from statistics import median

LAUNCHES = 40
"""Of a kind, at most, while nothing is decided."""
ENOUGH = 5
"""Times of each kernel that a verdict needs."""
MARGIN = 0.02
"""Of the other kernel's median: what the faster one must be faster by."""
AGREE = 0.75
"""Of all pairs of one time of each: how many must say the same as the medians."""
BEHIND = ((2, 1.2), (3, 1 + MARGIN))
"""Times of each, and how far beyond every one of theirs every one of ours then ends a trial: what
is slow costs few launches."""


class Runner(Enum):
    """Whose kernel runs."""

    OURS = "ours"
    THEIRS = "theirs"


class Trial:
    """The trial of one kind of launch."""

    def __init__(self, seed: int | str) -> None:
        self._draw = Random(seed)
        self._second: Runner | None = None
        self._thrown = dict.fromkeys(Runner, False)
        self.launches = 0
        self.verdict: Runner | None = None
        self.times: dict[Runner, list[float]] = {runner: [] for runner in Runner}
        """Microseconds that count."""

    @property
    def over(self) -> bool:
        """Whether no launch is left to be timed."""
        return self.verdict is not None or self.launches >= LAUNCHES

    def turn(self) -> Runner:
        """Whose kernel a launch runs: of two launches each has one, in an order that is drawn."""
        self.launches += 1
        if self._second is not None:
            found, self._second = self._second, None
            return found
        ours_first = self._draw.random() < 0.5
        first, self._second = list(Runner) if ours_first else list(reversed(Runner))
        return first

    def time(self, runner: Runner, microseconds: float) -> None:
        """A launch took so long."""
        if not self._thrown[runner]:
            self._thrown[runner] = True
            return
        self.times[runner].append(microseconds)
        if self.verdict is None:
            self.verdict = decided(self.times[Runner.OURS], self.times[Runner.THEIRS])

    def end(self) -> Runner:
        """The verdict once nothing more is timed: where there is none, it is theirs."""
        if self.verdict is None:
            self.verdict = Runner.THEIRS
        return self.verdict


def decided(ours: Sequence[float], theirs: Sequence[float]) -> Runner | None:
    """Who is faster, where the times tell."""
    fewer = min(len(ours), len(theirs))
    if any(fewer >= few and min(ours) > far * max(theirs) for few, far in BEHIND):
        return Runner.THEIRS
    if fewer < ENOUGH:
        return None
    mine, other = median(ours), median(theirs)
    pairs = len(ours) * len(theirs)
    if mine <= (1 - MARGIN) * other:
        agree = sum(a < b for a in ours for b in theirs)
        return Runner.OURS if agree >= AGREE * pairs else None
    if other <= (1 - MARGIN) * mine:
        agree = sum(b < a for a in ours for b in theirs)
        return Runner.THEIRS if agree >= AGREE * pairs else None
    return None
