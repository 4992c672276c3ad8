"""Figures of many rows: for each kind and size one `Cell`, and what was promised of them.

rows of tile loops with 300 operations  ──►  II/MII 1.002, median 4.1 ms, 3 × IMS 60, ...
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from speed_measure import Outcome, Row

WHO = ("stretto", "ims6", "ims60", "twin")
TITLES = {"stretto": "Stretto", "ims6": "IMS 6", "ims60": "IMS 60", "twin": "twin"}
WHOLE = {"whole6": "IMS 6", "whole60": "IMS 60"}
"""The same from the graph alone: its MII worked out, its schedule checked. Goals are of these."""
TOGETHER, MIXED = ("tile", "random", "chain"), "mixed"
"""Kinds that are summed up, and the name of their sum."""
STEADY = 200
"""Operations up to which the worst loop may take so many times the median."""


@dataclass(frozen=True)
class Figures:
    """One scheduler on the loops of one kind and size."""

    loops: int
    finished: int
    """Loops on which it was not stopped by its limit."""
    gap_mean: float
    """II/MII, over the loops for which it has a schedule; NaN: none."""
    gap_worst: float
    stages: float
    """Their mean."""
    median: float
    """CPU seconds; loops on which it was stopped count with the time until then."""
    p95: float
    worst: float
    total: float


@dataclass(frozen=True)
class Cell:
    """Everybody on the loops of one kind and size."""

    kind: str
    ops: int
    loops: int
    who: dict[str, Figures]
    without_verification: float
    """Stretto's median, less what verification took."""
    above: tuple[str, ...]
    """Loops where Stretto's II is above that of IMS 60."""
    unknown: tuple[str, ...]
    """Loops where that is not known, for IMS 60 was stopped at a smaller II."""
    below: int
    """Loops where Stretto's II is below that of IMS 60."""
    there: tuple[float, float]
    """Mean stages at the II of IMS 60, Stretto's and its own; NaN: not asked."""

    def ratio(self, other: str) -> float:
        """Stretto's median time over that of another."""
        return self.who["stretto"].median / self.who[other].median

    def total_ratio(self, other: str) -> float:
        """Stretto's time for all the loops over that of another."""
        return self.who["stretto"].total / self.who[other].total


def cells(rows: Sequence[Row]) -> list[Cell]:
    """The three kinds together, then a cell for each kind and size, in the order of the rows."""
    grouped: dict[tuple[str, int], list[Row]] = {}
    if all(any(row.kind == kind for row in rows) for kind in TOGETHER):
        for row in rows:
            if row.kind in TOGETHER:
                grouped.setdefault((MIXED, row.ops), []).append(row)
    for row in rows:
        grouped.setdefault((row.kind, row.ops), []).append(row)
    return [_cell(*key, group) for key, group in grouped.items()]


def _cell(kind: str, ops: int, rows: list[Row]) -> Cell:
    takers: dict[str, Callable[[Row], Outcome | None]] = {
        "stretto": lambda row: row.stretto,
        "ims6": lambda row: row.ims6,
        "ims60": lambda row: row.ims60,
        "twin": lambda row: row.twin,
        "whole6": lambda row: _whole(row.ims6),
        "whole60": lambda row: _whole(row.ims60),
    }
    who = {name: figures([(row.mii, take(row)) for row in rows]) for name, take in takers.items()}
    pure = statistics.median(row.stretto.seconds - row.verify_s for row in rows)
    above = [r.name for r in rows if r.ims60.finished and _ii(r.stretto) > _ii(r.ims60)]
    unknown = [r.name for r in rows if not r.ims60.finished and _ii(r.stretto) > r.ims60.reached]
    below = sum(_ii(r.stretto) < (r.ims60.ii or r.ims60.reached) for r in rows)
    return Cell(kind, ops, len(rows), who, pure, tuple(above), tuple(unknown), below, _there(rows))


def _whole(found: Outcome) -> Outcome:
    """From the graph alone; a row of old has the MII given only."""
    return found if found.whole is None else replace(found, seconds=found.whole)


def _there(rows: Sequence[Row]) -> tuple[float, float]:
    pairs = [(row.there, row.ims60.stages) for row in rows if row.there is not None]
    if not pairs:
        return math.nan, math.nan
    return statistics.mean(mine for mine, _ in pairs), statistics.mean(ims for _, ims in pairs)


def _ii(outcome: Outcome) -> float:
    return math.inf if outcome.ii is None else outcome.ii


def figures(pairs: Iterable[tuple[int, Outcome | None]]) -> Figures:
    """Of (MII, outcome) of each loop; those that were not asked are left out."""
    asked = [(mii, found) for mii, found in pairs if found is not None]
    times = sorted(found.seconds for _, found in asked)
    gaps = [found.ii / mii for mii, found in asked if found.ii is not None]
    stages = [found.stages for _, found in asked if found.ii is not None]
    return Figures(
        loops=len(asked),
        finished=sum(found.finished for _, found in asked),
        gap_mean=statistics.mean(gaps) if gaps else math.nan,
        gap_worst=max(gaps, default=math.nan),
        stages=statistics.mean(stages) if stages else math.nan,
        median=statistics.median(times) if times else math.nan,
        p95=times[math.ceil(0.95 * len(times)) - 1] if times else math.nan,
        worst=times[-1] if times else math.nan,
        total=sum(times),
    )


@dataclass(frozen=True)
class Goal:
    """Something that is asked of the figures."""

    says: str
    value: float
    at_most: float

    @property
    def met(self) -> bool:
        """Whether it is so."""
        return self.value <= self.at_most


def goals(all_cells: Sequence[Cell], peaks: dict[str, float]) -> list[Goal]:
    """What the benchmark asks for, with what was measured."""
    found = [Goal(f"{at} operations: peak MB", peak, 200) for at, peak in peaks.items()]
    for cell in all_cells:
        at = f"{cell.kind} {cell.ops:,}"
        found.append(Goal(f"{at}: loops with an II above that of IMS 60", len(cell.above), 0))
        if cell.kind != MIXED or cell.ops <= STEADY:  # an IMS has stages of the loops it ended on
            found += _steady(at, cell)
        if cell.kind not in (*TOGETHER, MIXED):
            continue  # the others show one thing each, and IMS does not do the same work there
        for other, most in _asked_times(cell.ops):
            title = WHOLE[other]
            found.append(Goal(f"{at}: median CPU time over {title}", cell.ratio(other), most))
            found.append(Goal(f"{at}: total CPU time over {title}", cell.total_ratio(other), most))
    return found


def _asked_times(ops: int) -> list[tuple[str, float]]:
    """Whose time, and how many times that."""
    if ops in (30, 100):
        return [("whole6", 20.0)]
    if ops in (300, 1000):
        return [("whole60", 5.0)]
    return [("whole60", 1.0)] if ops >= 3000 else []


def _steady(at: str, cell: Cell) -> list[Goal]:
    mine, sixty = cell.who["stretto"], cell.who["ims60"]
    if cell.ops <= STEADY:
        return [Goal(f"{at}: worst CPU time over the median", mine.worst / mine.median, 20)]
    if math.isnan(sixty.stages):
        return []
    found = [Goal(f"{at}: stages over those of IMS 60", mine.stages / sixty.stages, 1)]
    if not math.isnan(cell.there[0]):
        told = f"{at}: stages at the II of IMS 60 over its own"
        found.append(Goal(told, cell.there[0] / cell.there[1], 1))
    return found


# As text ----------------------------------------------------------------------------------

QUALITY = (
    *("ops", "loops", "II/MII", "worst", "IMS 6", "IMS 60", "worst", "twin"),
    *("above", "unknown", "below", "stages", "IMS 6", "IMS 60", "at its II"),
)
TIME = (
    *("ops", "median ms", "unverified", "p95", "worst", "worst/med", "IMS 6 ms", "worst"),
    *("IMS 60 ms", "worst", "twin ms"),
)
RATIO = (
    *("ops", "× IMS 6", "total", "given the MII", "total"),
    *("× IMS 60", "total", "given the MII", "total"),
)


def quality_row(cell: Cell) -> list[str]:
    """II, and stages."""
    who = [cell.who[name] for name in WHO]
    mine, six, sixty, twin = who
    found = [
        f"{cell.ops:,}",
        str(cell.loops),
        _number(mine.gap_mean, 3),
        _number(mine.gap_worst, 3),
    ]
    found += [_gap(six), _gap(sixty), _number(sixty.gap_worst, 3), _gap(twin)]
    found += [str(len(cell.above)), str(len(cell.unknown)), str(cell.below)]
    found += [_number(each.stages, 1) for each in (mine, six, sixty)]
    return [*found, _number(cell.there[0], 1)]


def time_row(cell: Cell) -> list[str]:
    """CPU time; that of an IMS from the graph alone."""
    names = ("stretto", "whole6", "whole60", "twin")
    mine, six, sixty, twin = (cell.who[name] for name in names)
    stopped = "" if mine.finished == mine.loops else f" ({mine.loops - mine.finished} stopped)"
    found = [f"{cell.ops:,}", milliseconds(mine.median), milliseconds(cell.without_verification)]
    found += [milliseconds(mine.p95), milliseconds(mine.worst) + stopped]
    found += [_number(mine.worst / mine.median, 1)]
    for other in (six, sixty):
        found += [_least(other) + milliseconds(other.median), milliseconds(other.worst)]
    return [*found, _least(twin) + milliseconds(twin.median)]


def ratio_row(cell: Cell) -> list[str]:
    """Stretto's CPU time over that of each IMS, of medians and of sums."""
    found = [f"{cell.ops:,}"]
    for name in ("whole6", "ims6", "whole60", "ims60"):
        other = cell.who[name]
        most = "" if other.finished == other.loops else "≤ "
        found += [_number(cell.ratio(name), 2), most + _number(cell.total_ratio(name), 2)]
    return found


def _gap(found: Figures) -> str:
    """Mean II/MII, and of how many loops where that is not all."""
    some = "" if found.finished == found.loops else f" ({found.finished}/{found.loops})"
    return _number(found.gap_mean, 3) + some


def _least(found: Figures) -> str:
    """A mark for medians that a limit cut."""
    return ">" if 2 * found.finished <= found.loops and found.loops else ""


def _number(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:,.{digits}f}"


def milliseconds(seconds: float) -> str:
    """With three figures or so."""
    value = 1e3 * seconds
    return _number(value, 3 if value < 1 else 2 if value < 10 else 1 if value < 100 else 0)


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns, right-aligned."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    lines = [
        "  ".join(f"{c:>{w}}" for c, w in zip(row, widths, strict=True)) for row in (head, *rows)
    ]
    return "\n".join(lines)
