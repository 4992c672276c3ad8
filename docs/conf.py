"""How the pages become a site: `make docs` writes build/site, which opens from disk.

index.md ──► its sections and links are the sidebar          (so no page can be forgotten)
```mlir copy.mlir   ──► a block with the caption copy.mlir   (see tests/pages.py)
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
BUILT = HERE.parent / "build"
APPENDED = BUILT / "appended"
"""What stands behind pages on the site: write_gallery.py and write_commands.py wrote it."""

project = "Stretto"
release = re.findall(
    r'^__version__ = "(.+)"$', (HERE.parent / "src/stretto/__init__.py").read_text("utf-8"), re.M
)[0]
extensions = ["myst_parser"]
root_doc = "index"
exclude_patterns = ["requirements.txt", "site"]
myst_heading_anchors = 3
suppress_warnings = ["misc.highlighting_failure"]  # `…` in an excerpt
highlight_language = "text"  # a fence without a language is a picture
html_theme = "furo"
html_title = f"Stretto {release}"
html_copy_source = False
html_extra_path = [str(BUILT / "gallery")]  # viewers/
html_static_path = ["site"]
html_css_files = ["site.css"]
html_show_sphinx = False

NEEDS = {"gpu": "needs Triton and a GPU"}
"""What a fence's second word says of its block; any other is the name of a file."""


def _captioned(text: str) -> str:
    """Fences with a second word, as blocks with a caption."""

    def block(found: re.Match[str]) -> str:
        language, word = found.groups()
        return f"```{{code-block}} {language}\n:caption: {NEEDS.get(word, word)}\n"

    return re.sub(r"^```(\w+) (\S+)$", block, text, flags=re.MULTILINE)


def _sidebar(text: str) -> str:
    """The sections of the first page, and the pages that each links to."""
    parts: list[str] = []
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading, _, rest = section.partition("\n")
        pages = list(dict.fromkeys(re.findall(r"\]\(([\w-]+)\.md\)", rest)))
        if pages:
            options = f":caption: {heading}\n:hidden:"
            parts.append("\n".join(["```{toctree}", options, "", *pages, "```"]))
    return "\n\n".join(parts)


def _read(app: Any, page: str, source: list[str]) -> None:
    if page in ("search", "genindex"):
        raise ValueError(f"{page}.md: Sphinx has a page of this name, and would write over it")
    if page == root_doc:
        source[0] += "\n\n" + _sidebar(source[0]) + "\n"
    more = APPENDED / f"{page}.md"
    if more.exists():
        app.env.note_dependency(str(more), docname=page)
        source[0] += "\n" + more.read_text(encoding="utf-8")
    source[0] = _captioned(source[0])


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.add_lexer("mlir", import_module("pygments.lexers.special").TextLexer)  # as it stands
    app.connect("source-read", _read)
