"""A part of Stretto with one thing taken out of it, in memory, and who notices.

    removed ──► harness(case) ──► ("oracle",)     caught: two sides no longer agree on the case
    nothing ──► harness(case) ──► ()              silent

A harness looks at one case (a seed, or a case made by hand) and names everybody who objects. Of
the parts as they are nobody does.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import Any

import pytest

Case = int | str
"""A seed, or the name of a case made by hand."""
Patch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Harness:
    """Sets parts against each other on one case."""

    objections: Callable[[Case], tuple[str, ...]]
    """Who objects, each named once; nobody where nothing is removed."""
    enough: tuple[str, ...]
    """When all of these have objected, nobody else need be asked."""
    cases: Callable[[int], Iterable[Case]]
    """Cases to look for objections in, about so many."""
    prepare: Callable[[Case], object] = lambda _: None
    """What must be worked out while nothing is removed."""
    detail: Callable[[Case], str] = lambda _: ""
    """What else is to be said of a case while something is removed."""


@dataclass(frozen=True)
class Mutant:
    """One thing that is removed."""

    part: str
    name: str
    removed: str
    """In a sentence."""
    patch: Patch
    harness: Harness
    caught: dict[str, Case] = field(default_factory=dict[str, Case])
    """Who catches it, and a case in which they do."""
    covered: str = ""
    """Where nobody does, or it only loses a name: what tells the same."""
    shown_by: str = ""
    """The mutant that lacks that as well, and is caught."""

    @property
    def id(self) -> str:
        """For the names of tests."""
        return f"{self.part}: {self.name}"

    @contextmanager
    def applied(self) -> Generator[None]:
        """While this lasts, it is not there."""
        with pytest.MonkeyPatch.context() as patch:
            self.patch(patch)
            yield

    def objections(self, case: Case) -> tuple[str, ...]:
        """Who objects to a case while it is not there."""
        self.harness.prepare(case)
        with self.applied():
            return self.harness.objections(case)

    def detail(self, case: Case) -> str:
        """What else is to be said of a case while it is not there."""
        self.harness.prepare(case)
        with self.applied():
            return self.harness.detail(case)


# What is done to the parts ------------------------------------------------------------------


def changed(target: str, change: Callable[[Any], Any]) -> Patch:
    """An attribute of a module or class, made of what it was."""
    where, _, name = target.rpartition(".")

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        owner = resolve_name(where)
        monkeypatch.setattr(owner, name, change(getattr(owner, name)))

    return patch


def replaced(target: str, value: object) -> Patch:
    """An attribute of a module or class, replaced."""
    return changed(target, lambda _: value)


def around(target: str, other: Callable[[Callable[..., Any], tuple[Any, ...]], Any]) -> Patch:
    """A function or method that gives something else, made of what it was and its arguments."""

    def change(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            return other(original, args)

        return call

    return changed(target, change)


def giving(target: str, value: object) -> Patch:
    """A function or method that gives one thing, whatever it is asked."""
    return around(target, lambda _, __: value)


def silent(target: str) -> Patch:
    """A check or a constraint that does nothing: it finds and asks for nothing."""
    return giving(target, ())


def all_of(*patches: Patch) -> Patch:
    """Several things at once."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        for one in patches:
            one(monkeypatch)

    return patch


def keeping(target: str, keep: Callable[[Any], bool]) -> Patch:
    """A function that gives several things, of which only some are kept."""

    return around(target, lambda original, args: filter(keep, original(*args)))
