"""How deep operations stand: depth.

stage    0        1        2         max_depth of `read` is 1,
         load     write    read ✗    and the schedule may have two stages
"""

from __future__ import annotations

from collections.abc import Iterator

from stretto.verify.layout import Layout, Violation


def depth(laid: Layout) -> Iterator[Violation]:
    """No operation stands deeper than it may, nor the whole schedule."""
    for op in laid.placed:
        most = op.constraint.max_depth
        stage = laid.stage(op.name)
        if most is not None and stage > most:
            message = (
                f"`{op.name}` is in stage {stage} (start {laid.starts[op.name]}, II {laid.ii}); "
                f"its max_depth is {most}"
            )
            yield Violation("depth", message, (op.name,), (("stage", stage), ("max_depth", most)))
    stages = laid.stage_count
    if laid.max_stages is not None and stages > laid.max_stages:
        deepest = tuple(name for name in laid.starts if laid.stage(name) == stages - 1)
        message = f"the schedule has {stages} stages; at most {laid.max_stages} are allowed"
        detail = (("stages", stages), ("max_stages", laid.max_stages))
        yield Violation("depth", message, deepest, detail)
