"""Too much at once, which slots and pools have in common.

    limit 1       a of iteration 0   ████████
                  b of iteration 0          ████████        a, b of one moment: 2 are held
                  a of iteration 1              ████████    a, b of another

Each distinct set of holders is told once, from the oldest iteration that takes part.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from typing import Literal

from stretto.verify.case import Case, Moment, Run, Span, Violation, listed

SHOWN = 6
"""Holders that a message names before it says how many more there are."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A slot's capacity or a pool's cap, with the words of its rule."""

    rule: Literal["slot", "pool"]
    name: str
    most: int

    def __str__(self) -> str:
        word = "capacity" if self.rule == "slot" else "cap"
        return f"{self.rule} `{self.name}` ({word} {self.most})"

    @property
    def verb(self) -> str:
        """What one operation does with it."""
        return "holds" if self.rule == "slot" else "draws"

    @property
    def total(self) -> str:
        """What is done with it by all."""
        return "held" if self.rule == "slot" else "drawn"

    def violation(self, message: str, ops: tuple[str, ...], **numbers: int) -> Violation:
        """A violation of its rule, with these numbers."""
        detail = ((self.rule, self.name), ("limit", self.most), *numbers.items())
        return Violation(self.rule, message, ops, detail)


def overfull(case: Case, limit: Limit, spans: list[Span]) -> Iterator[Violation]:
    """Every distinct way in which too much is held at once."""
    fitting: list[Span] = []
    for span in spans:
        # Over the limit on average: it meets itself, and everything else meets it.
        if span.amount * (span.end - span.begin) > limit.most * case.ii:
            yield _alone(case, limit, span)
        elif span.amount:
            fitting.append(span)
    seen: set[frozenset[tuple[tuple[str, ...], int, int]]] = set()
    for moment in case.moments(fitting, limit.most):
        oldest = min(run.first for run in moment.held)
        holders = frozenset((r.span.owner, r.first - oldest, r.last - oldest) for r in moment.held)
        if holders not in seen:
            seen.add(holders)
            yield _together(case, limit, moment, oldest)


def _alone(case: Case, limit: Limit, span: Span) -> Violation:
    cycles = span.end - span.begin
    message = (
        f"{listed(span.owner)} alone {limit.verb} {span.amount} of {limit} for {cycles} cycles; "
        f"II {case.ii} leaves at most {limit.most * case.ii // span.amount}"
    )
    return limit.violation(message, span.owner, cycles=cycles, amount=span.amount, ii=case.ii)


def _together(case: Case, limit: Limit, moment: Moment, oldest: int) -> Violation:
    """Told from the oldest iteration that takes part, as iteration 0."""
    cycle = moment.cycle - oldest * case.ii
    lines = [
        f"{listed(span.owner)} of iteration {iteration} {limit.verb} {span.amount} "
        f"from {begin} to {begin + span.end - span.begin}"
        for begin, iteration, span in islice(_by_begin(case, moment.held, oldest), SHOWN)
    ]
    holders = sum(run.count for run in moment.held)
    if holders > SHOWN:
        lines.append(f"and {holders - SHOWN} more")
    message = (
        f"of {limit}, {moment.load} is {limit.total} at cycle {cycle} (II {case.ii}): "
        f"{'; '.join(lines)}"
    )
    owners = names_of([run.span for run in moment.held])
    return limit.violation(message, owners, cycle=cycle, load=moment.load, ii=case.ii)


def _by_begin(case: Case, runs: tuple[Run, ...], oldest: int) -> Iterator[tuple[int, int, Span]]:
    """Begin and iteration of all that is held, the earliest first, told from the oldest."""

    def each(run: Run) -> Iterator[tuple[int, int, Span]]:
        for iteration in range(run.first - oldest, run.last - oldest + 1):
            yield run.span.begin + iteration * case.ii, iteration, run.span

    return merge(*map(each, runs), key=lambda held: held[0])


def names_of(spans: list[Span]) -> tuple[str, ...]:
    """Who holds, each once, in the order of the spans."""
    return tuple(dict.fromkeys(name for span in spans for name in span.owner))
