"""`stretto check`: races, deadlocks and stale slots in a Gluon kernel, without a GPU."""

from __future__ import annotations

import argparse
from pathlib import Path
from time import monotonic

from stretto import __version__
from stretto.cli.commands import Reply
from stretto.files import read_text


def run(arguments: argparse.Namespace) -> Reply:
    """One file, or one kernel of it."""
    from stretto.report.happens_before import to_html
    from stretto.sanitizer.checking import BLACKWELL, HOPPER, check
    from stretto.sanitizer.formats import to_json, to_lines, to_sarif
    from stretto.sanitizer.launches import Settings

    file, _, kernel = _split(arguments.checked)
    limit: float | None = arguments.time_limit
    settings = Settings(
        seeds=tuple(range(arguments.seeds)),
        programs=arguments.programs,
        fenced=arguments.fences == "inserted",
        until=monotonic() + limit if limit is not None else float("inf"),
    )
    capability = {"hopper": HOPPER, "blackwell": BLACKWELL}.get(arguments.target)
    report = check(
        file, kernel, against=arguments.against, settings=settings, capability=capability
    )
    strict: bool = arguments.strict
    return Reply(
        lambda: to_json(report, strict),
        lambda: to_lines(report, strict, arguments.verbose),
        success=not report.failed(strict),
        stopped=report.stopped,
        others={
            "sarif": lambda: to_sarif(report, __version__, strict),
            "html": lambda: to_html(report, _lines, strict),
        },
    )


def _lines(file: str) -> list[str]:
    """A checked file's source."""
    return read_text(file)[1].splitlines() if Path(file).is_file() else []


def _split(given: str) -> tuple[str, str, str]:
    """The file, and the kernel where one is named after a colon."""
    file, colon, kernel = given.rpartition(":")
    if colon and kernel.isidentifier() and file:
        return file, colon, kernel
    return given, "", ""
