"""Predicted against measured cycles an iteration, a dot a configuration, as SVG.

figure(families)  ──►  both axes logarithmic; on the line the model is right, between the dashes
                       it is within 10 %
"""

from __future__ import annotations

import math

SIDE, LEFT, TOP, RIGHT, BOTTOM = 420, 62, 16, 190, 46
LOW, HIGH = 200.0, 8000.0
TICKS = (200, 500, 1000, 2000, 4000, 8000)
NEAR = 1.1
COLOURS = {
    "gemm": ("#2171b5", "GEMM 8192"),
    "attention_d128": ("#d62728", "attention D 128"),
    "attention_d64": ("#fd8d3c", "attention D 64"),
    "causal": ("#756bb1", "causal attention"),
    "backward": ("#31a354", "attention backward"),
    "shipped": ("#8c6d31", "kernels that ship"),
    "open": ("#e377c2", "attention, two stages"),
    "norm": ("#969696", "layer norm (a lower bound)"),
}


def figure(families):
    """The SVG's text, of rows by family."""
    width, height = LEFT + SIDE + RIGHT, TOP + SIDE + BOTTOM
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            'font-family="sans-serif" font-size="11">'
        ),
        "<title>Predicted against measured cycles an iteration</title>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
        (
            f'<clipPath id="inside"><rect x="{LEFT}" y="{TOP}" width="{SIDE}" height="{SIDE}"/>'
            "</clipPath>"
        ),
        *_axes(),
        *_lines(),
    ]
    counts = dict.fromkeys(COLOURS, 0)
    for name, rows in families.items():
        kind = next(known for known in COLOURS if name.startswith(known))
        counts[kind] += len(rows)
        parts += [_dot(row, COLOURS[kind][0]) for row in rows]
    shown = [kind for kind, count in counts.items() if count]
    for number, kind in enumerate(shown):
        colour, title = COLOURS[kind]
        x, y = LEFT + SIDE + 16, TOP + 12 + 20 * number
        parts.append(f'<circle cx="{x}" cy="{y}" r="4" fill="{colour}"/>')
        parts.append(_text(x + 10, y + 4, f"{title}, {counts[kind]}", "start"))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _at(measured, predicted):
    def place(value):
        inside = min(max(value, LOW), HIGH)
        return SIDE * math.log(inside / LOW) / math.log(HIGH / LOW)

    return LEFT + place(measured), TOP + SIDE - place(predicted)


def _axes():
    yield (f'<rect x="{LEFT}" y="{TOP}" width="{SIDE}" height="{SIDE}" fill="none" stroke="#bbb"/>')
    for tick in TICKS:
        x, y = _at(tick, tick)
        yield f'<path d="M{LEFT} {y:.1f}h{SIDE}M{x:.1f} {TOP}v{SIDE}" stroke="#eee"/>'
        yield _text(LEFT - 5, y + 4, f"{tick:,}", "end")
        yield _text(x, TOP + SIDE + 14, f"{tick:,}")
    yield _text(LEFT + SIDE / 2, TOP + SIDE + 34, "measured cycles an iteration")
    x, y = 14, TOP + SIDE / 2
    yield _text(x, y, "predicted cycles an iteration", turned=True)


def _lines():
    shift = SIDE * math.log(NEAR) / math.log(HIGH / LOW)
    for by, style in (
        (0.0, ""),
        (shift, ' stroke-dasharray="4 4"'),
        (-shift, ' stroke-dasharray="4 4"'),
    ):
        yield (
            f'<path d="M{LEFT} {TOP + SIDE - by:.1f}l{SIDE} {-SIDE}" stroke="#888"{style} '
            'clip-path="url(#inside)"/>'
        )


def _dot(row, colour):
    x, y = _at(row["cycles"], row["predicted_cycles"])
    told = f"{row['name']}: measured {row['cycles']:,.0f}, predicted {row['predicted_cycles']:,.0f}"
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}" fill-opacity="0.75">'
        f"<title>{told}</title></circle>"
    )


def _text(x, y, words, anchor="middle", turned=False):
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} fill="#333"{turn}>{words}</text>'
