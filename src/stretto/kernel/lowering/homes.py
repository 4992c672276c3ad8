"""Where the values of a kernel are while it is lowered.

    %k  ──►  smem: %k_tile's filling       what a TMA load left there
             register: %k_read             read out once somebody computed with it

What is found out inside a region is forgotten at its end: it is not defined outside.
"""

from __future__ import annotations

from stretto.kernel.tree import Value
from stretto.ops.spaces import REGISTERS

Home = dict[str, Value]
"""By space, what a value is called there."""


class Homes:
    """The places of values, region by region."""

    def __init__(self) -> None:
        self._scopes: list[dict[Value, Home]] = [{}]
        self._roots: dict[Value, Value] = {}

    def enter(self) -> None:
        """A region begins."""
        self._scopes.append({})

    def leave(self) -> None:
        """It ends."""
        self._scopes.pop()

    def of(self, value: Value) -> Home:
        """Where a value is."""
        for scope in reversed(self._scopes):
            if value in scope:
                return scope[value]
        return {}

    def put(self, value: Value, space: str, lowered: Value) -> None:
        """A value is in a space too, from here to the end of the region."""
        self._scopes[-1][value] = {**self.of(value), space: lowered}

    def in_registers(self, value: Value, lowered: Value) -> None:
        """A value is in registers."""
        self.put(value, REGISTERS, lowered)

    def remember(self, lowered: Value, buffer: Value) -> None:
        """A filled buffer is another name of that buffer."""
        self._roots[lowered] = self.root(buffer)

    def root(self, lowered: Value) -> Value:
        """The buffer that a name stands for."""
        return self._roots.get(lowered, lowered)

    def inside(self, buffer: Value) -> list[tuple[Value, str]]:
        """The values that are in a buffer, each with its space."""
        root = self.root(buffer)
        found: dict[Value, str] = {}
        for scope in self._scopes:
            for value in scope:
                for space, lowered in self.of(value).items():
                    if self.root(lowered) is root:
                        found[value] = space
        return list(found.items())

    def drop(self, value: Value, space: str) -> None:
        """A value is not in a space any more: something else is."""
        self._scopes[-1][value] = {s: v for s, v in self.of(value).items() if s != space}
