"""What iterations in flight keep of one storage.

    iteration 0   load ████████████████ read       born when the first writer issues,
    iteration 1          ████████████████          dead when the last accessor is done:
    iteration 2                 ████████████████   three copies alive at once

Fixed storages and storages that the loop only reads have one copy, which lives always.
"""

from __future__ import annotations

from dataclasses import dataclass

from stretto.loop import Storage
from stretto.verify.case import Case, Span


@dataclass(frozen=True, slots=True)
class Kept:
    """What was counted of one storage."""

    storage: Storage
    lifetime: int
    copies: int
    accessors: tuple[str, ...]

    @property
    def bytes(self) -> int:
        """Of all copies."""
        return self.storage.bytes * self.copies


def kept_of(case: Case, s: Storage) -> Kept | None:
    """Copies alive at once; None while an operation that touches it has no place."""
    touched = case.touched[s.name]
    writers = [touch.op.name for touch in touched if touch.writes]
    accessors = tuple(dict.fromkeys((*writers, *(touch.op.name for touch in touched))))
    if any(name not in case.starts for name in accessors):
        return None
    if s.fixed or not writers:
        return Kept(s, case.ii, 1, accessors)
    born = min(case.at(name, 0) for name in writers)
    dead = max(case.at(touch.op.name, touch.back) + touch.op.completion for touch in touched)
    copies = max(1, case.copies(Span(accessors, born, dead)))
    return Kept(s, dead - born, copies, accessors)
