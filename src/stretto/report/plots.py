"""Points on two axes, as SVG and as text: nothing is loaded, nothing is measured here.

plot = Plot("II against SMEM", Axis("SMEM bytes"), Axis("II", log=True), points, front=True)
plot.to_svg()       a picture that stands alone
plot.to_text()      the same on a terminal:  2,650 ┤ o
                                                   │   o * .
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

COLOURS = ("#2563eb", "#d97706", "#059669", "#dc2626", "#7c3aed", "#0891b2", "#6b7280")
WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 16, 48, 46
LETTER = 6.6
"""The width of a letter of the legend."""
TICKS = 6
STYLE = (
    ".plot{background:#fff;color:#111827}.plot text{fill:currentColor}.plot .grid{stroke:#e5e7eb}"
    ".plot .stair{stroke:currentColor}.plot .trend{stroke:#9ca3af}"
    "@media(prefers-color-scheme:dark){.plot{background:#16191d;color:#eceff2}"
    ".plot .grid{stroke:#31373e}}"
)
"""Light and dark, as the system says."""
COLUMNS, ROWS = 64, 16
"""Of a plot as text."""

_Place = Callable[[float, float], tuple[float, float]]
"""From values to places of a picture."""


@dataclass(frozen=True, slots=True)
class Axis:
    """What is counted along an axis."""

    name: str
    log: bool = False

    def scaled(self, value: float) -> float:
        """As far along as it stands, before the axis is cut to its room."""
        return math.log10(value) if self.log else value


@dataclass(frozen=True, slots=True)
class Point:
    """One thing that was found."""

    x: float
    y: float
    label: str
    series: int = 0
    best: bool = False
    """Whether it is one of those that are pointed out."""


@dataclass(frozen=True, slots=True)
class Plot:
    """Points, those that are pointed out joined by a line where that is asked for."""

    title: str
    across: Axis
    up: Axis
    points: tuple[Point, ...]
    series: tuple[str, ...] = ()
    joined: bool = False
    """A stair through the points that are pointed out: what is to be had for less of one."""
    trend: tuple[float, float] | None = None
    """On two logarithmic axes, a line: exponent and factor."""

    @property
    def drawn(self) -> tuple[Point, ...]:
        """The points that have a place: a logarithm has none for 0."""
        return tuple(
            p
            for p in self.points
            if (p.x > 0 or not self.across.log) and (p.y > 0 or not self.up.log)
        )

    def _ranges(self) -> tuple[tuple[float, float], tuple[float, float]]:
        xs = [self.across.scaled(p.x) for p in self.drawn]
        ys = [self.up.scaled(p.y) for p in self.drawn]
        return _roomy(xs), _roomy(ys)

    # As a picture -------------------------------------------------------------------------

    def to_svg(self) -> str:
        """A picture of its own; every point says what it is where it is pointed at."""
        size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
        font = 'font-family="sans-serif" font-size="11"'
        large, title = 'font-size="13" font-weight="bold"', escape(self.title)
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="plot" role="img" {size} {font}>',
            f"<title>{title}</title><style>{STYLE}</style>",
            f'<text x="{LEFT}" y="18" {large}>{title}</text>',
        ]
        if not self.drawn:
            return "".join([*parts, f'<text x="{LEFT}" y="60">nothing to show</text></svg>\n'])
        (x0, x1), (y0, y1) = self._ranges()
        room_x, room_y = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

        def place(x: float, y: float) -> tuple[float, float]:
            across = (self.across.scaled(x) - x0) / (x1 - x0)
            up = (self.up.scaled(y) - y0) / (y1 - y0)
            return round(LEFT + across * room_x, 1), round(TOP + (1 - up) * room_y, 1)

        parts += self._grid(place, (x0, x1), (y0, y1))
        if self.trend is not None:
            parts.append(self._line(place, (x0, x1), (y0, y1)))
        if self.joined:
            parts.append(self._stair(place))
        for p in sorted(self.drawn, key=lambda p: p.best):
            cx, cy = place(p.x, p.y)
            colour = COLOURS[p.series % len(COLOURS)]
            look = f'r="4.5" fill="{colour}"' if p.best else f'r="3" fill="{colour}" opacity="0.4"'
            parts.append(
                f'<circle cx="{cx}" cy="{cy}" {look}><title>{escape(p.label)}</title></circle>'
            )
        parts += self._legend()
        return "".join([*parts, "</svg>\n"])

    def _legend(self) -> list[str]:
        """The series in a line above the axes, where no point is; as many as there is room for."""
        parts: list[str] = []
        x = WIDTH - RIGHT - sum(LETTER * len(name) + 22 for name in self.series)
        x = max(float(LEFT + LETTER * len(self.up.name) + 24), x)
        for i, name in enumerate(self.series):
            colour, width = COLOURS[i % len(COLOURS)], LETTER * len(name) + 22
            if x + width > WIDTH:
                break
            parts.append(f'<circle cx="{x + 4:.0f}" cy="34" r="4" fill="{colour}"/>')
            parts.append(f'<text x="{x + 12:.0f}" y="38">{escape(name)}</text>')
            x += width
        return parts

    def _grid(
        self,
        place: _Place,
        across: tuple[float, float],
        up: tuple[float, float],
    ) -> list[str]:
        bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
        parts: list[str] = []
        free = 0.0  # up to where there are labels already
        for value in ticks(*across, self.across.log):
            x, _ = place(value, 10 ** up[0] if self.up.log else up[0])
            parts.append(f'<path d="M{x} {TOP}V{bottom}" class="grid"/>')
            told = shown(value)
            half = LETTER * len(told) / 2
            if x - half > free and x + half < WIDTH:
                parts.append(f'<text x="{x}" y="{bottom + 15}" text-anchor="middle">{told}</text>')
                free = x + half + LETTER
        for value in ticks(*up, self.up.log):
            _, y = place(10 ** across[0] if self.across.log else across[0], value)
            parts.append(f'<path d="M{LEFT} {y}H{right}" class="grid"/>')
            parts.append(
                f'<text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{shown(value)}</text>'
            )
        middle = (LEFT + right) / 2
        told = escape(self.across.name)
        parts.append(f'<text x="{middle}" y="{HEIGHT - 10}" text-anchor="middle">{told}</text>')
        parts.append(f'<text x="{LEFT}" y="{TOP - 10}">{escape(self.up.name)}</text>')
        return parts

    def _stair(self, place: _Place) -> str:
        best = sorted({(p.x, p.y) for p in self.drawn if p.best})
        stair: list[tuple[float, float]] = []
        for x, y in best:
            if not stair or y < stair[-1][1]:
                stair.append((x, y))
        if not stair:
            return ""
        x, y = place(*stair[0])
        way = f"M{x} {y}"
        for step in stair[1:]:
            x, y = place(*step)
            way += f"H{x}V{y}"
        return f'<path d="{way}" fill="none" class="stair" stroke-dasharray="4 3"/>'

    def _line(self, place: _Place, across: tuple[float, float], up: tuple[float, float]) -> str:
        assert self.trend is not None
        exponent, factor = self.trend
        ends: list[str] = []
        for end in across:
            value = math.log10(factor) + exponent * end
            x, y = place(10**end, 10 ** min(max(value, up[0]), up[1]))
            ends.append(f"{x} {y}")
        return f'<path d="M{ends[0]}L{ends[1]}" class="trend" stroke-dasharray="2 3"/>'

    # As text ------------------------------------------------------------------------------

    def to_text(self) -> list[str]:
        """For a terminal: `*` is pointed out, `·` is one other, `o` several in one place."""
        if not self.drawn:
            return [f"{self.title}: nothing to show"]
        (x0, x1), (y0, y1) = self._ranges()
        cells = [[" "] * COLUMNS for _ in range(ROWS)]
        for p in sorted(self.drawn, key=lambda p: p.best):
            column = round((self.across.scaled(p.x) - x0) / (x1 - x0) * (COLUMNS - 1))
            row = round((1 - (self.up.scaled(p.y) - y0) / (y1 - y0)) * (ROWS - 1))
            old = cells[row][column]
            cells[row][column] = "*" if p.best else "·" if old == " " else "o"
        top, bottom = (shown(10**y if self.up.log else y) for y in (y1, y0))
        left, right = (shown(10**x if self.across.log else x) for x in (x0, x1))
        margin = max(len(top), len(bottom))
        lines = [f"{self.title}: {self.up.name} up, {self.across.name} across"]
        for i, row in enumerate(cells):
            told = top if i == 0 else bottom if i == ROWS - 1 else ""
            lines.append(f"{told:>{margin}} │{''.join(row).rstrip()}")
        lines.append(" " * margin + " └" + "─" * COLUMNS)
        lines.append(" " * (margin + 2) + left + right.rjust(COLUMNS - len(left)))
        return lines


def _roomy(values: Sequence[float]) -> tuple[float, float]:
    """A range with all values and a little room at its ends."""
    low, high = min(values), max(values)
    room = (high - low) * 0.04 or abs(high) * 0.1 or 1.0
    return low - room, high + room


def ticks(low: float, high: float, log: bool) -> list[float]:
    """Round values in a range; on a logarithmic axis the range is one of exponents."""
    if log:
        for steps in ((1,), (1, 3), (1, 2, 5), range(1, 10)):
            every = range(math.floor(low) - 1, math.ceil(high) + 1)
            found = [s * 10.0**e for e in every for s in steps]
            found = [value for value in found if low <= math.log10(value) <= high]
            if len(found) >= 3:
                return found
        return [10 ** (low + (high - low) * i / 4) for i in range(1, 4)]
    step = 10.0 ** math.floor(math.log10((high - low) / TICKS))
    step *= next((s for s in (1, 2, 5) if (high - low) / (step * s) <= TICKS), 10)
    first = math.ceil(low / step)
    return [step * i for i in range(first, math.floor(high / step) + 1)]


def shown(value: float) -> str:
    """A number as short as it can be told."""
    if abs(value) >= 100 or value == int(value):
        return f"{round(value):,}"
    return f"{value:.3g}"


def power_law(points: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """Exponent and factor of the line through points on two logarithmic axes, by least squares.

    None where the points say too little: fewer than eight, or sizes that differ by less than four
    times.
    """
    usable = [(math.log(x), math.log(y)) for x, y in points if x > 0 and y > 0]
    if len(usable) < 8:
        return None
    xs, ys = zip(*usable, strict=True)
    if max(xs) - min(xs) < math.log(4):
        return None
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - mean_x) ** 2 for x in xs)
    exponent = sum((x - mean_x) * (y - mean_y) for x, y in usable) / spread
    return exponent, math.exp(mean_y - exponent * mean_x)
