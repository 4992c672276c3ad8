"""Draws `pictures/attention.svg`: attention forward as it was measured, beside what others have.

benchmarks/gpu/results/*.json(l)  ──►  four panels, a group of bars for each sequence length

`attention-h200-*.jsonl` has Stretto, cuDNN and FlashAttention 3 from one run; the bars of stock
Triton are from `h200-*.json`, another run on such a card, which has two of the lengths.
`facts()` has the figures that the README states.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE.parent / "benchmarks" / "gpu" / "results"
PEERS = RESULTS / "attention-h200-2026-11-19.jsonl"
STOCK = RESULTS / "h200-2026-11-17.json"
PICTURES = {
    "light": HERE / "pictures" / "attention.svg",
    "dark": HERE / "pictures" / "attention-dark.svg",
}
SERIES = ("Stretto", "FlashAttention 3", "cuDNN", "Triton")
COLOURS = {
    "light": {
        "paper": "#ffffff",
        "ink": "#1f2328",
        "faint": "#59636e",
        "grid": "#d9dee3",
        "Stretto": "#0072b2",
        "FlashAttention 3": "#e69f00",
        "cuDNN": "#8c959f",
        "Triton": "#d3b8e0",
    },
    "dark": {
        "paper": "#0d1117",
        "ink": "#f0f6fc",
        "faint": "#9198a1",
        "grid": "#30363d",
        "Stretto": "#4aa8e8",
        "FlashAttention 3": "#e69f00",
        "cuDNN": "#848d97",
        "Triton": "#7c5c90",
    },
}
"""Stretto's blue and FlashAttention's orange are told apart by everybody (Okabe and Ito)."""
TITLE = "FlashAttention forward, fp16, one H200: TFLOPS by sequence length, more is better"
LENGTHS = (1024, 2048, 4096, 8192, 16384)
TOP_RATE = 700
TOKENS, HIDDEN = 16_384, 2_048
"""Of every size: tokens in all, and the width of all heads together."""
PANEL_WIDTH, PANEL_HEIGHT, LEFT, TOP = 420, 150, 46, 62
GAP_X, GAP_Y, BAR = 40, 54, 17


@dataclass(frozen=True)
class Cell:
    """A size, and TFLOPS by name."""

    d: int
    causal: bool
    length: int
    tflops: dict[str, float]


def cells() -> list[Cell]:
    """Every size that was measured, in the order of the file."""
    rows = [json.loads(line) for line in PEERS.read_text(encoding="utf-8").splitlines()]
    stock = _stock()
    found: list[Cell] = []
    for row in rows:
        key = (row["d"], row["causal"], row["length"])
        rate = {"Triton": stock[key]} if key in stock else {}
        flops = 4 * TOKENS * HIDDEN * row["length"] / (2 if row["causal"] else 1)
        times = row["ms"] | {"Stretto": row["ms"][row["Stretto"]]}
        peers = {
            name: flops / statistics.median(times[name]) / 1e9 for name in SERIES if name in times
        }
        found.append(Cell(*key, {**peers, **rate}))
    return found


def _stock() -> dict[tuple[int, bool, int], float]:
    """The best of Triton's settings, by size."""
    times: list[dict[str, Any]] = json.loads(STOCK.read_text(encoding="utf-8"))["times"]
    found: dict[tuple[int, bool, int], float] = {}
    for row in times:
        words = row["problem"].split()
        if words[0] == "attention" and row["name"].startswith("stock"):
            key = (int(words[1][1:]), "causal" in words, int(words[2][1:]))
            rate = row["flops"] / statistics.median(row["ms"]) / 1e9
            found[key] = max(found.get(key, 0.0), round(rate))
    return found


def facts() -> dict[str, str]:
    """What the README says of the chart, as it says it."""
    found = cells()

    def against(name: str) -> str:
        ratios = [c.tflops["Stretto"] / c.tflops[name] for c in found if name in c.tflops]
        return f"{min(ratios):.2f} to {max(ratios):.2f}"

    ahead = sum(c.tflops["Stretto"] > max(_peers(c)) for c in found)
    long = [c for c in found if c.length >= 4096 and c.d == 128]
    over_cudnn = [c.tflops["Stretto"] / c.tflops["cuDNN"] for c in long]
    return {
        "FlashAttention 3": f"{against('FlashAttention 3')} of FlashAttention 3's rate",
        "cuDNN": f"{against('cuDNN')} of cuDNN's",
        "ahead": f"fastest of the three in {ahead} of {len(found)} sizes",
        "D 128": f"{_percent(min(over_cudnn))} to {_percent(max(over_cudnn))} above cuDNN",
        "Triton": f"{_percent(min(_gains()))} to {_percent(max(_gains()))} faster",
    }


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):.0f} %"


def _gains() -> list[float]:
    """The decorated kernel against the best of Triton's settings, in one run."""
    times: list[dict[str, Any]] = json.loads(STOCK.read_text(encoding="utf-8"))["times"]
    decorated = {
        row["problem"]: row["flops"] / statistics.median(row["ms"]) / 1e9
        for row in times
        if row["name"].startswith("decorator") and row["problem"].startswith("attention")
    }
    stock = {
        " ".join(["attention", f"D{d}", f"N{length}", *(["causal"] if causal else [])]): rate
        for (d, causal, length), rate in _stock().items()
    }
    return [rate / stock[problem] for problem, rate in decorated.items()]


def _peers(cell: Cell) -> list[float]:
    return [cell.tflops[name] for name in ("FlashAttention 3", "cuDNN")]


def picture(theme: str) -> str:
    """The whole file, light or dark."""
    colour = COLOURS[theme]
    width = LEFT + 2 * PANEL_WIDTH + GAP_X + 14
    height = TOP + 2 * PANEL_HEIGHT + GAP_Y + 66
    panels = [
        line
        for number, (d, causal) in enumerate([(128, False), (128, True), (64, False), (64, True)])
        for line in _panel(
            [c for c in cells() if (c.d, c.causal) == (d, causal)],
            LEFT + (number % 2) * (PANEL_WIDTH + GAP_X),
            TOP + (number // 2) * (PANEL_HEIGHT + GAP_Y),
            f"head dimension {d}{', causal' if causal else ''}",
            colour,
        )
    ]
    notes = [
        "16,384 tokens, hidden size 2,048; 50 ms back to back, medians of seven shuffled rounds.",
        "Triton (best of four settings) was measured at 4k and 16k alone, in another run.",
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"',
            f'  font-family="system-ui, sans-serif" font-size="12" fill="{colour["ink"]}">',
            f"<title>{TITLE}; {', '.join(SERIES)}</title>",
            f'<rect width="{width}" height="{height}" rx="6" fill="{colour["paper"]}"/>',
            f'<text x="{LEFT}" y="22" font-size="14" font-weight="600">{TITLE}</text>',
            *_legend(colour),
            *panels,
            *(
                f'<text x="{LEFT}" y="{height - 28 + 17 * line}" '
                f'fill="{colour["faint"]}">{note}</text>'
                for line, note in enumerate(notes)
            ),
            "</svg>\n",
        ]
    )


def _legend(colour: dict[str, str]) -> Iterator[str]:
    x = LEFT
    for name in SERIES:
        yield f'<rect x="{x}" y="34" width="12" height="12" rx="2" fill="{colour[name]}"/>'
        yield f'<text x="{x + 17}" y="44">{name}</text>'
        x += 36 + 7 * len(name)


def _panel(
    shown: list[Cell], left: int, top: int, title: str, colour: dict[str, str]
) -> Iterator[str]:
    bottom = top + PANEL_HEIGHT
    yield f'<text x="{left}" y="{top + 6}" font-weight="600">{title}</text>'
    for rate in (0, 200, 400, 600):
        y = bottom - _tall(rate)
        yield (
            f'<line x1="{left}" x2="{left + PANEL_WIDTH}" y1="{y:.1f}" y2="{y:.1f}" '
            f'stroke="{colour["grid"]}"/>'
        )
        yield (
            f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end" font-size="11" '
            f'fill="{colour["faint"]}">{rate}</text>'
        )
    step = PANEL_WIDTH / len(LENGTHS)
    for cell in shown:
        x = left + step * LENGTHS.index(cell.length) + (step - 4 * BAR) / 2
        middle = x + 2 * BAR
        yield (
            f'<text x="{middle:.1f}" y="{bottom + 16}" text-anchor="middle" '
            f'fill="{colour["faint"]}">{cell.length // 1024}k</text>'
        )
        yield from _bars(cell, x, bottom, colour)


def _bars(cell: Cell, x: float, bottom: int, colour: dict[str, str]) -> Iterator[str]:
    size = f"D {cell.d}{' causal' if cell.causal else ''}, N {cell.length:,}"
    for name in SERIES:
        rate = cell.tflops.get(name)
        if rate is not None:
            y = bottom - _tall(rate)
            tip = f"<title>{name}, {size}: {rate:.0f} TFLOPS</title>"
            yield (
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{BAR - 2}" height="{_tall(rate):.1f}" '
                f'fill="{colour[name]}">{tip}</rect>'
            )
        if name == "Stretto" and rate is not None:
            yield (
                f'<text x="{x + BAR / 2 - 1:.1f}" y="{bottom - _tall(rate) - 3:.1f}" '
                f'text-anchor="middle" font-size="10">{rate:.0f}</text>'
            )
        x += BAR


def _tall(rate: float) -> float:
    return (PANEL_HEIGHT - 14) * rate / TOP_RATE


if __name__ == "__main__":
    for theme, path in PICTURES.items():
        path.write_text(picture(theme), encoding="utf-8")
