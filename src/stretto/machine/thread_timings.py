"""Loads and stores by threads, from microbenchmarks that say how much is in flight.

    1 warp, 512 bytes in flight      858 cycles a trip, 65 of them no load   ──►   0.6 a cycle
    32 warps, 16 KB in flight      1,566                                     ──►  10.5 a cycle

Latency by rate is a curve: how long a load takes while all SMs ask for so many bytes a cycle.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stretto.machine.calibrating import Figure, Results

LANES, NUMBER, WIDE = 32, 4, 4
"""Threads of a warp, bytes of a number, and numbers that a thread loads at once."""
POINTS = ((1, 1), (4, 1), (8, 1), (16, 1), (32, 1), (32, 2), (32, 4), (32, 8))
"""Warps of an SM, and loads of each in flight."""
KEPT = (64, 128, 160, 192, 208, 224, 240, 256, 288, 320, 384)
"""KB that 16 warps of an SM went round in."""
GATHERED = (
    (16, 9000),
    (32, 9000),
    (16, 3000),
    (16, 1000),
    (32, 3000),
    (16, 0),
    (32, 1000),
    (32, 0),
)
"""Warps of an SM, and cycles between two loads, of blocks that gather and store."""
BLOCK, FLIGHT = 4, 4
"""Warps of such a block, and loads of each: sixteen that a block waits for together."""
FEWER, MORE, DOUBLINGS = 1, 16, 4
"""Warps of blocks that wait for a fourth and for four times as many, and how often that doubles."""
MEETING = (1, 2, 4, 8, 16)
"""Warps of blocks that meet."""
WORKED, ELEMENTS = 59, 16
"""Instructions of a step of `works` with so many elements: half of them to make another number,
then to widen, add, multiply and add each; and three of the loop."""
HUNDREDTHS = 100


def loads_from(results: Results) -> dict[str, Figure]:
    """The timings of loads and stores by threads."""
    found: dict[str, Figure] = {}
    own = _trip(results, "l1", 1, 1)[1], _trip(results, "l1", 16, 8)[0]
    found["load_l1"] = (
        (round(own[0]), round(own[1])),
        "a load by threads that an SM's own cache has: cycles, and bytes a cycle at most",
        "fetch l1 less meeting; 16 warps with 8 in flight",
    )
    for source in ("l2", "hbm"):
        points = _rising(_trip(results, source, *point) for point in POINTS)
        found[f"load_rate_{source}"] = (
            tuple(round(rate * HUNDREDTHS) for rate, _ in points),
            "hundredths of bytes a cycle that threads of an SM load, all SMs loading",
            f"fetch {source}, ever more in flight",
        )
        found[f"load_latency_{source}"] = (
            tuple(round(cycles) for _, cycles in points),
            "cycles of such a load, at these rates",
            f"fetch {source} less meeting",
        )
    both = [
        2 * _bytes(warps, flight) / results.cycles(
            kind="put", source="hbm", warps=warps, width=WIDE, flight=flight, loads=1
        )
        for warps, flight in ((16, 4), (32, 1), (32, 4))
    ]  # fmt: skip
    found["load_store_hbm"] = (
        (round(max(both) * HUNDREDTHS),),
        "hundredths of bytes a cycle of an SM that are loaded or stored, half of them each",
        "put hbm with loads",
    )
    found["load_clock"] = (
        (round(median(_mhz(results, source) for source in ("l2", "hbm"))),),
        "MHz of the SMs while that was measured: memory has a clock of its own",
        "fetch",
    )
    near, beyond = (
        results.cycles(kind="fetch", source=source, warps=16, width=WIDE, flight=1)
        for source in ("l1", "l2")
    )
    kept = [
        min(1.0, (beyond - results.cycles(kind="keep", kilobytes=size)) / (beyond - near))
        for size in KEPT
    ]
    found["keep_size"] = (KEPT, "KB that an SM goes round in", "keep")
    found["keep_hits"] = (
        tuple(max(0, round(hits * HUNDREDTHS)) for hits in kept),
        "hundredths of its loads that its own cache has, at these sizes",
        "keep, between fetch l1 and l2 of 16 warps",
    )
    rows = {warps: results.row(kind="follow", warps=warps) for warps in (1, 4, 8, 16)}
    single = rows[1].number("block") + rows[1].number("cycles")
    found["follow"] = (
        (round(median(rows[n].number("cycles") for n in (4, 8, 16))), round(single / LANES)),
        "from the end of a block to the next in its place; and for each block of an SM, at least",
        "follow",
    )
    found |= _gathered(results)
    between = [
        results.row(kind="pass", warps=n, stores=0, spin=8000).number("cycles") for n in (4, 8, 16)
    ]
    narrow = results.row(kind="pass", warps=2, stores=0, spin=2000)
    crowded = narrow.number("spin") + narrow.number("cycles")
    found["pass"] = (
        (round(median(between)), round(crowded / LANES)),
        "the same where neither reads a clock of the whole GPU",
        "pass",
    )
    alone, beside = (
        results.cycles(kind="works", warps=warps, elements=ELEMENTS) for warps in (4, 8)
    )
    found["instruction"] = (
        (round(alone / WORKED * HUNDREDTHS), round(beside / WORKED / 2 * HUNDREDTHS)),
        "hundredths of cycles of one: of a warp alone on its scheduler, and of the scheduler",
        "works",
    )
    return found


def _gathered(results: Results) -> dict[str, Figure]:
    """Of blocks whose warps meet when all of them have what they loaded."""
    meeting = [results.cycles(kind="meeting", block=warps, width=2, flight=1) for warps in MEETING]

    def points(block: int) -> list[tuple[float, float]]:
        met = results.cycles(kind="meeting", block=block, width=2, flight=FLIGHT)
        found: list[tuple[float, float]] = []
        for warps, pause in GATHERED:
            row = results.row(
                kind="gather", block=block, flight=FLIGHT, warps=warps, pause=pause, stores=1
            )
            moved = 2 * _bytes(warps, FLIGHT) // 2
            found.append((moved / row.amount("whole"), row.number("cycles") - met))
        return _rising(sorted(found))

    some, fewer, more = (points(block) for block in (BLOCK, FEWER, MORE))
    # At rates that all three were measured at.
    common = [
        (more_at, _between(fewer, rate), _between(some, rate))
        for rate, more_at in more
        if max(fewer[0][0], some[0][0]) <= rate <= min(fewer[-1][0], some[-1][0])
    ]
    later = median((late - early) / (DOUBLINGS * middle) for late, early, middle in common)
    return {
        "load_rate_mixed": (
            tuple(round(rate * HUNDREDTHS) for rate, _ in some),
            "hundredths of bytes a cycle of an SM, half loaded by blocks that gather, half stored",
            "gather with stores, blocks of 4 warps with 4 in flight",
        ),
        "load_latency_mixed": (
            tuple(round(cycles) for _, cycles in some),
            "cycles until the last of 16 loads of a block is there, at these rates",
            "gather with stores less meeting",
        ),
        "load_last": (
            (round(later * HUNDREDTHS),),
            "hundredths by which that is later for each time that a block loads twice as many",
            "gather with stores, blocks of 1 and 16 warps",
        ),
        "meet": (
            tuple(round(cycles) for cycles in meeting),
            "cycles of a reduction over a block of 1, 2, 4, 8 and 16 warps",
            "meeting",
        ),
    }


def _between(points: list[tuple[float, float]], rate: float) -> float:
    """Cycles at a rate between those that were measured."""
    for (slow, short), (fast, long) in pairwise(points):
        if rate <= fast:
            return short + (long - short) * (rate - slow) / (fast - slow)
    return points[-1][1]


def _bytes(warps: int, flight: int) -> int:
    return warps * flight * LANES * WIDE * NUMBER


def _trip(results: Results, source: str, warps: int, flight: int) -> tuple[float, float]:
    """Bytes a cycle, and cycles of a load."""
    asked = {"source": source, "warps": warps, "width": WIDE, "flight": flight}
    cycles = results.cycles(kind="fetch", **asked)
    beside = results.cycles(kind="meeting", width=WIDE, flight=flight)
    return _bytes(warps, flight) / cycles, cycles - beside


def _mhz(results: Results, source: str) -> float:
    return results.row(kind="fetch", source=source, warps=32, width=WIDE, flight=1).amount("mhz")


def _rising(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Those at which more is loaded than at the one before: beyond, only the wait is longer."""
    found: list[tuple[float, float]] = []
    for rate, cycles in points:
        if not found or round(rate * HUNDREDTHS) > round(found[-1][0] * HUNDREDTHS):
            found.append((rate, max(cycles, found[-1][1]) if found else cycles))
    return found
