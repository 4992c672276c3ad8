"""What is wrong with a kernel, at the place in what its user wrote.

matmul.py:31:12: error: `tt.print` cannot be lowered; take it out
"""

from __future__ import annotations

from stretto.errors import StrettoError
from stretto.kernel.tree import Location


class KernelError(StrettoError):
    """A kernel cannot be read or lowered: where, what, and what can be done."""

    def __init__(self, location: Location, message: str, hint: str = "") -> None:
        said = f"{location}: error: {message}" + (f"; {hint}" if hint else "")
        called = location.caller
        while called is not None:
            said += f"\n{called}: note: called from here"
            called = called.caller
        super().__init__(said)
        self.location = location
        self.message = message
        self.hint = hint

    def lines(self, file: str) -> tuple[str, ...]:  # noqa: ARG002 - it knows its own
        """Itself: it begins with its place."""
        return tuple(str(self).splitlines())

    def __reduce__(self) -> tuple[type[KernelError], tuple[Location, str, str]]:
        return KernelError, (self.location, self.message, self.hint)
