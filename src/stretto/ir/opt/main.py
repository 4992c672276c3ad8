"""The `stretto-opt` command: exit status 0, 1 on errors, 2 on wrong usage, 130 on Ctrl-C.

text ──► chunks ──► passes ──► text, whole        stdout or -o FILE
                      └──────► diagnostics        stderr, each at its place
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

DONE, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run once; the exit code."""
    try:
        from stretto.ir.opt.driver import drive  # noqa: PLC0415 - so that Ctrl-C finds us ready

        return drive(sys.argv[1:] if argv is None else list(argv))
    except KeyboardInterrupt:
        sys.stderr.write("stretto-opt: interrupted\n")
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:  # whatever it is, no traceback reaches the user
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        sys.stderr.write(f"stretto-opt: error: {said}; this is a bug, please report it\n")
        return FAILED


def run() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # file names need not be text
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader went away (`stretto-opt ... | head`); that is no failure of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = DONE
    sys.exit(code)
