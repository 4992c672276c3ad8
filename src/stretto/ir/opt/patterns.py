"""Patterns that always end: regular expressions of RE2, which matches without backtracking.

    (a+)+$      "aaaaaaaaaaaaaaaaaaaaaaaa!"     each place is looked at once a step, not 2^24 times

Its language is near Python's. It has no references to groups, lookaround and possessive repeats;
`\\d`, `\\w`, `\\s` and `\\b` know ASCII alone, `$` is the end of the text and no line break
before it, `\\z` stands for `\\Z`, `{,2}` is no repetition, and one says at most 1,000 times.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from stretto.limits import PATTERN_TEXT


class PatternError(Exception):
    """A text that is no pattern, or too large a one."""


class Pattern:
    """A regular expression; `search` takes time in proportion to its text."""

    def __init__(self, source: str) -> None:
        self.source = source
        if len(source) > PATTERN_TEXT:
            raise PatternError(f"{_told(source)} is longer than {PATTERN_TEXT:,} characters")
        re2: Any = import_module("re2")  # it has no types
        options = re2.Options()
        options.log_errors = False
        try:
            self._compiled: Any = re2.compile(_encoded(source), options)
        except re2.error as error:
            why = error.args[0].decode("utf-8", "replace")
            raise PatternError(f"{_told(source)} is no pattern: {why}") from None

    def search(self, text: str) -> bool:
        """Whether the pattern matches anywhere in a text, of which so many characters count."""
        return self._compiled.search(_encoded(text[:PATTERN_TEXT])) is not None


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def _told(source: str) -> str:
    return f"`{source}`" if len(source) <= 60 else f"`{source[:57]}...`"
