"""What the command line accepts.

stretto schedule INPUT            the best schedule found, verified
stretto bounds INPUT              what the II cannot be below, and why
stretto explain INPUT             why not a smaller II, and what would have to change
stretto verify INPUT [SCHEDULE]   is this schedule legal?
stretto simulate INPUT [SCHEDULE] run the pipelined program beside the sequential loop
stretto import KERNEL             a Triton or cuTile kernel as MLIR, lowered for a machine
stretto emit KERNEL --to gluon    a kernel as source that runs on a GPU, pipelined by its schedules
stretto predict KERNEL --grid X   how fast a kernel will be, before it runs
stretto convert INPUT OUT         a loop in another format
stretto batch INPUT...            every loop of many inputs, one JSON line each, as they come
stretto bench PATH...             how good and how fast, over suites of loops
stretto sweep INPUT               every configuration of a kernel or a machine: front, and fastest
stretto compare A [B]             two schedules side by side
stretto view INPUT                look at schedules in a browser, and change them
stretto machines [NAME]           what a machine has
stretto completion SHELL          completion for bash, zsh or fish

What values options take is in `values`, how all of it is shown in `help`.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from copy import copy
from time import monotonic
from typing import Any, NoReturn

from stretto import __version__
from stretto.cli.help import (
    EXAMPLES,
    Formatter,
    first_clause,
    group_of,
    in_order,
    name_of,
    overview,
    usual,
)
from stretto.cli.values import (
    Generators,
    Objectives,
    agents,
    amount,
    axis,
    blocks,
    given,
    grid,
    interval,
    launched,
    names,
    natural,
    part,
    pins,
    port,
    positive,
    seed,
    setting,
    swept_grid,
    typed,
    values,
    workers,
)
from stretto.errors import UsageError, nearest
from stretto.exact import OBJECTIVE, PATIENCE, WORK
from stretto.files import STANDARD, write_out
from stretto.forms import FORMS as SCHEDULE_FORMS

EPILOG = """exit codes: 0 done; 1 bad input, no legal schedule, or not legal; 2 usage; 3 stopped by
a limit or Ctrl-C with a verified schedule that is not proved; 130 interrupted with nothing to show.
INPUT is a Triton (.ttir) or cuTile kernel (.tileirbc), MLIR with nv_tileas operations, a loop
(stretto.loop/1) or a dependence-graph dump (ddg-0.1) in JSON, a graph of HatScheT (.graphml, its
_RM.xml beside it), a modulo problem of CIRCT (ssp), or - for stdin; what it is shows in its
content."""


_CHOICE = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)", re.DOTALL)
_UNKNOWN = re.compile(r"unrecognized arguments:.*?(?<!\S)(-[\w-]+)")


class Parser(argparse.ArgumentParser):
    """argparse that raises instead of leaving, so that --json can answer too."""

    def __init__(self, *words: Any, **options: Any) -> None:
        super().__init__(*words, **options, formatter_class=Formatter, add_help=False)
        self.commands: dict[str, Parser] = {}
        self.name = ""
        """The command's; empty of the whole command line."""
        self.add_argument(
            "-h", "--help", action=_Help, nargs=0, whole=False, help="show the usual options"
        )
        self.add_argument(
            "--help-all", action=_Help, nargs=0, whole=True, help="show all options, and end"
        )

    @property
    def arguments(self) -> list[argparse.Action]:
        """What it takes."""
        return list(self._actions)

    def format_help(self) -> str:
        """The usual options, on a screen."""
        if not self.name:
            return "\n".join(overview(self.commands)) + "\n"
        shown = usual(self.name, self._told)
        arguments = [action for action in self._told if not action.option_strings]
        formatter = self._begun()
        for title, actions in (("arguments", arguments), ("usual options", shown)):
            formatter.start_section(title)
            formatter.add_arguments([_shortened(action) for action in actions])
            formatter.end_section()
        left = sum(1 for action in self._told if action.option_strings) - len(shown)
        more = [f"{left} more options: {self.prog} --help-all"] if left else []
        example = [f"example: {EXAMPLES[self.name]}"] if self.name in EXAMPLES else []
        return formatter.format_help() + "".join(f"{line}\n" for line in [*more, *example])

    def format_whole_help(self) -> str:
        """Everything, in groups."""
        if not self.name:
            lines = [*overview(self.commands), "", "options:"]
            lines += [f"  {words:<12}  {told}" for words, told in TOP_OPTIONS.items()]
            return "\n".join([*lines, "", EPILOG]) + "\n"
        formatter = self._begun()
        sections: dict[str, list[argparse.Action]] = {"arguments": []}
        for action in in_order(self._told):
            title = group_of(name_of(action)) if action.option_strings else "arguments"
            sections.setdefault(title, []).append(action)
        for title, actions in sections.items():
            formatter.start_section(title)
            formatter.add_arguments(actions)
            formatter.end_section()
        return formatter.format_help()

    @property
    def _told(self) -> list[argparse.Action]:
        """What help has to tell of."""
        return [
            action
            for action in self._actions
            if action.help != argparse.SUPPRESS and not isinstance(action, _Help)
        ]

    def _begun(self) -> argparse.HelpFormatter:
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, [])
        formatter.add_text(self.description)
        return formatter

    def error(self, message: str) -> NoReturn:
        """Raise the usage error, with what was meant where that can be guessed."""
        told = f"{self.prog}: error: {message}{self._meant(message)}"
        raise UsageError(told, self.format_usage().rstrip())

    def _meant(self, message: str) -> str:
        """The command, the choice or the option that is nearest to a word that is none."""
        choice = _CHOICE.search(message)
        unknown = _UNKNOWN.search(message)
        if choice is not None:
            hint = nearest(choice[1], re.findall(r"[\w.-]+", choice[2]))
        elif unknown is not None:
            options = [word for action in self._actions for word in action.option_strings]
            hint = self._elsewhere(unknown[1]) or nearest(unknown[1], options)
        else:
            hint = ""
        return f"; {hint}" if hint else ""

    def _elsewhere(self, option: str) -> str:
        """The commands that have an option, where this one has none of that name."""
        having = [
            name
            for name, parser in self.commands.items()
            if any(option in action.option_strings for action in parser.arguments)
        ]
        return f"it is an option of {', '.join(having)}" if having else ""

    def _print_message(self, message: str, file: object = None) -> None:
        """Help and version, which argparse would lose where standard output fails."""
        if message:
            sys.stderr.write(message) if file is sys.stderr else write_out(message)


TOP_OPTION_WORDS = ("--help", "--help-all", "--version")
TOP_OPTIONS = {
    "-h, --help": "this list of commands",
    "--help-all": "this, exit codes, and what an INPUT may be",
    "--version": "the version, and whether the compiled core is there",
}


class _Help(argparse.Action):
    """Shows help, short or whole, and ends."""

    def __init__(self, *words: Any, whole: bool, **options: Any) -> None:
        super().__init__(*words, **{**options, "dest": argparse.SUPPRESS})
        self.whole = whole

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        assert isinstance(parser, Parser)
        write_out(parser.format_whole_help() if self.whole else parser.format_help())
        parser.exit()


class _Version(argparse.Action):
    """Says the version, and whether the compiled core is there."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from stretto.generate.kernel import COMPILED

        core = "compiled core" if COMPILED else "no compiled core: the search runs in Python"
        write_out(f"stretto {__version__} ({core})\n")
        parser.exit()


def _shortened(action: argparse.Action) -> argparse.Action:
    """The same option, with the first clause of its help."""
    short = copy(action)
    short.help = first_clause(action.help or "")
    return short


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The arguments; UsageError, with the usage of the command meant, where they make no sense."""
    whole = make_parser()
    arguments, unknown = whole.parse_known_args(_joined(argv))
    parser: Parser = arguments.parser
    arguments.began = monotonic()
    arguments.json = arguments.format == "json"
    if unknown and argv[0] == unknown[0]:
        own = nearest(unknown[0], TOP_OPTION_WORDS) if len(unknown[0]) > 2 else ""
        hint = own or "give it after the command"
        parser.error(f"`{unknown[0]}` is no option of stretto itself: {hint}")
    if unknown:
        parser.commands = whole.commands
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    _check_files(arguments, parser)
    _check_options(arguments, parser)
    return arguments


def _joined(argv: Sequence[str]) -> list[str]:
    """`--b --prove` as `--b=--prove`: else one option would be no value of another."""
    found: list[str] = []
    for word in argv:
        if argv[0] == "compare" and found and found[-1] in ("--a", "--b"):
            found[-1] += f"={word}"
        else:
            found.append(word)
    return found


def _check_files(arguments: argparse.Namespace, parser: Parser) -> None:
    """What is read and written fits together."""
    if "schedule" in arguments and arguments.input == arguments.schedule == "-":
        parser.error("INPUT and SCHEDULE cannot both be -")
    if arguments.command == "simulate" and arguments.schedule and arguments.generator:
        parser.error("SCHEDULE is given, so --generator has none to make")
    if arguments.command == "convert" and arguments.to_file == "-":
        if arguments.json:
            parser.error("OUT is -, so --json has nowhere to go")
        if arguments.to is None:
            parser.error("OUT is -, so --to must name the format")


def _check_options(arguments: argparse.Namespace, parser: Parser) -> None:
    """Options that need each other."""
    if arguments.command == "machines":
        if not arguments.name and (arguments.toml or arguments.set):
            parser.error("--toml and --set need the NAME of a machine")
        if arguments.toml and arguments.json:
            parser.error("--toml prints TOML, not JSON")
    if arguments.quiet and getattr(arguments, "verbose", False):
        parser.error("-q and -v contradict each other")
    if arguments.command == "sweep" and (arguments.input is None) == (arguments.function is None):
        parser.error("give either an INPUT or --function FILE.py:NAME")
    if arguments.command == "bench" and not arguments.paths and not arguments.random:
        parser.error("nothing to measure: give a PATH, or --random N")
    if arguments.command == "batch" and arguments.rows in (None, STANDARD):
        for option in ("json", "csv"):
            if getattr(arguments, option):
                parser.error(f"--{option} needs a file for the rows: -o FILE.jsonl")
    elif arguments.command == "batch" and arguments.csv is not None:
        table, rows = map(os.path.realpath, (arguments.csv, arguments.rows))
        if table == rows:
            parser.error("-o and --csv are the same file")


def make_parser() -> Parser:
    """The whole command line."""
    parser = Parser(
        prog="stretto",
        usage="%(prog)s COMMAND ...",
        description="Software pipelining for GPU tile loops.",
    )
    parser.add_argument("--version", action=_Version, nargs=0)
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, prog="stretto"
    )
    for name, (told, options) in COMMANDS.items():
        command = commands.add_parser(name, help=told, description=told)
        command.set_defaults(parser=command, output=None, format="text")
        for option in options.split():
            if option == "--json":
                _add_format(command, name)
            command.add_argument(*_NAMES.get(option, (option,)), **_OPTIONS[option])
            if option in ("--machine", "target", "name") and "settings" not in options.split():
                command.add_argument("--set", **_OPTIONS["--set"])
        command.add_argument("-q", "--quiet", **_OPTIONS["--quiet"])
        if name == "simulate":
            command.set_defaults(generator=None)
        if name == "explain":
            command.set_defaults(time_limit=PATIENCE)
        command.name = name
        places = " ".join(map(_place, command.arguments)).split()
        command.usage = " ".join(["%(prog)s", "[OPTIONS]", *places])
        parser.commands[name] = command
    return parser


def _place(action: argparse.Action) -> str:
    """How the usage line shows an argument; nothing for an option that may be left out."""
    name = str(action.metavar or action.dest).upper()
    if action.option_strings:
        return f"{action.option_strings[-1]} {name}" if action.required else ""
    shown = f"{name} ..." if action.nargs in ("+", "*") else name
    return f"[{shown}]" if action.nargs in ("?", "*") else shown


def _add_format(command: Parser, name: str) -> None:
    """How a command answers: every one that knows JSON knows text, some know more."""
    forms = FORMS.get(name, ())
    command.add_argument(
        "--format",
        choices=("text", "json", *forms),
        default="text",
        help="how to answer (default: text)",
    )


_PROBLEM = "input --machine --loop --max-stages"
_SEARCH = "--serial-threshold --no-fuse --strict --pin --without --effort --json --output --verbose"
_LIMITS = "--time-limit --work-limit --workers --seed"
_LAUNCHED = "launched-grid --argument --time-limit --trace --json --output"
_EMITTED = "emitted --consumers --depth --seed"
_PREDICTED = "--clock --what-if --assembled --measured --json --output"
_ASKED = (
    "--generator --prove --objective --work-limit --seed --max-ii --max-stages --serial-threshold "
    "--no-fuse --strict --without --effort"
)
_MANY = "--jobs --executor --no-cache"
_SWEEP = (
    "axes settings --ring stages several --trips swept-grid --blocks --argument --sms --front "
    "--measure --top --signature --arch --machine --loop --html --svg --csv"
)
_SWEPT = _ASKED.replace("--max-stages ", "")
_BENCH = "--compare --slower --repeat --html bench-jobs"
_RUN = "--generator --iterations --mode --inputs --grid --trust-schedule"

_CHECKED = "seeds programs stop-limit checked-strict"
COMMANDS: dict[str, tuple[str, str]] = {
    "schedule": (
        "Finds a schedule of a small II, verifies it, and says what limits it.",
        f"{_PROBLEM} --generator --prove --objective {_LIMITS} --max-ii {_SEARCH}",
    ),
    "bounds": (
        "Lower bounds on the II, what sets them, and what would lower them.",
        f"{_PROBLEM} --no-fuse --json --output",
    ),
    "assign": (
        "Chooses which warpgroup does what together with the schedule, and says what is proved.",
        "input --machine --loop --groups stop-limit --json --output --verbose",
    ),
    "explain": (
        "Why not a smaller II? The reasons that forbid it, and what would change that.",
        f"{_PROBLEM} --ii --no-fuse --pin {_LIMITS} --json --output --verbose",
    ),
    "verify": (
        "Is this schedule legal? Lists every violation with its numbers.",
        f"{_PROBLEM} verified --json --output",
    ),
    "simulate": (
        "Runs the pipelined program cycle by cycle: equal to the sequential loop, and on time?",
        f"{_PROBLEM} simulated {_RUN} --no-fuse --json --output --verbose",
    ),
    "import": (
        "Reads a kernel (.ttir or .tileirbc) and lowers it to MLIR, whole.",
        "kernel --machine split --json --output",
    ),
    "emit": (
        "Writes a kernel as Gluon source, pipelined by its schedules.",
        f"whole --to target {_EMITTED} --agents tiled {_LAUNCHED}",
    ),
    "convert": (
        "Writes a loop in another format, and tells what that cannot say of it.",
        "input to_file converted --machine --loop --json",
    ),
    "batch": (
        "Schedules and verifies every loop of many inputs: one JSON line each, as they come.",
        f"inputs --machine rows --csv {_MANY} loop-limit --memory-limit {_ASKED} --json progress",
    ),
    "bench": (
        "How good and how fast schedules are, suite by suite, and what is worse than it was.",
        f"paths --quick --random --machine {_BENCH} --executor loop-limit {_ASKED} --json --output",
    ),
    "sweep": (
        "Schedules every configuration of a kernel or a machine: the front, and the fastest.",
        f"swept --function {_SWEEP} {_MANY} config-limit {_SWEPT} --json --output progress",
    ),
    "compare": (
        "Shows two schedules side by side: of two inputs, or of one with two sets of options.",
        "input other --a --b --json --output",
    ),
    "completion": (
        "Prints a script that completes commands and options in a shell.",
        "shell --output",
    ),
    "view": (
        "Shows schedules in a browser, where they can be changed: what if? Ends with Ctrl-C.",
        f"{_PROBLEM} --generator --no-fuse --pin --effort --time-limit --port --no-browser",
    ),
    "predict": (
        "Says how fast a kernel will be on a grid, what it is bound by, and what would be faster.",
        f"kernels --grids --argument target {_EMITTED} {_PREDICTED}",
    ),
    "check": (
        "Runs a Gluon kernel without a GPU and finds races, deadlocks and stale slots in it.",
        f"checked --against gpu --fences {_CHECKED} --json --output --verbose",
    ),
    "machines": ("Lists the machines, or shows one.", "name --toml --calibrate --json --output"),
}
"""What each command is for, and the arguments it takes, in the order in which help shows them."""

FORMS = {
    "schedule": SCHEDULE_FORMS,
    "predict": ("html",),
    "check": ("sarif", "html"),
}
"""How a command can answer besides text and JSON."""

_NAMES = {
    "--output": ("-o", "--output"),
    "--verbose": ("-v", "--verbose"),
    "verified": ("schedule",),
    "simulated": ("schedule",),
    "kernel": ("input",),
    "target": ("--machine",),
    "emitted": ("--mode",),
    "--grids": ("--grid",),
    "converted": ("--to",),
    "rows": ("-o", "--output"),
    "--jobs": ("-j", "--jobs"),
    "loop-limit": ("--time-limit",),
    "progress": ("-v", "--verbose"),
    "bench-jobs": ("-j", "--jobs"),
    "swept": ("input",),
    "settings": ("--set",),
    "axes": ("--axis",),
    "swept-grid": ("--grid",),
    "launched-grid": ("--grid",),
    "stages": ("--max-stages",),
    "several": ("--consumers",),
    "config-limit": ("--time-limit",),
    "whole": ("input",),
    "checked": ("checked",),
    "gpu": ("--target",),
    "seeds": ("--seeds",),
    "programs": ("--programs",),
    "stop-limit": ("--time-limit",),
    "checked-strict": ("--strict",),
    "split": ("--consumers",),
    "tiled": ("--blocks",),
}

_SCHEDULE = "a stretto.schedule/1 document (default: the schedule that stands in a module"


def _takes(read: Callable[[str], object], metavar: str, help: str, **more: Any) -> dict[str, Any]:
    """An argument with a value; `more` as argparse has it."""
    return {"type": read, "metavar": metavar, "help": help, **more}


def _flag(help: str) -> dict[str, Any]:
    return {"action": "store_true", "help": help}


_OPTIONS: dict[str, dict[str, Any]] = {
    "input": _takes(given, "INPUT", "a kernel, MLIR, a loop or a dump, or - for stdin"),
    "shell": {"choices": ("bash", "zsh", "fish"), "help": "the shell that is to run the script"},
    "--quiet": _flag("print only the answer and errors: no notes, no progress"),
    "other": _takes(given, "B", "the other input or schedule (default: the same)", nargs="?"),
    "--a": _takes(str, "OPTIONS", "options of `stretto schedule` for the first", default=""),
    "--b": _takes(str, "OPTIONS", "and for the second", default=""),
    "name": _takes(given, "NAME|FILE.toml", "show this machine", nargs="?"),
    "verified": _takes(given, "SCHEDULE", f"{_SCHEDULE})", nargs="?"),
    "simulated": _takes(given, "SCHEDULE", f"{_SCHEDULE}, else a new one)", nargs="?"),
    "--machine": _takes(
        given,
        "NAME|FILE.toml",
        "the machine (default: the one the loop names; of a kernel that of its target, as the "
        ".json beside it says, else h200; of other loops blackwell)",
    ),
    "--set": _takes(
        setting,
        "PATH=VALUE",
        "change the machine: a value of its file, such as budgets.smem.bytes=65536",
        action="append",
        default=[],
    ),
    "--trust-schedule": _flag(
        "run a schedule that the machine model refuses: it has to keep dependences and storages"
    ),
    "--toml": _flag("print the whole machine as a TOML file"),
    "--loop": _takes(str, "NAME", "only this loop of the input"),
    "--max-stages": _takes(positive, "N", "the most stages allowed"),
    "--generator": {
        "choices": Generators(),
        "metavar": "NAME",
        "default": "auto",
        "help": "who makes the schedule: %(choices)s (default: auto, by the loop); exact: with a "
        "proof",
    },
    "--prove": _flag("have the solver prove the schedule that was found, or improve on it"),
    "--objective": {
        "choices": Objectives(),
        "metavar": "NAME",
        "default": OBJECTIVE,
        "help": "with exact or --prove, minimize in the order %(choices)s as far as this one "
        f"(default: {OBJECTIVE})",
    },
    "--groups": _takes(positive, "N", "most warpgroups that do arithmetic (default: 4)", default=4),
    "--time-limit": _takes(
        amount,
        "S",
        "end all work after S seconds, with the best verified schedule so far (exit code 3; "
        f"default of explain: {PATIENCE:g})",
    ),
    "--work-limit": _takes(
        amount,
        "W",
        "stop the solver after W units of deterministic work, each in the order of a second "
        f"(default: {WORK:g})",
        default=WORK,
    ),
    "--workers": _takes(
        workers,
        "N",
        "threads of the solver (default: 1); the same number gives the same answer",
        default=1,
    ),
    "--seed": _takes(seed, "N", "the seed of the solver (default: 0)", default=0),
    "--max-ii": _takes(interval, "N", "the last II tried (default: that of the serial schedule)"),
    "--serial-threshold": _takes(
        positive, "N", "loops of fewer operations are scheduled serially (default: 2)", default=2
    ),
    "--no-fuse": _flag("do not let operations fuse"),
    "--strict": _flag("fail where a constraint is not honoured, or registers spill"),
    "--pin": _takes(
        pins,
        "OP=WHAT:N|@FILE",
        "place an operation: OP=start:N, stage:N, cycle:N or before:OP; of a file, a line each",
        action="extend",
        default=[],
    ),
    "--without": _takes(
        part,
        "PART",
        "leave out a rung (rau) or an arm (arm:fuse), to see what it is worth",
        action="append",
        default=[],
    ),
    "--effort": {
        "choices": ("quick", "normal", "thorough"),
        "default": "normal",
        "help": "how much work the search is worth (default: normal)",
    },
    "--ii": _takes(interval, "N", "the II to explain (default: one below the best)"),
    "--iterations": _takes(natural, "N", "the trip count (default: enough for a steady state)"),
    "--mode": {
        "choices": ("unspecialized", "specialized", "emitted"),
        "default": "unspecialized",
        "help": "one instruction stream, or one for each agent (default: unspecialized); "
        "emitted: of a kernel, the program that `stretto emit` prints",
    },
    "kernel": _takes(
        given,
        "KERNEL",
        "a .ttir as Triton writes it, a .tileirbc as cuTile exports it, or - for stdin",
    ),
    "whole": _takes(
        given,
        "KERNEL",
        "a .ttir as Triton writes it, a .tileirbc as cuTile exports it, a kernel in MLIR as "
        "stretto import writes it (schedules on its loops are kept to), or - for stdin",
    ),
    "split": _takes(
        positive, "N", "split its rows between N replicas of the agent that computes (default: 1)"
    ),
    "--to": {
        "choices": ("gluon", "mlir"),
        "default": "gluon",
        "help": "the language (default: gluon); mlir: the program that is printed, which emit and "
        "simulate read back",
    },
    "to_file": _takes(given, "OUT", "the file to write, or - for stdout"),
    "converted": {
        "choices": ("json", "mlir", "graphml", "ssp"),
        "help": "the format (default: what OUT ends in; graphml writes OUT_RM.xml beside it)",
    },
    "target": _takes(
        given,
        "NAME|FILE.toml",
        "the machine (default: the one that a module names, or of the target that the .json beside "
        "a .ttir says; else h200)",
    ),
    "emitted": {
        "choices": ("specialized", "unspecialized"),
        "help": "warpgroups that copy and others that compute, or one that does everything "
        "(default: specialized, where there is a product)",
    },
    "--trace": _flag("have the kernel record clocks at each wait and issue, in one more argument"),
    "--consumers": _takes(
        positive,
        "N",
        "consumer warpgroups, each with its part of the rows (default: 1 or 2, the smaller II)",
    ),
    "tiled": {
        "choices": ("given", "longest", "persistent"),
        "help": "the blocks of a launch, those with most to do first, or one for each SM that goes "
        "over several tiles (default: given)",
    },
    "--agents": _takes(
        agents,
        "OP=AGENT,...",
        "which agent issues an operation, instead of the machine's choice "
        "(k=compute: the computing warpgroup issues the copy k)",
        action="append",
        default=[],
    ),
    "--depth": _takes(
        positive, "N", "slots of a ring, at most (default: as many as shared memory has room for)"
    ),
    "kernels": _takes(
        given, "KERNEL", "a kernel, .ttir or .tileirbc; several are ranked", nargs="+"
    ),
    "--grids": _takes(
        grid,
        "X[,Y[,Z]]",
        "how many blocks run; give it again for the next kernel",
        action="append",
        required=True,
        dest="grids",
    ),
    "launched-grid": _takes(
        grid,
        "X[,Y[,Z]]",
        "for a launch of so many blocks: several share an SM where that is predicted to be faster",
    ),
    "--argument": _takes(
        launched,
        "NAME=N",
        "a number that the kernel is launched with, or the shape of a tensor (4096x128)",
        action="append",
        default=[],
    ),
    "--clock": _takes(amount, "MHZ", "the clock of the SMs (default: what the machine states)"),
    "--what-if": _flag("rank other ring depths and numbers of consumers as well"),
    "--assembled": _flag(
        "have Triton compile it, without a GPU, and predict its loops by machine code; "
        "of a ranking, the first few"
    ),
    "--measured": _takes(
        given,
        "TRACE.json",
        "compare with what a kernel of `emit --trace` measured of its waits on a GPU",
    ),
    "checked": _takes(given, "FILE.py[:KERNEL]", "a file of Gluon kernels, or one kernel of it"),
    "--against": _takes(
        given,
        "REFERENCE.py",
        "compare results with what this file's function of the kernel's name does to NumPy arrays",
    ),
    "gpu": {
        "choices": ("hopper", "blackwell"),
        "help": "the GPU that the file's own host code sees (default: hopper, or blackwell if its "
        "tests skip that)",
    },
    "--fences": {
        "choices": ("written", "inserted"),
        "default": "written",
        "help": "whether proxy fences within a partition have to be written, or the compiler "
        "inserts them, as newer versions of Triton do (default: written)",
    },
    "seeds": _takes(
        positive, "N", "orders of copies and partitions that are run (default: 4)", default=4
    ),
    "programs": _takes(
        natural, "N", "programs of each grid that are run; 0: all (default: 4)", default=4
    ),
    "stop-limit": _takes(amount, "S", "end after S seconds, with what was found (exit code 3)"),
    "checked-strict": _flag("fail for notes too: proxy fences that hardware may do without"),
    "--calibrate": _takes(
        given, "RESULTS", "write a machine from what benchmarks/gpu/micro.py measured on a GPU"
    ),
    "--inputs": _takes(
        given,
        "FILE.npz",
        "run the whole kernel on these arrays and numbers, by the names of its parameters",
    ),
    "--grid": _takes(
        grid, "X[,Y[,Z]]", "with --inputs: how many blocks run (default: 1)", default=(1,)
    ),
    "--port": _takes(port, "N", "listen on this port (default: 0, any that is free)", default=0),
    "--no-browser": _flag("print the address and open no browser"),
    "--json": {
        "action": "store_const",
        "const": "json",
        "dest": "format",
        "help": "print one JSON document: --format json",
    },
    "inputs": _takes(
        given,
        "INPUT",
        "a file of any format, a folder, a pattern, a file with a document a line, or -",
        nargs="+",
    ),
    "rows": _takes(
        given,
        "FILE.jsonl",
        "write the rows to FILE instead of stdout; where it has rows already, go on after them",
        dest="rows",
    ),
    "--csv": _takes(given, "FILE.csv", "at the end, write the rows as a table too"),
    "--jobs": _takes(positive, "N", "processes on this machine (default: one a core)"),
    "--executor": _takes(given, "dask://HOST:PORT", "run on a Dask cluster instead"),
    "--no-cache": _flag("neither take answers from the store nor keep them there"),
    "loop-limit": _takes(
        amount,
        "S",
        "end the work on a loop after S seconds, with its best verified schedule (default: 60)",
        default=60.0,
    ),
    "paths": _takes(
        given, "PATH", "a file, a folder or a pattern; folders below a folder are suites", nargs="*"
    ),
    "--quick": _flag(
        "a quick look, beside the lower bound: each loop once, with --effort quick, "
        "at most 5 seconds each"
    ),
    "--random": _takes(positive, "N", "N random loops too, of --seed"),
    "--compare": _takes(given, "OLD.json", "a run before: list what is worse (exit code 1)"),
    "--slower": _takes(
        amount,
        "F",
        "with --compare: a median above F times the old one is worse (default: 1.5)",
        default=1.5,
    ),
    "--repeat": _takes(
        positive, "N", "schedule each loop N times; the best time counts (default: 3)", default=3
    ),
    "--html": _takes(given, "FILE.html", "write a page with plots, too"),
    "bench-jobs": _takes(
        positive, "N", "processes on this machine (default: 1, so that times are true)"
    ),
    "swept": _takes(
        given, "INPUT", "a kernel, MLIR, a loop or a dump (or --function FILE.py:NAME)", nargs="?"
    ),
    "--function": _takes(
        given,
        "FILE.py:NAME",
        "a function that makes a loop or a kernel, or a @triton.jit kernel",
    ),
    "axes": _takes(
        axis,
        "NAME=VALUES",
        "values of an argument or a constexpr: 64,128 or 2..5 or 64..256..64 or 16..128*2",
        action="append",
        default=[],
        dest="axes",
    ),
    "settings": _takes(
        axis,
        "PATH=VALUES",
        "values of a setting of the machine file, such as slots.TC.capacity=1,2",
        action="append",
        default=[],
        dest="settings",
    ),
    "--ring": _takes(
        axis,
        "NAME=VALUES",
        "depths of a ring, such as k_tile=2..4 (*: of all)",
        action="append",
        default=[],
    ),
    "stages": _takes(values, "VALUES", "the most stages allowed", default=(), dest="stages"),
    "several": _takes(
        values,
        "VALUES",
        "numbers of consumer warpgroups that share the rows of a kernel",
        default=(),
        dest="split",
    ),
    "--trips": _takes(
        given,
        "FORMULA",
        "iterations of a block, such as '8192 // keys' (default: 1024; of a kernel with a grid "
        "what follows from --argument)",
    ),
    "swept-grid": _takes(
        swept_grid,
        "X[,Y[,Z]]",
        "how many blocks run; each may be a formula such as 'ceil(8192 / rows)' (default: 1)",
    ),
    "--blocks": _takes(blocks, "FORMULA", argparse.SUPPRESS),
    "--sms": _takes(
        positive, "N", "blocks that run at once (default: what the machine states, else 1)"
    ),
    "--front": _takes(
        names,
        "FIGURES",
        "figures of the Pareto front (default: ii,stages,smem,registers; cycles instead of ii "
        "where trips or blocks depend on the grid); tmem is known too",
    ),
    "--measure": _takes(
        given,
        "FILE.py:NAME",
        "a function that measures a configuration; it is called for the fastest",
    ),
    "--top": _takes(positive, "N", "how many configurations are measured (default: 5)", default=5),
    "--signature": _takes(
        typed,
        "NAME=TYPE",
        "type of a parameter of a Triton kernel, such as a_ptr=*fp16",
        action="append",
        default=[],
    ),
    "--arch": _takes(positive, "N", "what Triton compiles for (default: 90)", default=90),
    "--svg": _takes(given, "FILE.svg", "write the first plot, too"),
    "config-limit": _takes(
        amount, "S", "end the work on a configuration after S seconds (default: 20)", default=20.0
    ),
    "--memory-limit": _takes(positive, "MB", "megabytes that each process may take"),
    "progress": _flag("report progress on stderr, also where that is no terminal"),
    "--output": _takes(given, "FILE", "write to FILE instead of stdout (-: stdout)"),
    "--verbose": _flag("report every II tried on stderr"),
}
