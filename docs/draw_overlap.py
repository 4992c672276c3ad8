"""Draws `pictures/overlap.svg`: attention forward as it is written, and pipelined, on one scale.

           0                    4860                  cycles
TC         ▆▆                 ▆▆▆▆                    one iteration after the other
TC         ▆▆  ▆▆  ▆▆ ▆▆▆▆ ▆▆▆▆ ▆▆▆▆ ▆▆▆▆             a new one every II
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import stretto

PICTURE = Path(__file__).parent / "pictures" / "overlap.svg"
LOOP = Path(__file__).parent.parent / "examples" / "attention_forward.json"
SLOTS = {"TMA": "copies", "TC": "tensor core", "CUDA": "arithmetic", "SFU": "exponentials"}
COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#7a6f00"]
"""Iterations in turn; to be told apart by everybody (Okabe and Ito)."""
LEFT, WIDTH, ROW, GAP, TOP = 96, 860, 20, 6, 34
CYCLES = 10_000


def picture() -> str:
    """The whole file."""
    (loop,) = stretto.read(LOOP)
    plain = stretto.schedule(loop, generator="serial").to_json()
    found = stretto.schedule(loop).to_json()
    proved = ", proved optimal" if found["proof"]["optimal"] else ""
    height = TOP + len(SLOTS) * (ROW + GAP)
    panels = [
        *_panel(plain, 0, f"as written: an iteration every {plain['ii']:,} cycles"),
        *_panel(found, height + 8, f"scheduled: a new one every {found['ii']:,} cycles{proved}"),
    ]
    size = f"{LEFT + WIDTH + 12} {2 * height + 24}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" role="img"',
            '  font-family="system-ui, sans-serif" font-size="13" fill="#222">',
            "<title>FlashAttention forward on four units, as written and scheduled</title>",
            '<rect width="100%" height="100%" rx="6" fill="#fff"/>',
            *panels,
            "</svg>\n",
        ]
    )


def _panel(found: dict[str, Any], top: int, title: str) -> Iterator[str]:
    yield f'<text x="{LEFT}" y="{top + 22}" font-weight="600">{escape(title)}</text>'
    for row, (slot, what) in enumerate(SLOTS.items()):
        y = top + TOP + row * (ROW + GAP)
        yield f'<text x="{LEFT - 8}" y="{y + 14}" text-anchor="end">{what}</text>'
        yield f'<rect x="{LEFT}" y="{y}" width="{WIDTH}" height="{ROW}" fill="#f0f0f0"/>'
        for iteration, (begin, end, name) in _held(found, slot):
            x, width = _at(begin), max(1.0, _at(end) - _at(begin))
            colour = COLOURS[iteration % len(COLOURS)]
            tip = f"<title>{escape(name)} of iteration {iteration}, cycle {begin:,}</title>"
            shape = f'x="{x:.1f}" y="{y}" width="{width:.1f}" height="{ROW}" fill="{colour}"'
            yield f"<rect {shape}>{tip}</rect>"


def _held(found: dict[str, Any], slot: str) -> Iterator[tuple[int, tuple[int, int, str]]]:
    """When iterations hold a slot, as far as the picture goes."""
    for op in found["ops"]:
        for use in op["uses"]:
            if use["slot"] != slot:
                continue
            for iteration in range(CYCLES // found["ii"] + 1):
                begin = op["start"] + use["offset"] + iteration * found["ii"]
                end = min(begin + use["duration"], CYCLES)
                if begin < end:
                    yield iteration, (begin, end, op["name"])


def _at(cycle: int) -> float:
    return LEFT + WIDTH * cycle / CYCLES


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
