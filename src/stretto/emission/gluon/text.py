"""Lines of Python."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager


class Lines:
    """Python source, line by line."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._deep = 0

    def say(self, text: str = "") -> None:
        """A line."""
        self.lines.append("    " * self._deep + text if text else "")

    @contextmanager
    def block(self, head: str) -> Generator[None]:
        """A line that ends in a colon, and what stands below it."""
        self.say(head)
        self._deep += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.say("pass")
        self._deep -= 1

    def __str__(self) -> str:
        return "\n".join(self.lines)
