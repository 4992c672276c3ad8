"""A benchmark that tells the truth: every loop a row, every suite what its rows come to.

    suite      loops  failed  at MII  proved  gap %  worst  median ms    p95  worst  growth  +/=/-
    tile-ddg       8       0     88%    100%   0.81    6.5       2.08  20.38  20.38    1.27  0/8/0

A gap is that of the II to the MII, for loops that were scheduled. Times are those of scheduling one
loop, verified, the best of some runs. Growth is the exponent of time over operations, by least
squares on two logarithmic axes, where a suite has loops of sizes that differ enough. At the end,
how many IIs are better than, equal to and worse than one that somebody published for the loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from math import ceil
from statistics import mean, median
from typing import Any

from stretto.report import columns, cut, machines_assumed, wrapped
from stretto.report.leaflet import folded, leaflet, paragraphs, pictures, table
from stretto.report.plots import Axis, Plot, Point, power_law

SCHEMA = "stretto.bench/1"
TOLD = 20
"""Loops that a list in text tells; the document has them all."""


@dataclass(frozen=True, slots=True)
class BenchRow:
    """What one loop came to."""

    suite: str
    file: str
    loop: str
    success: bool
    ops: int = 0
    mii: int = 0
    ii: int | None = None
    lower_bound: int = 0
    optimal: bool = False
    verified: bool = False
    """By the verifier once more, after the schedule was handed over."""
    stages: int = 0
    seconds: float = 0.0
    generator: str = ""
    overdue: bool = False
    peer: int | None = None
    """The II that somebody published."""
    error: str = ""
    machine: str = ""
    machine_why: str = ""
    unit: str = ""
    """Of its figures."""

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes it the same loop in another run."""
        return self.suite, self.file, self.loop

    @property
    def where(self) -> str:
        """For people."""
        place = f"{self.suite}/{self.file}"
        return f"{place}: {self.loop}" if self.loop and self.loop != self.file else place

    @property
    def gap(self) -> float:
        """Per cent by which the II is above the MII."""
        return 100.0 * ((self.ii or self.mii) / self.mii - 1) if self.mii else 0.0


@dataclass(frozen=True, slots=True)
class Suite:
    """What the loops of a suite come to."""

    name: str
    rows: tuple[BenchRow, ...]

    @property
    def scheduled(self) -> list[BenchRow]:
        """The rows that have a schedule."""
        return [row for row in self.rows if row.ii is not None]

    @property
    def growth(self) -> tuple[float, float] | None:
        """Exponent and factor of time over operations; None: it cannot be told, or of several."""
        if len({row.suite for row in self.rows}) > 1:
            return None
        return power_law([(row.ops, row.seconds) for row in self.scheduled])

    def figures(self) -> dict[str, Any]:
        """As JSON has them."""
        rows, growth = self.scheduled, self.growth
        times = sorted(row.seconds for row in rows)
        peers = [(row.ii or 0) - row.peer for row in rows if row.peer is not None]
        return {
            "name": self.name,
            "loops": len(self.rows),
            "failed": sum(not row.success for row in self.rows),
            "unverified": sum(row.success and not row.verified for row in self.rows),
            "at_mii": sum(row.ii == row.mii for row in rows),
            "proved": sum(row.optimal for row in rows),
            "mean_gap_percent": round(mean(row.gap for row in rows), 4) if rows else 0.0,
            "worst_gap_percent": round(max(row.gap for row in rows), 4) if rows else 0.0,
            "median_seconds": median(times) if times else 0.0,
            "p95_seconds": times[ceil(0.95 * len(times)) - 1] if times else 0.0,
            "worst_seconds": times[-1] if times else 0.0,
            "growth": None if growth is None else round(growth[0], 3),
            "better": sum(d < 0 for d in peers),
            "equal": sum(d == 0 for d in peers),
            "worse": sum(d > 0 for d in peers),
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """This run against another."""

    old: str
    regressions: tuple[str, ...]
    improvements: tuple[str, ...]
    missing: tuple[str, ...]
    """Loops of the other run that are not in this one."""
    added: int


@dataclass(frozen=True)
class BenchReport:
    """A run over some suites."""

    rows: tuple[BenchRow, ...]
    comparison: Comparison | None = None
    notes: tuple[str, ...] = ()
    asked: dict[str, Any] = field(default_factory=dict[str, Any])
    """Options that figures depend on."""
    stopped: bool = False
    """Whether Ctrl-C ended it, so that loops are missing; a note has their number."""

    @property
    def suites(self) -> tuple[Suite, ...]:
        """In the order in which they came; where there are several, all of them at the end."""
        names = dict.fromkeys(row.suite for row in self.rows)
        found = [Suite(n, tuple(row for row in self.rows if row.suite == n)) for n in names]
        return tuple(found) if len(found) == 1 else (*found, Suite("all", self.rows))

    @property
    def success(self) -> bool:
        """Whether every loop has a verified schedule, and nothing is worse than it was."""
        whole = all(row.success and row.verified for row in self.rows)
        return whole and not (self.comparison and self.comparison.regressions)

    def to_json(self) -> dict[str, Any]:
        """As a document."""
        compared = self.comparison
        return {
            "schema": SCHEMA,
            "success": self.success,
            "asked": self.asked,
            "suites": [suite.figures() for suite in self.suites],
            "loops": [asdict(row) for row in self.rows],
            "comparison": None if compared is None else asdict(compared),
            "notes": list(self.notes),
        }

    # For people ---------------------------------------------------------------------------

    def to_text(self) -> list[str]:
        """A line a suite, then what is wrong, worse, or not at its bound."""
        lines = columns([HEAD, *(figures_told(s) for s in self.suites)], right=range(1, len(HEAD)))
        lines += machines_assumed((r.machine, r.machine_why) for r in self.rows)
        lines += _listed("failed", (f"{r.where}: {r.error}" for r in self.rows if not r.success))
        lines += _listed("not verified", (r.where for r in self.rows if r.success > r.verified))
        above = [r for r in self.rows if r.peer is not None and r.ii is not None and r.ii > r.peer]
        lines += _listed("worse than published", (f"{r.where}: II {r.ii}, {r.peer}" for r in above))
        opened = [r for r in self.rows if r.ii is not None and not r.optimal]
        told = (f"{r.where}: II {r.ii}, at least {r.lower_bound}" for r in opened)
        lines += _listed("not proved", told)
        lines += self._compared()
        return lines + [part for note in self.notes for part in wrapped(f"note: {note}")]

    def _compared(self) -> list[str]:
        found = self.comparison
        if found is None:
            return []
        if not found.regressions:
            lines = [f"against {found.old}: nothing is worse"]
        else:
            lines = _listed(f"against {found.old}: worse", found.regressions, all_of_them=True)
        lines += _listed("better", found.improvements)
        lines += _listed("not in this run", found.missing)
        return [*lines, f"not in {found.old}: {found.added}"] if found.added else lines

    def plots(self) -> tuple[Plot, ...]:
        """Time over operations, and the gap over operations."""
        names = tuple(dict.fromkeys(row.suite for row in self.rows))
        rows = [row for row in self.rows if row.ii is not None]
        time = [
            Point(
                r.ops, 1e3 * r.seconds, f"{r.where}: {1e3 * r.seconds:.3g} ms", names.index(r.suite)
            )
            for r in rows
        ]
        gaps = [
            Point(
                r.ops, r.gap, f"{r.where}: II {r.ii}, MII {r.mii}", names.index(r.suite), r.gap > 0
            )
            for r in rows
        ]
        growth = Suite("", self.rows).growth
        trend = None if growth is None else (growth[0], 1e3 * growth[1])
        told = "" if growth is None else f", time grows with the power {growth[0]:.2f} of size"
        ops = Axis("operations", log=True)
        return (
            Plot(f"time{told}", ops, Axis("ms", log=True), tuple(time), names, trend=trend),
            Plot("II above the MII", ops, Axis("%"), tuple(gaps), names),
        )

    def to_html(self) -> str:
        """A page that stands alone."""
        head = ("loop", "ops", "MII", "II", "proved", "gap %", "published", "ms", "by")
        ordered = sorted(self.rows, key=lambda r: (r.success, -r.gap))
        rows = [
            (
                r.where,
                str(r.ops),
                str(r.mii),
                str(r.ii) if r.ii is not None else r.error,
                "yes" if r.optimal else f"≥ {r.lower_bound}",
                f"{r.gap:.2f}",
                "" if r.peer is None else str(r.peer),
                f"{1e3 * r.seconds:.2f}",
                r.generator,
            )
            for r in ordered
        ]
        marks = ["" if r.success and r.verified else "bad" for r in ordered]
        suites = table(HEAD, [figures_told(suite) for suite in self.suites])
        sections = [("suites", suites), ("plots", pictures(p.to_svg() for p in self.plots()))]
        if self.comparison is not None:
            sections.append(("compared", paragraphs(self._compared())))
        sections.append(("loops", folded(f"{len(rows)} loops", table(head, rows, marks))))
        if self.notes:
            sections.append(("notes", paragraphs(self.notes)))
        return leaflet("stretto bench", sections)


HEAD = (
    *("suite", "loops", "failed", "at MII", "proved", "gap %", "worst", "median ms", "p95"),
    *("worst", "growth", "+/=/-"),
)
"""The last: how many are better than, equal to and worse than what was published."""


def figures_told(suite: Suite) -> list[str]:
    """A suite in a line."""
    f = suite.figures()
    done = max(1, f["loops"] - f["failed"])
    peers = [f["better"], f["equal"], f["worse"]]
    return [
        cut(suite.name),
        str(f["loops"]),
        str(f["failed"] + f["unverified"]),
        f"{100 * f['at_mii'] / done:.0f}%",
        f"{100 * f['proved'] / done:.0f}%",
        f"{f['mean_gap_percent']:.2f}",
        f"{f['worst_gap_percent']:.1f}",
        *(f"{1e3 * f[f'{name}_seconds']:.2f}" for name in ("median", "p95", "worst")),
        "-" if f["growth"] is None else f"{f['growth']:.2f}",
        "/".join(map(str, peers)) if any(peers) else "-",
    ]


def _listed(head: str, told: Iterable[str], all_of_them: bool = False) -> list[str]:
    lines = list(told)
    if not lines:
        return []
    shown: Sequence[str] = lines if all_of_them else lines[:TOLD]
    found = [f"{head} ({len(lines)})"]
    found += [part for line in shown for part in wrapped(line, "  ", "  ")]
    more = len(lines) - len(shown)
    return [*found, f"  and {more:,} more"] if more else found
