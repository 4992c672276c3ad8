"""Where operations were asked to stand: depth, group, pin.

stage    0                1             2
         load_a           qk ✗          read ✗       max_depth of `read` is 1
         load_b ✗─ group ─✗ load_c                   `qk` is pinned to stage 0
"""

from __future__ import annotations

from collections.abc import Iterator

from stretto.verification.layout import Layout, Violation
from stretto.verification.requirements import groups


def depth(laid: Layout) -> Iterator[Violation]:
    """No operation stands deeper than it may, nor the whole schedule."""
    for op in laid.placed:
        most = op.constraint.max_depth
        if most is None:
            continue
        stage = laid.stage(op.name)
        if stage > most:
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


def group(laid: Layout) -> Iterator[Violation]:
    """Operations of one leader group share a stage, each so far behind it as its offset says."""
    for members in groups(laid.loop):
        placed = {name: offset for name, offset in members.items() if name in laid.starts}
        if len({laid.stage(name) - offset for name, offset in placed.items()}) > 1:
            where = ", ".join(
                f"`{name}` in stage {laid.stage(name)} (start {laid.starts[name]}"
                + (f", stage_offset {offset})" if offset else ")")
                for name, offset in placed.items()
            )
            but = ", but for their offsets," if any(placed.values()) else ""
            message = f"one group must{but} share a stage at II {laid.ii}: {where}"
            detail = tuple((name, laid.stage(name)) for name in placed)
            yield Violation("group", message, tuple(placed), detail)


def pin(laid: Layout) -> Iterator[Violation]:
    """Every operation stands where it is pinned, and before those it is to stand before."""
    for op in laid.placed:
        asked = op.constraint
        if asked.start is asked.stage is asked.cycle is None and not asked.before:
            continue
        start = laid.starts[op.name]
        for what, wanted, has in (
            ("start", asked.start, start),
            ("stage", asked.stage, laid.stage(op.name)),
            ("cycle", asked.cycle, start - laid.stage(op.name) * laid.ii),
        ):
            if wanted is not None and has != wanted:
                message = (
                    f"`{op.name}` is pinned to {what} {wanted}; it has {what} {has} "
                    f"(start {start}, II {laid.ii})"
                )
                yield Violation("pin", message, (op.name,), ((what, has), ("pinned", wanted)))
        for other in asked.before:
            if other in laid.starts and laid.starts[other] <= start:
                message = (
                    f"`{op.name}` is to start before `{other}`; it starts at {start}, "
                    f"`{other}` at {laid.starts[other]}"
                )
                detail = ((op.name, start), (other, laid.starts[other]))
                yield Violation("pin", message, (op.name, other), detail)
