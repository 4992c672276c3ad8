"""A schedule of ours that the verifier refuses: a bug, which costs a better II and not the answer.

    search ──► II 7018 ──► verify ✗ ──► told, and the loop kept as a file to report it with
                              └──► the next best that it accepts: without `improve`, ..., serial

Where `STRETTO_REFUSED` is ``error``, as in all tests and benchmarks, it is an error there and then.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path

from stretto.caching import cache_folder
from stretto.errors import StrettoError
from stretto.files import write_text
from stretto.loop import Loop
from stretto.loop.json import dump_loop
from stretto.solve.job import IllegalScheduleError

VARIABLE = "STRETTO_REFUSED"


def told_of(error: IllegalScheduleError, loop: Loop, machine: str, ii: int) -> str:
    """What a user is told of it; the error itself where that is asked for."""
    if os.environ.get(VARIABLE) == "error":
        raise error
    broken = "; ".join(f"{v.rule}: {v.message}" for v in error.violations)
    return (
        f"a schedule of II {ii} by the {error.generator} generator was refused by the verifier "
        f"({broken}); this is the next best that it accepts. "
        f"This is a bug of Stretto: please report it with {_kept(loop, machine)}"
    )


def _kept(loop: Loop, machine: str) -> str:
    """The file that the loop was written to; why there is none, where it could not be."""
    text = dump_loop(replace(loop, machine=machine))
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    named = "".join(c if c.isalnum() or c in "_-." else "_" for c in loop.name)
    file = cache_folder() / "refused" / f"{named[:80]}-{digest}.json"
    try:
        Path(file.parent).mkdir(parents=True, exist_ok=True)
        write_text(str(file), text)
    except (OSError, StrettoError) as error:
        return f"the loop, which could not be written to {file} ({error})"
    return str(file)
