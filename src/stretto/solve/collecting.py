"""The garbage collector, which looks seldom while a schedule is made."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock

SELDOM = 100_000
"""New containers, less those that went, between two looks of the garbage collector.

Almost nothing that a schedule is made of refers back to itself, so that the collector looks through
it again and again and finds nothing: a quarter of the time of a loop of 3,000 operations. It still
runs, so that what a long search leaves behind goes.
"""

_lock = Lock()
_inside: list[tuple[int, int, int]] = []
"""For each thread inside: the thresholds that count once all have left."""


@contextmanager
def seldom() -> Generator[None]:
    """Have the collector look seldom; threads may enter and leave in any order.

    Where it is off, or looks more seldom still, it stays so.
    """
    with _lock:
        before = _inside[0] if _inside else gc.get_threshold()
        _inside.append(before)
        if 0 < before[0] < SELDOM:
            gc.set_threshold(SELDOM, *before[1:])
    try:
        yield
    finally:
        with _lock:
            before = _inside.pop()
            if not _inside:
                gc.set_threshold(*before)
