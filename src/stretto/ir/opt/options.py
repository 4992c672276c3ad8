"""What the user of `stretto-opt` asks for, as one value.

    stretto-opt k.mlir --split-input-file --tileas-generate-schedule='max-ii=40' -o out.mlir
                                          └── a pass, as a flag of its own (MLIR's way)

Options are MLIR's, with two dashes or one; those with an optional value take it after `=` only, so
that a file name is never mistaken for it.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from xdsl.passes import ModulePass

from stretto.errors import UsageError
from stretto.files import write_out
from stretto.ir.opt.pass_text import Available, read_pipeline
from stretto.ir.opt.patterns import Pattern, PatternError
from stretto.ir.telling import FORMATS

ALL = "*"
"""Every pass."""

REPRODUCER = "stretto-opt-reproducer.mlir"
"""Where a crash is kept unless the user says where: in the current folder."""

_BARE = {
    "--verify-each": "true",
    "--mlir-print-ir-before": ALL,
    "--mlir-print-ir-after": ALL,
    "--mlir-pass-pipeline-crash-reproducer": REPRODUCER,
}
"""Options that may stand without a value, and the value they then have."""

_EPILOG = """\
Every pass is an option as well: --PASS or --PASS='option=value ...'; passes run in the order they
stand in. The exit status is 0 when all went well, 1 on errors, 2 on wrong usage.
"""


@dataclass(frozen=True, slots=True)
class RemarkOptions:
    """Which remarks, in which form, to where."""

    wanted: bool
    filter: Pattern
    format: str | None
    """None: as diagnostics, among the others."""
    file: str | None
    """None: on stderr."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything the user asked for."""

    input: str
    output: str
    passes: tuple[ModulePass, ...]
    before: frozenset[str]
    after: frozenset[str]
    """Passes to print the IR before, or after; ALL means every one."""
    remarks: RemarkOptions
    reproducer: str
    split_input_file: bool
    verify_diagnostics: bool
    verify_each: bool
    generic: bool
    debuginfo: bool
    allow_unregistered: bool
    run_reproducer: bool
    timing: bool
    show: str | None
    """``dialects`` or ``passes``: list them and do nothing else."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise UsageError(message, self.format_usage())

    def _print_message(self, message: str, file: object = None) -> None:
        """Help and version, which argparse would lose where standard output fails."""
        if message:
            sys.stderr.write(message) if file is sys.stderr else write_out(message)


def read_options(argv: Sequence[str], available: Available, version: str) -> Settings:
    """The settings of a command line; UsageError or PipelineError where it is wrong."""
    parser = make_parser(version)
    plain, flags = _spelled_out(parser, argv, available)
    found = parser.parse_args(plain)
    if found.pipeline is not None and flags:
        parser.error(f"a pass pipeline and --{flags[0].partition('{')[0]}: give one or the other")
    if found.run_reproducer and (found.pipeline is not None or flags):
        parser.error("--run-reproducer brings its own pass pipeline")
    text = found.pipeline if found.pipeline is not None else ",".join(flags)
    told: dict[str, Any] = {
        **vars(found),
        "passes": _trusting(parser, found, read_pipeline(text, available)),
        "before": _passes_named(parser, found.before, available),
        "after": _passes_named(parser, found.after, available),
        "remarks": _remarks(parser, found),
    }
    return Settings(**{field.name: told[field.name] for field in fields(Settings)})


def _spelled_out(
    parser: argparse.ArgumentParser, argv: Sequence[str], available: Available
) -> tuple[list[str], list[str]]:
    """The arguments with two dashes and their bare values, and the passes given as flags."""
    known = {text for action in parser._actions for text in action.option_strings}  # pyright: ignore[reportPrivateUsage]
    plain: list[str] = []
    flags: list[str] = []
    for i, argument in enumerate(argv):
        if argument == "--":
            return plain + list(argv[i:]), flags
        option, equals, value = argument.partition("=")
        if re.fullmatch(r"-[A-Za-z][\w-]+", option):
            long = "-" + option
            if long in known or long[2:] in available:
                option = long
        if option.startswith("--") and option[2:] in available and option not in known:
            flags.append(f"{option[2:]}{{{value}}}" if value else option[2:])
        elif option in _BARE and not equals:
            plain.append(f"{option}={_BARE[option]}")
        else:
            plain.append(option + equals + value)
    return plain, flags


def _trusting(
    parser: argparse.ArgumentParser, found: argparse.Namespace, passes: tuple[ModulePass, ...]
) -> tuple[ModulePass, ...]:
    """The passes, with `--trust-schedule` as the option of those that have it."""
    if not found.trust_schedule:
        return passes
    if not any(hasattr(one, "trust_schedule") for one in passes):
        parser.error("--trust-schedule is of tileas-materialize-schedule, which is not run")
    asked: dict[str, Any] = {"trust_schedule": True}
    return tuple(replace(p, **asked) if hasattr(p, "trust_schedule") else p for p in passes)


def _passes_named(
    parser: argparse.ArgumentParser, names: list[str], available: Available
) -> frozenset[str]:
    found = [name.strip() for text in names for name in text.split(",")]
    for name in found:
        if name != ALL and name not in available:
            parser.error(f"no pass `{name}` to print the IR around; --list-passes shows all")
    return frozenset(found)


def _remarks(parser: argparse.ArgumentParser, found: argparse.Namespace) -> RemarkOptions:
    asked = (found.remarks_filter, found.remarks_format, found.remarks_file)
    try:
        wanted = Pattern("" if found.remarks_filter is None else found.remarks_filter)
    except PatternError as error:
        parser.error(f"--remarks-filter: {error}")
        raise AssertionError from None  # parser.error does not come back
    form: str | None = found.remarks_format
    if form is None and found.remarks_file is not None:
        form = FORMATS[0]
    return RemarkOptions(any(a is not None for a in asked), wanted, form, found.remarks_file)


def _truth(text: str) -> bool:
    if text.lower() in ("true", "1", "false", "0"):
        return text.lower() in ("true", "1")
    raise argparse.ArgumentTypeError(f"`{text}` is neither true nor false")


# The options themselves -------------------------------------------------------------------


def make_parser(version: str) -> argparse.ArgumentParser:
    """The parser; its help is the list of options."""
    parser = _Parser(
        prog="stretto-opt",
        usage="stretto-opt [FILE] [options] [--PASS[='option=value ...']]...",
        description="Reads MLIR, runs passes on it, prints it.",
        epilog=_EPILOG,
        allow_abbrev=False,
    )
    parser.add_argument("input", nargs="?", default="-", metavar="FILE", help="default: stdin")
    parser.add_argument("-o", "--output", default="-", metavar="FILE", help="default: stdout")
    parser.add_argument("--version", action="version", version=version)
    _pass_options(parser)
    _input_options(parser)
    _printing_options(parser)
    _remark_options(parser)
    return parser


def _pass_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("passes")
    group.add_argument(
        "-p",
        "--passes",
        "--pass-pipeline",
        dest="pipeline",
        metavar="TEXT",
        help="such as 'builtin.module(cse,tileas-generate-schedule{max-ii=40})'",
    )
    group.add_argument(
        "--list-passes",
        dest="show",
        action="store_const",
        const="passes",
        help="list them, with the options of Stretto's own",
    )
    group.add_argument(
        "--verify-each",
        type=_truth,
        default=True,
        metavar="true|false",
        help="verify the IR after every pass (default: true)",
    )
    group.add_argument("--no-verify-each", dest="verify_each", action="store_false")
    group.add_argument(
        "--mlir-pass-pipeline-crash-reproducer",
        dest="reproducer",
        default=REPRODUCER,
        metavar="FILE",
        help=f"where a crash is kept (default: {REPRODUCER})",
    )
    group.add_argument(
        "--run-reproducer", action="store_true", help="run the pipeline that FILE brings along"
    )

    group.add_argument(
        "--trust-schedule",
        action="store_true",
        help="materialize what the machine model refuses, if dependences and storages hold",
    )


def _input_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("input")
    group.add_argument(
        "--split-input-file", action="store_true", help="a module from // ----- to // -----"
    )
    group.add_argument(
        "--verify-diagnostics",
        action="store_true",
        help="compare diagnostics with expected-error@... comments",
    )
    group.add_argument(
        "--allow-unregistered-dialect", dest="allow_unregistered", action="store_true"
    )
    group.add_argument("--show-dialects", dest="show", action="store_const", const="dialects")


def _printing_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("printing")
    group.add_argument("--mlir-print-op-generic", dest="generic", action="store_true")
    group.add_argument("--mlir-print-debuginfo", dest="debuginfo", action="store_true")
    for when in ("before", "after"):
        group.add_argument(
            f"--mlir-print-ir-{when}",
            dest=when,
            action="append",
            default=[],
            metavar="PASS,...",
            help=f"print the IR {when} these passes (none named: all) on stderr",
        )
        group.add_argument(
            f"--mlir-print-ir-{when}-all", dest=when, action="append_const", const=ALL
        )
    group.add_argument(
        "--mlir-timing", dest="timing", action="store_true", help="where the time went, on stderr"
    )


def _remark_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("remarks: what became of every loop, and why")
    group.add_argument(
        "--remarks-filter",
        metavar="REGEX",
        help="those whose kind, pass, loop or message it matches",
    )
    group.add_argument("--remarks-format", choices=FORMATS, help="default: as diagnostics")
    group.add_argument(
        "--remarks-output-file",
        dest="remarks_file",
        metavar="FILE",
        help="default: stderr",
    )
