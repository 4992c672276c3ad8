"""`--verify-diagnostics`: what a file says it will be told, against what it is told.

    // expected-error@+1 {{has no place}}           the line below has an error with this in it
    %0 = nv_tileas.async.wgmma ...
    // expected-note@above 2 {{starts at}}          two notes on the nearest line above that has
                                                    no expectation itself

    severity   error, warning, remark, note; `error-re` and so on: {{...}} inside is a pattern
    place      this line; @+N and @-N lines on; @above, @below; @N line N; @unknown no position
    count      1 unless stated

Both failures count: an expectation that is not met, and a diagnostic that nobody expected.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stretto.diagnostics import Diagnostic
from stretto.ir.opt.chunks import Chunk
from stretto.ir.opt.patterns import Pattern, PatternError

_STARTS = re.compile(r"//.*?\bexpected-\w+")
_DESIGNATOR = re.compile(
    r"expected-(?P<severity>error|warning|remark|note)(?P<re>-re)?"
    r"\s*(?:@(?P<place>[+-]?\d+|above|below|unknown))?"
    r"\s*(?P<count>\d+)?\s*\{\{(?P<text>.*)\}\}\s*$"
)


@dataclass(slots=True)
class Expected:
    """One expectation, and how often it is still to be met."""

    severity: str
    line: int | None
    """None: a diagnostic without a position."""
    text: str
    pattern: Pattern
    left: int
    at: tuple[int, int]
    """Line and column of the expectation itself."""


def compare(file: str, chunk: Chunk, told: Iterable[Diagnostic]) -> list[Diagnostic]:
    """What is wrong with the diagnostics of a chunk, as errors: unmet first, then unexpected."""
    expected, faults = _read(file, chunk)
    unexpected: list[Diagnostic] = []
    for diagnostic in _flat(told):
        if not _meets(diagnostic, expected):
            unexpected.append(_unexpected(file, diagnostic, expected))
    for e in expected:
        if e.left:
            times = f" {e.left} more times" if e.left > 1 else ""
            where = f" on line {e.line}" if e.line is not None else " without a position"
            message = f'expected {e.severity} "{e.text}"{where} was not produced{times}'
            faults.append(Diagnostic("error", message, file, *e.at))
    return faults + unexpected


def _flat(told: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    for diagnostic in told:
        yield diagnostic
        yield from _flat(diagnostic.notes)


def _here(diagnostic: Diagnostic) -> int | None:
    return diagnostic.line or None


def _meets(diagnostic: Diagnostic, expected: list[Expected]) -> bool:
    """Spend the most telling expectation that this diagnostic meets."""
    fits = [
        e
        for e in expected
        if e.left
        and (e.severity, e.line) == (diagnostic.severity, _here(diagnostic))
        and e.pattern.search(diagnostic.message)
    ]
    if fits:
        max(fits, key=lambda e: len(e.text)).left -= 1
    return bool(fits)


def _unexpected(file: str, diagnostic: Diagnostic, expected: list[Expected]) -> Diagnostic:
    message = f"unexpected {diagnostic.severity}: {diagnostic.message}"
    for e in expected:
        if e.left and e.line == _here(diagnostic) and e.pattern.search(diagnostic.message):
            message += f" (a {e.severity} is expected there)"
            break
    return Diagnostic("error", message, file, diagnostic.line, diagnostic.column)


# Reading ----------------------------------------------------------------------------------


def _read(file: str, chunk: Chunk) -> tuple[list[Expected], list[Diagnostic]]:
    found: list[Expected] = []
    faults: list[Diagnostic] = []
    waiting: list[Expected] = []
    above = chunk.first
    for number, line in enumerate(chunk.text.split("\n"), 1):
        if number < chunk.first:
            continue
        comment = _STARTS.search(line)
        if comment is None:
            for e in waiting:
                e.line = number
            waiting.clear()
            above = number
            continue
        column = line.index("expected-", comment.start()) + 1
        match = _DESIGNATOR.match(line.rstrip("\r"), column - 1)
        if match is None:
            hint = "expected-error@+1 {{text}}, for one"
            message = f"this expectation cannot be read; it goes {hint}"
            faults.append(Diagnostic("error", message, file, number, column))
            continue
        pattern = _pattern(match)
        if isinstance(pattern, str):
            faults.append(Diagnostic("error", pattern, file, number, column))
            continue
        line_told = _line(match["place"], number, above)
        count = int(match["count"] or 1)
        e = Expected(match["severity"], line_told, match["text"], pattern, count, (number, column))
        found.append(e)
        if match["place"] == "below":
            waiting.append(e)
    return found, faults


def _line(place: str | None, number: int, above: int) -> int | None:
    match place:
        case None | "below":  # the line below is filled in when it is found
            return number
        case "unknown":
            return None
        case "above":
            return above
        case _:
            return int(place) + (number if place[0] in "+-" else 0)


def _pattern(match: re.Match[str]) -> Pattern | str:
    """The text as a pattern, or what is wrong with it."""
    source = re.escape(match["text"])
    if match["re"]:
        parts = re.split(r"\{\{(.*?)\}\}", match["text"])
        source = "".join(f"(?:{p})" if i % 2 else re.escape(p) for i, p in enumerate(parts))
    try:
        return Pattern(source)
    except PatternError as error:
        return str(error)
