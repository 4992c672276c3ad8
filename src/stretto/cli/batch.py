"""`stretto batch`: rows to a file or to standard output, a line that moves, a summary at the end.

    12,345 loops, 61 % of the input, 1,020 a second, 2 failed, 8 s left

On a terminal the line shows where it stands; with -v a line every few seconds, also in a pipe.
"""

from __future__ import annotations

import argparse
import sys
from time import monotonic
from typing import TYPE_CHECKING, Any

from stretto.cli.commands import Reply
from stretto.files import STANDARD, write_out
from stretto.report import WIDTH

if TYPE_CHECKING:
    from stretto.many.batch import BatchRun

MOVES = 0.2
"""Seconds between two states of the line."""
LINES = 5.0
"""Seconds between two lines."""

OPTIONS = (
    *("generator", "max_ii", "max_stages", "serial_threshold", "strict", "without", "effort"),
    *("prove", "objective", "work_limit", "seed"),
)
"""Those of `stretto schedule` that are taken as they are."""


def run(arguments: argparse.Namespace) -> Reply:
    """`stretto batch`."""
    from stretto.machine import load_machine
    from stretto.many.batch import BatchRun
    from stretto.many.inputs import Inputs
    from stretto.many.journal import write_table
    from stretto.many.store import AnswerStore
    from stretto.many.work import Work

    output = None if arguments.rows == STANDARD else arguments.rows
    options: dict[str, Any] = {name: getattr(arguments, name) for name in OPTIONS}
    options["without"] = tuple(sorted(options["without"]))
    options["fuse"] = not arguments.no_fuse
    work = Work(
        None if arguments.machine is None else load_machine(arguments.machine),
        options,
        arguments.time_limit,
        None if arguments.no_cache else AnswerStore(),
    )
    batch = BatchRun(
        Inputs(arguments.inputs),
        work,
        arguments.executor,
        arguments.jobs,
        arguments.memory_limit,
    )
    progress = Progress(batch, arguments.verbose, arguments.quiet)
    try:
        for _ in batch.rows(output, _print if output is None else None):
            progress.tell()
    except KeyboardInterrupt:
        progress.clear()
        _interrupted(batch, output)
        raise
    finally:
        progress.clear()
    summary = batch.summary
    if arguments.csv is not None and output is not None:
        write_table(output, arguments.csv)
    told = summary.to_text()
    reply = Reply(summary.to_json, lambda: told, [], summary.success)
    if output is None:
        reply.lines = list[str]
        reply.errors = told
    reply.stopped = summary.overdue > 0
    return reply


def _print(line: str) -> None:
    write_out(line + "\n")


def _interrupted(batch: BatchRun, output: str | None) -> None:
    if output is not None:
        done = f"{batch.summary.loops:,} rows are in {output}"
        sys.stderr.write(f"stretto: {done}; the same command goes on from there\n")


class Progress:
    """Where a batch stands, told now and then."""

    def __init__(self, batch: BatchRun, verbose: bool, quiet: bool = False) -> None:
        self._batch = batch
        self._moving = not verbose and not quiet and sys.stderr.isatty()
        self._pause = LINES if verbose else MOVES
        self._silent = not verbose and not self._moving
        self._shown = False
        self._next = monotonic() + self._pause

    def tell(self) -> None:
        """Say it, if it is time."""
        if self._silent or monotonic() < self._next:
            return
        self._next = monotonic() + self._pause
        text = self.line()
        if self._moving:
            self._shown = True
            sys.stderr.write("\r" + text[: WIDTH - 1].ljust(WIDTH - 1))
        else:
            sys.stderr.write(text + "\n")
        sys.stderr.flush()

    def line(self) -> str:
        """All of it."""
        from stretto.report.batch import time_left

        summary, inputs = self._batch.summary, self._batch.inputs
        parts = [f"{summary.loops:,} {'loop' if summary.loops == 1 else 'loops'}"]
        share = min(1.0, inputs.read / inputs.size) if inputs.size else 0.0
        if share:
            parts.append(f"{share:.0%} of the input")
        parts.append(f"{summary.rate:,.0f} a second")
        if summary.failed:
            parts.append(f"{summary.failed:,} failed")
        left = time_left(share, summary.seconds)
        return ", ".join([*parts, left] if left else parts)

    def clear(self) -> None:
        """Leave no line behind."""
        if self._shown:
            self._shown = False
            sys.stderr.write("\r" + " " * (WIDTH - 1) + "\r")
            sys.stderr.flush()
