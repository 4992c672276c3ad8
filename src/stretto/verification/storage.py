"""What all copies need together: storage.

    smem 232,448   │ a_tile × 3 │ b_tile × 3 │   free   │
    ring of 2      │ landed 0 │ landed 1 │ ✗ a third copy alive

Caps and budgets are kept, and the rows that the analysis publishes are as counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from stretto.ops.spaces import SPACES
from stretto.verification.layout import Kept, Layout, Violation


def storage(laid: Layout) -> Iterator[Violation]:
    """All copies fit their space, rings keep their caps, and what is published is so."""
    kept = {name: k for name, k in laid.kept.items() if k is not None}
    yield from _caps(laid, kept)
    yield from _budgets(laid, kept)
    yield from _published_rows(laid, kept)
    yield from _published_budgets(laid)
    if len(kept) == len(laid.loop.storages):
        yield from _published_memory(laid, kept)


def _caps(laid: Layout, kept: dict[str, Kept]) -> Iterator[Violation]:
    for name, k in kept.items():
        cap = k.storage.depth
        if cap is not None and k.copies > cap:
            message = (
                f"storage `{name}` has {k.copies} copies alive at once (each lives {k.lifetime} "
                f"cycles, II {laid.ii}); its ring is capped at {cap}"
            )
            detail = (("storage", name), ("copies", k.copies), ("cap", cap))
            yield Violation("storage", message, k.accessors, detail)


def _budgets(laid: Layout, kept: dict[str, Kept]) -> Iterator[Violation]:
    for space in dict.fromkeys(k.storage.space for k in kept.values()):
        budget = laid.machine.budget(space)
        if not SPACES[space].budgeted or budget is None or budget.bytes is None:
            continue
        inside = [k for k in kept.values() if k.storage.space == space]
        used = sum(k.bytes for k in inside)
        if used > budget.bytes:
            parts = " + ".join(
                f"`{k.storage.name}` {k.copies} × {k.storage.bytes:,}" for k in inside
            )
            message = (
                f"{space} holds {budget.bytes:,} bytes; the schedule needs {used:,} "
                f"({parts}, II {laid.ii})"
            )
            accessors = tuple(dict.fromkeys(name for k in inside for name in k.accessors))
            detail = (("space", space), ("used", used), ("budget", budget.bytes))
            yield Violation("storage", message, accessors, detail)


# What the analysis publishes --------------------------------------------------------------


def _published_rows(laid: Layout, kept: dict[str, Kept]) -> Iterator[Violation]:
    rows = laid.analysis.storages
    if not rows:
        return
    known = {s.name for s in laid.loop.storages}
    times = Counter(row.name for row in rows)
    for name, count in times.items():
        if name not in known:
            message = f"a row is published for `{name}`, which is no storage of the loop"
            yield Violation("storage", message, (), (("storage", name),))
        if count > 1:
            message = f"storage `{name}` has {count} published rows"
            yield Violation("storage", message, (), (("storage", name), ("rows", count)))
    for s in laid.loop.storages:
        if s.name not in times:
            message = f"storage `{s.name}` has no published row, though others have"
            yield Violation("storage", message, (), (("storage", s.name),))
    for row in rows:
        k = kept.get(row.name)
        if k is None:
            continue
        counted: tuple[tuple[str, int | str, int | str], ...] = (
            ("space", row.space, k.storage.space),
            ("bytes", row.bytes, k.storage.bytes),
            ("lifetime", row.lifetime, k.lifetime),
            ("ring depth", row.ring_depth, k.copies),
        )
        for what, published, actual in counted:
            if published != actual:
                message = (
                    f"storage `{row.name}` is said to have {what} {published}; "
                    f"counted at II {laid.ii}: {actual}"
                )
                detail = (("storage", row.name), ("published", published), ("counted", actual))
                yield Violation("storage", message, k.accessors, detail)


def _published_budgets(laid: Layout) -> Iterator[Violation]:
    """Budgets, where stated, are the machine's; one that was lifted is not compared."""
    for row in laid.analysis.memory:
        budget = laid.machine.budget(row.space)
        if row.budget is None or budget is None or budget.bytes in (None, row.budget):
            continue
        message = (
            f"{row.space} is said to hold {row.budget:,} bytes; "
            f"{laid.machine.name} gives it {budget.bytes:,}"
        )
        detail = (("space", row.space), ("published", row.budget), ("budget", budget.bytes))
        yield Violation("storage", message, (), detail)


def _published_memory(laid: Layout, kept: dict[str, Kept]) -> Iterator[Violation]:
    rows = [row for row in laid.analysis.memory if SPACES[row.space].budgeted]
    if not rows:
        return
    used: Counter[str] = Counter()
    for k in kept.values():
        if SPACES[k.storage.space].budgeted:
            used[k.storage.space] += k.bytes
    for row in rows:
        if row.used != used[row.space]:
            message = (
                f"{row.space} is said to need {row.used:,} bytes; "
                f"counted at II {laid.ii}: {used[row.space]:,}"
            )
            detail = (("space", row.space), ("published", row.used), ("counted", used[row.space]))
            yield Violation("storage", message, (), detail)
    published = [row.space for row in rows]
    for space, total in used.items():
        if published.count(space) != 1:
            message = (
                f"{space} has {published.count(space)} published rows; "
                f"the loop needs {total:,} bytes of it"
            )
            yield Violation("storage", message, (), (("space", space), ("counted", total)))
