"""Patterns that always end: regular expressions, matched without backtracking.

    (a+)+$      "aaaaaaaaaaaaaaaaaaaaaaaa!"     each place is looked at once a step, not 2^24 times

                ┌─────┐
    ──► split ──┤  a  ├──► split ──► $ ──► match         the program of a pattern; all its threads
          ▲     └─────┘      │                            walk through the text side by side
          └──────────────────┘                            (K. Thompson, CACM 11(6), 1968)

The language is Python's without what needs backtracking: references to groups, looking ahead and
behind, groups that keep what they took. What a single character or place matches is asked of
Python's own `re`, so classes, escapes and flags mean what they mean there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal, NoReturn

from stretto.limits import PATTERN_STEPS, PATTERN_TEXT

_GROUP = re.compile(r"\((?:\?(?::|P<\w+>))?")
_FLAGS = re.compile(r"\(\?([aimsux]+)\)")
_CLASS = re.compile(r"\[\^?\]?(?:[^\]\\]|\\.)*\]", re.DOTALL)
_ESCAPE = re.compile(
    r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|N\{[^}]*\}|0[0-7]{0,2}|[^0-9])",
    re.DOTALL,
)
_REPEAT = re.compile(r"([*+?]|\{(\d*(?:,\d*)?)\})([?+]?)")
_PLACES = ("\\A", "\\Z", "\\b", "\\B")
_FLAG_OF = {
    "a": re.ASCII,
    "i": re.IGNORECASE,
    "m": re.MULTILINE,
    "s": re.DOTALL,
    "u": re.UNICODE,
    "x": re.VERBOSE,
}


class PatternError(Exception):
    """A text that is no pattern, or one that might never end."""


@dataclass(slots=True)
class _Step:
    """One step of a program; `after` and `other` are steps to go on with."""

    kind: Literal["character", "place", "split", "match"]
    test: re.Pattern[str] | None = None
    after: int = 0
    other: int = 0


@dataclass(slots=True)
class _Piece:
    """A part of a program: where it begins, and the ends that are still to be joined."""

    first: int
    ends: list[tuple[int, bool]]
    """Step, and whether its `other` is meant."""


class Pattern:
    """A regular expression; `search` takes time in proportion to its text."""

    def __init__(self, source: str) -> None:
        self.source = source
        if len(source) > PATTERN_TEXT:
            raise PatternError(f"{_told(source)} is longer than {PATTERN_TEXT:,} characters")
        try:
            re.compile(source)
            self._program = _Compiler(source).program()
        except (re.error, OverflowError) as error:
            raise PatternError(f"{_told(source)} is no pattern: {error}") from None
        except RecursionError:
            raise PatternError(f"{_told(source)} is nested too deeply") from None

    def search(self, text: str) -> bool:
        """Whether the pattern matches anywhere in a text, of which so many characters count."""
        text = text[:PATTERN_TEXT]
        steps, first = self._program
        waiting: dict[int, None] = {}
        for at in range(len(text) + 1):
            waiting[first] = None
            ready = self._reach(waiting, text, at)
            if ready is None:
                return True
            waiting = {}
            for step in ready:
                test = steps[step].test
                if at < len(text) and test is not None and test.match(text[at]):
                    waiting[steps[step].after] = None
        return False

    def _reach(self, waiting: dict[int, None], text: str, at: int) -> list[int] | None:
        """The steps that take a character, from those that wait; None: the pattern matches."""
        steps = self._program[0]
        seen: set[int] = set()
        stack = list(waiting)
        ready: list[int] = []
        while stack:
            number = stack.pop()
            if number in seen:
                continue
            seen.add(number)
            step = steps[number]
            if step.kind == "match":
                return None
            if step.kind == "character":
                ready.append(number)
            elif step.kind == "split":
                stack += (step.other, step.after)
            elif step.test is not None and step.test.match(text, at):
                stack.append(step.after)
        return ready


@dataclass(slots=True)
class _Compiler:
    """A cursor in the source of a pattern that `re` has found to be one."""

    source: str
    at: int = 0
    flags: re.RegexFlag = re.UNICODE
    steps: list[_Step] = field(default_factory=list[_Step])

    def program(self) -> tuple[list[_Step], int]:
        while found := _FLAGS.match(self.source, self.at):
            self.at = found.end()
            for letter in found[1]:
                self.flags |= _FLAG_OF[letter]
        if self.flags & re.VERBOSE:
            self.refuse("(?x)")
        piece = self.choice()
        if self.at < len(self.source):
            self.refuse(self.source[self.at :])
        self.join(piece.ends, self.add(_Step("match")))
        return self.steps, piece.first

    def refuse(self, what: str) -> NoReturn:
        raise PatternError(
            f"{_told(self.source)} has `{what[:20]}`; references, lookaround, possessive repeats "
            "and other extensions are not supported, so that every match ends"
        )

    def add(self, step: _Step) -> int:
        if len(self.steps) >= PATTERN_STEPS:
            raise PatternError(
                f"{_told(self.source)} is too large a pattern: more than {PATTERN_STEPS:,} steps "
                "with its repetitions written out"
            )
        self.steps.append(step)
        return len(self.steps) - 1

    def join(self, ends: list[tuple[int, bool]], to: int) -> None:
        for step, other in ends:
            if other:
                self.steps[step].other = to
            else:
                self.steps[step].after = to

    # One function for each level of the grammar ---------------------------------------------

    def choice(self) -> _Piece:
        """Sequences with `|` between them."""
        piece = self.sequence()
        while self.source.startswith("|", self.at):
            self.at += 1
            right = self.sequence()
            first = self.add(_Step("split", after=piece.first, other=right.first))
            piece = _Piece(first, piece.ends + right.ends)
        return piece

    def sequence(self) -> _Piece:
        """Atoms one after the other; an empty one is a split that goes one way."""
        piece = self.empty()
        while self.at < len(self.source) and self.source[self.at] not in "|)":
            piece = self.then(piece, self.repeated())
        return piece

    def empty(self) -> _Piece:
        step = self.add(_Step("split"))
        return _Piece(step, [(step, False), (step, True)])

    def then(self, left: _Piece, right: _Piece) -> _Piece:
        self.join(left.ends, right.first)
        return _Piece(left.first, right.ends)

    def repeated(self) -> _Piece:
        """An atom and how often it stands; lazy or not, the same texts match."""
        began, before = self.at, len(self.steps)
        piece = self.atom()
        found = _REPEAT.match(self.source, self.at)
        if found is None or found[2] in ("", ","):
            return piece
        if found[3] == "+":
            self.refuse(self.source[began : found.end()])
        least, most = _times(found)
        del self.steps[before:]  # made anew, as often as it is needed
        piece = self.empty()
        for _ in range(least):
            piece = self.then(piece, self.again(began))
        if most is None:
            piece = self.then(piece, self.star(self.again(began)))
        for _ in range(least, most or 0):
            piece = self.then(piece, self.maybe(self.again(began)))
        self.at = found.end()
        return piece

    def again(self, began: int) -> _Piece:
        self.at = began
        return self.atom()

    def maybe(self, piece: _Piece) -> _Piece:
        first = self.add(_Step("split", after=piece.first))
        return _Piece(first, [*piece.ends, (first, True)])

    def star(self, piece: _Piece) -> _Piece:
        first = self.add(_Step("split", after=piece.first))
        self.join(piece.ends, first)
        return _Piece(first, [(first, True)])

    def atom(self) -> _Piece:
        """A group, a class, an escape, a place or a character."""
        source, at = self.source, self.at
        if source[at] == "(":
            return self.group()
        if source[at] == "[":
            found = _CLASS.match(source, at)
        elif source[at] == "\\":
            found = _ESCAPE.match(source, at)
        else:
            return self.one(source[at], source[at] in "^$")
        if found is None:
            self.refuse(source[at : at + 2])
        return self.one(found[0], found[0] in _PLACES)

    def one(self, text: str, place: bool) -> _Piece:
        """A step for a text that `re` understands alone."""
        self.at += len(text)
        test = re.compile(text if len(text) > 1 or text in ".^$" else re.escape(text), self.flags)
        step = self.add(_Step("place" if place else "character", test))
        return _Piece(step, [(step, False)])

    def group(self) -> _Piece:
        found = _GROUP.match(self.source, self.at)
        assert found is not None
        self.at = found.end()
        if self.source.startswith("?", self.at):
            self.refuse(self.source[found.start() : found.start() + 4])
        piece = self.choice()
        self.at += 1  # the parenthesis that closes it
        return piece


def _told(source: str) -> str:
    return f"`{source}`" if len(source) <= 60 else f"`{source[:57]}...`"


def _times(found: re.Match[str]) -> tuple[int, int | None]:
    """The least and the greatest number of times; None: any number."""
    match found[1]:
        case "*":
            return 0, None
        case "+":
            return 1, None
        case "?":
            return 0, 1
        case _:
            least, comma, most = found[1][1:-1].partition(",")
            return int(least or 0), (int(most) if most else None) if comma else int(least)
