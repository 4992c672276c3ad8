"""`stretto sweep`: what a kernel or a machine leaves open, settled in every way."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from stretto.cli.batch import OPTIONS
from stretto.cli.commands import Reply
from stretto.errors import StrettoError
from stretto.files import write_text
from stretto.report import WIDTH

if TYPE_CHECKING:
    from stretto.many.grids import Value


def run(arguments: argparse.Namespace) -> Reply:
    """Sweep; the plots and tables that were asked for go to their files."""
    from stretto.many.sweep import sweep

    taken = [name for name in OPTIONS if name != "max_stages"]  # which is an axis here
    options: dict[str, Any] = {name: getattr(arguments, name) for name in taken}
    options["without"] = tuple(sorted(options["without"]))
    options["fuse"] = not arguments.no_fuse
    shown = sys.stderr.isatty() or arguments.verbose
    found = sweep(
        arguments.function or arguments.input,
        _axes(arguments.axes),
        arguments.machine,
        settings=_axes(arguments.settings),
        rings=_axes(arguments.ring),
        max_stages=arguments.stages,
        consumers=arguments.split,
        trips=arguments.trips,
        grid=arguments.grid,
        sms=arguments.sms,
        front=arguments.front,
        measure=arguments.measure,
        top=arguments.top,
        signature=dict(arguments.signature),
        target=("cuda", arguments.arch),
        loop=arguments.loop,
        time_limit=arguments.time_limit,
        jobs=arguments.jobs,
        executor=arguments.executor,
        cache=not arguments.no_cache,
        progress=_tell if shown else None,
        launched=dict(arguments.argument) or None,
        **options,
    )
    if shown:
        sys.stderr.write("\r" + " " * (WIDTH - 1) + "\r")
    for file, text in (
        (arguments.html, found.to_html),
        (arguments.svg, found.to_svg),
        (arguments.csv, found.to_csv),
    ):
        if file is not None:
            write_text(file, text())
    return Reply(found.to_json, found.to_text, success=found.success)


def _axes(given: Sequence[tuple[str, tuple[Value, ...]]]) -> dict[str, tuple[Value, ...]]:
    """Values by name; a name that is given twice would lose those it was given first."""
    found = dict(given)
    for name in found:
        if sum(one == name for one, _ in given) > 1:
            hint = f"give its values at once, as {name}=VALUE,VALUE"
            raise StrettoError(f"`{name}` is given twice; {hint}")
    return found


def _tell(done: int, of: int) -> None:
    if done % 16 == 0 or done == of:
        sys.stderr.write(f"\r{done:,} of {of:,} configurations")
        sys.stderr.flush()
