"""Makes the changelog's newest section from the fragments in this folder.

    changelog.d/*.md  ──►  ## Unreleased              (no arguments)
                      ──►  ## 0.4.0 - 2026-12-01 (a version and a date)

Without arguments the section is printed. With a version and a date it replaces the heading
`## Unreleased` of CHANGELOG.md, behind what already stands below that heading, and the fragments
are deleted.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
CHANGELOG = HERE.parent / "CHANGELOG.md"
HEADING = "## Unreleased"
LINES = 8
"""Lines that a fragment has at most."""


def fragments(folder: Path) -> list[Path]:
    """The fragments of a folder, by name."""
    return sorted(path for path in folder.glob("*.md") if path.name != "README.md")


def faults(path: Path) -> list[str]:
    """What is wrong with a fragment; empty where nothing is."""
    lines = path.read_text(encoding="utf-8").strip().splitlines()
    found: list[str] = []
    if not lines:
        found.append(f"{path.name}: the file is empty")
    if len(lines) > LINES:
        found.append(f"{path.name}: {len(lines)} lines; a fragment has at most {LINES}")
    if any(line.startswith("#") for line in lines):
        found.append(f"{path.name}: a fragment has no headings")
    return found


def items(text: str) -> str:
    """A fragment as items of a list; one that is a paragraph becomes one item."""
    lines = text.strip().splitlines()
    if lines and lines[0].startswith("- "):
        return "".join(f"{line}\n" for line in lines)
    marked = [f"{'  ' if i else '- '}{line.strip()}" for i, line in enumerate(lines) if line]
    return "".join(f"{line}\n" for line in marked)


def section(folder: Path) -> str:
    """All fragments as one list."""
    return "".join(items(path.read_text(encoding="utf-8")) for path in fragments(folder))


def released(changelog: str, added: str, version: str, date: str) -> str:
    """The changelog with its unreleased section, and what is added to it, under a version."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version) or not re.fullmatch(r"\d{4}-\d\d-\d\d", date):
        raise ValueError(f"{version} {date}: expected a version X.Y.Z and a date YYYY-MM-DD")
    before, heading, rest = changelog.partition(f"{HEADING}\n")
    if not heading:
        raise ValueError(f"the changelog has no heading `{HEADING}`")
    own, next_heading, older = rest.partition("\n## ")
    body = f"{own.strip()}\n{added}".strip()
    return f"{before}{HEADING}\n\n## {version} - {date}\n\n{body}\n{next_heading}{older}"


def main(arguments: list[str]) -> int:
    """Print the section, or write it into the changelog; 1 where a fragment is wrong."""
    wrong = [fault for path in fragments(HERE) for fault in faults(path)]
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        return 1
    if not arguments:
        print(section(HERE), end="")
        return 0
    version, date = arguments
    changelog = CHANGELOG.read_text(encoding="utf-8")
    CHANGELOG.write_text(released(changelog, section(HERE), version, date), encoding="utf-8")
    for path in fragments(HERE):
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
