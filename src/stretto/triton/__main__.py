"""A program under Stretto: `python -m stretto.triton train.py --epochs 3`.

All kernels that Triton compiles in it are tried, as if each stood under `@stretto.triton.pipeline`.
"""

from __future__ import annotations

import argparse
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from stretto.errors import StrettoError
from stretto.triton.installing import install


def parser() -> argparse.ArgumentParser:
    """What the command takes."""
    found = argparse.ArgumentParser(
        prog="python -m stretto.triton",
        description="Run a program whose Triton kernels are pipelined where that is faster.",
    )
    found.add_argument("--include", action="append", metavar="PATTERN", help="kernels (all)")
    found.add_argument("--exclude", action="append", metavar="PATTERN", help="kernels (none)")
    found.add_argument("--wait", action="store_true", help="first launches wait for our kernels")
    found.add_argument("--no-trial", action="store_true", help="trust the model, time nothing")
    found.add_argument("--check", action="store_true", help="compare both kernels on copies first")
    found.add_argument("--summary", action="store_true", help="print what became of each kernel")
    found.add_argument("-v", "--verbose", action="store_true", help="print each as it is decided")
    found.add_argument("-m", dest="module", action="store_true", help="PROGRAM is a module")
    found.add_argument("program", help="a script, or with -m a module")
    found.add_argument("arguments", nargs=argparse.REMAINDER, help="of the program")
    return found


def main(words: Sequence[str] | None = None) -> int:
    """Install, and run the program as Python would."""
    asked = parser().parse_args(words)
    try:
        install(
            asked.include or ["*"],
            asked.exclude or [],
            trial=not asked.no_trial,
            wait=asked.wait,
            check="first" if asked.check else None,
            summary=asked.summary,
            verbose=asked.verbose,
        )
        if not asked.module and not Path(asked.program).exists():
            raise StrettoError(f"{asked.program}: there is no such file")
    except StrettoError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    sys.argv = [asked.program, *asked.arguments]
    if asked.module:
        runpy.run_module(asked.program, run_name="__main__", alter_sys=True)
        return 0
    sys.path[0] = str(Path(asked.program).resolve().parent)
    runpy.run_path(asked.program, run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
