"""Who stands together: group.

stage    0                1
         load_a           mma
         load_b ✗─ group ─✗ load_c
"""

from __future__ import annotations

from collections.abc import Iterator

from stretto.verify.asked import groups
from stretto.verify.layout import Layout, Violation


def group(laid: Layout) -> Iterator[Violation]:
    """Operations of one leader group share a stage."""
    for members in groups(laid.loop):
        placed = [name for name in members if name in laid.starts]
        if len({laid.stage(name) for name in placed}) > 1:
            where = ", ".join(
                f"`{name}` in stage {laid.stage(name)} (start {laid.starts[name]})"
                for name in placed
            )
            message = f"one group must share a stage at II {laid.ii}: {where}"
            detail = tuple((name, laid.stage(name)) for name in placed)
            yield Violation("group", message, tuple(placed), detail)
