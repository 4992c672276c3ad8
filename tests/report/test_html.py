"""The page holds the whole document, whatever its names are made of, and asks nobody for anything.

What it looks like, and that its views agree with the document, is tested in a browser
(`make test-browser`).
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib.resources import files

import pytest

from stretto.report.html import PLACE, page, template

AWKWARD = [
    "</script><script>alert(1)</script>",
    "<!-- <script>",
    "]]> & &amp; \u2028\u2029 \\u003c \x00 \x7f",
    "\udc80 alone",
    PLACE,
    "ünïcödé 寄存器",
]


class Scripts(HTMLParser):
    """The scripts of a page, as a browser's parser finds them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[dict[str, str | None], str]] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.inside = tag == "script"
        if self.inside:
            self.found.append((dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        del tag
        self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            attributes, text = self.found[-1]
            self.found[-1] = attributes, text + data


def scripts(text: str) -> Scripts:
    parser = Scripts()
    parser.feed(text)
    parser.close()
    return parser


@pytest.mark.parametrize("name", AWKWARD)
def test_a_name_reads_back_from_the_page_as_it_was(name: str) -> None:
    document = {"schema": "stretto.schedule/1", "loops": [{"name": name, name: [1, 2.5, None]}]}
    text = page(document)
    text.encode("utf-8")
    found = scripts(text).found
    assert [attributes.get("id") for attributes, _ in found] == ["report", None]
    assert json.loads(found[0][1]) == document


def test_the_page_loads_nothing_from_anywhere() -> None:
    empty = template()
    for tag, attributes in scripts(empty).tags:
        for name in ("src", "href", "action", "data"):
            value = attributes.get(name)
            assert value is None or value.startswith("data:"), (tag, name, value)
    assert "@import" not in empty
    assert not re.search(r"url\((?!#)", empty)


def test_the_page_forbids_itself_every_script_but_its_own() -> None:
    rule = next(
        attributes["content"]
        for tag, attributes in scripts(template()).tags
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert rule is not None
    assert "default-src 'none'" in rule
    own = scripts(template()).found[-1][1]
    digest = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in rule


def test_the_page_has_one_place_for_the_document_and_names_what_it_bundles() -> None:
    assert template().count(PLACE) == 1
    for library in ("preact", "@preact/signals", "@dagrejs/dagre"):
        assert library in template()


def test_the_page_ships_with_the_package() -> None:
    assert files("stretto.report").joinpath("viewer.html").is_file()
    assert len(template()) < 500_000
