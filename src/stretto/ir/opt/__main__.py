"""The `stretto-opt` command: exit status 0, 1 on errors, 2 on wrong usage, 130 on Ctrl-C.

text ──► chunks ──► passes ──► text, whole        stdout or -o FILE
                      └──────► diagnostics        stderr, each at its place
"""

from __future__ import annotations

import sys

from stretto import starting

TYPE_CHECKING = False  # typing takes a while to load, and a command starts here
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run once; the exit code."""
    from stretto.errors import unforeseen  # noqa: PLC0415
    from stretto.files import FAILED, INTERRUPTED, OutputError  # noqa: PLC0415

    try:
        from stretto.ir.opt.driver import drive  # noqa: PLC0415 - so that Ctrl-C finds us ready

        return drive(sys.argv[1:] if argv is None else list(argv))
    except KeyboardInterrupt:
        sys.stderr.write("stretto-opt: interrupted\n")
        return INTERRUPTED
    except (BrokenPipeError, OutputError):
        raise
    except Exception as error:  # whatever it is, no traceback reaches the user
        sys.stderr.write(unforeseen(error, "stretto-opt") + "\n")
        return FAILED


def run() -> None:
    """The console script."""
    starting.hold("stretto-opt")
    from stretto.files import serve, speak_utf8  # noqa: PLC0415

    speak_utf8()
    sys.exit(serve("stretto-opt", main))


if __name__ == "__main__":
    run()
