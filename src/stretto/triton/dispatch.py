"""One kernel that Triton compiled, and who runs it: stands where Triton's launcher of it stood.

    kernel[grid](…) ──► Triton's own way ──► Dispatch ──► kind (grid, numbers) settled? ──► launched
                                                │ no
                                                ├─► ours is not made yet           theirs
                                                ├─► a graph is captured            theirs
                                                ├─► somebody measures              theirs
                                                └─► their turn, or ours, timed ──► a verdict

What is left alone gets its own launcher back, so that it costs what it always did.
"""

# Triton has no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from statistics import median
from typing import Any
from weakref import WeakKeyDictionary

from stretto.errors import StrettoError
from stretto.launching.events import DeviceError, Events, device_events
from stretto.launching.launcher import Teller, outside
from stretto.launching.quick import Guard
from stretto.launching.reporting import report_refused, report_verdicts
from stretto.launching.timing import OPEN, Contest, measured, other_stream, tuned
from stretto.launching.trial import LAUNCHES, MARGIN, Runner
from stretto.launching.verdicts import (
    Verdict,
    banned,
    circumstances,
    declined,
    note,
    remember,
    remembered,
    verdicts,
)
from stretto.triton.autotuner import OPEN as OPEN_TUNINGS
from stretto.triton.binding import HEAD, HOOKS, Binding, Launch
from stretto.triton.failure import LAST, KernelFailedError, failed, watch_end
from stretto.triton.launched import Launched, launched_of
from stretto.triton.production import Production
from stretto.triton.settings import Settings
from stretto.triton.shortcut import DISPATCH, lengthen, shorten

KINDS = 8
"""Kinds of launches that a kernel may try without a verdict; then new kinds are Triton's."""

_TELLERS: WeakKeyDictionary[Any, Teller] = WeakKeyDictionary()


class Dispatch:
    """The launches of one kernel that Triton compiled."""

    def __init__(self, kernel: Any, settings: Settings) -> None:
        self._kernel, self._settings = kernel, settings
        self._stock: Launch = kernel._run
        self._lock = threading.RLock()
        self._settled: dict[object, Launch] = {}
        self._contests: dict[object, tuple[Contest, Launch]] = {}
        self._counters: dict[object, list[int]] = {}
        """Of our launches of a kind."""
        self._forced: dict[object, Launch] = {}
        """Ours, of kinds that an autotuner measures."""
        self._fruitless = 0
        """Launches that were tried, of kinds that have no verdict."""
        self._gone = False
        """Whether nothing of it is ours any more."""
        self._production: Production | None = None
        self._about = ""
        self.events: Events | None = None
        self.key = ""
        self.name: str = kernel.src.fn.__name__
        self.launched: Launched | None = None

    # Where Triton's launcher stood ------------------------------------------------------------

    def take(self) -> None:
        """Stand where Triton's launcher of the kernel stands, if there is anything to gain."""
        try:
            self.launched = launched_of(self._kernel)
            if not self.launched.has_loop:
                self._note("there is no loop, so nothing to overlap")
                return
            asked = self._settings.asked.on(self.launched.ttir.target)
            self.key = asked.key(self.name, self.launched.ttir.content)
            why = banned(self.key) or declined(self.key)
            if why is not None:
                raise StrettoError(why)
        except Exception as error:  # whatever it is, the user's kernel runs
            self._leave(error)
            return
        self._production = Production(self.launched, asked, self.key, self._settings.waits)
        numbers = [HEAD + n for n in self.launched.numbers]
        pick: Callable[[Sequence[Any]], object] = itemgetter(0, 1, 2, *numbers)
        if self.launched.descriptors:
            pick = partial(_with_shapes, pick, [HEAD + n for n in self.launched.descriptors])
        self._kind = pick
        self._kernel._run = self._run(pick)
        setattr(self._kernel, DISPATCH, self)

    def _run(self, pick: Callable[[Sequence[Any]], object]) -> Launch:
        settled, undecided = self._settled.get, self._undecided

        stock = self._stock

        def run(*args: Any) -> object:
            if OPEN:
                other_stream(args[3])
            try:
                launch = settled(pick(args))
            except TypeError:  # a number of a kind that nothing can be remembered of
                launch = stock
            return undecided(args) if launch is None else launch(*args)

        return run

    @property
    def function(self) -> Any:
        """The user's `@triton.jit` function."""
        return self._kernel.src.fn

    @property
    def pending(self) -> bool:
        """Whether our kernel is being made."""
        return self._production is not None and self._production.pending

    def restore(self) -> None:
        """Triton's own launcher, as if nothing had been."""
        self._kernel._run = self._stock
        lengthen(self.function)

    def decided(self, grid: tuple[int, ...], values: tuple[Any, ...]) -> Launch | None:
        """Who runs launches of a kind, once that is settled."""
        return None if self._gone else self._settled.get(self._kind((*grid, *HOOKS, *values)))

    # What is not settled ----------------------------------------------------------------------

    def _undecided(self, args: tuple[Any, ...]) -> object:
        with self._lock:
            try:
                found = self._decide(args)
            except DeviceError as error:
                if error.fatal:
                    raise self._failed(error) from error
                found = self._left(error)
            except Exception as error:  # of ours: the user's kernel runs
                found = self._left(error)
            if isinstance(found, Contest):
                return self._timed(found, args)
        return found(*args)

    def _left(self, error: Exception) -> Launch:
        self._leave(error)
        return self._stock

    def _decide(self, args: tuple[Any, ...]) -> Launch | Contest:
        """Who runs a launch: somebody, or whoever's turn it is."""
        if self._gone:
            return self._stock
        if self.events is None:
            self.events = device_events()
        if self.events is not None and self.events.capturing(args[3]):
            return self._stock
        kind, production = self._kind(args), self._production
        assert production is not None
        launch = self._in_tuning(kind, args)
        if launch is not None:
            return launch
        if not production.ready(kind, args[:3], args[HEAD:]):
            return self._stock
        settled = self._settled.get(kind)  # by another thread, meanwhile
        if settled is not None:
            return settled
        if kind not in self._contests:
            if self._settings.tries and measured():
                return self._stock
            launch = self._opened(kind, args)
            if launch is not None:
                return launch
        contest, ours = self._contests[kind]
        verdict = contest.poll()
        if verdict is not None:
            return self._settle(kind, contest, verdict, ours)
        if contest.trial.over or measured():
            return self._stock
        return contest

    def _opened(self, kind: object, args: tuple[Any, ...]) -> Launch | None:
        """A kind that comes for the first time: settled, or else there is a trial of it."""
        if self._fruitless >= KINDS * LAUNCHES:
            self._settled[kind] = self._stock
            return self._stock
        if self.events is not None:
            self._about = self._about or circumstances(self.events.gpu)
        known = remembered(self.key, kind, self._about) if self._settings.tries else None
        if known is not None and known["runs"] == Runner.THEIRS.value:
            return self._as_before(kind, known, self._stock)
        slower = self._slower(kind, args)
        if slower is None:
            return self._stock
        if slower:
            verdict = self._verdict(kind, "theirs", slower)
            note(verdict)
            if self._about:
                remember(self.key, kind, self._about, verdict)
            return self._settled_by(kind, self._stock)
        binding = self._binding()
        try:
            bound = binding.bound(args)
        except Exception as error:  # for these arguments alone
            self._tell(error)
            return self._stock
        bound.check(args[:3])
        counter = self._counters[kind] = [0]
        ours = binding.launch(args, bound, Guard(LAST, self, counter, self._raised))
        watch_end()
        if self._settings.checks:
            binding.check(args, self.key)
        if not self._settings.tries:
            note(self._verdict(kind, "ours", "trials are off"))
            return self._settled_by(kind, ours)
        if self.events is None:
            raise StrettoError("there is no driver whose events could time it")
        if known is not None:
            return self._as_before(kind, known, ours)
        self._contests[kind] = Contest(f"{self.key} {kind!r}", self.events), ours
        return None

    # In an autotuner --------------------------------------------------------------------------

    @property
    def gone(self) -> bool:
        """Whether it is left to Triton."""
        return self._gone

    @property
    def tiles(self) -> object:
        """What ours is made of, whatever the warps and stages of Triton's; None: there is none."""
        return None if self._gone or self.launched is None else self.launched.ttir.text

    def sketch(self, args: tuple[Any, ...]) -> None:
        """Have the model say what to expect of ours in a launch."""
        if self._production is not None:
            self._production.sketch(args[:3], args[HEAD:])

    @property
    def sketched(self) -> float | None:
        """Seconds that the model said."""
        return None if self._production is None else self._production.sketched

    def withdraw(self) -> None:
        """Nobody wants to know that any more."""
        if self._production is not None:
            self._production.withdraw()

    def made(self, args: tuple[Any, ...], seconds: float) -> bool:
        """Whether ours is there and worth measuring, or will be in so many seconds."""
        with self._lock:
            if self._gone or self._production is None:
                return False
            kind, given = self._kind(args), (args[:3], args[HEAD:])
            try:
                there = self._production.ready(kind, *given, seconds)
                return there and self._production.slower(kind, *given) == ""
            except Exception as error:  # of ours: the user's kernel runs
                self._leave(error)
                return False

    def _in_tuning(self, kind: object, args: tuple[Any, ...]) -> Launch | None:
        """What an autotuner measures; None where there is none, or it has to wait for ours."""
        tuning = OPEN_TUNINGS[-1] if OPEN_TUNINGS else None
        if tuning is not None and tuning.ours is self:
            return self._measured(kind, args)
        if self._settings.waits or not tuned():
            return None
        if tuning is not None:
            tuning.launched(self, args)
        return self._stock  # of many configurations one will be launched on

    def _measured(self, kind: object, args: tuple[Any, ...]) -> Launch:
        """Ours, for the tuner to measure."""
        if kind not in self._forced:
            binding = self._binding()
            bound = binding.bound(args)
            bound.check(args[:3])
            self._counters[kind] = [0]
            guard = Guard(LAST, self, self._counters[kind], self._raised)
            self._forced[kind] = binding.launch(args, bound, guard)
            if self._settings.checks:
                binding.check(args, self.key)
            watch_end()
        return self._forced[kind]

    def compared(self, args: tuple[Any, ...], ours_us: float, theirs_us: float) -> None:
        """The tuner has measured ours, and Triton's fastest configuration."""
        kind = self._kind(args)
        wins = ours_us <= (1 - MARGIN) * theirs_us
        verdict = self._verdict(kind, "ours" if wins else "theirs", "measured by the autotuner")
        verdict.ours_us, verdict.theirs_us = ours_us, theirs_us
        note(verdict)
        if self.events is not None:
            self._about = self._about or circumstances(self.events.gpu)
            remember(self.key, kind, self._about, verdict)
        report_verdicts(verdict.kernel, self.key, [verdict])
        self._settled_by(kind, self._forced[kind] if wins else self._stock)

    def _slower(self, kind: object, args: tuple[Any, ...]) -> str | None:
        """Why the model has a kind run as Triton's; None while that is found out."""
        if self._settings.strict or self._production is None:
            return ""
        return self._production.slower(kind, args[:3], args[HEAD:])

    def _binding(self) -> Binding:
        assert self.launched is not None
        assert self._production is not None
        assert self._production.loaded is not None
        return Binding(self._production.loaded, self.launched, self._stock, self._tell)

    def _as_before(self, kind: object, known: Mapping[str, Any], launch: Launch) -> Launch:
        """A kind as an earlier process decided it."""
        verdict = self._verdict(kind, known["runs"], "decided in an earlier process")
        verdict.ours_us, verdict.theirs_us = known.get("ours_us"), known.get("theirs_us")
        note(verdict)
        report_verdicts(verdict.kernel, self.key, [verdict])
        return self._settled_by(kind, launch)

    def _settled_by(self, kind: object, launch: Launch) -> Launch:
        """A kind is decided from now on."""
        self._settled[kind] = launch
        shorten(self)
        return launch

    def _timed(self, contest: Contest, args: tuple[Any, ...]) -> object:
        """A launch of a trial."""
        kind = self._kind(args)
        ours = self._contests[kind][1]
        self._fruitless += 1
        try:
            sample = contest.begin(args[3], _place())
        except DeviceError as error:
            if error.fatal:
                raise self._failed(error) from error
            return self._left(error)(*args)
        try:
            found = (ours if sample.runner is Runner.OURS else self._stock)(*args)
            LAST[0] = None  # the sample tells of it
        except Exception as error:
            contest.drop(sample)
            failure = None if self.events is None else self.events.failure(args[3])
            if failure is not None:
                raise self._failed(failure) from error
            raise
        try:
            contest.end(sample)
        except DeviceError as error:
            if error.fatal:
                raise self._failed(error) from error
            contest.drop(sample)
        return found

    def _settle(self, kind: object, contest: Contest, runs: Runner, ours: Launch) -> Launch:
        trial = contest.trial
        both = [trial.times[runner] for runner in (Runner.OURS, Runner.THEIRS)]
        decided = all(both) and trial.launches < LAUNCHES
        why = f"{len(both[0])} and {len(both[1])} launches timed"
        verdict = self._verdict(kind, runs.value, why)
        verdict.ours_us, verdict.theirs_us = (median(each) if each else None for each in both)
        if decided:
            self._fruitless -= trial.launches
        note(verdict)
        remember(self.key, kind, self._about, verdict)
        mine = [one for one in verdicts() if one.key == self.key]
        report_verdicts(verdict.kernel, self.key, mine)
        del self._contests[kind]
        return self._settled_by(kind, ours if runs is Runner.OURS else self._stock)

    def _raised(self, error: Exception, stream: int) -> BaseException:
        """What is raised where a launch of ours has raised."""
        failure = None if self.events is None else self.events.failure(stream)
        return error if failure is None else self._failed(failure)

    def _failed(self, error: DeviceError) -> KernelFailedError:
        pending = [sample for contest, _ in self._contests.values() for sample in contest.pending]
        return failed(error, self, pending)

    # What is left to Triton -------------------------------------------------------------------

    def _leave(self, error: Exception) -> None:
        """Nothing of the kernel is ours any more, and why; where it is strict, the error itself."""
        self.restore()
        self._gone = True
        self._settled.clear()
        self._contests.clear()
        reason = self._tell(error)
        self._note(reason)
        report_refused(self.name, self.key or "unread", self._settings.asked, reason)

    def _tell(self, error: Exception) -> str:
        """A reason, told once; where the kernel is strict, the error itself is raised."""
        strict, quiet = self._settings.strict, self._settings.quiet
        teller = _TELLERS.setdefault(self.function, Teller(self.name, strict, "Triton", quiet))
        return teller.refuse(error).reason

    # What is told -----------------------------------------------------------------------------

    def _verdict(self, kind: Any, runs: str, why: str) -> Verdict:
        counter = self._counters.setdefault(kind, [0])
        parts: tuple[Any, ...] = kind if isinstance(kind, tuple) else ()
        counter[0] = 0
        return Verdict(self.name, parts[:3], parts[3:], runs, why, key=self.key, counter=counter)

    def _note(self, why: str) -> None:
        note(Verdict(self.name, why=why, key=self.key))


def _with_shapes(
    pick: Callable[[Sequence[Any]], Any], where: Sequence[int], args: Sequence[Any]
) -> object:
    """A kind that has the shapes of the user's descriptors too."""
    found = list(pick(args))
    for n in where:
        found += [tuple(args[n].shape), tuple(args[n].strides)]
    return tuple(found)


def _place() -> str:
    _, frame = outside()
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
