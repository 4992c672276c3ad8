"""Nothing of the built site is fetched from elsewhere: it opens from disk, without a network.

*.html, *.css  ──►  what a browser would load: scripts, styles, pictures, fonts, frames
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

LOADED = {"src", "srcset", "poster", "data", "background"}
"""Attributes whose address a browser loads by itself; `href` it loads of `<link>` only."""
ELSEWHERE = re.compile(r"^\s*(?:https?:)?//", re.IGNORECASE)
IN_STYLE = re.compile(r"(?:url\(|@import)\s*[\"']?\s*((?:https?:)?//[^\"')\s]+)", re.IGNORECASE)


class Page(HTMLParser):
    """Collects what a page loads from elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = IN_STYLE.findall(text)
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """One element."""
        given = dict(attrs)
        for name, value in attrs:
            fetches = name in LOADED or (name == "href" and tag == "link")
            if fetches and given.get("rel") != "canonical" and ELSEWHERE.match(value or ""):
                self.found.append(value or "")


def fetched(site: Path) -> Iterator[str]:
    """Each address that a file of the site loads from elsewhere."""
    for path in sorted(site.rglob("*")):
        if path.suffix == ".html":
            found = Page(path.read_text(encoding="utf-8")).found
        elif path.suffix == ".css":
            found = IN_STYLE.findall(path.read_text(encoding="utf-8"))
        else:
            continue
        for address in found:
            yield f"{path.relative_to(site)}: loads {address}"


if __name__ == "__main__":
    if not (Path(sys.argv[1]) / "index.html").is_file():
        sys.exit(f"{sys.argv[1]}: error: no index.html; has the site been built?")
    sys.exit("\n".join(fetched(Path(sys.argv[1]))) or 0)
