"""`stretto verify`: schedules from a document, or from the attributes of a module."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from typing import TYPE_CHECKING

from stretto.cli.answer import Answer, each_loop
from stretto.cli.inputs import about, chosen, is_mlir, read_loops
from stretto.errors import DocumentError
from stretto.files import read_text

if TYPE_CHECKING:
    from stretto.api import Prepared
    from stretto.frontends import Source


def verify(arguments: argparse.Namespace) -> Answer:
    """`stretto verify`."""
    from stretto.report.verification import SCHEMA, VerificationReport
    from stretto.schedule.reading import parse_schedules
    from stretto.verify import verify as violations_of

    input_file, input_text = read_text(arguments.input)
    if arguments.schedule is None:
        return _verify_attributes(arguments, input_file, input_text)
    whole = read_loops(input_file, input_text, arguments.machine)
    source = chosen(whole, arguments.loop)
    file, text = read_text(arguments.schedule)
    entries = _entries(file, text, whole)

    def work(ready: Prepared) -> VerificationReport:
        loop = ready.loop
        if loop.name not in entries:
            names = ", ".join(entries) or "none"
            raise DocumentError(file, "$.loops", f"no schedule of `{loop.name}`", f"has: {names}")
        analyses = parse_schedules(file, entries[loop.name], {loop.name: loop})
        analysis = next(a for a in analyses if a.loop == loop.name)
        found = violations_of(loop, ready.machine, analysis, max_stages=arguments.max_stages)
        warnings = ready.notes + about(source.notes, loop.name)
        return VerificationReport(loop.name, ready.machine.name, analysis, found, warnings)

    return each_loop(source, arguments.machine, SCHEMA, work)


def _verify_attributes(arguments: argparse.Namespace, file: str, text: str) -> Answer:
    """The schedules that stand in a module, as attributes of its loops."""
    from stretto.frontends import Source
    from stretto.ir import read_schedules
    from stretto.machine import load_machine
    from stretto.report.verification import SCHEMA, VerificationReport
    from stretto.verify import verify as violations_of

    if not is_mlir(text):
        hint = "only a module can carry its schedule: stretto verify INPUT SCHEDULE"
        raise DocumentError(file, "", "has no schedule", hint)
    machine = None if arguments.machine is None else load_machine(arguments.machine)
    every = {item.loop.name: item for item in read_schedules(file, text, machine)}
    source = chosen(Source(file, tuple(item.loop for item in every.values())), arguments.loop)
    found = {name: item for name, item in every.items() if item.analysis is not None}
    if not any(loop.name in found for loop in source.loops):
        hint = "stretto-opt -p tileas-generate-schedule writes one"
        raise DocumentError(file, "", "has no schedule on any of these loops", hint)
    placed: list[str] = []
    for loop in source.loops:
        if loop.name not in found:
            placed.append(f"{file}: warning: loop `{loop.name}` has no schedule to verify")

    def work(ready: Prepared) -> VerificationReport:
        item = found[ready.loop.name]
        assert item.analysis is not None
        said = violations_of(
            ready.loop, ready.machine, item.analysis, max_stages=arguments.max_stages
        )
        placed.extend(item.diagnose(violation).render() for violation in said)
        warnings = ready.notes + tuple(warning.headline for warning in item.warnings)
        return VerificationReport(
            ready.loop.name, ready.machine.name, item.analysis, said, warnings
        )

    loops = tuple(
        replace(found[loop.name].loop, machine=None) for loop in source.loops if loop.name in found
    )
    targets = {name: item.machine for name, item in found.items()}
    answer = each_loop(Source(file, loops), targets, SCHEMA, work)
    answer.errors = placed + answer.errors
    return answer


def _entries(file: str, text: str, source: Source) -> dict[str, str]:
    """Loop name to the schedule document with the entry of that loop alone.

    The others are reduced to their names, so that every loop can be read for itself and places
    in the document stay what they are. An entry of no loop, or a second one, is an error.
    """
    from stretto.document import parse_json
    from stretto.schedule.json import SCHEMA
    from stretto.schedule.reading import parse_schedules

    if not text.strip():
        raise DocumentError(file, "", "is empty", f'expected schedules ("schema": "{SCHEMA}")')
    top = parse_json(file, text)
    rows = top.get("loops").items() if isinstance(top.value, dict) and top.has("loops") else []
    parse_schedules(file, json.dumps({**top.table(), "loops": []}) if rows else text)
    known = [loop.name for loop in source.loops]
    places: dict[str, int] = {}
    for i, row in enumerate(rows):
        name = row.get("name").text()
        if name not in known:
            hint = f"the loops of {source.file}: {', '.join(known)}"
            raise row.fail(f"is of `{name}`, which is no loop of the input", hint)
        if name in places:
            raise row.fail(f"is a second schedule of `{name}`", f"$.loops[{places[name]}] is one")
        places[name] = i
    blanks = [{"name": name, "success": False} for name in places]
    return {
        name: json.dumps({**top.table(), "loops": [*blanks[:i], rows[i].value, *blanks[i + 1 :]]})
        for name, i in places.items()
    }
