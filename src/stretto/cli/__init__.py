"""The command line: parsing arguments, and nothing else.

Here is the command before anything is loaded, so that Ctrl-C is answered from the start.
"""

try:
    from stretto import starting
except KeyboardInterrupt:
    raise SystemExit(130) from None  # nothing is loaded yet that could say so

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
    starting.hold("stretto", ANSWER)
    try:
        from stretto.cli.main import leave, main
        from stretto.files import serve
    except KeyboardInterrupt:  # where Ctrl-C is handled by somebody else
        starting.interrupted("stretto", ANSWER)
        raise
    leave(serve("stretto", main))
