"""Machines that were read before, as long as what they were read from is the same.

    load_machine("blackwell")  ──►  read    ──►  Machine
    load_machine("blackwell")  ───────────────►  the same Machine

A file is the same while its time stamp and size are, and the environment while the variables that
the file asks about have the same values.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from time import time_ns

from stretto.machine.model import Machine

Stamp = tuple[str | int, ...]
"""What tells a file from what it was before."""

SHIPS: Stamp = ()
"""Of files that never change."""

FRESH = 2_000_000_000
"""Nanoseconds in which a file may be written twice under one time stamp on some systems."""


@dataclass(slots=True)
class _Asked(Mapping[str, str]):
    """An environment that remembers what was asked of it."""

    environment: Mapping[str, str]
    answers: dict[str, str | None] = field(default_factory=dict[str, str | None])

    def __getitem__(self, name: str) -> str:
        self.answers[name] = self.environment.get(name)
        return self.environment[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.environment)

    def __len__(self) -> int:
        return len(self.environment)


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A machine, and what it was read from."""

    machine: Machine
    stamp: Stamp
    answers: Mapping[str, str | None]

    def still(self, stamp: Stamp | None, environment: Mapping[str, str]) -> bool:
        """Whether reading it again would make the same machine."""
        same = all(environment.get(name) == answer for name, answer in self.answers.items())
        return same and self.stamp == stamp


_LOADED: dict[str, _Loaded] = {}


def stamp(name: str) -> Stamp | None:
    """The stamp of a file; None: nothing tells whether it changed, so it is read every time."""
    try:
        found = os.stat(name)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(found.st_mode) or time_ns() - found.st_mtime_ns < FRESH:
        return None
    # The name may be relative to another folder by now.
    return os.path.abspath(name), found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def once(
    name: str,
    made: Stamp | None,
    environment: Mapping[str, str],
    read: Callable[[Mapping[str, str]], Machine],
) -> Machine:
    """The machine that was read under this name before, or a new one."""
    known = _LOADED.get(name)
    if known is not None and known.still(made, environment):
        return known.machine
    asked = _Asked(environment)
    machine = read(asked)
    if made is not None:
        _LOADED[name] = _Loaded(machine, made, asked.answers)
    return machine
