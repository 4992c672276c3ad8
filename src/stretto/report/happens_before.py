"""A check to look at: each finding with its source, and a picture of what was run around it.

consume   ──●──────────●───────◆──         a row an agent, a dot a step, in the order of the run
             ╲ full[0]  ╲      ╎           an arrow where a wait heard of another's step
load      ────●──────────●─────◆──         two diamonds with no way of arrows between them: the race
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

from stretto.report.leaflet import leaflet, paragraphs, table
from stretto.sanitizer.finding import RULES, Excerpt, Finding, Report, Site, Step
from stretto.sanitizer.formats import shown, to_lines

LANE, COLUMN, LEFT, TOP, LETTER = 96, 104, 16, 34, 6.1
AROUND = 2
"""Lines of source before and after the one that a finding is about."""
_STYLE = (
    ".hb{max-width:none;flex:none;background:#fff;color:#111827;"
    "font:11px system-ui,sans-serif}.hb text{fill:currentColor}.hb .lane{stroke:#d1d5db}"
    ".hb .order{stroke:#2563eb;fill:none;stroke-width:1.5}.hb .step{fill:#6b7280}"
    ".hb .accused{fill:#dc2626}.hb .gap{stroke:#dc2626;stroke-dasharray:4 3;fill:none}"
    ".hb text{paint-order:stroke;stroke:#fff;stroke-width:3px}"
    ".hb text.soft{fill:#4b5563}.hb text.name{font-weight:600}"
    "@media(prefers-color-scheme:dark){.hb{background:#16191d;color:#eceff2}"
    ".hb text{stroke:#16191d}.hb .lane{stroke:#3d444c}.hb .order{stroke:#60a5fa}"
    ".hb .accused{fill:#f87171}"
    ".hb .gap{stroke:#f87171}.hb text.soft{fill:#a9b2bc}.hb .step{fill:#9ca3af}}"
)


def to_html(report: Report, lines: Callable[[str], list[str]], strict: bool = False) -> str:
    """The page; `lines` gives the source of a file as it was checked."""
    findings = shown(report, strict)
    sections: list[tuple[str, str]] = []
    for finding in findings:
        heading = f"{finding.site}: {RULES[finding.rule].title}"
        inside = [paragraphs([finding.message]), _facts(finding), _source(finding, lines)]
        if finding.excerpt is not None and finding.excerpt.steps:
            inside.append(_picture(finding, finding.excerpt))
        sections.append((heading, "".join(inside)))
    counted = to_lines(Report(report.file, [], report.coverage, report.stopped), strict)
    sections.append(("What was run", paragraphs(counted[1:])))
    wrong = f"{len(findings)} finding{'' if len(findings) == 1 else 's'}"
    return leaflet(f"{report.file}: {wrong if findings else 'nothing wrong'}", sections)


def _facts(finding: Finding) -> str:
    rows = [
        [name, access.agent, access.what, str(access.turn), str(access.site)]
        for name, access in (("first", finding.first), ("second", finding.second))
        if access is not None
    ]
    told = table(["", "agent", "does", "turn", "at"], rows) if rows else ""
    hint = RULES[finding.rule].hint
    below = [f"barrier: {finding.barrier}"] if finding.barrier else []
    below += list(finding.details)
    below += [f"launch: {finding.launch}, seed {finding.seed}"] if finding.launch else []
    return told + paragraphs([*below, *([f"hint: {hint}"] if hint else [])])


def _source(finding: Finding, lines: Callable[[str], list[str]]) -> str:
    """The lines around each place of a finding; of places that are close, all in one piece."""
    accused = [a.site for a in (finding.first, finding.second) if a is not None]
    parts: list[str] = []
    for file, marked in _pieces([*accused, finding.site]):
        text = lines(file)
        known = [number for number in marked if 0 < number <= len(text)]
        if known:
            first = max(0, known[0] - 1 - AROUND)
            rows = [
                _row(n in known, n, line)
                for n, line in enumerate(text[first : known[-1] + AROUND], first + 1)
            ]
            parts.append(f'<div class="wide" tabindex="0"><pre>{"".join(rows)}</pre></div>')
    return "".join(parts)


def _pieces(sites: Sequence[Site]) -> list[tuple[str, list[int]]]:
    """Files and the lines that are shown together: what is around one reaches to the next."""
    found: list[tuple[str, list[int]]] = []
    for file in dict.fromkeys(site.file for site in sites):
        for line in sorted({site.line for site in sites if site.file == file}):
            if found and found[-1][0] == file and line - found[-1][1][-1] <= 2 * AROUND + 1:
                found[-1][1].append(line)
            else:
                found.append((file, [line]))
    return found


def _row(marked: bool, number: int, text: str) -> str:
    line = escape(f"{number:5} {text}")
    return f"<mark>{line}</mark>\n" if marked else f"{line}\n"


def _picture(finding: Finding, excerpt: Excerpt) -> str:
    """Rows of agents, columns of steps, an arrow for each order through a barrier."""
    agents = list(dict.fromkeys(step.access.agent for step in excerpt.steps))
    left = LEFT + LETTER * max(map(len, agents)) + 24
    width, height = left + COLUMN * len(excerpt.steps) + 24, TOP + LANE * len(agents)
    places = [
        (left + COLUMN * (n + 0.5), TOP + LANE * (agents.index(step.access.agent) + 0.4))
        for n, step in enumerate(excerpt.steps)
    ]
    parts = [
        f'<svg class="hb" role="img" width="{width:.0f}" height="{height}"',
        f' viewBox="0 0 {width:.0f} {height}" aria-label="{escape(_caption(finding, excerpt))}">',
        f"<style>{_STYLE}</style>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7"',
        ' markerHeight="7" orient="auto"><path class="order" d="M0 0L8 4L0 8"/></marker></defs>',
    ]
    for n, agent in enumerate(agents):
        y = TOP + LANE * (n + 0.4)
        parts.append(f'<line class="lane" x1="{left:.0f}" x2="{width:.0f}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text class="name" x="{LEFT}" y="{y + 4}">{escape(agent)}</text>')
    for order in excerpt.orders:
        (x, y), (to_x, to_y) = places[order.first], places[order.second]
        bend = -26 if y == to_y else 0
        middle = f"{(x + to_x) / 2:.0f} {(y + to_y) / 2 + 2 * bend:.0f}"
        parts.append(
            f'<path class="order" marker-end="url(#head)" '
            f'd="M{x:.0f} {y:.0f}Q{middle} {to_x - 6:.0f} {to_y:.0f}">'
            f"<title>{escape(order.barrier)}</title></path>"
        )
    accused = [places[n] for n, step in enumerate(excerpt.steps) if step.accused]
    if len(accused) == 2:
        (x, y), (to_x, to_y) = accused
        parts.append(f'<path class="gap" d="M{x:.0f} {y:.0f}L{to_x:.0f} {to_y:.0f}"/>')
    before = -1
    for (x, y), step in zip(places, excerpt.steps, strict=True):
        if step.number != before + 1:
            skipped = f"… {step.number - before - 1} steps …" if before >= 0 else ""
            parts.append(f'<text class="soft" x="{x - COLUMN * 0.45:.0f}" y="14">{skipped}</text>')
        before = step.number
        parts.append(_dot(step, x, y))
    caption = f'<p class="note">{escape(_caption(finding, excerpt))}</p>'
    return f'<div class="wide" tabindex="0">{"".join([*parts, "</svg>"])}</div>{caption}\n'


def _dot(step: Step, x: float, y: float) -> str:
    access = step.access
    size = 7 if step.accused else 4
    shape = f"M{x} {y - size}L{x + size} {y}L{x} {y + size}L{x - size} {y}Z"
    words = [access.what, step.slot, f"line {access.site.line}, turn {access.turn}"]
    told = "".join(
        f'<text class="{"soft" if n else ""}" text-anchor="middle" x="{x:.0f}" '
        f'y="{y + 20 + 13 * n:.0f}">{escape(_cut(word))}</text>'
        for n, word in enumerate(words)
        if word
    )
    title = escape(f"{access.told()}, {step.slot} at {access.site}")
    kind = "accused" if step.accused else "step"
    return f'<g><title>{title}</title><path class="{kind}" d="{shape}"/>{told}</g>'


def _cut(word: str) -> str:
    """As much as a column has room for; the whole is in the step's title."""
    room = int(COLUMN / LETTER) - 1
    return word if len(word) <= room else word[: room - 1] + "…"


def _caption(finding: Finding, excerpt: Excerpt) -> str:
    of = f"{len(excerpt.steps)} of the program's {excerpt.total} steps, in the order of this run"
    arrows = "an arrow: the wait at its end heard of the step at its beginning"
    if finding.first is not None and finding.second is not None and finding.first != finding.second:
        return f"{of}; {arrows}; red: the two steps that the finding is about."
    return f"{of}; {arrows}."
