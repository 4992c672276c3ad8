"""One kernel of the user's, at its launches.

    arguments ──► exact? ──► a ready launch: addresses and numbers are those of an earlier one
                    │ no
                    └──► variant? ──► bind: descriptors for these addresses
                            │ no
                            └──► make, load, compile ──► a variant, or a reason why there is none

A reason is told once a kernel, as a warning; the kernel then runs as its own framework compiles it.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any

from stretto.errors import StrettoError
from stretto.launching.asked import Asked
from stretto.launching.loading import Bound, Loaded, load
from stretto.launching.making import NOTHING, make
from stretto.launching.reporting import report, report_refused

if TYPE_CHECKING:  # a launch needs none of it
    from stretto.kernel import Kernel

INSIDE = ("stretto.", "triton.")
"""Modules whose frames are no user's."""
READY = 1024
"""Launches that are kept ready; beyond, all are forgotten and made anew as they come."""


class PipelineWarning(UserWarning):
    """A kernel runs as its own framework compiles it, and why."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a launch is not ours."""

    reason: str


class Teller:
    """Says once a kernel and reason why a launch is not ours."""

    def __init__(self, name: str, strict: bool, instead: str, quiet: bool = False) -> None:
        self._name, self._strict, self._instead = name, strict, instead
        self._quiet = quiet
        self._told: set[str] = set()

    def refuse(self, error: Exception) -> Refused:
        """A reason, told once; where the kernel is strict, the error itself."""
        if self._strict:
            raise error
        said = " ".join(str(error).split()) or "no message"
        # Errors of our own are sentences; others need their kind to be understood.
        reason = said if isinstance(error, StrettoError) else f"{type(error).__name__}: {said}"
        if reason not in self._told and reason != NOTHING and not self._quiet:
            self._told.add(reason)
            told = f"{self._name} runs as {self._instead} compiles it: {reason}"
            warnings.warn(told, PipelineWarning, stacklevel=outside()[0])
        return Refused(reason)


@dataclass(slots=True)
class _Variant:
    """A kernel for one kind of arguments."""

    loaded: Loaded
    key: str
    asked: Asked
    spilled: int = 0
    """Bytes that it stores because registers do not do."""
    checked: bool = False
    """Whether Triton compiled it."""


class Launcher:
    """The variants and the ready launches of a kernel."""

    def __init__(self, name: str, asked: Asked, strict: bool, instead: str) -> None:
        self._name = name
        self._asked = asked
        self._instead = instead
        self.refuse = Teller(name, strict, instead).refuse
        self._variants: dict[object, _Variant | Refused] = {}
        self._ready: dict[object, Bound | Refused] = {}

    def ready(self, exact: object) -> Bound | Refused | None:
        """What an earlier launch with the same addresses and numbers came to."""
        return self._ready.get(exact)

    def bind(
        self,
        exact: object,
        variant: object,
        target: str,
        read: Callable[[], tuple[bytes, Callable[[], Kernel]]],
        given: Mapping[str, Any],
        own: Callable[[], int] | None = None,
    ) -> Bound | Refused:
        """A launch on the arguments given; `read` has the content and how it becomes a kernel,
        `own` the bytes that the framework's own kernel spills, where it can be asked."""
        try:
            known = self._variants.get(variant)
            if known is None:
                known = self._variants[variant] = self._made(target, read)
            found = known if isinstance(known, Refused) else known.loaded.bind(given)
        except Exception as error:  # arguments that no descriptor can be made for
            found = self.refuse(error)
        else:
            if isinstance(found, Bound) and isinstance(known, _Variant) and not known.checked:
                found = self._check(variant, known, found, own)
        if exact is not None:
            if len(self._ready) >= READY:
                self._ready.clear()
            self._ready[exact] = found
        return found

    def _made(
        self, target: str, read: Callable[[], tuple[bytes, Callable[[], Kernel]]]
    ) -> _Variant | Refused:
        key, asked = "unread", self._asked
        try:
            content, kernel = read()
            asked = asked.on(target)
            key = asked.key(self._name, content)
            entry = make(self._name, key, kernel, asked)
            report(self._name, key, entry)
            return _Variant(load(entry, key), key, asked, entry.document.get("spilled", 0))
        except Exception as error:  # whatever it is, the user's kernel runs
            refused = self.refuse(error)
            report_refused(self._name, key, asked, refused.reason)
            return refused

    def _check(
        self, variant: object, known: _Variant, bound: Bound, own: Callable[[], int] | None
    ) -> Bound | Refused:
        """Compile a variant's first launch; if that fails, or spills more than the framework's own
        kernel, it is no launch of ours any more."""
        try:
            bound.check()
            if known.spilled and own is not None and known.spilled > (theirs := own()):
                told = f"it spills {known.spilled:,} bytes of registers at least"
                raise StrettoError(f"{told}, {self._instead}'s own kernel {theirs:,}")
        except Exception as error:
            refused = self._variants[variant] = self.refuse(error)
            report_refused(self._name, known.key, known.asked, refused.reason)
            return refused
        known.checked = True
        return bound


def outside() -> tuple[int, FrameType | None]:
    """How many frames up the user's launch is, and its frame."""
    depth, frame = 1, inspect.currentframe()
    frame = frame.f_back if frame is not None else None
    while frame is not None and frame.f_globals.get("__name__", "").startswith(INSIDE):
        depth, frame = depth + 1, frame.f_back
    return depth, frame
