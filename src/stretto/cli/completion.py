"""`stretto completion SHELL`: a script that completes commands, options and what options take.

    source <(stretto completion bash)                  in ~/.bashrc, or for now
    source <(stretto completion zsh)                   in ~/.zshrc
    stretto completion fish | source                   in ~/.config/fish/config.fish

Made from the same tables as the command line itself.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from stretto.cli.commands import Reply
from stretto.machine import machine_names


@dataclass(frozen=True, slots=True)
class _Option:
    """One option of a command."""

    names: tuple[str, ...]
    help: str
    takes: bool
    """Whether a value follows."""
    values: tuple[str, ...]
    """Those that are known; none: a file, or anything."""


@dataclass(frozen=True, slots=True)
class _Command:
    name: str
    help: str
    options: tuple[_Option, ...]
    words: tuple[str, ...]
    """What may stand as its argument, where that is no file."""


def run(arguments: argparse.Namespace) -> Reply:
    """The script for a shell."""
    made: dict[str, Callable[[list[_Command]], Iterator[str]]] = {
        "bash": _bash,
        "zsh": _zsh,
        "fish": _fish,
    }
    lines = list(made[arguments.shell](list(_commands())))
    return Reply(dict[str, Any], lambda: lines)


def _commands() -> Iterator[_Command]:
    from stretto.cli.parser import COMMANDS, make_parser

    for name, parser in make_parser().commands.items():
        options: list[_Option] = []
        words: tuple[str, ...] = ()
        for action in parser.arguments:
            values = tuple(map(str, action.choices or ()))
            if "--machine" in action.option_strings or action.dest == "name":
                values = machine_names()
            if not action.option_strings:
                words = words or values
                continue
            takes = action.nargs != 0
            told = (action.help or "").split(" (default")[0].replace("%(choices)s", "")
            options.append(_Option(tuple(action.option_strings), told, takes, values))
        yield _Command(name, COMMANDS[name][0], tuple(options), words)


def _bash(commands: list[_Command]) -> Iterator[str]:
    names = " ".join(command.name for command in commands)
    yield "_stretto() {"
    yield '  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=""'
    yield '  if [ "$COMP_CWORD" -eq 1 ]; then'
    yield f'    COMPREPLY=($(compgen -W "{names} --help --version" -- "$cur")); return'
    yield "  fi"
    yield '  case "${COMP_WORDS[1]} $prev" in'
    for command in commands:
        for option in command.options:
            if option.values:
                cases = "|".join(f'"{command.name} {name}"' for name in option.names)
                yield f'    {cases}) words="{" ".join(option.values)}" ;;'
    yield "  esac"
    yield '  if [ -n "$words" ]; then'
    yield '    COMPREPLY=($(compgen -W "$words" -- "$cur")); return'
    yield "  fi"
    yield '  case "${COMP_WORDS[1]}" in'
    for command in commands:
        every = [name for option in command.options for name in option.names]
        yield f'    {command.name}) words="{" ".join([*every, *command.words])}" ;;'
    yield "  esac"
    yield '  COMPREPLY=($(compgen -W "$words" -- "$cur") $(compgen -f -- "$cur"))'
    yield "}"
    yield "complete -o filenames -F _stretto stretto"


def _zsh(commands: list[_Command]) -> Iterator[str]:
    yield "autoload -U +X bashcompinit && bashcompinit"
    yield from _bash(commands)


def _fish(commands: list[_Command]) -> Iterator[str]:
    for command in commands:
        told = shlex.quote(command.help)
        yield f"complete -c stretto -n __fish_use_subcommand -f -a {command.name} -d {told}"
    for command in commands:
        here = f"complete -c stretto -n '__fish_seen_subcommand_from {command.name}'"
        if command.words:
            yield f"{here} -f -a {shlex.quote(' '.join(command.words))}"
        for option in command.options:
            short = [f"-s {name[1:]}" for name in option.names if not name.startswith("--")]
            long = [f"-l {name[2:]}" for name in option.names if name.startswith("--")]
            takes = ["-r"] if option.takes else []
            values = [f"-a {shlex.quote(' '.join(option.values))}"] if option.values else []
            parts = [here, *short, *long, *takes, *values, f"-d {shlex.quote(option.help)}"]
            yield " ".join(parts)
