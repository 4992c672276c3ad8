"""What the command line accepts.

stretto schedule INPUT            the best schedule found, verified
stretto bounds INPUT              what the II cannot be below, and why
stretto explain INPUT             why not a smaller II, and what would have to change
stretto verify INPUT [SCHEDULE]   is this schedule legal?
stretto simulate INPUT [SCHEDULE] run the pipelined program beside the sequential loop
stretto machines [NAME]           what a machine has
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from math import inf
from typing import NoReturn

from stretto import __version__
from stretto.errors import UsageError
from stretto.exact.objectives import NAMES
from stretto.exact.options import OBJECTIVE, SEED, WORK, WORKERS
from stretto.files import write_out
from stretto.limits import ITERATION_CYCLES, NUMBER_DIGITS

EPILOG = """exit codes: 0 done; 1 bad input, no legal schedule, or not legal; 2 usage; 3 stopped by
a limit or Ctrl-C with a verified schedule that is not proved; 130 interrupted with nothing to show.
INPUT is MLIR with nv_tileas operations, a loop (stretto.loop/1) or a dependence-graph dump
(ddg-0.1) in JSON, or - for stdin; what it is shows in its content."""


class Parser(argparse.ArgumentParser):
    """argparse that raises instead of leaving, so that --json can answer too."""

    def error(self, message: str) -> NoReturn:
        """Raise the usage error."""
        raise UsageError(f"{self.prog}: error: {message}", self.format_usage().rstrip())

    def _print_message(self, message: str, file: object = None) -> None:
        """Help and version, which argparse would lose where standard output fails."""
        if message:
            sys.stderr.write(message) if file is sys.stderr else write_out(message)


def positive(text: str) -> int:
    """An option that counts."""
    if not (text.isascii() and text.isdecimal() and text.strip("0")):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    if len(text) > NUMBER_DIGITS:
        raise argparse.ArgumentTypeError("the number is too long")
    return int(text)


def interval(text: str) -> int:
    """An initiation interval."""
    return _no_more(positive(text), ITERATION_CYCLES)


def natural(text: str) -> int:
    """An option that counts, from 0."""
    if text and not text.strip("0"):
        return 0
    try:
        return positive(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(str(error).replace("at least 1", "at least 0")) from None


def seed(text: str) -> int:
    """A seed, as the solver takes them."""
    return _no_more(natural(text), SEED)


def workers(text: str) -> int:
    """Threads, of which the solver takes so many at most."""
    return _no_more(positive(text), WORKERS)


def _no_more(number: int, most: int) -> int:
    if number > most:
        raise argparse.ArgumentTypeError(f"'{number}' is more than {most}")
    return number


def amount(text: str) -> float:
    """An option that is a time or an amount of work."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def given(text: str) -> str:
    """A file or a machine."""
    if not text:
        raise argparse.ArgumentTypeError("is empty")
    return text


def part(text: str) -> str:
    """A rung or an arm of the cost-based generator."""
    # Known only to the generator, which is not loaded unless asked about.
    from stretto.solve import PARTS

    if text not in PARTS:
        raise argparse.ArgumentTypeError(f"no part {text!r}; known: {', '.join(PARTS)}")
    return text


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The arguments; UsageError, with the usage of the command meant, where they make no sense."""
    arguments, unknown = make_parser().parse_known_args(argv)
    parser: Parser = arguments.parser
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    if "schedule" in arguments and arguments.input == arguments.schedule == "-":
        parser.error("INPUT and SCHEDULE cannot both be -")
    if arguments.command == "simulate" and arguments.schedule and arguments.generator:
        parser.error("SCHEDULE is given, so --generator has none to make")
    return arguments


def make_parser() -> Parser:
    """The whole command line."""
    parser = Parser(
        prog="stretto",
        description="Software pipelining for GPU tile loops.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"stretto {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, told, add in (
        (
            "schedule",
            "Finds a schedule of a small II, verifies it, and says what limits it.",
            _schedule,
        ),
        ("bounds", "Lower bounds on the II, what sets them, and what would lower them.", _bounds),
        (
            "explain",
            "Why not a smaller II? The reasons that forbid it, and what would change that.",
            _explain,
        ),
        ("verify", "Is this schedule legal? Lists every violation with its numbers.", _verify),
        (
            "simulate",
            "Runs the pipelined program cycle by cycle: equal to the sequential loop, and on time?",
            _simulate,
        ),
        ("machines", "Lists the machines, or shows one.", _machines),
    ):
        command = commands.add_parser(name, help=told, description=told)
        command.set_defaults(parser=command)
        add(command)
    return parser


def _output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument(
        "-o",
        "--output",
        type=given,
        metavar="FILE",
        help="write to FILE instead of stdout (-: stdout)",
    )


def _problem(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "input", type=given, metavar="INPUT", help="MLIR, a loop or a dump, or - for stdin"
    )
    parser.add_argument(
        "--machine",
        type=given,
        metavar="NAME|FILE.toml",
        help="the machine (default: the one the loop names, else blackwell)",
    )
    parser.add_argument("--loop", metavar="NAME", help="only this loop of the input")
    parser.add_argument("--max-stages", type=positive, metavar="N", help="allow at most N stages")


def _no_fuse(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-fuse", action="store_true", help="do not let operations fuse")


def _schedule(parser: argparse.ArgumentParser) -> None:
    _problem(parser)
    _generator(parser)
    parser.add_argument(
        "--prove",
        action="store_true",
        help="have the solver prove the schedule that was found, or improve on it",
    )
    _proof(parser)
    parser.add_argument(
        "--max-ii",
        type=interval,
        metavar="N",
        help="the last II tried (default: that of the serial schedule)",
    )
    parser.add_argument(
        "--serial-threshold",
        type=positive,
        metavar="N",
        default=2,
        help="loops of fewer operations are scheduled serially (default: 2)",
    )
    _no_fuse(parser)
    parser.add_argument(
        "--strict", action="store_true", help="fail where a constraint is not honoured"
    )
    parser.add_argument(
        "--without",
        type=part,
        action="append",
        default=[],
        metavar="PART",
        help="leave out a rung (rau) or an arm (arm:fuse), to see what it is worth",
    )
    parser.add_argument(
        "--effort",
        choices=("quick", "normal", "thorough"),
        default="normal",
        help="how much work the search is worth (default: normal)",
    )
    _output(parser)
    _verbose(parser)


def _verbose(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="tell on stderr of every II tried"
    )


def _generator(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--generator",
        choices=("auto", "serial", "cost-based", "exact"),
        default="auto",
        help="who makes the schedule (default: auto, by the loop); exact: with a proof",
    )


def _proof(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--objective",
        choices=NAMES,
        default=OBJECTIVE,
        help=f"with exact or --prove, minimize in the order {', '.join(NAMES)} as far as this one "
        f"(default: {OBJECTIVE})",
    )
    _limits(parser)


def _limits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--time-limit",
        type=amount,
        metavar="S",
        help="end all work after S seconds, with the best verified schedule so far (exit code 3)",
    )
    parser.add_argument(
        "--work-limit",
        type=amount,
        metavar="W",
        default=WORK,
        help="stop the solver after W units of deterministic work, each in the order of a second "
        f"(default: {WORK:g})",
    )
    parser.add_argument(
        "--workers",
        type=workers,
        metavar="N",
        default=1,
        help="threads of the solver (default: 1); the same number gives the same answer",
    )
    parser.add_argument(
        "--seed", type=seed, metavar="N", default=0, help="of the solver (default: 0)"
    )


def _bounds(parser: argparse.ArgumentParser) -> None:
    _problem(parser)
    _no_fuse(parser)
    _output(parser)


def _explain(parser: argparse.ArgumentParser) -> None:
    _problem(parser)
    parser.add_argument(
        "--ii",
        type=interval,
        metavar="N",
        help="the II to explain (default: one below the best)",
    )
    _no_fuse(parser)
    _limits(parser)
    _output(parser)
    _verbose(parser)


def _verify(parser: argparse.ArgumentParser) -> None:
    _problem(parser)
    parser.add_argument(
        "schedule",
        type=given,
        metavar="SCHEDULE",
        nargs="?",
        help="a stretto.schedule/1 document (default: the schedule that stands in a module)",
    )
    _output(parser)


def _simulate(parser: argparse.ArgumentParser) -> None:
    _problem(parser)
    parser.add_argument(
        "schedule",
        type=given,
        metavar="SCHEDULE",
        nargs="?",
        help="a stretto.schedule/1 document (default: the schedule that stands in a module, else a "
        "new one)",
    )
    _generator(parser)
    parser.set_defaults(generator=None)
    parser.add_argument(
        "--iterations",
        type=natural,
        metavar="N",
        help="the trip count (default: enough for a steady state)",
    )
    parser.add_argument(
        "--mode",
        choices=("unspecialized", "specialized"),
        default="unspecialized",
        help="one instruction stream, or one for each agent (default: unspecialized)",
    )
    _no_fuse(parser)
    _output(parser)
    _verbose(parser)


def _machines(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", type=given, metavar="NAME|FILE.toml", nargs="?", help="show this machine"
    )
    _output(parser)
