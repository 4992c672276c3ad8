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
from typing import Any

from stretto.errors import StrettoError
from stretto.kernel import Kernel
from stretto.launching.asked import Asked
from stretto.launching.loading import Bound, Loaded, load
from stretto.launching.making import make
from stretto.launching.reporting import report_refused

READY = 1024
"""Launches that are kept ready; beyond, all are forgotten and made anew as they come."""


class PipelineWarning(UserWarning):
    """A kernel runs as its own framework compiles it, and why."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a launch is not ours."""

    reason: str


class Launcher:
    """The variants and the ready launches of a kernel."""

    def __init__(self, name: str, asked: Asked, strict: bool, instead: str) -> None:
        self._name = name
        self._asked = asked
        self._strict = strict
        self._instead = instead
        self._variants: dict[object, Loaded | Refused] = {}
        self._ready: dict[object, Bound | Refused] = {}
        self._told: set[str] = set()

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
    ) -> Bound | Refused:
        """A launch on the arguments given; `read` has the content and how it becomes a kernel."""
        found: Bound | Refused
        try:
            loaded = self._variants.get(variant)
            if loaded is None:
                found = self._first(variant, target, read, given)
            elif isinstance(loaded, Refused):
                found = loaded
            else:
                found = loaded.bind(given)
        except Exception as error:  # arguments that no descriptor can be made for
            found = self.refuse(error)
        if exact is not None:
            if len(self._ready) >= READY:
                self._ready.clear()
            self._ready[exact] = found
        return found

    def _first(
        self,
        variant: object,
        target: str,
        read: Callable[[], tuple[bytes, Callable[[], Kernel]]],
        given: Mapping[str, Any],
    ) -> Bound | Refused:
        key, asked = "", self._asked
        try:
            content, kernel = read()
            asked = asked.on(target)
            key = asked.key(content)
            entry = make(self._name, key, kernel, asked)
            loaded = load(entry, key)
            bound = loaded.bind(given)
            bound.check()
        except Exception as error:  # whatever it is, the user's kernel runs
            refused = self.refuse(error)
            self._variants[variant] = refused
            report_refused(self._name, key or "unread", asked, refused.reason)
            return refused
        self._variants[variant] = loaded
        return bound

    def refuse(self, error: Exception) -> Refused:
        """A reason, told once; where the kernel is strict, the error itself."""
        if self._strict:
            raise error
        said = " ".join(str(error).split()) or "no message"
        # Errors of our own are sentences; others need their kind to be understood.
        reason = said if isinstance(error, StrettoError) else f"{type(error).__name__}: {said}"
        if reason not in self._told:
            self._told.add(reason)
            told = f"{self._name} runs as {self._instead} compiles it: {reason}"
            warnings.warn(told, PipelineWarning, stacklevel=_outside())
        return Refused(reason)


def _outside() -> int:
    """How many frames up the user's launch is."""
    depth, frame = 1, inspect.currentframe()
    frame = frame.f_back if frame is not None else None
    while frame is not None and frame.f_globals.get("__name__", "").startswith("stretto."):
        depth, frame = depth + 1, frame.f_back
    return depth
