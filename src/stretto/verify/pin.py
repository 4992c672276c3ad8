"""Where operations were told to stand: pin.

qk pinned to stage 0      stage    0       1
                                   load    qk ✗
"""

from __future__ import annotations

from collections.abc import Iterator

from stretto.verify.layout import Layout, Violation


def pin(laid: Layout) -> Iterator[Violation]:
    """Every operation stands where it is pinned, and before those it is to stand before."""
    for op in laid.placed:
        asked, start = op.constraint, laid.starts[op.name]
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
