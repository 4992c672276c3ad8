"""A sweep: every configuration a row, those that none beats, and the one that is predicted fastest.

    attention_forward.py:make: 1,024 configurations in 12.1 s (85 a second), 1,008 scheduled
    predicted fastest: keys=128 rows=128 ...: 1,203,456 cycles
      II 2,106, 4 stages, 131,072 bytes of smem, 401 registers
    none is better in II, stages, smem, registers at once: 23 configurations
         II  stages     smem  registers  predicted cycles  configuration

A configuration is of the front where no other is as good in all of its figures and better in one.
One whose registers spill is not of the front, nor the fastest, unless all do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from stretto.machine.machine import CYCLES
from stretto.report import assumption, columns, wrapped
from stretto.report.leaflet import folded, leaflet, paragraphs, pictures, table
from stretto.report.plots import Axis, Plot, Point
from stretto.report.sheet import record
from stretto.solution import counted

SCHEMA = "stretto.sweep/1"
FIGURES = ("ii", "stages", "smem", "registers", "tmem", "cycles")
"""What a front may be of; less is better."""
FRONT = ("ii", "stages", "smem", "registers")
TOLD = 24
"""Rows of a table and reasons that text tells; the document has them all."""
REASONS = 6
"""Reasons why configurations failed that text tells."""


@dataclass(frozen=True, slots=True)
class SweepRow:
    """What one configuration came to."""

    number: int
    values: dict[str, Any]
    success: bool
    ii: int | None = None
    mii: int = 0
    optimal: bool = False
    stages: int = 0
    smem: int = 0
    tmem: int = 0
    registers: int = 0
    spills: bool = False
    trips: int | None = None
    grid: tuple[int, ...] = ()
    """Blocks along each axis."""
    blocks: int | None = None
    block_cycles: int | None = None
    """Of one block: from its first operation to its last."""
    cycles: int | None = None
    """Of the whole kernel."""
    predicted_by: str = ""
    error: str = ""
    measured: float | None = None
    """What `measure` gave for it."""
    seconds: float = 0.0
    machine: str = ""
    machine_why: str = ""
    unit: str = ""
    """Of its II and its times."""

    def figure(self, name: str) -> int:
        """A figure by its name."""
        found = getattr(self, name)
        return 0 if found is None else found

    @property
    def label(self) -> str:
        """The configuration in words."""
        return " ".join(f"{name}={value}" for name, value in self.values.items())


def front_of(rows: Iterable[SweepRow], figures: Sequence[str]) -> list[SweepRow]:
    """Those that none beats, the smallest of the first figure first; of equals the first.

    Sorted by their figures, a row can only be beaten by one that came before it and was not.
    """
    usable = [row for row in rows if row.success]
    usable = [row for row in usable if not row.spills] or usable

    def key(row: SweepRow) -> tuple[int, ...]:
        return tuple(row.figure(name) for name in figures)

    found: list[tuple[tuple[int, ...], SweepRow]] = []
    for row in sorted(usable, key=lambda row: (key(row), row.number)):
        mine = key(row)
        if not any(all(a <= b for a, b in zip(other, mine, strict=True)) for other, _ in found):
            found.append((mine, row))
    return [row for _, row in found]


@dataclass(frozen=True)
class SweepReport:
    """All configurations of a sweep."""

    subject: str
    rows: tuple[SweepRow, ...]
    figures: tuple[str, ...] = FRONT
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    asked: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def success(self) -> bool:
        """Whether any configuration has a schedule."""
        return any(row.success for row in self.rows)

    @property
    def front(self) -> list[SweepRow]:
        """The configurations that none beats."""
        return front_of(self.rows, self.figures)

    @property
    def ranked(self) -> list[SweepRow]:
        """By predicted time, those that spill last; of equals by smem, registers, stages."""
        done = [row for row in self.rows if row.success]
        figures = ("cycles", "smem", "registers", "stages", "number")
        return sorted(done, key=lambda row: (row.spills, *(row.figure(f) for f in figures)))

    @property
    def best(self) -> SweepRow | None:
        """The one that is predicted fastest."""
        return next(iter(self.ranked), None)

    @property
    def measured(self) -> list[SweepRow]:
        """Those that were measured, the fastest first."""
        found = [(row.measured, row.number, row) for row in self.rows if row.measured is not None]
        return [row for _, _, row in sorted(found, key=lambda one: one[:2])]

    @property
    def agreement(self) -> float | None:
        """How far predicted and measured order agree: the rank correlation, 1 where wholly."""
        rows = self.measured
        if len(rows) < 3:
            return None
        wanted = [row.number for row in self.ranked if row.measured is not None]
        apart = sum((i - wanted.index(row.number)) ** 2 for i, row in enumerate(rows))
        n = len(rows)
        return round(1 - 6 * apart / (n * (n * n - 1)), 3)

    def to_json(self) -> dict[str, Any]:
        """As a document."""
        best = self.best
        return {
            "schema": SCHEMA,
            "success": self.success,
            "subject": self.subject,
            "asked": self.asked,
            "figures": list(self.figures),
            "configurations": [asdict(row) for row in self.rows],
            "front": [row.number for row in self.front],
            "best": None if best is None else best.number,
            "measured": [row.number for row in self.measured],
            "agreement": self.agreement,
            "notes": list(self.notes),
            "seconds": self.seconds,
        }

    def to_csv(self) -> str:
        """A table of all configurations."""
        names = list(dict.fromkeys(name for row in self.rows for name in row.values))
        plain = [f for f in SweepRow.__dataclass_fields__ if f not in ("values", "number")]
        front = {row.number for row in self.front}
        lines = [record(["number", *names, *plain, "front"])]
        for row in self.rows:
            told = [getattr(row, name) for name in plain]
            values = [row.values.get(name, "") for name in names]
            lines.append(record([row.number, *values, *told, row.number in front]))
        return "".join(lines)

    # For people ---------------------------------------------------------------------------

    def to_text(self) -> list[str]:
        """The fastest, the front, a plot, and why the others failed."""
        lines = wrapped(self._headline(), hang="  ")
        best = self.best
        if best is not None:
            told = f"{best.cycles:,} {best.unit}" if best.cycles is not None else ""
            words = f"predicted fastest: {best.label}: {told} ({best.predicted_by})"
            lines += [*wrapped(words, hang="  "), f"  {_figures_told(best)}"]
            if best.spills:
                lines.append("  its registers spill, as those of all others do")
            lines += self._machines()
            front = self.front
            of = ", ".join(map(self._called, self.figures))
            lines.append(f"none is better in {of} at once: {counted(len(front), 'configuration')}")
            lines += columns(self._table(front[:TOLD]), "  ", right=range(len(self._shown())))
            if len(front) > TOLD:
                lines.append(f"  and {len(front) - TOLD:,} more")
            lines += ["", *self.plots()[0].to_text()]
        lines += self._measured_text()
        lines += self._failures()
        return lines + [part for note in self.notes for part in wrapped(f"note: {note}", "", "  ")]

    def _headline(self) -> str:
        done = sum(row.success for row in self.rows)
        rate = f"{len(self.rows) / self.seconds:,.0f} a second" if self.seconds else ""
        count = counted(len(self.rows), "configuration")
        spilling = sum(row.spills for row in self.rows)
        told = f"{self.subject}: {count} in {self.seconds:.1f} s ({rate}), {done:,} scheduled"
        return told + (f", of which {spilling:,} spill" if spilling else "")

    def _shown(self) -> list[str]:
        return list(dict.fromkeys((*self.figures, "cycles")))

    def _table(self, rows: Sequence[SweepRow]) -> list[list[str]]:
        figures = self._shown()
        head = [*map(self._called, figures), "configuration"]
        return [
            head,
            *(
                [*(f"{r.figure(f):,}" for f in figures), r.label + "; spills" * r.spills]
                for r in rows
            ),
        ]

    def _called(self, figure: str) -> str:
        """A figure in words; times are in the unit of the machine."""
        units = {row.unit for row in self.rows if row.success}
        unit = units.pop() if len(units) == 1 else CYCLES
        return {"ii": "II", "cycles": f"predicted {unit}"}.get(figure, figure)

    def _machines(self) -> list[str]:
        """The machine, where it was assumed, and what its figures are."""
        told = dict.fromkeys((r.machine, r.machine_why, r.unit) for r in self.rows if r.success)
        lines = [assumption(*one) for one in told]
        return [line for text in lines if text for line in wrapped(text, "  ", "  ")]

    def _measured_text(self) -> list[str]:
        if not self.measured:
            return []
        order = {row.number: i + 1 for i, row in enumerate(self.ranked)}
        rows = [["measured", self._called("cycles"), "predicted", "configuration"]]
        for row in self.measured:
            place = f"{order[row.number]}."
            rows.append([f"{row.measured:.6g}", f"{row.figure('cycles'):,}", place, row.label])
        lines = ["", *columns(rows, "  ", right=(0, 1, 2))]
        if self.agreement is not None:
            lines.append(f"  order of predicted and measured agree by {self.agreement} (of 1)")
        return lines

    def _failures(self) -> list[str]:
        failed = Counter(row.error for row in self.rows if not row.success)
        if not failed:
            return []
        lines = [f"not scheduled: {sum(failed.values()):,}"]
        for told, count in failed.most_common(REASONS):
            lines += wrapped(f"{count:,} × {told}", "  ", "    ")
        more = len(failed) - REASONS
        return [*lines, f"  and {more:,} reasons more"] if more > 0 else lines

    def plots(self) -> tuple[Plot, ...]:
        """The first figure over SMEM, registers and stages, as far as these differ."""
        done = [row for row in self.rows if row.success]
        front = {row.number for row in self.front}

        def plot(across: str, up: str, title: str) -> Plot:
            points = tuple(
                Point(
                    row.figure(across),
                    row.figure(up),
                    f"{row.label}: {_figures_told(row)}",
                    1 if row.spills else 0,
                    row.number in front,
                )
                for row in done
            )
            series = ("fits", "spills") if any(row.spills for row in done) else ()
            axes = Axis(self._called(across)), Axis(self._called(up))
            return Plot(title, *axes, points, series, joined=True)

        first = self.figures[0]
        told = {"smem": "bytes of shared memory", "registers": "registers", "stages": "stages"}
        differ = [name for name in told if len({row.figure(name) for row in done}) > 1]
        found = [
            plot(across, first, f"{self._called(first)} against {told[across]}")
            for across in differ or ["smem"]
        ]
        if first != "ii":
            found.append(plot("smem", "ii", f"II against {told['smem']}"))
        return tuple(found)

    def to_svg(self) -> str:
        """The first of the plots."""
        return self.plots()[0].to_svg()

    def to_html(self) -> str:
        """A page that stands alone."""
        lines = [self._headline()]
        best = self.best
        if best is not None:
            lines.append(f"predicted fastest: {best.label}: {_figures_told(best)}")
            lines += self._machines()
        front = self.front
        head, *rows = self._table(front)
        marks = ["best" if best is not None and r.number == best.number else "" for r in front]
        every = self._table(self.ranked)
        sections = [
            ("summary", paragraphs([*lines, *self._measured_text()[1:], *self.notes])),
            ("plots", pictures(plot.to_svg() for plot in self.plots())),
            (f"front: {counted(len(front), 'configuration')}", table(head, rows, marks)),
            ("all", folded("every configuration, the fastest first", table(every[0], every[1:]))),
        ]
        if self._failures():
            sections.append(("not scheduled", paragraphs(self._failures())))
        return leaflet(f"stretto sweep: {self.subject}", sections)


def _figures_told(row: SweepRow) -> str:
    told = f"II {row.ii:,}" if row.ii is not None else "no II"
    stages, bytes = counted(row.stages, "stage"), f"{row.smem:,} bytes of smem"
    return f"{told}, {stages}, {bytes}, {counted(row.registers, 'register')}"
