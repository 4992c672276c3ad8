"""The `stretto` command before anything is loaded, so that Ctrl-C is answered from the start."""

import sys

INTERRUPTED = 130
ANSWER = """{
  "schema": "stretto.error/1",
  "success": false,
  "errors": [
    "stretto: interrupted"
  ]
}
"""


def run() -> None:
    """Load the command line and run it."""
    try:
        from stretto.cli import main
    except KeyboardInterrupt:
        if "--json" in sys.argv:
            sys.stdout.write(ANSWER)
        else:
            sys.stderr.write("stretto: interrupted\n")
        sys.exit(INTERRUPTED)
    main.run()
