"""Growth as a picture: one panel a kind, CPU time above and II over MII below, by operations.

figure(cells)  ──►  SVG text, for docs/performance.svg
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

COLOURS = {"stretto": "#d62728", "ims6": "#9ecae1", "ims60": "#2171b5", "twin": "#969696"}
WIDTH, HEIGHT, LEFT, TOP, BETWEEN = 190, 170, 52, 46, 34

FONT = 'font-family="sans-serif" font-size="11"'

Points: TypeAlias = list[tuple[float, float]]


@dataclass(frozen=True)
class Line:
    """One scheduler in one panel."""

    who: str
    points: Points


@dataclass(frozen=True)
class Panel:
    """Lines over operations, which are on a logarithmic axis."""

    title: str
    lines: tuple[Line, ...]


def figure(times: Sequence[Panel], gaps: Sequence[Panel], titles: dict[str, str]) -> str:
    """Two rows of panels, and a legend."""
    columns = len(times)
    width = LEFT + columns * (WIDTH + BETWEEN)
    height = TOP + 2 * (HEIGHT + BETWEEN) + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {FONT}>',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        *_legend(titles),
        *_row(times, TOP, _log(times), _power),
        *_row(gaps, TOP + HEIGHT + BETWEEN, _gap_axis(gaps), lambda y: f"{y:.2f}"),
        _text(12, TOP + HEIGHT / 2, "CPU seconds", turn=True),
        _text(12, TOP + HEIGHT * 1.5 + BETWEEN, "II / MII, mean (2: or more)", turn=True),
        _text(width / 2, height - 8, "operations"),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


@dataclass(frozen=True)
class _Axis:
    """From a value to a place between 0 (low) and 1 (high)."""

    place: Callable[[float], float]
    ticks: tuple[float, ...]


def _values(panels: Iterable[Panel]) -> list[float]:
    return [y for panel in panels for line in panel.lines for _, y in line.points]


def _log(panels: Sequence[Panel]) -> _Axis:
    values = _values(panels)
    low = math.floor(math.log10(min(values, default=1e-6)))
    high = max(low + 1, math.ceil(math.log10(max(values, default=1.0))))
    ticks = tuple(10.0**e for e in range(low, high + 1))
    return _Axis(lambda y: (math.log10(y) - low) / (high - low), ticks)


def _gap_axis(panels: Sequence[Panel]) -> _Axis:
    """From 1 to the largest, of which 2 is as far as it goes."""
    high = min(2.0, max(1.1, math.ceil(10 * max(_values(panels), default=1.0)) / 10))
    step = 0.25 if high > 1.5 else 0.1
    ticks = tuple(1 + i * step for i in range(int((high - 1) / step + 1e-9) + 1))
    return _Axis(lambda y: (min(y, high) - 1) / (high - 1), ticks)


def _row(
    panels: Sequence[Panel], top: float, axis: _Axis, label: Callable[[float], str]
) -> list[str]:
    parts: list[str] = []
    across = _log([Panel("", (Line("", [(y, x) for x, y in _all(panels)]),))])
    for i, panel in enumerate(panels):
        left = LEFT + i * (WIDTH + BETWEEN)

        def at(x: float, y: float, left: float = left) -> tuple[float, float]:
            return left + WIDTH * across.place(x), top + HEIGHT * (1 - axis.place(y))

        parts.append(
            f'<rect x="{left}" y="{top}" width="{WIDTH}" height="{HEIGHT}" fill="none" '
            'stroke="#bbb"/>'
        )
        if panel.title:
            parts.append(_text(left + WIDTH / 2, top - 6, panel.title))
        for tick in axis.ticks:
            y = at(across.ticks[0], tick)[1]
            parts.append(f'<path d="M{left} {y:.1f}h{WIDTH}" stroke="#eee"/>')
            if i == 0:
                parts.append(_text(left - 4, y + 4, label(tick), anchor="end"))
        for tick in across.ticks:
            parts.append(_text(at(tick, axis.ticks[0])[0], top + HEIGHT + 13, f"{tick:,.0f}"))
        for line in (line for line in panel.lines if line.points):
            dots = [at(x, y) for x, y in line.points]
            path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in dots)
            colour = COLOURS[line.who]
            parts.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
            parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2" fill="{colour}"/>' for x, y in dots]
    return parts


def _all(panels: Iterable[Panel]) -> Points:
    return [point for panel in panels for line in panel.lines for point in line.points]


def _legend(titles: dict[str, str]) -> list[str]:
    parts: list[str] = []
    for i, (who, title) in enumerate(titles.items()):
        x = LEFT + i * 110
        parts.append(f'<path d="M{x} 16h22" stroke="{COLOURS[who]}" stroke-width="2.5"/>')
        parts.append(_text(x + 28, 20, title, anchor="start"))
    return parts


def _power(value: float) -> str:
    """10 µs, 1 s."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= 0.99 * scale:
            return f"{value / scale:,.0f} {unit}"
    return f"{value:g} s"


def _text(x: float, y: float, words: str, *, anchor: str = "middle", turn: bool = False) -> str:
    turned = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turn else ""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} fill="#333"{turned}>{words}</text>'
