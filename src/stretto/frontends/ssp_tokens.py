"""The words of a text in MLIR's assembly, each with its place: as much as `ssp` needs.

%0 = operation<@lib::@mul> @p(@q [dist<1>])
value = word < symbol :: symbol > symbol ( symbol [ word < number > ] )
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from stretto.errors import DocumentError

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*)
      | (?P<value>%[\w$.#-]+)
      | @"(?P<quoted>(?:[^"\\\n]|\\.)*)"
      | @(?P<symbol>[A-Za-z_][\w$.]*)
      | "(?P<string>(?:[^"\\\n]|\\.)*)"
      | (?P<number>-?\d[\w.+-]*)
      | (?P<word>[A-Za-z_][\w$.]*)
      | (?P<mark>::|->|[<>\[\](){},=:!\#?*+/.|^-])""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\([0-9A-Fa-f]{2}|.)")


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a mark, or the end."""

    file: str
    kind: str
    text: str
    """Without the mark of a value or a symbol."""
    line: int
    column: int

    @property
    def shown(self) -> str:
        """As an error shows it."""
        return "the end of the file" if self.kind == "end" else f"`{self.text[:40]}`"

    def fail(self, message: str, hint: str = "") -> DocumentError:
        """An error at this place, for the caller to raise."""
        return DocumentError(f"{self.file}:{self.line}:{self.column}", "", message, hint)


class Tokens:
    """A text, word by word."""

    def __init__(self, file: str, text: str) -> None:
        self._tokens = _split(file, text)
        self._at = 0

    @property
    def peek(self) -> Token:
        """The word that comes next."""
        return self._tokens[self._at]

    def next(self) -> Token:
        """The next word; at the end, the end again."""
        token = self.peek
        if token.kind != "end":
            self._at += 1
        return token

    def accept(self, text: str) -> bool:
        """Pass over a mark or a word, if it comes next."""
        if self.peek.text != text or self.peek.kind not in ("mark", "word"):
            return False
        self._at += 1
        return True

    def expect(self, text: str) -> None:
        """Pass over a mark or a word that must come next."""
        if not self.accept(text):
            raise self.peek.fail(f"found {self.peek.shown}", f"expected `{text}`")

    def symbol(self) -> str:
        """A symbol that must come next."""
        token = self.next()
        if token.kind != "symbol":
            raise token.fail(f"found {token.shown}", "expected a symbol such as @name")
        return token.text

    def reference(self) -> Token:
        """A symbol, perhaps inside others: `@lib::@mul`."""
        token = self.peek
        way = [self.symbol()]
        while self.accept("::"):
            way.append(self.symbol())
        return replace(token, text="::".join(way))

    def string(self) -> str:
        """A text in quotes that must come next."""
        token = self.next()
        if token.kind != "string":
            raise token.fail(f"found {token.shown}", 'expected a text such as "ModuloProblem"')
        return token.text

    def number(self) -> str:
        """What stands in `<3>` or `<2.5e-01 : f32>`, without its type."""
        self.expect("<")
        found = self.next()
        if self.accept(":"):
            self.next()
        self.expect(">")
        return found.text

    def skip_to(self, mark: str) -> None:
        """Pass over everything up to a mark, and the mark."""
        while not self.accept(mark):
            if self.next().kind == "end":
                raise self.peek.fail("the file ends", f"expected `{mark}`")


def _split(file: str, text: str) -> list[Token]:
    tokens: list[Token] = []
    at, line, begin = 0, 1, 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            place = f"{file}:{line}:{at - begin + 1}"
            raise DocumentError(place, "", f"found {text[at]!r}", "expected a problem of ssp")
        kind = match.lastgroup or "mark"
        if kind != "space":
            word = match[kind]
            if kind in ("quoted", "string"):
                word = _ESCAPE.sub(_unescaped, word)
            name = "symbol" if kind == "quoted" else kind
            word = word.removeprefix("%") if kind == "value" else word
            tokens.append(Token(file, name, word, line, at - begin + 1))
        broken = text.count("\n", at, match.end())
        if broken:
            line += broken
            begin = text.rindex("\n", at, match.end()) + 1
        at = match.end()
    tokens.append(Token(file, "end", "", line, at - begin + 1))
    return tokens


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) == 2:
        return chr(int(code, 16))
    return {"n": "\n", "t": "\t"}.get(code, code)
