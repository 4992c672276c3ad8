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

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from statistics import median
from typing import Any
from weakref import WeakKeyDictionary

from stretto.errors import StrettoError
from stretto.launching.asked import Asked
from stretto.launching.comparing import check_alike
from stretto.launching.events import DeviceError, Events, device_events
from stretto.launching.launcher import Teller, outside
from stretto.launching.loading import Bound, Loaded, load, sent
from stretto.launching.makers import Job, start
from stretto.launching.making import Declined, Request, answer
from stretto.launching.quick import Guard, quick_launch
from stretto.launching.reporting import report, report_refused, report_verdicts
from stretto.launching.storing import Entry, Store
from stretto.launching.timing import OPEN, Contest, measured, other_stream, tuned
from stretto.launching.trial import LAUNCHES, Runner
from stretto.launching.verdicts import (
    Verdict,
    ban,
    banned,
    circumstances,
    decline,
    declined,
    note,
    remember,
    remembered,
    verdicts,
)
from stretto.triton.launched import Launched, launched_of
from stretto.triton.reading import ttir_kernel
from stretto.triton.shortcut import DISPATCH, lengthen, shorten

HOOKS = (None,) * 6
"""For what Triton hands a launcher between grid and arguments: stream, function, hooks."""
HEAD = 3 + len(HOOKS)
"""What stands before the arguments."""
KINDS = 8
"""Kinds of launches that a kernel may try without a verdict; then new kinds are Triton's."""
ADDRESSES = 1024
"""Launches of a kind that are kept ready; beyond, all are forgotten and made anew as they come."""

Launch = Callable[..., object]
"""Takes what Triton hands a launcher."""


class KernelFailedError(RuntimeError):
    """A kernel failed on the GPU, some time after its launch."""


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


_TELLERS: WeakKeyDictionary[Any, Teller] = WeakKeyDictionary()
_last: list[Dispatch | None] = [None]
"""Whose kernel of ours was launched last, with no event to tell what became of it."""


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
        self._fruitless = 0
        """Launches that were tried, of kinds that have no verdict."""
        self._gone = False
        """Whether nothing of it is ours any more."""
        self._job: Job | None = None
        self._loaded: Loaded | None = None
        self._events: Events | None = None
        self._key = ""
        self._about = ""
        self.launched: Launched | None = None

    # Where Triton's launcher stood ------------------------------------------------------------

    def take(self) -> None:
        """Stand where Triton's launcher of the kernel stands, if there is anything to gain."""
        name = self._kernel.src.fn.__name__
        try:
            self.launched = launched_of(self._kernel)
            if not self.launched.has_loop:
                self._note("there is no loop, so nothing to overlap", name)
                return
            self._asked = self._settings.asked.on(self.launched.ttir.target)
            self._key = self._asked.key(name, self.launched.ttir.content)
            why = banned(self._key) or declined(self._key)
            if why is not None:
                raise StrettoError(why)
        except Exception as error:  # whatever it is, the user's kernel runs
            self._leave(error, name)
            return
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

    def settle_all(self, runs: str) -> None:
        """Have all kinds that are settled run by ``theirs``, as if a trial had said so."""
        assert runs == "theirs"
        for kind in self._settled:
            self._settled[kind] = self._stock

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
        assert self.launched is not None
        self._leave(error, self.launched.name)
        return self._stock

    def _decide(self, args: tuple[Any, ...]) -> Launch | Contest:
        """Who runs a launch: somebody, or whoever's turn it is."""
        if self._gone:
            return self._stock
        stream: int = args[3]
        tries = self._settings.tries
        if self._events is None:
            self._events = device_events()
        if self._events is not None and self._events.capturing(stream):
            return self._stock
        if self._loaded is None and not self._ready(args):
            return self._stock
        kind = self._kind(args)
        settled = self._settled.get(kind)  # by another thread, meanwhile
        if settled is not None:
            return settled
        if kind not in self._contests:
            if tries and measured():
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

    def _ready(self, args: tuple[Any, ...]) -> bool:
        """Whether our kernel is there; what makes it is started, and asked."""
        assert self.launched is not None
        waits = self._settings.wait or self._settings.strict
        if self._job is None:
            if tuned() and not waits:  # of many configurations one will be launched on
                return False
            entry = Store().get(self._key, self.launched.name)
            self._job = Job(None)
            if entry is not None:
                self._job.settle(entry)
            else:
                self._job = start(self._request(args), answer)
        if waits:
            self._job.wait()
        if not self._job.done:
            return False
        made = self._job.answer
        if isinstance(made, Declined):
            if made.lasting:
                decline(self._key, self.launched.name, made.reason)
            raise StrettoError(made.reason)
        if not isinstance(made, Entry):
            raise StrettoError(self._job.failure)
        report(self.launched.name, self._key, made)
        self._loaded = load(made, self._key)
        return True

    def _request(self, args: tuple[Any, ...]) -> Request:
        assert self.launched is not None
        name, module = self.launched.name, self.launched.ttir
        given = {
            each: sent(value)
            for each, value in zip(self.launched.names, args[HEAD:], strict=True)
            if self.launched.signature[each] != "constexpr"
        }
        read = partial(ttir_kernel, name, module)
        return Request(
            name,
            self._key,
            read,
            self._asked,
            module.target,
            self.launched.ptx,
            given,
            args[:3],
        )

    def _opened(self, kind: object, args: tuple[Any, ...]) -> Launch | None:
        """A kind that comes for the first time: settled, or else there is a trial of it."""
        assert self.launched is not None
        if self._fruitless >= KINDS * LAUNCHES:
            self._settled[kind] = self._stock
            return self._stock
        try:
            bound = self._bound(args)
        except Exception as error:  # for these arguments alone
            self._tell(error, self.launched.name)
            return self._stock
        bound.check(args[:3])
        counter = self._counters[kind] = [0]
        ours = self._ours(args, bound, counter)
        if self._settings.checks:
            self._check(args)
        if not self._settings.tries:
            note(self._verdict(kind, "ours", "trials are off"))
            self._settled[kind] = ours
            shorten(self)
            return ours
        if self._events is None:
            raise StrettoError("there is no driver whose events could time it")
        self._about = self._about or circumstances(self._events.gpu)
        known = remembered(self._key, kind, self._about)
        if known is not None:
            verdict = self._verdict(kind, known["runs"], "decided in an earlier process")
            verdict.ours_us, verdict.theirs_us = known.get("ours_us"), known.get("theirs_us")
            note(verdict)
            report_verdicts(verdict.kernel, self._key, [verdict])
            self._settled[kind] = ours if known["runs"] == "ours" else self._stock
            shorten(self)
            return self._settled[kind]
        self._contests[kind] = Contest(f"{self._key} {kind!r}", self._events), ours
        return None

    def _timed(self, contest: Contest, args: tuple[Any, ...]) -> object:
        """A launch of a trial."""
        assert self.launched is not None
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
            _last[0] = None  # the sample tells of it
        except Exception as error:
            contest.drop(sample)
            failure = None if self._events is None else self._events.failure(args[3])
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
        remember(self._key, kind, self._about, verdict)
        mine = [one for one in verdicts() if one.key == self._key]
        report_verdicts(verdict.kernel, self._key, mine)
        del self._contests[kind]
        self._settled[kind] = ours if runs is Runner.OURS else self._stock
        shorten(self)
        return self._settled[kind]

    # Our kernel -------------------------------------------------------------------------------

    def _bound(self, args: tuple[Any, ...]) -> Bound:
        assert self.launched is not None
        assert self._loaded is not None
        return self._loaded.bind(dict(zip(self.launched.names, args[HEAD:], strict=True)))

    def _ours(self, args: tuple[Any, ...], bound: Bound, counter: list[int]) -> Launch:
        """Launches of a kind by our kernel."""
        assert self.launched is not None
        names = self.launched.names
        given = dict(zip(names, args[HEAD:], strict=True))
        guard = Guard(_last, self, counter, self._raised)
        slowly = self._slowly(args, bound, counter)
        return quick_launch(bound, args[:3], names, given, slowly, guard)

    def _raised(self, error: Exception, stream: int) -> BaseException:
        """What is raised where a launch of ours has raised."""
        failure = None if self._events is None else self._events.failure(stream)
        return error if failure is None else self._failed(failure)

    def _slowly(self, args: tuple[Any, ...], bound: Bound, counter: list[int]) -> Launch:
        """The same for whatever is launched: what is bound to addresses is kept for the next."""
        places, stock = self._places(), self._stock
        ready: dict[object, Bound | None] = {_addresses(args, places): bound}

        def launch(*args: Any) -> object:
            where = _addresses(args, places)
            if where in ready:
                bound = ready[where]
            else:
                if len(ready) >= ADDRESSES:
                    ready.clear()
                bound = ready[where] = self._bound_or_not(args)
            if bound is None:
                return stock(*args)
            _last[0] = self
            counter[0] += 1
            try:
                return bound.launch(args[:3], args[3])
            except Exception as error:
                raise self._raised(error, args[3]) from error

        return launch

    def _places(self) -> tuple[int, ...]:
        assert self.launched is not None
        return tuple(HEAD + n for n in self.launched.tensors)

    def _bound_or_not(self, args: tuple[Any, ...]) -> Bound | None:
        assert self.launched is not None
        try:
            return self._bound(args)
        except Exception as error:  # tensors that overlap, or that no copy engine reaches
            self._tell(error, self.launched.name)
            return None

    def _check(self, args: tuple[Any, ...]) -> None:
        """Run both on copies; StrettoError, and a ban, where they differ."""
        assert self.launched is not None
        head, values = args[:HEAD], args[HEAD:]

        def ours(copies: Sequence[Any]) -> None:
            self._bound((*head, *copies)).launch(args[:3], args[3])

        try:
            check_alike(
                self.launched.names, values, lambda copies: self._stock(*head, *copies), ours
            )
        except StrettoError as error:
            ban(self._key, self.launched.name, str(error))
            raise

    # What is left to Triton -------------------------------------------------------------------

    def _leave(self, error: Exception, name: str) -> None:
        """Nothing of the kernel is ours any more, and why; where it is strict, the error itself."""
        self.restore()
        self._gone = True
        self._settled.clear()
        self._contests.clear()
        reason = self._tell(error, name)
        self._note(reason, name)
        report_refused(name, self._key or "unread", self._settings.asked, reason)

    def _tell(self, error: Exception, name: str) -> str:
        """A reason, told once; where the kernel is strict, the error itself is raised."""
        strict, quiet = self._settings.strict, self._settings.quiet
        function = self._kernel.src.fn
        teller = _TELLERS.setdefault(function, Teller(name, strict, "Triton", quiet))
        return teller.refuse(error).reason

    def _failed(self, error: DeviceError) -> KernelFailedError:
        """A kernel failed: what the user is told; those of ours that may have are banned."""
        assert self.launched is not None
        samples = [sample for contest, _ in self._contests.values() for sample in contest.pending]
        places = [sample.place for sample in samples if sample.runner is Runner.OURS]
        suspects = [self] if places else [one for one in _last if one is not None]
        for one in suspects:
            assert one.launched is not None
            why = f"it failed on the GPU: {error}"
            ban(one._key, one.launched.name, why)
        told = (
            f"{error}: a kernel failed on the GPU and nothing runs there in this process any more"
        )
        if not suspects:
            return KernelFailedError(f"{told}; none of Stretto's was running")
        names = " or ".join(f"`{one.launched.name}`" for one in suspects if one.launched)
        where = f", launched at {places[0]}" if places else ""
        return KernelFailedError(
            f"{told}; it may be Stretto's kernel of {names}{where}, which is not used again"
        )

    # What is told -----------------------------------------------------------------------------

    def _verdict(self, kind: Any, runs: str, why: str) -> Verdict:
        assert self.launched is not None
        counter = self._counters.setdefault(kind, [0])
        parts: tuple[Any, ...] = kind if isinstance(kind, tuple) else ()
        counter[0] = 0
        return Verdict(
            self.launched.name, parts[:3], parts[3:], runs, why, key=self._key, counter=counter
        )

    def _note(self, why: str, name: str) -> None:
        note(Verdict(name, why=why, key=self._key))


def _with_shapes(
    pick: Callable[[Sequence[Any]], Any], where: Sequence[int], args: Sequence[Any]
) -> object:
    """A kind that has the shapes of the user's descriptors too."""
    found = list(pick(args))
    for n in where:
        found += [tuple(args[n].shape), tuple(args[n].strides)]
    return tuple(found)


def _addresses(args: Sequence[Any], places: Sequence[int]) -> object:
    """What a bound launch depends on, beside its kind."""
    found: list[Any] = []
    for n in places:
        value = args[n]
        base = value if hasattr(value, "data_ptr") else value.base
        found += (base.data_ptr(), base.shape)
    return tuple(found)


def _place() -> str:
    _, frame = outside()
    return "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
