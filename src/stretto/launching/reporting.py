"""What was made of a kernel, for people: `STRETTO_REPORT=folder python train.py`.

    folder/attention_forward-9f2c1a77.txt     the schedules of its loops
                                     .py      the Gluon source
                                     .json    both for programs (schema stretto.pipeline/1)

A kernel that runs as its own framework compiles it has a .txt and a .json that say why.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stretto.files import reason
from stretto.launching.asked import Asked
from stretto.launching.storing import Entry
from stretto.launching.verdicts import Verdict
from stretto.machine import Machine

if TYPE_CHECKING:  # what emits takes long to load
    from stretto.compile.emitted import EmittedKernel

VARIABLE = "STRETTO_REPORT"
SCHEMA = "stretto.pipeline/1"
VERDICTS = "stretto.verdicts/1"
DIGITS = 12
"""Of a key in the name of a file."""


def described(
    name: str, made: EmittedKernel, machine: Machine, writes: Sequence[str]
) -> tuple[str, dict[str, Any]]:
    """Text and document of a kernel that was made; `writes`: the parameters it writes through."""
    from stretto.api.solving import result_of  # noqa: PLC0415 - where something was made

    emitted = made.emitted
    who = f"{made.consumers} consumer{'s' if made.consumers > 1 else ''}"
    lines = [
        f"{name} on {machine.name}: {made.mode}, {who}, {emitted.smem:,} bytes of shared memory",
        *(f"ring {ring}: {depth} deep" for ring, depth in emitted.rings.items()),
        *(f"note: {note}" for note in made.notes),
    ]
    lines += [f"\n{result_of(found).report()}" for found in made.analyses]
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "success": True,
        "kernel": name,
        "entry": f"{emitted.name}_kernel",
        "machine": machine.name,
        "mode": made.mode,
        "consumers": made.consumers,
        "smem": emitted.smem if made.assembled is None else made.assembled.smem,
        "spilled": 0 if made.assembled is None else made.assembled.spilled,
        "warps": emitted.warps,
        "maxnreg": emitted.maxnreg,
        "rings": emitted.rings,
        "writes": list(writes),
        "notes": list(made.notes),
        "loops": [result_of(found).to_json() for found in made.analyses],
    }
    return "\n".join(lines) + "\n", document


def report(name: str, key: str, entry: Entry) -> None:
    """Write what was made, where the user asked for it."""
    files = {".txt": entry.text, ".py": entry.source, ".json": _text(entry.document)}
    _report(name, key, files)


def report_refused(name: str, key: str, asked: Asked, why: str) -> None:
    """Write why nothing was made."""
    machine = asked.machine.name if isinstance(asked.machine, Machine) else asked.machine
    document = {
        "schema": SCHEMA,
        "success": False,
        "kernel": name,
        "machine": machine,
        "reason": why,
    }
    _report(name, key, {".txt": f"{name} is not pipelined: {why}\n", ".json": _text(document)})


def report_verdicts(name: str, key: str, decided: Sequence[Verdict]) -> None:
    """Write which kernel won, for each kind of launch."""
    document = {"schema": VERDICTS, "kernel": name, "verdicts": [one.to_json() for one in decided]}
    _report(name, key, {".verdicts.json": _text(document)})


def report_tuned(name: str, key: str, text: str, document: Mapping[str, Any]) -> None:
    """Write how configurations were ranked, and which was chosen."""
    _report(name, key, {".tuned.txt": text, ".tuned.json": _text(document)})


def _text(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2) + "\n"


def _report(name: str, key: str, files: Mapping[str, str]) -> None:
    folder = os.environ.get(VARIABLE)
    if not folder:
        return
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for suffix, text in files.items():
            Path(folder, f"{name}-{key[:DIGITS]}{suffix}").write_text(text, encoding="utf-8")
    except OSError as error:  # no reason for a kernel to run in another way
        warnings.warn(f"{VARIABLE}: cannot write in {folder}: {reason(error)}", stacklevel=2)
