"""Our kernel of one that Triton compiled: asked for, made beside it, loaded, judged by kinds.

first launch ──► in the store? ──► Loaded
                    │ no
                    └──► a maker ──► Made ──► Loaded;  predicted slower? that kind is not tried
another kind ──► the same maker, which remembers what it made ──► slower?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from stretto.errors import StrettoError
from stretto.launching.asked import Asked
from stretto.launching.loading import Loaded, load, sent
from stretto.launching.makers import Job, start
from stretto.launching.making import Compilation, Declined, Made, Request, Sketch, answer
from stretto.launching.reporting import report
from stretto.launching.storing import Store
from stretto.launching.verdicts import decline
from stretto.triton.launched import Launched
from stretto.triton.reading import ttir_kernel


class Production:
    """Our kernel, as far as it has come."""

    def __init__(self, launched: Launched, asked: Asked, key: str, waits: bool) -> None:
        self._launched, self._asked, self._key, self._waits = launched, asked, key, waits
        self._jobs: dict[object, Job] = {}
        """By kinds of launches: the first makes the kernel, all are judged."""
        self._sketch: Job | None = None
        self.loaded: Loaded | None = None

    @property
    def begun(self) -> bool:
        """Whether anybody has asked for it."""
        return self.loaded is not None or bool(self._jobs)

    @property
    def pending(self) -> bool:
        """Whether it is being made."""
        return any(not job.done for job in self._jobs.values())

    def ready(
        self, kind: object, grid: tuple[int, ...], given: Sequence[Any], seconds: float = 0.0
    ) -> bool:
        """Whether it is there: it is asked for, and waited for so long at most; StrettoError
        where it is not to be had."""
        if self.loaded is not None:
            return True
        if not self._jobs:
            entry = Store().get(self._key, self._launched.name)
            if entry is not None:
                report(self._launched.name, self._key, entry)
                self.loaded = load(entry, self._key)
                return True
            self._start(kind, grid, given)
        job = next(iter(self._jobs.values()))
        if self._waits or seconds > 0:
            job.wait(None if self._waits else seconds)
        if not job.done:
            return False
        made = job.answer
        if isinstance(made, Declined):
            if made.lasting:
                decline(self._key, self._launched.name, made.reason)
            raise StrettoError(made.reason)
        if not isinstance(made, Made):
            raise StrettoError(job.failure)
        report(self._launched.name, self._key, made.entry)
        self.loaded = load(made.entry, self._key)
        return True

    def slower(self, kind: object, grid: tuple[int, ...], given: Sequence[Any]) -> str | None:
        """Why launches of a kind are not tried; None while that is found out.

        What an earlier process made is not judged again: the trial tells.
        """
        if not self._jobs:
            return ""
        if kind not in self._jobs:
            self._start(kind, grid, given)
        job = self._jobs[kind]
        if self._waits:
            job.wait()
        if not job.done:
            return None
        return job.answer.slower if isinstance(job.answer, Made) else ""

    def sketch(self, grid: tuple[int, ...], given: Sequence[Any]) -> None:
        """Have the model say what to expect of it, unless it is made already."""
        made = self.begun or Store().get(self._key, self._launched.name) is not None
        if self._sketch is None and not made:
            self._sketch = start(replace(self._request(grid, given), sketch=True), answer)

    @property
    def sketched(self) -> float | None:
        """Seconds that the model says; None where it has not yet."""
        found = None if self._sketch is None else self._sketch.answer
        return found.seconds if isinstance(found, Sketch) else None

    def withdraw(self) -> None:
        """Nobody wants to know what the model says any more."""
        if self._sketch is not None:
            self._sketch.withdrawn = True

    def _start(self, kind: object, grid: tuple[int, ...], given: Sequence[Any]) -> None:
        """Have it made, or a kind judged."""
        self._jobs[kind] = start(self._request(grid, given), answer)

    def _request(self, grid: tuple[int, ...], given: Sequence[Any]) -> Request:
        launched = self._launched
        name, module = launched.name, launched.ttir
        arguments = {
            each: sent(value)
            for each, value in zip(launched.names, given, strict=True)
            if launched.signature[each] != "constexpr"
        }
        own = Compilation(launched.ptx, launched.cubin, module.warps, module.stages, launched.smem)
        read = partial(ttir_kernel, name, module)
        return Request(name, self._key, read, self._asked, module.target, own, arguments, grid)
