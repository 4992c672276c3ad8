"""Joins the parts of `stretto-opt`: options, chunks, passes, diagnostics, output.

0  done        1  an error was told, or an expectation was not met        2  wrong usage
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version

from xdsl.context import Context
from xdsl.universe import Universe

from stretto import starting
from stretto.diagnostics import Diagnostic
from stretto.errors import DocumentError, StrettoError, UsageError
from stretto.files import read_text, write_text
from stretto.ir.opt.chunks import HARMLESS, MARKER, Runner, read_reproducer, split
from stretto.ir.opt.expectations import compare
from stretto.ir.opt.options import Settings, read_options
from stretto.ir.opt.pass_text import Available, PipelineError, options_of, read_pipeline
from stretto.ir.parsing import make_context
from stretto.ir.telling import render
from stretto.ir.universe import STRETTO

DONE, FAILED, USAGE = 0, 1, 2


def drive(argv: Sequence[str]) -> int:
    """Run once; the exit code. argparse ends --help and --version by itself."""
    universe = Universe.get_multiverse()
    passes = {**universe.all_passes, **STRETTO.all_passes}
    try:
        settings = read_options(argv, passes, _version())
    except UsageError as error:
        sys.stderr.write(f"{error.usage}stretto-opt: error: {error.message}\n")
        return USAGE
    except PipelineError as error:
        sys.stderr.write(f"stretto-opt: error: {error}\n")
        return USAGE
    starting.release()
    try:
        if settings.show is not None:
            write_text(settings.output, _shown(settings.show, universe, passes))
            return DONE
        return _process(settings, universe, passes)
    except StrettoError as error:
        sys.stderr.write("\n".join(error.lines(settings.input)) + "\n")
        return FAILED


def _version() -> str:
    return f"stretto-opt {version('stretto')} (xDSL {version('xdsl')})"


def _process(settings: Settings, universe: Universe, passes: Available) -> int:
    file, text = read_text(settings.input)
    text, recipe = read_reproducer(text, file)
    if settings.run_reproducer:
        if recipe is None:
            raise DocumentError(file, "", "no pass pipeline in it", "it is no reproducer")
        ready = read_pipeline(recipe.pipeline, passes, HARMLESS)
        settings = replace(settings, passes=ready, verify_each=recipe.verify_each)
    console = _Console(file, text.split("\n"), quiet=settings.verify_diagnostics)

    def context() -> Context:
        return _context(settings, universe)

    runner = Runner(settings, file, context, console.tell)
    results: list[str | None] = []
    failed = False
    for chunk in split(text, wanted=settings.split_input_file):
        console.told.clear()
        results.append(runner.run(chunk))
        if settings.verify_diagnostics:
            faults = compare(file, chunk, console.told)
            for fault in faults:
                console.show(fault)
            failed = failed or bool(faults)
    failed = failed or (not settings.verify_diagnostics and None in results)
    _write(settings, results, runner, failed)
    return FAILED if failed or runner.crashes else DONE


def _write(settings: Settings, results: Sequence[str | None], runner: Runner, failed: bool) -> None:
    """The output: a file is written only when all went well, stdout gets what there is."""
    if settings.output == "-" or not failed:
        write_text(settings.output, f"{MARKER}\n".join(text or "" for text in results))
    remarks = settings.remarks
    if remarks.format is not None:
        rendered = render(runner.remarks, remarks.format)
        if remarks.file is None:
            sys.stderr.write(rendered)
        else:
            write_text(remarks.file, rendered)
    if settings.timing:
        sys.stderr.write(runner.timer.report())


def _context(settings: Settings, universe: Universe) -> Context:
    """Stretto's dialects, and all others that are installed, loaded when they are met."""
    context = make_context(settings.allow_unregistered)
    present = set(context.registered_dialect_names)
    for name, factory in universe.all_dialects.items():
        if name not in present:
            context.register_dialect(name, factory)
    return context


@dataclass
class _Console:
    """Diagnostics as they come: shown at once, or kept for a comparison."""

    file: str
    lines: Sequence[str]
    quiet: bool
    told: list[Diagnostic] = field(default_factory=list[Diagnostic])

    def tell(self, diagnostic: Diagnostic) -> None:
        self.told.append(diagnostic)
        if not self.quiet:
            self.show(diagnostic)

    def show(self, diagnostic: Diagnostic) -> None:
        sys.stderr.write(f"{self._with_source(diagnostic).render()}\n")

    def _with_source(self, diagnostic: Diagnostic) -> Diagnostic:
        """A pass knows where, but not what is written there."""
        lines = self.lines
        text = diagnostic.text
        if not text and diagnostic.file == self.file and 0 < diagnostic.line <= len(lines):
            text = lines[diagnostic.line - 1].rstrip("\r")
        notes = tuple(map(self._with_source, diagnostic.notes))
        return replace(diagnostic, text=text, notes=notes)


# Lists ------------------------------------------------------------------------------------


def _shown(what: str, universe: Universe, passes: Available) -> str:
    if what == "dialects":
        names = {*make_context().registered_dialect_names, *universe.all_dialects}
        return "Available Dialects: " + ", ".join(sorted(names)) + "\n"
    ours = sorted(STRETTO.all_passes)
    lines = ["Stretto:"]
    for name in ours:
        kind = passes[name]()
        lines.append(f"  --{name:<32} {_first_line(kind.__doc__)}")
        for option, expected, default in options_of(kind):
            shown = f"={default}" if default else ""
            lines.append(f"      {option + shown:<30} {expected}")
    lines.append("xDSL:")
    lines += [f"  --{name}" for name in sorted(passes) if name not in ours]
    return "\n".join(lines) + "\n"


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]
