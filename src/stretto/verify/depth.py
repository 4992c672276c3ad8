"""How deep operations stand: depth.

stage    0        1        2         max_depth of `read` is 1,
         load     write    read ✗    and the schedule may have two stages
"""

from __future__ import annotations

from collections.abc import Iterator

from stretto.verify.case import Case, Violation


def depth(case: Case) -> Iterator[Violation]:
    """No operation stands deeper than it may, nor the whole schedule."""
    for op in case.placed:
        most = op.constraint.max_depth
        stage = case.stage(op.name)
        if most is not None and stage > most:
            message = (
                f"`{op.name}` is in stage {stage} (start {case.starts[op.name]}, II {case.ii}); "
                f"its max_depth is {most}"
            )
            yield Violation("depth", message, (op.name,), (("stage", stage), ("max_depth", most)))
    stages = case.stage_count
    if case.max_stages is not None and stages > case.max_stages:
        deepest = tuple(name for name in case.starts if case.stage(name) == stages - 1)
        message = f"the schedule has {stages} stages; at most {case.max_stages} are allowed"
        detail = (("stages", stages), ("max_stages", case.max_stages))
        yield Violation("depth", message, deepest, detail)
