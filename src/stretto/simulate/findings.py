"""Violations as they are found: each kind told once, with how often it came up."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from stretto.simulate.outcome import Violation, ViolationName


@dataclass(slots=True)
class Findings:
    """Collects violations; the same thing in another iteration is the same thing."""

    _found: dict[tuple[object, ...], Violation] = field(
        default_factory=dict[tuple[object, ...], Violation]
    )

    def add(
        self,
        name: ViolationName,
        message: str,
        ops: tuple[str, ...],
        cycle: int | None = None,
        about: object = None,
    ) -> None:
        """Something is wrong; `about` tells apart what the operations alone do not."""
        key = (name, ops, about)
        known = self._found.get(key)
        if known is None:
            self._found[key] = Violation(name, message, ops, cycle)
        else:
            self._found[key] = replace(known, times=known.times + 1)

    def all(self) -> tuple[Violation, ...]:
        """In the order in which they first came up."""
        return tuple(self._found.values())
