"""`stretto view`: the viewer, with answers behind it, until Ctrl-C.

stretto view attention.mlir ──► http://127.0.0.1:41231/TOKEN/
"""

from __future__ import annotations

import argparse
import os
import sys

from stretto.cli.commands import Reply
from stretto.files import write_out

PATIENCE = 5.0
"""Seconds that somebody who looks at a page waits for an answer, unless they say otherwise."""


def run(arguments: argparse.Namespace) -> Reply:
    """Serve until the user has seen enough."""
    from stretto.view.server import Server
    from stretto.view.workshop import Workshop

    options = {
        "generator": arguments.generator,
        "max_stages": arguments.max_stages,
        "fuse": not arguments.no_fuse,
        "pins": tuple(arguments.pin),
        "effort": arguments.effort,
        "time_limit": arguments.time_limit or PATIENCE,
    }
    workshop = Workshop.opened(arguments.input, arguments.machine, arguments.loop, options)
    server = Server(workshop, arguments.port)
    try:
        write_out(f"{server.address}\n")
        sys.stdout.flush()
        if not arguments.no_browser:
            _open(server.address)
        server.run()
    except KeyboardInterrupt:
        pass  # the way to end it
    return Reply(dict, list)


def _open(address: str) -> None:
    """In the user's browser, where there is a screen to show it on."""
    import webbrowser

    screen = sys.platform in ("win32", "darwin") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    )
    if not screen or not webbrowser.open(address):
        write_out("no browser was found: open this address yourself\n")
