"""How the command line explains itself: a screen of usual options, and all of them in groups.

stretto --help               every command, a line each
stretto COMMAND --help       what it is for, and its usual options: a screen
stretto COMMAND --help-all   all options, in groups, with all that is to be said of each
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator

SUMMARIES = {
    "Understand a loop": {
        "bounds": "how small the II can be, and what limits it",
        "schedule": "the best schedule found, verified",
        "explain": "why not a smaller II, and what would help",
        "assign": "which warpgroup does what, chosen with the schedule",
        "simulate": "run the pipelined program beside the loop",
        "verify": "is a schedule legal?",
        "view": "look at schedules in a browser, and change them",
        "compare": "two schedules side by side",
    },
    "Work with a Triton or cuTile kernel": {
        "predict": "how fast a kernel will be on a grid",
        "emit": "the kernel as Gluon source, pipelined",
        "import": "the kernel as MLIR, lowered for a machine",
        "check": "look for races and deadlocks in Gluon source",
        "sweep": "tiles, stages, rings: which configuration is best",
    },
    "Many loops": {
        "batch": "schedule every loop of many inputs",
        "bench": "how good and how fast, over suites of loops",
    },
    "Everything else": {
        "machines": "list the machines, or show one",
        "convert": "write a loop in another format",
        "completion": "completion for bash, zsh or fish",
    },
}
"""Every command in a few words, in the order in which `stretto --help` has them."""

USUAL = {
    "schedule": "--machine --loop --prove --generator --max-stages --pin --format --output",
    "bounds": "--machine --set --loop --json --output",
    "explain": "--machine --set --loop --ii --max-stages --pin --time-limit --json",
    "assign": "--machine --set --loop --groups --time-limit --json --output",
    "verify": "--machine --set --loop --max-stages --json --output",
    "simulate": "--machine --loop --iterations --mode --inputs --grid --json --output",
    "check": "--against --target --seeds --programs --time-limit --strict --format --output",
    "import": "--machine --set --consumers --json --output",
    "emit": "--machine --mode --consumers --depth --time-limit --output",
    "predict": "--grid --argument --machine --consumers --depth --what-if --format --output",
    "convert": "--to --machine --loop --json",
    "batch": "--machine --output --csv --jobs --time-limit --prove --json",
    "bench": "--quick --random --compare --repeat --html --generator --machine --output",
    "sweep": "--function --axis --set --ring --consumers --grid --argument --machine --html",
    "compare": "--a --b --json --output",
    "view": "--machine --set --loop --pin --time-limit --port --no-browser",
    "machines": "--set --toml --calibrate --json --output",
    "completion": "--output",
}
"""What `--help` shows of a command; of one that is not here, everything."""

EXAMPLES = {
    "schedule": "stretto schedule kernel.ttir --format html -o kernel.html",
    "bounds": "stretto bounds kernel.ttir --machine h200",
    "explain": "stretto explain kernel.ttir",
    "assign": "stretto assign loop.mlir --machine b200",
    "simulate": "stretto simulate kernel.ttir --inputs arrays.npz --grid 8",
    "check": "stretto check kernels.py",
    "emit": "stretto emit kernel.ttir -o kernel.py",
    "predict": "stretto predict kernel.ttir --grid 128,16 --argument length=16384",
    "sweep": "stretto sweep --function kernel.py:make --axis rows=64,128",
    "batch": "stretto batch loops/ -o rows.jsonl",
    "bench": "stretto bench loops/ --quick",
    "machines": "stretto machines h200",
}

GROUPS = {
    "what to vary": "--function --axis --ring",
    "the kernel and its launch": (
        "--loop --grid --argument --trips --blocks --iterations --inputs --mode --consumers "
        "--depth --agents --trace --signature --arch --trust-schedule --to --what-if "
        "--assembled --measured"
    ),
    "the machine": "--machine --set --sms --clock --toml --calibrate",
    "the schedule": (
        "--groups --generator --prove --objective --effort --pin --ii --max-ii --max-stages "
        "--strict --no-fuse --without --serial-threshold --seed --a --b"
    ),
    "limits of time, memory and processes": (
        "--time-limit --work-limit --workers --memory-limit --jobs --executor --no-cache"
    ),
    "what is checked": "--against --target --seeds --programs --fences",
    "suites and measurements": (
        "--quick --random --repeat --compare --slower --front --measure --top"
    ),
    "the answer": (
        "--format --json --output --csv --html --svg --port --no-browser --verbose --quiet"
    ),
}
"""Options by what they are about, the usual ones first in each group."""
OTHERS = "further options"
ORDER = {
    option: (group, place)
    for group, options in GROUPS.items()
    for place, option in enumerate(options.split())
}


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Help that leaves a third of the width to the names of options."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)


def name_of(action: argparse.Action) -> str:
    """The long name of an option; of an argument, what it is called."""
    long = [word for word in action.option_strings if word.startswith("--")]
    return long[0] if long else action.dest


def group_of(option: str) -> str:
    """The heading that an option stands under."""
    return ORDER[option][0] if option in ORDER else OTHERS


def in_order(actions: Iterable[argparse.Action]) -> list[argparse.Action]:
    """Options by their groups, and by their places in these."""
    groups = [*GROUPS, OTHERS]

    def key(action: argparse.Action) -> tuple[int, int]:
        name = name_of(action)
        return groups.index(group_of(name)), ORDER.get(name, ("", 0))[1]

    return sorted(actions, key=key)


def usual(command: str, actions: Iterable[argparse.Action]) -> list[argparse.Action]:
    """The options that `--help` shows, in the order that the table has."""
    options = [action for action in actions if action.option_strings]
    if command not in USUAL:
        return options
    by_name = {name_of(action): action for action in options}
    return [by_name[name] for name in USUAL[command].split() if name in by_name]


def first_clause(text: str) -> str:
    """A help text as far as the first aside: what follows is for `--help-all`."""
    return re.split(r"; | \(", text.replace("%(choices)s (", "%(choices)s; "), maxsplit=1)[0]


def overview(known: Iterable[str]) -> Iterator[str]:
    """The lines of `stretto --help`."""
    commands = set(known)
    yield "usage: stretto COMMAND ..."
    width = max(map(len, commands))
    for heading, told in SUMMARIES.items():
        yield f"{heading}:"
        for name, summary in told.items():
            if name in commands:
                yield f"  {name:<{width}}  {summary}"
    for name in sorted(commands.difference(*SUMMARIES.values())):
        yield f"  {name}"
    yield "`stretto COMMAND --help` has its usual options, `--help-all` everything."
