"""Who stands together: group.

stage    0                1
         load_a           mma
         load_b ✗─ group ─✗ load_c
"""

from __future__ import annotations

from collections.abc import Iterator

from stretto.verify.asked import groups
from stretto.verify.case import Case, Violation


def group(case: Case) -> Iterator[Violation]:
    """Operations of one leader group share a stage."""
    for members in groups(case.loop):
        placed = [name for name in members if name in case.starts]
        if len({case.stage(name) for name in placed}) > 1:
            where = ", ".join(
                f"`{name}` in stage {case.stage(name)} (start {case.starts[name]})"
                for name in placed
            )
            message = f"one group must share a stage at II {case.ii}: {where}"
            detail = tuple((name, case.stage(name)) for name in placed)
            yield Violation("group", message, tuple(placed), detail)
