"""`stretto convert IN OUT`: a loop in another format, and what that cannot say of it."""

from __future__ import annotations

import argparse

from stretto.cli.commands import Reply
from stretto.files import STANDARD


def run(arguments: argparse.Namespace) -> Reply:
    """Convert; what goes to standard output goes there alone."""
    from stretto.api.converting import convert

    made = convert(
        arguments.input,
        arguments.to_file,
        arguments.machine,
        format=arguments.to,
        loop=arguments.loop,
    )
    on_stdout = arguments.to_file == STANDARD
    lines = [] if on_stdout else made.to_text()
    return Reply(made.to_json, lambda: lines, made.lines if on_stdout else [])
