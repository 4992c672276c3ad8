"""The populated reservation table, where a schedule publishes it: counted again.

    published   cycles 0 to 7    word 0x8800   tma 1, tp_smem_wr 1        II 15
    counted     cycle 0          ... of all iterations in flight late in the run:  the same

What is held and drawn only changes where something begins or ends, so those cycles and the first of
every row are all that need a look. A table that is not published is not missed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence

from stretto.machine.machine import WORD_BITS
from stretto.solution import TableRow
from stretto.verification.layout import Layout, Rule, Span, Violation
from stretto.verification.slot import draws, holds


def table(laid: Layout) -> Iterator[Violation]:
    """Every row of a published table says what is held and drawn in its cycles."""
    rows = laid.analysis.table
    if not rows or not laid.complete:
        return
    first = 0
    for row in rows:
        if row.cycle != first or row.cycles < 1:
            message = (
                f"the reservation table has a row of {row.cycles} cycles from {row.cycle}; "
                f"the rows before it end at {first}"
            )
            yield Violation("order", message, (), (("cycle", row.cycle), ("expected", first)))
            return
        first += row.cycles
    if first != laid.ii:
        message = f"the reservation table has {first} cycles; the II is {laid.ii}"
        yield Violation("order", message, (), (("cycles", first), ("ii", laid.ii)))
        return
    yield from _compare(laid, rows, "slot", holds(laid), [dict(row.held) for row in rows])
    yield from _compare(laid, rows, "pool", draws(laid), [dict(row.drawn) for row in rows])
    yield from _words(laid, rows)


def _compare(
    laid: Layout,
    rows: Sequence[TableRow],
    rule: Rule,
    counted: Mapping[str, list[Span]],
    said: list[dict[str, int]],
) -> Iterator[Violation]:
    """The first cycle of each slot or pool at which the table says something else."""
    firsts = [row.cycle for row in rows]
    begun = frozenset(firsts)
    for name in dict.fromkeys((*counted, *(name for row in said for name in row))):
        spans = [span for span in counted.get(name, []) if span.end > span.begin]
        late = (max((span.end for span in spans), default=0) // laid.ii + 1) * laid.ii
        actual = sum(span.amount * laid.running(span, late - 1).count for span in spans)
        change = changes(laid, spans)
        looked_at = begun | edges(change)
        for cycle in sorted(change.keys() | begun):
            actual += change.get(cycle, 0)
            published = said[bisect_right(firsts, cycle) - 1].get(name, 0)
            if published != actual and cycle in looked_at:
                message = (
                    f"the reservation table says {published} of {rule} `{name}` in cycle {cycle}; "
                    f"counted at II {laid.ii}: {actual}"
                )
                detail = ((rule, name), ("cycle", cycle), ("published", published))
                yield Violation(rule, message, (), (*detail, ("counted", actual)))
                break


def edges(change: Mapping[int, int]) -> frozenset[int]:
    """The cycles inside of rows that need a look: where something changes."""
    return frozenset(change)


def changes(laid: Layout, spans: list[Span]) -> dict[int, int]:
    """The modulo cycles in which something begins or ends, and what that adds and takes away."""
    found: dict[int, int] = {}
    for span in spans:
        for time, amount in ((span.begin, span.amount), (span.end, -span.amount)):
            cycle = time % laid.ii
            found[cycle] = found.get(cycle, 0) + amount
    return found


def _words(laid: Layout, rows: Sequence[TableRow]) -> Iterator[Violation]:
    """Words, where stated, have the bits of the slots that are held."""
    bits = {slot.name: slot.id - 1 for slot in laid.machine.slots}
    fits = all(bit < WORD_BITS for bit in bits.values())
    for row in rows:
        if row.word is None:
            continue
        made = sum(1 << bits[name] for name, amount in row.held if amount and name in bits)
        if not fits or row.word != made:
            told = f"{made:#x}" if fits else f"none: slots have ids above {WORD_BITS}"
            message = f"the row word of cycle {row.cycle} is said to be {row.word:#x}; it is {told}"
            yield Violation("slot", message, (), (("cycle", row.cycle), ("published", row.word)))
