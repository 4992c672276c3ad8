"""XML that people wrote, as elements that know where they stand.

    <node id="7">          Element("node", {"id": "7"}, line 3, column 5)
      <data key=...            .children, .text

Names are taken without their namespace. Document types are refused: none of the formats that are
read here has one, and entities are how a small file becomes a large one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn
from xml.parsers import expat

from stretto.errors import DocumentError, listed

_DIGITS = 12
"""Digits of a number; what is larger is refused later, with its limit."""
_NESTED = 64
"""Elements in each other; the formats that are read have five."""
_SAME = ("utf-8", "utf8", "us-ascii", "ascii")
"""Encodings that a text may name that was read as UTF-8."""
_SAME_ASCII = ("iso-8859-1", "latin-1", "latin1", "windows-1252")
"""And those that are the same while its letters are plain."""


@dataclass(slots=True)
class Element:
    """One element, and its place."""

    file: str
    tag: str
    attributes: dict[str, str]
    line: int
    column: int
    children: list[Element] = field(default_factory=list["Element"])
    parts: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        """The text directly inside, without the space around it."""
        return "".join(self.parts).strip()

    def each(self, tag: str) -> Iterator[Element]:
        """Every element of a name below this one, in the order of the file."""
        waiting = self.children[::-1]
        while waiting:
            one = waiting.pop()
            if one.tag == tag:
                yield one
            waiting += one.children[::-1]

    def fail(self, message: str, hint: str = "") -> DocumentError:
        """An error at this place, for the caller to raise."""
        place = f"{self.file}:{self.line}:{self.column}"
        return DocumentError(place, "", message, hint)

    def get(self, name: str) -> str:
        """A required attribute."""
        if name not in self.attributes:
            has = listed(self.attributes)
            raise self.fail(f"<{self.tag}> has no `{name}`", f"its attributes: {has}")
        return self.attributes[name]

    def number(self, name: str, default: int | None = None) -> int:
        """An attribute that is a whole number; one that is left out is the default."""
        if default is not None and name not in self.attributes:
            return default
        return whole(self, name, self.get(name))


def whole(at: Element, name: str, text: str) -> int:
    """A whole number, perhaps below 0, that stands somewhere in an element."""
    digits = text.strip().removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= _DIGITS):
        raise at.fail(f"`{name}` is {text[:40]!r}", "expected a whole number")
    return int(text)


def parse_xml(file: str, text: str) -> Element:
    """The outermost element; DocumentError where the text is no XML."""
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    top = Element(file, "", {}, 1, 1)
    opened = [top]

    def begin(tag: str, attributes: dict[str, str]) -> None:
        place = parser.CurrentLineNumber, parser.CurrentColumnNumber + 1
        named = {name.rpartition(":")[2]: value for name, value in attributes.items()}
        one = Element(file, tag.rpartition(":")[2], named, *place)
        if len(opened) > _NESTED:
            raise one.fail("is nested too deeply", f"at most {_NESTED} elements in each other")
        opened[-1].children.append(one)
        opened.append(one)

    def end(_tag: str) -> None:
        opened.pop()

    def inside(text: str) -> None:
        opened[-1].parts.append(text)

    def refuse(*_: object) -> NoReturn:
        place = f"{file}:{parser.CurrentLineNumber}:{parser.CurrentColumnNumber + 1}"
        raise DocumentError(place, "", "has a document type", "leave <!DOCTYPE ...> out")

    def declare(_version: str, encoding: str | None, _standalone: int) -> None:
        if encoding is None or encoding.lower() in _SAME:
            return
        if encoding.lower() not in _SAME_ASCII or not text.isascii():
            told = f"is said to be in `{encoding}`, and files are read as UTF-8"
            raise DocumentError(f"{file}:1:1", "", told, "save it as UTF-8, and say so")

    parser.XmlDeclHandler = declare
    parser.StartElementHandler = begin
    parser.EndElementHandler = end
    parser.CharacterDataHandler = inside
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        place = f"{file}:{error.lineno}:{error.offset + 1}"
        message = f"not XML: {expat.ErrorString(error.code)}"
        raise DocumentError(place, "", message) from None
    return top.children[0]
