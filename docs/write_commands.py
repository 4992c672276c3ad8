"""Writes what every command of `stretto` takes, for the site.

stretto.cli.parser.COMMANDS  ──►  build/appended/commands.md    conf.py puts it behind commands.md
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from pathlib import Path

from stretto.cli.main import main
from stretto.cli.parser import COMMANDS


def page() -> str:
    """A section a command: what it is for, and its help."""
    os.environ["COLUMNS"] = "98"
    parts = [f"## `stretto {name}`\n\n```\n{_help(name)}```\n" for name in COMMANDS]
    return "\n".join(parts)


def _help(name: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        main([name, "--help-all"])
    return out.getvalue()


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    (Path(sys.argv[1]) / "commands.md").write_text(page(), encoding="utf-8")
