"""`stretto bench PATH...`: how good, how fast, and is anything worse than it was?"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from stretto.cli.batch import OPTIONS
from stretto.cli.commands import Reply
from stretto.files import write_text

QUICK = 5.0
"""Seconds that a loop has at most with --quick."""

BOUND = (
    "a gap is to the MII, a lower bound that not every loop can reach, and not to the optimum, "
    "which `--generator exact` without --quick looks for; +/=/- is beside published IIs"
)
"""What is said below figures of --quick."""


def run(arguments: argparse.Namespace) -> Reply:
    """Measure; exit code 1 where a loop failed, or something is worse than in the other run."""
    from stretto.frontends.random_loops import generate_loops
    from stretto.many.bench import bench

    options: dict[str, Any] = {name: getattr(arguments, name) for name in OPTIONS}
    options["without"] = tuple(sorted(options["without"]))
    options["fuse"] = not arguments.no_fuse
    loops = generate_loops(arguments.random or 0, seed=arguments.seed)
    if arguments.quick:
        options["effort"] = "quick"
        arguments.repeat, arguments.time_limit = 1, min(arguments.time_limit, QUICK)
    found = bench(
        [*arguments.paths, *loops],
        arguments.machine,
        compare=arguments.compare,
        slower=arguments.slower,
        repeat=arguments.repeat,
        time_limit=arguments.time_limit,
        jobs=arguments.jobs or 1,
        executor=arguments.executor,
        **options,
    )
    if arguments.quick:
        found = replace(found, notes=(*found.notes, BOUND))
    if arguments.html is not None:
        write_text(arguments.html, found.to_html())
    return Reply(found.to_json, found.to_text, success=found.success, stopped=found.stopped)
