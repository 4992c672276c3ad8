"""The pages keep to the style of `style.toml`, and proselint finds nothing in them.

README.md, CONTRIBUTING.md, docs/*.md  ──►  sentences, without code, tables and addresses
                                       ──►  page.md:12: say "warpgroup" for "group of warps"

Where proselint is not installed only the style of our own is checked, and that is said.
"""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
STYLE = HERE / "style.toml"
GENERATED = {"api.md"}
"""From docstrings: their place to mend is the source."""
_FENCE = re.compile(r"^ *```.*?^ *```[^\n]*$", re.MULTILINE | re.DOTALL)
_TAG = re.compile(r"<[^>\n]+>")
_HEADING = re.compile(r"^#+ .*$", re.MULTILINE)
_CODE = re.compile(r"`[^`\n]+`")
_LINK = re.compile(r"(!?\[[^\]]*\])\([^)]*\)")
_END = re.compile(
    r"(?<=[.!?:;])(?:[*_)\"]*)\s+(?=[A-Z*_`\"(])|\n\s*\n|\n(?=\s*(?:[-*]|\d+\.)\s)|\s\.\s"
)


@dataclass(frozen=True)
class Finding:
    """What is wrong, and where."""

    page: str
    line: int
    told: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.told}"


def pages() -> list[Path]:
    """Every page that is written by hand."""
    root = HERE.parent
    found = [root / "README.md", root / "CONTRIBUTING.md", *sorted(HERE.glob("*.md"))]
    return [path for path in found if path.name not in GENERATED]


def prose(text: str) -> str:
    """The words of a page, each on the line where it stands; code is one word."""

    def blank(found: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", found[0])

    def kept(found: re.Match[str]) -> str:
        return found[1] + " " * (len(found[0]) - len(found[1]))

    text = _TAG.sub(blank, _FENCE.sub(blank, text))
    letters = itertools.cycle("bcdfghjk")  # no two pieces of code are one word twice
    text = _HEADING.sub(blank, _LINK.sub(kept, text))
    text = _CODE.sub(lambda found: (next(letters) * len(found[0])).capitalize(), text)
    return text.replace("|", ".")


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Each sentence and the line on which it begins; cells of tables count as sentences."""
    at = 0
    for end in [*_END.finditer(text), None]:
        part = text[at : end.start() if end else len(text)]
        begins = at + len(part) - len(part.lstrip())
        yield text.count("\n", 0, begins) + 1, " ".join(part.split())
        at = end.end() if end else len(text)


def own(page: str, text: str, style: dict[str, Any]) -> Iterator[Finding]:
    """What our own style says of a page."""
    words = prose(text)
    for rule in style["words"]:
        for found in re.finditer(rule["not"], words, re.IGNORECASE):
            line = words.count("\n", 0, found.start()) + 1
            told = " ".join(found[0].split())
            yield Finding(page, line, f'say {rule["but"]} for "{told}"')
    most = style["sentences"]["words"]
    for line, sentence in sentences(words):
        count = len(re.findall(r"[\w’'-]+", sentence))
        if count > most:
            yield Finding(page, line, f"a sentence of {count} words; at most {most}")


def linted(texts: dict[str, str], program: Path, off: list[str]) -> Iterator[Finding]:
    """What proselint says of the words of pages."""
    with tempfile.TemporaryDirectory() as folder:
        files = {f"{i}.md": name for i, name in enumerate(texts)}
        for file, name in files.items():
            (Path(folder) / file).write_text(prose(texts[name]), encoding="utf-8")
        command = [str(program), "-o", "compact", "check", folder]
        said = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.findall(r"(\d+\.md):(\d+):\d+: ([^\n]+)", said.stdout)
    if said.returncode and not found:
        raise SystemExit(f"proselint: error: {said.stdout}{said.stderr}")
    for file, line, told in found:
        if not told.startswith(tuple(off)):
            yield Finding(files[file], int(line), told)


def main() -> int:
    """Check every page; 1 where anything was found."""
    style = tomllib.loads(STYLE.read_text(encoding="utf-8"))
    texts = {str(p.relative_to(HERE.parent)): p.read_text(encoding="utf-8") for p in pages()}
    found = [each for name, text in texts.items() for each in own(name, text, style)]
    program = Path(sys.executable).parent / "proselint"
    if program.exists():
        found += linted(texts, program, style["proselint"]["off"])
    for each in found:
        print(each)
    if not program.exists():
        print("proselint is not installed (make docs has it): only style.toml was checked")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
