"""One kernel through every step: read, schedule, emit, compile; beside it Triton's own compile.

    TTIR ──► read ──► every loop scheduled ──► emitted ──┬► with overlap ──► simulated ─► compiled
                                                         └► without                       │
                                                             spills no more than Triton's own

A step that fails says why, in the words that a user is told.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from outcomes import LEVELS, Outcome, Told
from values import differs

from stretto.api.emitting import emit
from stretto.api.kernels import kernel_source
from stretto.api.solving import schedule
from stretto.compile.choice import NOTHING
from stretto.compile.sources import kernels_of
from stretto.emission import Emitted
from stretto.errors import StrettoError
from stretto.kernel import Kernel, Operation
from stretto.kernel.types import Scalar
from stretto.launching.compiler import compiler_name
from stretto.launching.compiling import Compiled, compile_emitted

LOOPS = ("scf.for", "scf.while")
READS = ("tile.load", "tile.view_load", "tile.view_gather")
WORDS = 240
"""Characters of a reason that are kept."""


def through(name: str, file: Path, own: Told, cache: Path, launch: Any, simulated: bool) -> Outcome:
    """A dump through every step, as far as it goes; `simulated`: what is printed also runs."""
    found = Outcome(name, own=own.get("spilled"))
    try:
        _steps(found, file, cache, launch, simulated)
    except StrettoError as error:
        found.reason = plain(str(error))
    except Exception as error:
        found.reason = f"internal error: {type(error).__name__}: {plain(str(error))}"
    return found


def _steps(found: Outcome, file: Path, cache: Path, launch: Any, simulated: bool) -> None:
    (kernel,) = kernels_of(str(file), file.read_text("utf-8"))
    found.level = "read"
    count(found, kernel)
    if found.kind == "neither":
        return
    try:
        made = emit(
            kernel, "h200", assemble=compiling(cache),
            **({} if simulated or launch is None else of_launch(kernel, launch)),
        )  # fmt: skip
    except CompileError as error:
        made = emit(str(file), "h200")
        found.reason = plain(str(error))
    except StrettoError:
        if found.loops:
            for loop in kernel_source(str(file), (kernel,), "h200").loops:
                if not schedule(loop, "h200", effort="quick").success:
                    raise
        found.level = "scheduled"
        raise
    found.consumers = made.consumers
    found.overlap = made.overlap
    found.level = "emitted" if found.overlap else "printed without overlap"
    file.with_suffix(".emitted.py").write_text(made.source, "utf-8")
    if not found.overlap:
        found.reason = found.reason or why_nothing(made.notes)
    if found.reason:
        return
    if simulated:
        told = differs(made.emitted.program, launch)
        found.reason = told or ""
        if told:
            return
    assert isinstance(made.assembled, Compiled)
    found.level, found.spilled = "compiled", made.assembled.spilled
    if made.assembled.remarks:
        found.reason = plain(made.assembled.remarks[0])
    elif found.spilled > (found.own or 0):
        found.reason = f"spills {found.spilled} bytes, Triton's own {found.own}"
    else:
        found.level = LEVELS[-1]


def of_launch(kernel: Kernel, launch: Any) -> dict[str, Any]:
    """What `emit` is told of a recorded launch: its grid, and the numbers of trip counts."""
    taken = {p.name for p in kernel.parameters if isinstance(p.value.type, Scalar)}
    told = {n: v for n, v in launch.numbers.items() if n in taken and type(v) in (int, float)}
    return {"grid": launch.grid, "arguments": told} if launch.grid else {}


def why_nothing(notes: Sequence[str]) -> str:
    """Why nothing of a kernel overlaps, by what was noted while it was made."""
    told = [note for note in notes if note.startswith(NOTHING) or "do not overlap" in note]
    return plain(told[0]) if told else NOTHING


def count(found: Outcome, kernel: Kernel) -> None:
    """Its products, and its loops that read memory: others, such as those that wait for a lock or
    go over what is in registers, have nothing to overlap."""
    found.products = sum(op.name == "tile.dot" for op in kernel.walk())
    found.loops = sum(op.name in LOOPS and _reads(op) for op in kernel.walk())


def _reads(loop: Operation) -> bool:
    return any(op.name in READS for region in loop.regions for op in region.walk())


def compiling(cache: Path) -> Callable[[Emitted], Compiled]:
    """The compiler, which is asked once for each source."""

    def compiled(emitted: Emitted) -> Compiled:
        told = f"{compiler_name()}{emitted.source}{emitted.warps}{emitted.maxnreg}"
        known = cache / f"{hashlib.sha256(told.encode()).hexdigest()[:24]}.json"
        if known.exists():
            said = json.loads(known.read_text("utf-8"))
            if "error" in said:
                raise CompileError(said["error"])
            said["remarks"] = tuple(said["remarks"])
            said["cubin"] = base64.b64decode(said["cubin"])
            return Compiled(**said)
        try:
            made = compile_emitted(emitted)
        except Exception as error:
            last: BaseException = error
            while last.__cause__ is not None:
                last = last.__cause__
            why = f"{type(last).__name__}: {last}"[:WORDS]
            known.write_text(json.dumps({"error": why}), "utf-8")
            raise CompileError(why) from error
        said = asdict(made) | {"cubin": base64.b64encode(made.cubin).decode()}
        known.write_text(json.dumps(said), "utf-8")
        return made

    return compiled


class CompileError(StrettoError):
    """Triton does not compile what we print."""


def plain(text: str) -> str:
    """A message without the place in the user's file or any folder, on one line."""
    text = re.sub(r"\S+\.(py|ttir):\d+:\d+: ", "", text)
    text = re.sub(r"/[\w.+-]+(/[\w.+-]+)*/", "", text)
    return " ".join(text.split())[:WORDS]
