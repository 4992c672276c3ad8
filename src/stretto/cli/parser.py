"""What the command line accepts.

stretto bounds INPUT              what the II cannot be below, and why
stretto verify INPUT SCHEDULE     is this schedule legal?
stretto machines [NAME]           what a machine has
"""

from __future__ import annotations

import argparse
from typing import NoReturn

from stretto import __version__

EPILOG = """exit codes: 0 done; 1 bad input or not legal; 2 usage; 130 interrupted.
INPUT is a loop (stretto.loop/1) or a dependence-graph dump (ddg-0.1) in JSON, or - for stdin."""


class UsageError(Exception):
    """The arguments make no sense; carries argparse's message and usage line."""

    def __init__(self, message: str, usage: str) -> None:
        self.message = message
        self.usage = usage
        super().__init__(message)


class Parser(argparse.ArgumentParser):
    """argparse that raises instead of leaving, so that --json can answer too."""

    def error(self, message: str) -> NoReturn:
        """Raise the usage error."""
        raise UsageError(f"{self.prog}: error: {message}", self.format_usage().rstrip())


def positive(text: str) -> int:
    """An option that counts."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


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
        ("bounds", "Lower bounds on the II, what sets them, and what would lower them.", _bounds),
        ("verify", "Is this schedule legal? Lists every violation with its numbers.", _verify),
        ("machines", "Lists the machines, or shows one.", _machines),
    ):
        add(commands.add_parser(name, help=told, description=told))
    return parser


def _output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE instead of stdout")


def _problem(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("input", metavar="INPUT", help="a loop or a dump, or - for stdin")
    parser.add_argument(
        "--machine",
        metavar="NAME|FILE.toml",
        help="the machine (default: the one the loop names, else blackwell)",
    )
    parser.add_argument("--loop", metavar="NAME", help="only this loop of the input")
    parser.add_argument("--max-stages", type=positive, metavar="N", help="allow at most N stages")


def _bounds(parser: argparse.ArgumentParser) -> None:
    _problem(parser)
    parser.add_argument("--no-fuse", action="store_true", help="do not let operations fuse")
    _output(parser)


def _verify(parser: argparse.ArgumentParser) -> None:
    _problem(parser)
    parser.add_argument("schedule", metavar="SCHEDULE", help="a stretto.schedule/1 document")
    _output(parser)


def _machines(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME|FILE.toml", nargs="?", help="show this machine")
    _output(parser)
