"""Why a kernel cannot be emitted."""

from __future__ import annotations

from stretto.errors import StrettoError
from stretto.kernel import Operation
from stretto.kernel.tree import kind_of
from stretto.ops.operations import OPERATIONS
from stretto.ops.reductions import GLUON
from stretto.ops.rows import reason_of

ALONE = "--mode unspecialized"
"""What helps where agents cannot share the work: one warpgroup that does everything."""
_INSTEAD = {
    "barrier": f"in one warpgroup it has: {ALONE}",
}
TRITONS = "at a launch, Triton's own kernel runs it"
"""What becomes of a kernel that is not emitted."""


class EmitError(StrettoError):
    """A kernel that cannot be emitted, and why; at the user's place where it has one."""

    def __init__(self, why: str, operation: Operation | None = None, hint: str = "") -> None:
        where = "" if operation is None else f"{operation.location}: error: "
        super().__init__(f"{where}{why}" + (f" ({hint})" if hint else ""))
        self.hint = hint
        self._placed = operation is not None

    def lines(self, file: str) -> tuple[str, ...]:
        """Itself, where it begins with its place."""
        return (str(self),) if self._placed else (f"{file}: error: {self}",)


def unwritten(operation: Operation, where: str = "") -> EmitError:
    """That an operation has no Gluon, and what to do."""
    kind = kind_of(operation)
    row = OPERATIONS.get(kind) or OPERATIONS.get(f"tile.{kind}")
    stated = GLUON.get(kind, "" if row is None else row.gluon)
    hint = reason_of(stated) or _INSTEAD.get(kind, TRITONS)
    return EmitError(f"`{kind}`{where} has no Gluon yet", operation, hint)
