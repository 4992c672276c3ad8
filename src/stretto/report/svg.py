"""A schedule as a picture: some iterations on a time axis, a row a slot, a colour an iteration.

    attention_forward on b200-pipes: II 1325 cycles, 4 stages
    CUDA  ▇▇▇ ▇▇▇▇▇▇ ▇▇▇▇▇▇▇          prologue │ one interval, shaded │ ... │ epilogue
    TC        ▇▇▇▇    ▇▇▇▇

It is one SVG, without scripts and without anything from elsewhere; hovering names a bar.
"""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape

from stretto.report.unrolled import Span, holds, iterations_of, lanes

WIDTH, LEFT, RIGHT, ROW, GAP, HEAD, FOOT = 960, 120, 16, 18, 6, 34, 30
LINE = 15
TICKS = 8
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
"""Of Okabe and Ito: told apart by all eyes."""
_LETTER = 6.2
"""The width of a letter of a bar's name."""

_RULES = (
    "text{font:11px system-ui,sans-serif;fill:#222}",
    ".h{font-weight:600;font-size:13px}",
    ".n{fill:#fff;font-size:10px;pointer-events:none}",
    ".a{stroke:#999;stroke-width:.5}",
    ".s{fill:#8882}",
    ".l{fill:#d55e00;font-weight:600}",
)
_DARK = ("text{fill:#ddd}", ".n{fill:#000}", ".l{fill:#ffa060}")
_CLASS = "stretto"


def _style() -> str:
    """Rules for this picture alone: in a notebook it stands among classes of the same names."""
    light, dark = ("".join(f".{_CLASS} {rule}" for rule in rules) for rules in (_RULES, _DARK))
    return f"{light}@media(prefers-color-scheme:dark){{{dark}}}"


def to_svg(document: dict[str, Any]) -> str:
    """The loops of a document, one below the other; of one without a schedule, why."""
    parts: list[str] = []
    top = 0.0
    for entry in document["loops"]:
        drawn, height = _loop(entry, top) if entry["success"] else _failed(entry, top)
        parts += drawn
        top += height
    told = ", ".join(_title(entry) for entry in document["loops"]) or "no schedule"
    size = f'viewBox="0 0 {WIDTH} {top:g}" width="{WIDTH}" height="{top:g}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="{_CLASS}" {size} role="img">'
    title = f"<title>{_text(told)}</title><style>{_style()}</style>"
    return "\n".join([head, title, *parts, "</svg>"]) + "\n"


def _title(entry: dict[str, Any]) -> str:
    if not entry["success"]:
        return f"{entry['name']}: no schedule"
    stages = "1 stage" if entry["stage_count"] == 1 else f"{entry['stage_count']} stages"
    return f"{entry['name']} on {entry['machine']}: II {entry['ii']} {entry['unit']}, {stages}"


def _failed(entry: dict[str, Any], top: float) -> tuple[list[str], float]:
    """A loop without a schedule, and why."""
    head = f'<text class="h" x="4" y="{top + 16:g}">{_text(_title(entry))}</text>'
    told = [
        f'<text x="4" y="{top + HEAD + ROW * i:g}">{_text(line)}</text>'
        for i, line in enumerate(entry["errors"])
    ]
    return [head, *told], HEAD + ROW * len(told)


def _loop(entry: dict[str, Any], top: float) -> tuple[list[str], float]:
    """One loop, and how high it is."""
    count, ii = iterations_of(entry), entry["ii"]
    spans = holds(entry, count)
    last = max(op["start"] + op["completion"] for op in entry["ops"]) + ii * (count - 1)
    scale = (WIDTH - LEFT - RIGHT) / max(last, 1)
    rows: list[str] = []
    y = top + HEAD
    for slot in entry["slots"]:
        placed = lanes(span for span in spans if span.row == slot["name"])
        kind = ' class="l"' if slot["limiting"] else ""
        used = f"{slot['name']} {slot['utilization']:.0%}"
        rows.append(f'<text x="4" y="{y + 13:g}"{kind}>{_text(used)}</text>')
        rows += [_bar(span, y + lane * ROW, scale, entry["ii"]) for lane, span in placed]
        y += ROW * (1 + max((lane for lane, _ in placed), default=0)) + GAP
    steady = (entry["stage_count"] - 1) * ii
    shade = (
        f'<rect class="s" x="{LEFT + steady * scale:.2f}" y="{top + HEAD - 4:g}" '
        f'width="{ii * scale:.2f}" height="{y - top - HEAD + 4:g}">'
        f"<title>one interval of the steady state, {ii} {entry['unit']}</title></rect>"
    )
    head = f'<text class="h" x="4" y="{top + 16:g}">{_text(_title(entry))}</text>'
    axis = _axis(last, scale, top + HEAD - 4, y, entry["unit"])
    legend, low = _legend(entry, count, y + FOOT + LINE)
    return [head, shade, *axis, *rows, *legend], low - top


def _legend(entry: dict[str, Any], count: int, y: float) -> tuple[list[str], float]:
    """What colours mean, and in which order each slot is held in an interval, by name."""
    parts: list[str] = []
    x = float(LEFT)
    for i in range(min(count, len(COLOURS))):
        told = f"iteration {i}" if i == 0 else str(i)
        parts.append(
            f'<path d="M{x:g} {y - 9:g}h10v10h-10z" fill="{COLOURS[i]}"/>'
            f'<text x="{x + 14:g}" y="{y:g}">{told}</text>'
        )
        x += 26 + _LETTER * len(told)
    told = f"shaded: one interval of the steady state, II {entry['ii']:,} {entry['unit']}"
    if any(slot["limiting"] for slot in entry["slots"]):
        told += "; orange: what limits the loop"
    parts.append(f'<text x="{x + 8:g}" y="{y:g}">{_text(told)}</text>')
    for slot in entry["slots"]:
        names = _holders(entry, slot["name"])
        for part in _broken(", ".join(names), int((WIDTH - LEFT - RIGHT) / _LETTER)):
            y += LINE
            head = slot["name"] if names else ""
            parts.append(f'<text x="4" y="{y:g}">{_text(head)}</text>')
            parts.append(f'<text x="{LEFT}" y="{y:g}">{_text(part)}</text>')
            names = []
    return parts, y + LINE


def _holders(entry: dict[str, Any], slot: str) -> list[str]:
    """The operations that hold a slot, by where in the interval they begin to."""
    found = [
        ((op["start"] + use["offset"]) % entry["ii"], op["name"])
        for op in entry["ops"]
        for use in op["uses"]
        if use["slot"] == slot and use["duration"]
    ]
    return list(dict.fromkeys(name for _, name in sorted(found)))


def _broken(text: str, most: int) -> list[str]:
    """Lines of at most so many letters, broken behind commas."""
    lines = [""]
    for word in text.split(", "):
        if lines[-1] and len(lines[-1]) + len(word) + 2 > most:
            lines.append("")
        lines[-1] += f", {word}" if lines[-1] else word
    return lines


def _bar(span: Span, y: float, scale: float, ii: int) -> str:
    x, width = LEFT + span.begin * scale, max((span.end - span.begin) * scale, 0.75)
    colour = COLOURS[span.iteration % len(COLOURS)]
    told = (
        f"{span.label}, iteration {span.iteration}: {span.row} from cycle {span.begin} to "
        f"{span.end} (cycle {span.begin % ii} of the interval)"
    )
    bar = (
        f'<rect x="{x:.2f}" y="{y:g}" width="{width:.2f}" height="{ROW - 2}" fill="{colour}">'
        f"<title>{_text(told)}</title></rect>"
    )
    if width > _LETTER * len(span.label) + 4:
        bar += f'<text class="n" x="{x + 3:.2f}" y="{y + 12:g}">{_text(span.label)}</text>'
    return bar


def _axis(last: int, scale: float, top: float, bottom: float, unit: str) -> list[str]:
    """Lines at round numbers."""
    step = _round(max(1, last // TICKS))
    lines: list[str] = []
    for cycle in range(0, last + 1, step):
        x = LEFT + cycle * scale
        lines.append(f'<path class="a" d="M{x:.2f} {top:g}V{bottom + 4:g}"/>')
        lines.append(f'<text x="{x:.2f}" y="{bottom + 16:g}" text-anchor="middle">{cycle:,}</text>')
    lines.append(f'<text x="4" y="{bottom + 16:g}">{unit}</text>')
    return lines


def _round(number: int) -> int:
    """The next of 1, 2, 5, 10, 20, 50 ..."""
    power = 10 ** (len(str(number)) - 1)
    return next(k * power for k in (1, 2, 5, 10) if k * power >= number)


def _text(text: str) -> str:
    """For XML, which has no place for control characters."""
    return escape("".join(c if c.isprintable() else "\ufffd" for c in text))
