"""`stretto verify`: schedules from a document, or from the attributes of a module."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from stretto.cli.answer import Answer, each_loop
from stretto.errors import DocumentError
from stretto.files import read_text

if TYPE_CHECKING:
    from stretto.report.schedule import VerificationReport
    from stretto.resources.prepare import Prepared


def verify(arguments: argparse.Namespace) -> Answer:
    """`stretto verify`."""
    from stretto.api.given import read_document
    from stretto.api.reading import about, chosen, read_loops
    from stretto.api.verifying import VerifyResult
    from stretto.api.verifying import verify as verified

    input_file, input_text = read_text(arguments.input)
    if arguments.schedule is None:
        return _verify_attributes(arguments, input_file, input_text)
    whole = read_loops(input_file, input_text, arguments.machine)
    source = chosen(whole, arguments.loop)
    given = read_document(arguments.schedule, whole)

    def work(ready: Prepared) -> VerificationReport:
        found = verified(ready, given.of(ready.loop), max_stages=arguments.max_stages)
        return replace(found, notes=about(source.notes, ready.loop.name)).view()

    return each_loop(source, arguments.machine, VerifyResult.SCHEMA, work)


def _verify_attributes(arguments: argparse.Namespace, file: str, text: str) -> Answer:
    """The schedules that stand in a module, as attributes of its loops."""
    from stretto.api.reading import chosen, is_mlir
    from stretto.api.verifying import VerifyResult
    from stretto.api.verifying import verify as verified
    from stretto.frontends import Source
    from stretto.ir import read_schedules
    from stretto.machine import load_machine

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
        verdict = verified(ready, item.analysis, max_stages=arguments.max_stages)
        placed.extend(item.diagnose(violation).render() for violation in verdict.violations)
        notes = tuple(warning.headline for warning in item.warnings)
        return replace(verdict, notes=notes).view()

    loops = tuple(
        replace(found[loop.name].loop, machine=None) for loop in source.loops if loop.name in found
    )
    targets = {name: item.machine for name, item in found.items()}
    answer = each_loop(Source(file, loops), targets, VerifyResult.SCHEMA, work)
    answer.errors = placed + answer.errors
    return answer
