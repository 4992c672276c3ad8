"""Commands for lit out of one process that has loaded everything: a start takes milliseconds.

    lit ──► FOLDER/stretto-opt ──► socket ──► server ──fork──► the command, as installed
            its streams, words, folder and environment go along; its exit status comes back

`python warm_tools.py FOLDER` writes the commands into the folder and serves until it is ended.
"""

# ruff: noqa: SIM115 - streams last as long as the process

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from pkgutil import walk_packages
from typing import NoReturn

TOOLS = ("stretto-opt", "xdsl-opt", "filecheck")
ROOMS = ("stretto.ir", "stretto.solve", "stretto.materialization", "stretto.simulation")
"""What `stretto-opt` comes to load."""

CLIENT = """#!{python} -IS
import json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
socket.send_fds(server, [b"."], [0, 1, 2])
asked = [{tool!r}, sys.argv[1:], os.getcwd(), dict(os.environ)]
server.sendall(json.dumps(asked).encode() + b"\\n")
status = server.recv(1)
sys.exit(status[0] if status else 255)
"""


def main(folder: Path) -> None:
    """Write the commands, then answer each by a process of its own."""
    installed = entry_points(group="console_scripts")
    commands = {tool: installed[tool].load() for tool in TOOLS}
    for room in ROOMS:
        for module in walk_packages(import_module(room).__path__, f"{room}."):
            if not module.name.endswith("__main__"):
                import_module(module.name)
    gc.freeze()  # a collection in a forked process would write to every page of this one
    address = str(folder / "socket")
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen()
    for tool in TOOLS:
        script = folder / tool
        script.write_text(CLIENT.format(python=sys.executable, address=address, tool=tool))
        script.chmod(0o755)
    print("ready", flush=True)  # noqa: T201 - whoever started it waits for this
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how the processes between ended
    while True:
        connection, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            tool = between(connection)
            sys.exit(commands[tool]())
        connection.close()


def between(connection: socket.socket) -> str:
    """Take the words; the command's own process goes on from here, this one tells its end."""
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    with connection.makefile("rb") as lines:
        tool, words, folder, environment = json.loads(lines.readline())
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = os.fork()
    if child:
        tell(connection, child)
    connection.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin = open(0, closefd=False)  # as Python does at its start: pipes and files differ
    sys.stdout = open(1, "w", closefd=False)
    sys.stderr = open(2, "w", errors="backslashreplace", buffering=1, closefd=False)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [tool, *words]
    return tool


def tell(connection: socket.socket, child: int) -> NoReturn:
    """The exit status of the command, when it has one."""
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    connection.sendall(bytes([code if code >= 0 else 128 - code]))
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
