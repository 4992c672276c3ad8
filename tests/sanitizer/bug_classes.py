"""Bugs put into sound kernels, one line at a time: twelve classes, each a change of text.

    bugs(text) ─► class, what was changed, the kernel with the bug

They know nothing of the kernels but Gluon's names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

Change = Callable[[list[str], int], list[str] | None]
"""Of lines and the number of one: the lines with a bug there; None: none fits there."""


def _dropped(pattern: str) -> Change:
    def change(lines: list[str], at: int) -> list[str] | None:
        if not re.search(pattern, lines[at]) or "def " in lines[at]:
            return None
        gap = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
        return [*lines[:at], f"{gap}pass", *lines[at + 1 :]]

    return change


def _replaced(pattern: str, other: str) -> Change:
    def change(lines: list[str], at: int) -> list[str] | None:
        made = re.sub(pattern, other, lines[at], count=1)
        return None if made == lines[at] else [*lines[:at], made, *lines[at + 1 :]]

    return change


def _earlier(pattern: str, over: str) -> Change:
    """A line goes before the nearest line above it, of the same block, that has something."""

    def change(lines: list[str], at: int) -> list[str] | None:
        if not re.search(pattern, lines[at]):
            return None
        gap = len(lines[at]) - len(lines[at].lstrip())
        for above in range(at - 1, -1, -1):
            indent = len(lines[above]) - len(lines[above].lstrip())
            if lines[above].strip() and indent < gap:
                return None
            if indent == gap and re.search(over, lines[above]):
                return [*lines[:above], lines[at], *lines[above:at], *lines[at + 1 :]]
        return None

    return change


CLASSES: dict[str, tuple[Change, ...]] = {
    "a wait is missing": (_dropped(r"mbarrier\.wait\("), _dropped(r"\bturn_of\(me\)")),
    "an arrival is missing": (
        _dropped(r"mbarrier\.arrive\("),
        _dropped(r"tcgen05_commit\("),
        _dropped(r"\bhand_on\(me\)"),
    ),
    "a phase is inverted": (
        _replaced(r"(mbarrier\.wait\(.*, )(.*)\)$", r"\1(\2) ^ 1)"),
    ),
    "a phase is never flipped": (
        _replaced(r"\((\w+) // (DEPTH|2)\) & 1", r"0"),
    ),
    "a count is wrong": (_replaced(r"(mbarrier\.init\(.*count=)1\)", r"\g<1>2)"),),
    "a count is too small": (
        _replaced(r"(mbarrier\.init\(.*count=)2\)", r"\g<1>1)"),
        _replaced(r"(mbarrier\.arrive\(.*count=)1", r"\g<1>2"),
    ),
    "bytes are wrong": (
        _replaced(r"(mbarrier\.expect\([^,]*(?:\([^)]*\))?[^,]*, )", r"\g<1>16 + "),
        _replaced(r" \+ b_desc\.block_type\.nbytes", ""),
    ),
    "a fence is missing": (_dropped(r"^\s+fence_async_shared\(\)"),),
    "too much is left in flight": (
        _replaced(r"(warpgroup_mma_wait\()0", r"\g<1>1"),
        _replaced(r"(warpgroup_mma_wait\()1", r"\g<1>2"),
        _replaced(r"(cp\.wait_group\()DEPTH - 2", r"\g<1>DEPTH - 1"),
        _replaced(r"(tma\.store_wait\()0", r"\g<1>1"),
        _replaced(r"(tma\.store_wait\()DEPTH - 1", r"\g<1>DEPTH"),
    ),
    "a slot is handed on too early": (
        _earlier(r"mbarrier\.arrive\(", r"warpgroup_mma_wait|\.load\(|\.store\("),
        _earlier(r"tcgen05_commit\(ready", r"for step"),
    ),
    "another slot": (
        _replaced(
            r"(warpgroup_mma\(.*)\b(\w+_ring)\.index\(slot\)", r"\1\2.index((slot + 1) % DEPTH)"
        ),
        _replaced(r"(tcgen05_mma\()a_ring\.index\(slot\)", r"\1a_ring.index((slot + 1) % DEPTH)"),
        _replaced(r"(= \w*ring)\.index\(slot\)\.load", r"\1.index((slot + 1) % 2).load"),
    ),
    "a barrier of threads or a budget": (
        _dropped(r"gl\.barrier\(\)"),
        _replaced(r"(trips, 64, )(3|4)\)", r"\g<1>30)"),
        _replaced(r"(\[24), 24\]", r"\1, 20]"),
        _replaced(r"\[160, 24\]", "[256, 256]"),
    ),
}  # fmt: skip
"""What goes wrong in pipelines, and the changes that bring it about."""


def bugs(text: str) -> Iterator[tuple[str, str, str]]:
    """Every bug of every class that a kernel has room for."""
    lines = text.splitlines()
    for name, changes in CLASSES.items():
        for change in changes:
            for at in range(len(lines)):
                made = change(lines, at)
                if made is not None and made != lines:
                    yield name, f"{at + 1}: {lines[at].strip()[:70]}", "\n".join(made) + "\n"
