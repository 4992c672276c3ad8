"""A text and a place in it: the next word, or an error where it is not what was expected.

tt.addptr %p, %x : !tt.ptr<f32>, i32 loc(#loc4)
          ^ here                      `kernel.ttir:7:15: error: expected ...`
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property

from stretto.kernel import KernelError, Location

_GAP = re.compile(r"(?:\s+|//[^\n]*)*")
_NEWLINE = re.compile(r"\n")
_TOLD = 40
"""Characters of the text that a message quotes."""
WORD = re.compile(r"[A-Za-z_][\w$.]*")
VALUE = re.compile(r"%(?:\d+|[A-Za-z_$.-][\w$.-]*)(?:#\d+)?")
LABEL = re.compile(r"\^[\w$.-]+")
SYMBOL = re.compile(r'@(?:[A-Za-z_$][\w$.-]*|"[^"\n]*")')
STRING = re.compile(r'"(?:[^"\\\n]|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*"')
_ESCAPE = re.compile(r'\\(["nt\\]|[0-9A-Fa-f]{2})')
_NAMED = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}


class Scanner:
    """Reads a text from the front; gaps and comments are passed over."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self.at: int = 0
        self._skip()

    def _skip(self) -> None:
        gap = _GAP.match(self.text, self.at)
        if gap is not None:
            self.at = gap.end()

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """What stands here, if it is such, and on to what follows."""
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
            self._skip()
        return found

    def peek(self, literal: str) -> bool:
        """Whether these characters stand here."""
        return self.text.startswith(literal, self.at)

    def take(self, literal: str) -> bool:
        """Past these characters, if they stand here."""
        if not self.text.startswith(literal, self.at):
            return False
        self.at += len(literal)
        self._skip()
        return True

    def take_word(self, word: str) -> bool:
        """Past a word, if it stands here as a whole."""
        found = WORD.match(self.text, self.at)
        return found is not None and found[0] == word and self.take(word)

    def expect(self, literal: str, why: str = "") -> None:
        """Past these characters; an error if others stand here."""
        if not self.take(literal):
            raise self.wanted(f"`{literal}`{' ' + why if why else ''}")

    def word(self, what: str) -> str:
        """A word; an error if none stands here."""
        found = self.match(WORD)
        if found is None:
            raise self.wanted(what)
        return found[0]

    def string(self) -> str:
        """The text in quotes that stands here."""
        found = self.match(STRING)
        if found is None:
            raise self.wanted("a text in quotes")
        return _ESCAPE.sub(lambda m: _NAMED.get(m[1]) or chr(int(m[1], 16)), found[0][1:-1])

    @property
    def done(self) -> bool:
        """Whether nothing is left."""
        return self.at >= len(self.text)

    # Places -------------------------------------------------------------------------------

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(match.end() for match in _NEWLINE.finditer(self.text))]

    def place(self, offset: int | None = None) -> Location:
        """A place in the text itself: here, unless told otherwise."""
        offset = min(self.at if offset is None else offset, len(self.text))
        row = bisect_right(self._starts, offset) - 1
        return Location(self.file, row + 1, offset - self._starts[row] + 1)

    def rest_of_line(self, offset: int) -> str:
        """The text from an offset to the end of its line."""
        end = self.text.find("\n", offset)
        return self.text[offset:] if end < 0 else self.text[offset:end]

    def wanted(self, what: str) -> KernelError:
        """That something else was expected here."""
        found = self.rest_of_line(self.at).strip()
        found = found if len(found) <= _TOLD else found[:_TOLD] + " ..."
        return self.fail(f"expected {what}, not `{found}`" if found else f"expected {what}")

    def fail(self, message: str, offset: int | None = None, hint: str = "") -> KernelError:
        """What is wrong here."""
        return KernelError(self.place(offset), message, hint)
