"""A schedule in absolute time, some iterations of it: what pictures and traces draw.

    iteration 0   load ████░░░░ mma ████                       hold   the time a slot is held
    iteration 1            load ████░░░░ mma ████              flight the time until it is done
                  └── II ──┘

Made of an entry of a document (`stretto.schedule/1`), so that no picture can differ from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

STEADY = 2
"""Iterations that are drawn beyond those that are in flight at once."""


@dataclass(frozen=True, slots=True)
class Span:
    """Some cycles of one iteration of an operation, or of operations that are fused."""

    row: str
    """The slot, or the agent."""
    ops: tuple[str, ...]
    iteration: int
    begin: int
    end: int
    amount: int = 1
    """How much of the slot is held."""

    @property
    def label(self) -> str:
        """Who it is."""
        return "+".join(self.ops)


def iterations_of(entry: dict[str, Any]) -> int:
    """As many iterations as show the prologue, a steady state and the epilogue."""
    reach = max(op["start"] + op["completion"] for op in entry["ops"])
    return -(-reach // entry["ii"]) + STEADY


def holds(entry: dict[str, Any], iterations: int) -> list[Span]:
    """Every hold of a slot, by iteration; fused operations hold theirs once."""
    once = [span for group in _groups(entry) for span in _group_holds(group)]
    return _repeated(once, entry["ii"], iterations)


def flights(entry: dict[str, Any], iterations: int) -> list[Span]:
    """Every operation from its start until it is wholly done, on the row of its agent."""
    once = [
        Span(op["agent"] or "all", (op["name"],), 0, op["start"], op["start"] + op["completion"])
        for op in entry["ops"]
    ]
    return _repeated(once, entry["ii"], iterations)


def _repeated(once: Sequence[Span], ii: int, iterations: int) -> list[Span]:
    return [
        Span(s.row, s.ops, i, s.begin + i * ii, s.end + i * ii, s.amount)
        for i in range(iterations)
        for s in once
    ]


def _groups(entry: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """Operations, those that are fused together."""
    by_name = {op["name"]: op for op in entry["ops"]}
    groups = {
        tuple(sorted([op["name"], *op["fused_with"]], key=list(by_name).index))
        if op["fused_with"]
        else (op["name"],): None
        for op in entry["ops"]
    }
    return [[by_name[name] for name in group] for group in groups]


def _group_holds(group: list[dict[str, Any]]) -> list[Span]:
    """Each use once: the first of a slot with the first of it, the second with the second."""
    found: dict[tuple[str, int], Span] = {}
    names = tuple(op["name"] for op in group)
    for op in group:
        numbers: Counter[str] = Counter()
        for use in sorted(op["uses"], key=lambda use: use["offset"]):
            if not use["duration"]:
                continue
            slot, begin = use["slot"], op["start"] + use["offset"]
            span = Span(slot, names, 0, begin, begin + use["duration"], use["occupancy"])
            key = (slot, numbers[slot])
            numbers[slot] += 1
            known = found.get(key, span)
            begin, end = min(begin, known.begin), max(span.end, known.end)
            found[key] = Span(slot, names, 0, begin, end, max(span.amount, known.amount))
    return list(found.values())


def lanes(spans: Iterable[Span]) -> list[tuple[int, Span]]:
    """The spans of a row in the order of time, each in the first lane that is free by then."""
    free: list[int] = []
    found: list[tuple[int, Span]] = []
    for span in sorted(spans, key=lambda s: (s.begin, s.end, s.label)):
        lane = next((k for k, until in enumerate(free) if until <= span.begin), len(free))
        free[lane:] = [span.end, *free[lane + 1 :]]
        found.append((lane, span))
    return found


def steps(spans: Iterable[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """What spans of (begin, end, amount) add up to, from each cycle on at which that changes."""
    change: dict[int, int] = {}
    for begin, end, amount in spans:
        change[begin] = change.get(begin, 0) + amount
        change[end] = change.get(end, 0) - amount
    found: list[tuple[int, int]] = []
    total = 0
    for cycle in sorted(change):
        if change[cycle]:
            total += change[cycle]
            found.append((cycle, total))
    return found


def copies(entry: dict[str, Any], space: str, iterations: int) -> list[tuple[int, int, int]]:
    """When copies of the storages of a space are alive, each (begin, end, bytes).

    One that is updated in place, or that nothing writes, is there from beginning to end.
    """
    ii = entry["ii"]
    last = max(op["start"] + op["completion"] for op in entry["ops"]) + ii * (iterations - 1)
    found: list[tuple[int, int, int]] = []
    for storage in entry["storages"]:
        if storage["space"] != space:
            continue
        if storage["fixed"] or storage["begin"] is None:
            found.append((0, last, storage["bytes"]))
            continue
        for i in range(iterations):
            begin = storage["begin"] + i * ii
            found.append((begin, begin + storage["lifetime"], storage["bytes"]))
    return found
