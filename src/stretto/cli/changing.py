"""`--set`: another machine in the place of the one that was named.

--machine h200 --set budgets.smem.bytes=65536  ──►  the text of a machine that extends h200

Where no machine is named, it is the one that the loops of the input name.
"""

from __future__ import annotations

import argparse

from stretto.errors import StrettoError
from stretto.files import STANDARD
from stretto.machine import load_machine
from stretto.machine.settings import Setting, parse_setting, settings_toml


def change_machine(arguments: argparse.Namespace) -> None:
    """Put the machine as it is set into the place of the machine."""
    settings: dict[str, Setting] = dict(map(parse_setting, arguments.set))
    where = "name" if arguments.command == "machines" else "machine"
    base = getattr(arguments, where) or _named(arguments)
    told = ", ".join(f"{path}={value}" for path, value in settings.items())
    called = f"{load_machine(base).name} with {told}"
    text = settings_toml(base, settings, called)
    load_machine(text)  # a fault of the settings is none of the input
    setattr(arguments, where, text)


def _named(arguments: argparse.Namespace) -> str:
    """The machine that all loops of the input are for."""
    from stretto.api.read_write import read
    from stretto.machine.choice import chosen_for_loop

    if "loop" not in arguments or arguments.input == STANDARD:
        raise StrettoError("--set changes a machine: name it with --machine")
    loops = read(arguments.input).loops
    names = {
        chosen_for_loop(loop.machine).name for loop in loops if arguments.loop in (None, loop.name)
    }
    if len(names) > 1:
        told = ", ".join(sorted(names))
        raise StrettoError(f"--set changes one machine, and the loops name {told}: give --machine")
    return names.pop() if names else chosen_for_loop(None).name
